//! `isogloss align many`: the word vectors of many languages in one space.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::measured::Extractor;
use clap::Args;
use geometry::joint::{AlignManyConfig, AlignManyResult, PairAccuracy, align_many};
use serde::{Serialize, Serializer};

use super::words::Shown;
use crate::failure::Failure;
use crate::models::{Compute, Normalize, steps};
use crate::outcome::Outcome;
use crate::record::RecordFlags;
use crate::request::{Request, one_or_more};

pub(super) const EXAMPLES: &str = "Example:
  Four languages, dictionaries of four of their six pairs, and all pairs evaluated:
    isogloss align many --vectors en=en.vec --vectors fr=fr.vec --vectors de=de.vec \\
      --vectors ru=ru.vec --hub en --dictionary fr-en=fr-en.0-5000.txt \\
      --dictionary de-en=de-en.0-5000.txt --dictionary ru-en=ru-en.0-5000.txt \\
      --dictionary de-fr=de-fr.txt \\
      --test-dictionary fr-en=fr-en.5000-6500.txt --test-dictionary en-fr=en-fr.5000-6500.txt \\
      --test-dictionary de-en=de-en.5000-6500.txt --test-dictionary en-de=en-de.5000-6500.txt \\
      --test-dictionary ru-en=ru-en.5000-6500.txt --test-dictionary en-ru=en-ru.5000-6500.txt \\
      --out one-space

Maps are learned together (generalised Procrustes: every dictionary pair is brought close, whatever its
languages) and, beside it, onto the hub one by one. P@1 by CSLS is given for every ordered pair with a test
dictionary: its own, or that of the opposite direction reversed, or the source's with the hub, by way of the
hub. Words that a map of the pair was learned from are left out and counted, and every translation that any
of the dictionaries has is right.";

#[derive(Args, Serialize)]
pub struct Many {
    /// The vectors of a language, in any format that `align words` reads; repeat for each language.
    #[arg(long, value_name = "LANG=FILE", value_parser = crate::texts::parse_text, required = true,
        help_heading = "Input")]
    pub vectors: Vec<(String, String)>,

    /// A dictionary of two of the languages to learn from; repeat for more. Not every pair needs one.
    #[arg(long, value_name = "LANG1-LANG2=FILE", value_parser = parse_pair, required = true,
        help_heading = "Input")]
    #[serde(serialize_with = "typed_pairs")]
    pub dictionary: Vec<([String; 2], PathBuf)>,

    /// A dictionary of two of the languages, whose words of the first are looked up in the second; repeat for more, such as
    /// that of the opposite direction.
    #[arg(long, value_name = "LANG1-LANG2=FILE", value_parser = parse_pair, help_heading = "Input")]
    #[serde(serialize_with = "typed_pairs")]
    pub test_dictionary: Vec<([String; 2], PathBuf)>,

    /// Read the N most frequent words of each language, which stand first.
    #[arg(long, value_name = "N", default_value_t = 50_000, help_heading = "Input", value_parser = one_or_more())]
    pub max_vocab: usize,

    /// Leave out vectors of zeros, rather than stop at the first.
    #[arg(long, help_heading = "Input")]
    pub tolerant: bool,

    /// The language whose space is the common one [default: the first].
    #[arg(long, value_name = "LANG", help_heading = "Training")]
    pub hub: Option<String>,

    /// What is done to all languages first; several steps with commas between.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "iterative",
        help_heading = "Training"
    )]
    pub normalize: Vec<Normalize>,

    /// Neighbours of CSLS.
    #[arg(long, value_name = "K", default_value_t = 10, help_heading = "Evaluation", value_parser = one_or_more())]
    pub neighbors: usize,

    /// A new folder for the map (LANG.npy) and the mapped vectors (LANG.vec) of each language, learned together.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Replace the folder.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,

    #[command(flatten)]
    pub record: RecordFlags,

    #[command(flatten)]
    pub compute: Compute,
}

