//! `isogloss word-align`: word alignment of parallel text.

mod encoder;
mod score;
mod training;

use std::path::{Path, PathBuf};

use align::{
    AlignmentDirection, AlignmentModel, AlignmentObserver, AlignmentOutputs, AlignmentRequest,
    BitextPreparation, EmIteration, PairRules, ParallelText, Symmetrization, WordAlignResult,
    align_text,
};
use clap::{Args, Subcommand};
use serde::Serialize;
use text::{TextSource, TokenizerChoice};

use self::encoder::EncoderFlags;
pub use self::encoder::ExtractFlag;
use self::score::ScoreFlags;
use self::training::TrainingFlags;
use super::texts::{ParallelFiles, ParallelFlags, TokenizerFlag, with_threads};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::{Progress, Waiting};
use crate::request::{Request, one_or_more};

const EXAMPLES: &str = "Examples:
  Two columns, `source words ||| target words` or with a tab between:
    isogloss word-align --parallel en-fr=bitext.tsv --out links.txt
  Two files that are parallel line by line, tokenized by language:
    isogloss word-align --parallel en=en.txt.gz --parallel zh=zh.txt.gz \\
        --tokenizer auto --prepared words.txt --out links.txt
  The links in words (`le=the chat=cat`), and the lexicon that they make up:
    isogloss word-align --parallel en-fr=bitext.tsv --out links.txt \\
        --readable links.words --lexicon lexicon.tsv
  Train once, align other text later:
    isogloss word-align --parallel en-fr=big.tsv --save big.model --out big.links
    isogloss word-align --parallel en-fr=new.tsv --model big.model --out new.links
  Against gold annotations:
    isogloss word-align score --gold gold.txt --predicted links.txt
  From the hidden states of an encoder (a run or a Hugging Face folder), with
  confidences, and every layer against gold links, beside the IBM model:
    isogloss word-align --parallel en-fr=bitext.tsv --model mbert --layers 8 \\
        --extract itermax --out links.txt --confidences links.scored
    isogloss word-align --parallel en-fr=test.tsv --model mbert --layers all \\
        --extract argmax,itermax,softmax --gold gold.txt
This aligns the words of sentence pairs. To map one space of word vectors onto
another (bilingual lexicon induction), see `isogloss align words`.";

#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct WordAlign {
    #[command(subcommand)]
    then: Option<Then>,

    #[command(flatten)]
    flags: WordAlignFlags,
}

#[derive(Subcommand)]
enum Then {
    /// Evaluate links against gold annotations: precision, recall, F1 and alignment error rate.
    Score(ScoreFlags),
}

#[derive(Args, Serialize)]
pub struct WordAlignFlags {
    #[command(flatten)]
    pub parallel: ParallelFlags,

    /// How text is tokenized into words; links count these words [default: whitespace].
    #[arg(long, value_enum, help_heading = "Input")]
    pub tokenizer: Option<TokenizerFlag>,

    /// Lowercase.
    #[arg(long, help_heading = "Input")]
    pub lowercase: bool,

    /// Keep pairs with an empty side, without links, rather than stop at the first.
    #[arg(long, help_heading = "Input")]
    pub allow_empty: bool,

    /// Read at most the first N pairs.
    #[arg(long, short = 'n', value_name = "N", help_heading = "Input", value_parser = one_or_more())]
    pub limit: Option<usize>,

