//! `isogloss corpus alter`: a second "language" of real text, altered in known ways.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tasks::{AlteredLabels, alter_labelled};
use terms::Task;
use text::{
    Alteration, AlterationResult, AlteredFiles, AlteredOrder, Corpus, LanguageAlterer, LineRules,
    Preparation, Preparer, TokenizerChoice,
};

use super::score::task_values;
use super::texts::{SentenceFlags, TokenizerFlag, parse_text, watch, with_threads};
use super::transfer::of_tasks;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

pub(super) const EXAMPLES: &str = "Examples:
  English in a script of its own, beside the same sentences in English (Dufter & Schütze 2020):
    isogloss corpus alter --text en=en.txt.zst --out fake.txt --original plain.txt \\
      --dictionary fake-en.txt
  With inverted word order; with half of each sentence's words permuted (K et al. 2020):
    isogloss corpus alter --text en=en.txt.zst --order inverted --out inverted.txt
    isogloss corpus alter --text en=en.txt.zst --order permuted --strength 0.5 --out mixed.txt
  A treebank of the same language, to which a parser can be transferred:
    isogloss corpus alter --text en=en_ewt-ud-test.conllu --task parse --order inverted \\
      --out fake-test.conllu
  An encoder of both, whose retrieval is tested on held-out lines:
    isogloss pretrain --text en=plain.txt --text xx=fake.txt --preset no-anchors \\
      --set text.prepared=true --scale tiny --out run
The same seed gives the same language, whatever is altered.";

#[derive(Args, Serialize)]
pub struct Alter {
    /// The text to alter: a file, a glob, or `-` for standard input; plain, gzip or zstd. Repeat for more
    /// files of the same language.
    #[arg(long = "text", short = 't', value_name = "LANG=FILE", value_parser = parse_text,
        required = true, help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    /// The text is labelled data of this task, and is written in the same format: trees and tags follow
    /// their words.
    #[arg(long, value_parser = task_values(), help_heading = "Input",
        conflicts_with_all = ["columns", "lines", "limit", "sample_size", "distinct", "original", "dictionary"])]
    pub task: Option<Task>,

    #[command(flatten)]
    pub sentences: SentenceFlags,

    /// How text is tokenized into words, before it is altered.
    #[arg(long, value_enum, default_value_t = TokenizerFlag::Auto, help_heading = "Input")]
    pub tokenizer: TokenizerFlag,

    /// Lowercase first: in a shifted script, a capital and its small letter are two unrelated letters.
    #[arg(long, help_heading = "Input")]
    pub lowercase: bool,

    /// The script: every character another letter, so that no subword is shared, or as it was.
    #[arg(long, value_enum, default_value_t = ScriptName::Shifted, help_heading = "Alteration")]
    pub script: ScriptName,

    /// The order of the words of a sentence.
    #[arg(long, value_enum, default_value_t = OrderName::Same, help_heading = "Alteration")]
    pub order: OrderName,

    /// With --order permuted: the probability that a word is among those that change places; 0 changes
    /// nothing, 1 gives every order the same probability [default: 1].
    #[arg(long, value_name = "P", help_heading = "Alteration")]
    pub strength: Option<f64>,

    /// A random morphology: every word carries one of N invented endings, which the word before it decides
    /// (0 for none, at most 100).
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Alteration")]
    pub endings: u32,

    /// The random seed of script, permutations, endings and sample.
    #[arg(long, default_value_t = 1, help_heading = "Alteration")]
    pub seed: u64,

    /// The file of altered sentences, one a line; `-` is standard output.
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,

    /// Also write the sentences as they were, tokenised: line i is line i of --out.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub original: Option<PathBuf>,

    /// Also write a dictionary: altered word, space, word; the most frequent first.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub dictionary: Option<PathBuf>,

    /// The most entries of the dictionary.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5000,
        requires = "dictionary",
        help_heading = "Output"
    )]
    pub max_vocab: usize,

    /// Replace files that exist.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    pub threads: u16,
}

/// A script by name.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptName {
    /// Every character is a letter of another script.
    Shifted,
    /// As it was.
    Same,
}

/// An order of words by name.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// As it was.
    Same,
    /// From the last word to the first.
    Inverted,
    /// At random within the sentence, as much as --strength says.
    Permuted,
}

impl Request for Alter {
    const NAME: &str = "corpus alter";
    const REVISION: u32 = 1;
    const LAST: &[&str] = &["columns", "seed", "out", "original", "dictionary"];
    const ON_DEVICE: bool = false;

    fn is_spelt(&self, field: &str) -> bool {
        field == "seed" && self.original.is_some()
    }
}