fn typed_pairs<S: Serializer>(files: &[([String; 2], PathBuf)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(files.iter().map(|(pair, file)| (pair.join("-"), file)))
}

fn parse_pair(argument: &str) -> Result<([String; 2], PathBuf), String> {
    let parsed = argument.split_once('=').and_then(|(pair, file)| {
        let (a, b) = pair.split_once('-')?;
        let whole = !a.is_empty() && !b.is_empty() && !file.is_empty();
        whole.then(|| ([a.to_owned(), b.to_owned()], PathBuf::from(file)))
    });
    parsed.ok_or_else(|| "write LANG1-LANG2=FILE, such as fr-en=fr-en.txt".to_owned())
}

impl Request for Many {
    const NAME: &str = "align many";
    const REVISION: u32 = 2;
}

impl Many {
    pub fn run(self) -> Result<Outcome, Failure> {
        if let Some(folder) = &self.out {
            files::check_new_folder(folder, self.force)?;
        }
        for (number, (language, _)) in self.vectors.iter().enumerate() {
            text::check_language(language)?;
            if self.vectors[..number].iter().any(|(other, _)| other == language) {
                return Err(Failure::Usage(format!("--vectors names `{language}` twice")));
            }
        }
        let config = AlignManyConfig {
            vectors: self.vectors.iter().map(|(name, file)| (name.clone(), file.into())).collect(),
            dictionaries: self.dictionary.clone(),
            test_dictionaries: self.test_dictionary.clone(),
            hub: self.hub.clone(),
            normalize: steps(&self.normalize),
            neighbours: self.neighbors,
            max_vocab: self.max_vocab,
            skip_zero_vectors: self.tolerant,
        };
        let shown = Shown::default();
        let aligned = self.compute.run(|device| align_many(&config, device, &shown))??;
        drop(shown);
        if let Some(folder) = &self.out {
            let draft = files::NewFolder::with_force(folder, self.force)?;
            for ((language, _), (space, map)) in
                self.vectors.iter().zip(aligned.spaces.iter().zip(&aligned.maps))
            {
                map.save(&draft.path().join(format!("{language}.npy")))?;
                space.write(
                    &draft.path().join(format!("{language}.vec")),
                    &map.apply(&space.matrix),
                )?;
            }
            draft.finish()?;
        }
        let outcome = Outcome::new(describe(&aligned.result), &aligned.result);
        Ok(self.record.keep(outcome, Extractor::AlignMany, 1, []))
    }
}

fn describe(result: &AlignManyResult) -> String {
    let AlignManyResult { languages, hub, dim, loss_hub, losses, train_pairs, .. } = result;
    let listed: usize = result.train_listed.iter().sum();
    let mut text = format!(
        "{} languages in the space of {hub} ({dim} dimensions), from {} dictionaries of {listed} pairs, {} of them with vectors\n\
         mean squared distance of dictionary pairs: {loss_hub:.4} onto the hub, {:.4} together ({} rounds)\n",
        languages.len(),
        train_pairs.len(),
        train_pairs.iter().sum::<usize>(),
        losses.last().unwrap_or(loss_hub),
        losses.len(),
    );
    for [source, target] in &result.untested {
        let _ = writeln!(
            text,
            "{source}-{target} is not tested: of its test dictionary no word is left that has vectors and that no map was learned from"
        );
    }
    if result.pairs.is_empty() {
        return text + &result.signature;
    }
    text += "\nP@1           queries  left out  unmapped  onto hub  together\n";
    for pair in &result.pairs {
        let PairAccuracy {
            source,
            target,
            queries,
            seen,
            p_at_1_hub,
            p_at_1_joint,
            p_at_1_unmapped,
            ..
        } = pair;
        let marks = [
            (pair.trained, "learned from"),
            (pair.reversed, "test dictionary reversed"),
            (pair.pivoted, "test pairs by way of the hub"),
        ];
        let marks: Vec<&str> = marks.iter().filter(|mark| mark.0).map(|mark| mark.1).collect();
        let name = format!("{source}-{target}");
        let line = format!(
            "  {name:<10}  {queries:>8}  {seen:>8}  {p_at_1_unmapped:>8.4}  {p_at_1_hub:>8.4}  {p_at_1_joint:>8.4}  {}",
            marks.join(", ")
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some([onto_hub, together, unmapped]) = result.mean {
        let _ = writeln!(
            text,
            "  {:<10}  {:>8}  {:>8}  {unmapped:>8.4}  {onto_hub:>8.4}  {together:>8.4}",
            "mean", "", ""
        );
    }
    if result.pairs.iter().any(|pair| pair.seen > 0) {
        text += "left out: words that a map of the pair was learned from\n";
    }
    text + &result.signature
}