    /// The file of links, or `-` for standard output: a line for each pair, `0-0 1-2` from source to
    /// target, counted from 0.
    #[arg(
        long,
        short,
        value_name = "FILE",
        required_unless_present = "gold",
        help_heading = "Output"
    )]
    pub out: Option<PathBuf>,

    /// How the links of both directions of the IBM model are combined [default: grow-diag-final-and].
    #[arg(long, value_enum, help_heading = "Output")]
    pub symmetrize: Option<SymmetrizeFlag>,

    /// The links of the forward direction, at most one for each target word.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub forward: Option<PathBuf>,

    /// The links of the reverse direction, at most one for each source word.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub reverse: Option<PathBuf>,

    /// Each link with its posterior probability in either direction: `0-0:0.98:0.91`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub posteriors: Option<PathBuf>,

    /// The log-probability of each pair in either direction, with a tab between.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub scores: Option<PathBuf>,

    /// The tokenized pairs, whose words the links count.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub prepared: Option<PathBuf>,

    /// The links in words, a line for each pair: `le=the chat=cat`.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub readable: Option<PathBuf>,

    /// The lexicon of linked words, the most frequent pair first: how often the two are linked, and the
    /// probability of either given the other, as shares of its links. Tab-separated (.tsv) or JSON lines
    /// (.jsonl).
    #[arg(long, value_name = "FILE.tsv|FILE.jsonl", help_heading = "Output")]
    pub lexicon: Option<PathBuf>,

    /// Save the trained model.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub save: Option<PathBuf>,

    /// Replace files that exist.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,

    /// Align with this in place of training: a file of --save, with its preprocessing; or an encoder, the folder of a
    /// run (RUN@STEP for a snapshot) or a Hugging Face folder, by the similarity of its hidden states.
    #[arg(long, short, value_name = "FILE|DIR", help_heading = "Model", conflicts_with_all = [
        "save", "iterations", "p_null", "tension", "max_tension", "fixed_tension", "prior", "plain",
        "compat"])]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub encoder: EncoderFlags,

    #[command(flatten)]
    pub training: TrainingFlags,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute",
        value_parser = clap::value_parser!(u16).range(..=1024))]
    pub threads: u16,
}

flag_values! {
    pub enum SymmetrizeFlag => Symmetrization {
        /// Links of both directions.
        Intersect,
        /// Links of either direction.
        Union,
        /// The intersection, and neighbouring links of the union while one of their words is unaligned.
        GrowDiag,
        /// Then links of which one word is unaligned.
        GrowDiagFinal,
        /// Then links of which both words are unaligned.
        GrowDiagFinalAnd,
    }
}

impl WordAlign {
    pub fn run(self) -> Result<Outcome, Failure> {
        match self.then {
            Some(Then::Score(flags)) => flags.run(),
            None if self.flags.names_an_encoder() => self.flags.align_with_encoder(),
            None => with_threads(self.flags.threads, || self.flags.align()),
        }
    }
}

impl Request for WordAlignFlags {
    const NAME: &str = "word-align";
    const REVISION: u32 = 1;
    const LAST: &[&str] =
        &["parallel", "tokenizer", "allow_empty", "prepared", "layers", "extract", "gold", "out"];
    const ON_DEVICE: bool = false;
}

impl WordAlignFlags {
    /// Whether --model is an encoder rather than a file of --save.
    fn names_an_encoder(&self) -> bool {
        self.model.as_deref().is_some_and(|path| !path.is_file())
    }

    fn rules(&self) -> PairRules {
        PairRules { allow_empty: self.allow_empty, limit: self.limit }
    }

    /// Refuses outputs that exist or cannot be written together.
    fn check_outputs<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Result<(), Failure> {
        let mut printed = 0;
        for path in paths {
            files::check_new_file(path, self.force)?;
            printed += usize::from(files::is_standard(path));
        }
        if let Some(path) = &self.lexicon {
            text::check_table_name(path)?;
        }
        match printed {
            0 | 1 => Ok(()),
            _ => Err(Failure::Usage("`-`: only one output can be standard output".to_owned())),
        }
    }

    fn preparation(&self, languages: &[String; 2]) -> BitextPreparation {
        BitextPreparation {
            lowercase: self.lowercase,
            languages: languages.clone(),
            tokenizer: match self.tokenizer {
                None | Some(TokenizerFlag::Whitespace) => None,
                Some(choice) => Some(TokenizerChoice::from(choice)),
            },
        }
    }