impl Alter {
    pub fn run(self) -> Result<Outcome, Failure> {
        let alteration = self.alteration()?;
        self.check_outputs()?;
        let result = match self.task {
            Some(task) => self.alter_labels(task, &alteration)?,
            None => with_threads(self.threads, || self.alter_text(&alteration))?,
        };
        let AlterationResult { out, language, sentences, words, .. } = &result;
        let mut text = format!(
            "{}: {sentences} sentences, {words} words of {language}, altered: {}\n",
            out.display(),
            describe(&alteration)
        );
        if let Some(path) = &result.original {
            text += &format!("{}: the same sentences as they were, line by line\n", path.display());
        }
        if let Some(path) = &result.dictionary {
            text +=
                &format!("{}: {} words with their altered forms\n", path.display(), result.entries);
        }
        let outcome = Outcome::new(text, &result);
        let all = self.outputs();
        Ok(all.into_iter().fold(outcome, |outcome, path| outcome.beside(path)))
    }

    fn alteration(&self) -> Result<Alteration, Failure> {
        let order = match (self.order, self.strength) {
            (OrderName::Permuted, strength) => AlteredOrder::Permuted(strength.unwrap_or(1.0)),
            (_, Some(_)) => {
                let message = "--strength says how much is permuted; give it with --order permuted";
                return Err(Failure::Usage(message.to_owned()));
            }
            (OrderName::Same, None) => AlteredOrder::Same,
            (OrderName::Inverted, None) => AlteredOrder::Inverted,
        };
        let shifted_script = self.script == ScriptName::Shifted;
        let alteration =
            Alteration { shifted_script, order, endings: self.endings, seed: self.seed };
        LanguageAlterer::new(&alteration)?;
        Ok(alteration)
    }

    fn outputs(&self) -> Vec<&Path> {
        let optional = [&self.original, &self.dictionary];
        let outputs = std::iter::once(&self.out).chain(optional.into_iter().flatten());
        outputs.map(PathBuf::as_path).collect()
    }

    fn check_outputs(&self) -> Result<(), Failure> {
        let outputs = self.outputs();
        for (at, path) in outputs.iter().enumerate() {
            if outputs[..at].contains(path) {
                let message = format!("{}: two outputs have one name", path.display());
                return Err(Failure::Usage(message));
            }
            files::check_new_file(path, self.force)?;
        }
        Ok(())
    }

    fn language(&self) -> Result<&str, Failure> {
        let language = self.texts[0].0.as_str();
        match self.texts.iter().find(|(other, _)| other != language) {
            None => Ok(language),
            Some((other, _)) => Err(Failure::Usage(format!(
                "--text names {language} and {other}; alter one language at a time"
            ))),
        }
    }

    fn preparer(&self, split: bool) -> Result<Preparer, Failure> {
        let language = self.language()?;
        let preparation = Preparation {
            split,
            words: TokenizerChoice::from(self.tokenizer).for_language(language),
            lowercase: self.lowercase,
            ..Preparation::none()
        };
        Ok(Preparer::new(language, preparation, None)?)
    }

    fn alter_text(&self, alteration: &Alteration) -> Result<AlterationResult, Failure> {
        let files: Vec<String> = self.texts.iter().map(|(_, file)| file.clone()).collect();
        let preparer = self.preparer(!self.sentences.lines)?;
        let corpus = Corpus {
            source: self.sentences.source(preparer.language(), &files)?,
            preparer,
            rules: LineRules::default(),
            selection: self.sentences.selection(self.seed),
        };
        let (original, dictionary) = (self.original.clone(), self.dictionary.clone());
        let files =
            AlteredFiles { out: self.out.clone(), original, dictionary, max_vocab: self.max_vocab };
        let label = format!("altering {}", corpus.source.language());
        Ok(files.write(&corpus, alteration, &mut watch(label))?)
    }

    fn alter_labels(
        &self,
        task: Task,
        alteration: &Alteration,
    ) -> Result<AlterationResult, Failure> {
        let [(_, file)] = &self.texts[..] else {
            return Err(Failure::Usage("--task alters one file at a time".to_owned()));
        };
        let alterer = LanguageAlterer::new(alteration)?;
        let preparer = self.preparer(false)?;
        let altered = alter_labelled(task, Path::new(file), &preparer, &alterer);
        let AlteredLabels { text, sentences, words } = altered.map_err(of_tasks)?;
        files::write(&self.out, text)?;
        Ok(AlterationResult {
            out: self.out.clone(),
            original: None,
            dictionary: None,
            language: preparer.language().to_owned(),
            sentences: sentences as u64,
            words: words as u64,
            entries: 0,
            alteration: alteration.clone(),
        })
    }
}

fn describe(alteration: &Alteration) -> String {
    let mut parts = Vec::new();
    if alteration.shifted_script {
        parts.push("shifted script".to_owned());
    }
    match alteration.order {
        AlteredOrder::Same => {}
        AlteredOrder::Inverted => parts.push("inverted order".to_owned()),
        AlteredOrder::Permuted(strength) => parts.push(format!("permuted order ({strength})")),
    }
    if alteration.endings > 0 {
        parts.push(format!("{} endings", alteration.endings));
    }
    format!("{}, seed {}", parts.join(", "), alteration.seed)
}