    fn align(&self) -> Result<Outcome, Failure> {
        self.encoder.refuse()?;
        if self.model.is_some() && (self.lowercase || self.tokenizer.is_some()) {
            let flag = if self.lowercase { "--lowercase" } else { "--tokenizer" };
            let message =
                format!("{flag}: a saved model brings its own preprocessing; leave it out");
            return Err(Failure::Usage(message));
        }
        let outputs = self.outputs();
        self.check_outputs(outputs.paths())?;
        let config = self.training.config()?;
        let (text, languages) = self.text()?;
        let model = self.model.as_deref().map(load).transpose()?;
        let mut display = AlignmentDisplay::new(&text, config.iterations)?;
        let request = AlignmentRequest {
            text: &text,
            preparation: self.preparation(&languages),
            languages,
            model,
            config,
            symmetrization: self.symmetrize.unwrap_or(SymmetrizeFlag::GrowDiagFinalAnd).into(),
            rules: self.rules(),
            outputs,
        };
        let result = align_text(request, &mut display)?;
        drop(display);
        for warning in &result.warnings {
            say!("warning: {warning}");
        }
        let outcome = Outcome::new(describe(&result), &result);
        Ok(self.outputs().paths().fold(outcome, Outcome::beside))
    }

    fn outputs(&self) -> AlignmentOutputs {
        AlignmentOutputs {
            links: self.out.clone().expect("clap asks for it"),
            forward: self.forward.clone(),
            reverse: self.reverse.clone(),
            posteriors: self.posteriors.clone(),
            scores: self.scores.clone(),
            prepared: self.prepared.clone(),
            readable: self.readable.clone(),
            lexicon: self.lexicon.clone(),
            save: self.save.clone(),
        }
    }

    fn text(&self) -> Result<(ParallelText, [String; 2]), Failure> {
        let columns = &self.parallel.columns.columns;
        let source = |language: &str, files: Vec<String>| {
            TextSource::new(language, &files).map(|source| source.with_columns(columns))
        };
        let (text, languages) = match self.parallel.files()? {
            ParallelFiles::Columns(languages, files) => {
                (ParallelText::Pairs(source(&languages.join("-"), files)?), languages)
            }
            ParallelFiles::Files(languages, [a, b]) => {
                let [a, b] = [source(&languages[0], a)?, source(&languages[1], b)?];
                (ParallelText::Parallel(a, b), languages)
            }
        };
        languages.iter().try_for_each(|language| text::check_language(language))?;
        Ok((text, languages))
    }
}

fn load(path: &Path) -> Result<AlignmentModel, Failure> {
    let _waiting = Waiting::new("reading the model");
    Ok(AlignmentModel::load(path)?)
}

fn describe(result: &WordAlignResult) -> String {
    let WordAlignResult { pairs, tokens, types, links, seconds, out, .. } = result;
    format!(
        "{}: {links} links for {pairs} sentence pairs in {seconds:.1} s\n  \
         source    {} words, {} types\n  target    {} words, {} types\n",
        out.display(),
        tokens[0],
        types[0],
        tokens[1],
        types[1],
    )
}

struct AlignmentDisplay {
    bar: Option<Progress>,
    iterations: usize,
    waiting: Option<Waiting>,
}

impl AlignmentDisplay {
    fn new(text: &ParallelText, iterations: usize) -> Result<Self, Failure> {
        let bytes = match text {
            ParallelText::Pairs(source) => source.size()?,
            ParallelText::Parallel(source, target) => source.size()? + target.size()?,
        };
        let bar = Some(Progress::new("reading", bytes >> 20));
        Ok(Self { bar, iterations, waiting: None })
    }
}

impl AlignmentObserver for AlignmentDisplay {
    fn read(&mut self, bytes: u64) {
        self.bar.iter_mut().for_each(|bar| bar.reach(bytes >> 20, "MiB"));
    }

    fn iteration(&mut self, direction: AlignmentDirection, done: &EmIteration) {
        self.bar = None;
        let direction = match direction {
            AlignmentDirection::Forward => "forward",
            AlignmentDirection::Reverse => "reverse",
        };
        let EmIteration { iteration, log_likelihood, perplexity, null, tension } = done;
        say!(
            "{direction} {iteration}/{}: log-likelihood {log_likelihood:.1}, perplexity \
             {perplexity:.2}, tension {tension:.3}, aligned to null {:.1} %",
            self.iterations,
            100.0 * null
        );
    }

    fn linking(&mut self) {
        self.bar = None;
        self.waiting = Some(Waiting::new("linking"));
    }
}
