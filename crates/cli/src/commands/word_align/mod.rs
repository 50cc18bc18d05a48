//! `isogloss word-align`: which words of parallel text stand for one another.

mod learning;
mod output;
mod score;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use align::{
    AlignmentConfig, AlignmentDirection, AlignmentModel, Bitext, BitextObserver, BitextPreparation,
    BitextReader, DirectionModel, DirectionalLinks, EmIteration, ParallelText, Symmetrization,
    train_direction,
};
use clap::{Args, Subcommand, ValueEnum};
use text::TextSource;

use self::learning::Learning;
use self::output::{Aligned, Summary};
use self::score::ScoreFlags;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::{Progress, Waiting};

const EXAMPLES: &str = "Examples:
  Lines of `source words ||| target words`, or the two with a tab between:
    isogloss word-align bitext.en-fr.tsv --out links.txt
  Two files whose lines belong together, cut into words by language:
    isogloss word-align --source en.txt.gz --target zh.txt.gz --lang en --lang zh \\
        --prepared words.txt --out links.txt
  Learn once, align other text later:
    isogloss word-align big.tsv --save big.model --out big.links
    isogloss word-align small.tsv --model big.model --out small.links
  Against a gold standard:
    isogloss word-align score --gold gold.txt --predicted links.txt";

/// Flags of `word-align`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct WordAlign {
    #[command(subcommand)]
    then: Option<Then>,

    #[command(flatten)]
    align: Align,
}

#[derive(Subcommand)]
enum Then {
    /// Compare links with a gold standard: precision, recall, F and alignment error rate.
    Score(ScoreFlags),
}

#[derive(Args)]
struct Align {
    /// Pairs, one a line, with `|||` or a tab between; plain, gzip or zstd, `-` for standard input.
    #[arg(value_name = "PAIRS")]
    pairs: Vec<String>,

    /// The source side, if the sides are files of their own; of a `.tsv` file, the first column.
    #[arg(long, value_name = "FILE", requires = "target", conflicts_with = "pairs")]
    source: Vec<String>,

    /// The target side; line i is the translation of the source's line i.
    #[arg(long, value_name = "FILE", requires = "source", conflicts_with = "pairs")]
    target: Vec<String>,

    /// Where the links go: a line for each pair, `0-0 1-2` from source to target, from 0.
    #[arg(long, value_name = "FILE", required = true)]
    out: Option<PathBuf>,

    /// How the links of both directions are put together.
    #[arg(long, value_enum, default_value_t = SymmetryFlag::GrowDiagFinalAnd)]
    symmetrize: SymmetryFlag,

    /// The links of the forward direction, one for each target word at most.
    #[arg(long, value_name = "FILE")]
    forward: Option<PathBuf>,

    /// The links of the reverse direction, one for each source word at most.
    #[arg(long, value_name = "FILE")]
    reverse: Option<PathBuf>,

    /// Each link with its probability in either direction: `0-0:0.98:0.91`.
    #[arg(long, value_name = "FILE")]
    posteriors: Option<PathBuf>,

    /// The logarithms of each pair's probability in either direction, with a tab between.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,

    /// Keep what was learned.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Learn nothing; link by what was kept, preparing text as then.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "save", "passes", "null", "tension", "most_tension", "fixed_tension", "prior", "plain", "compat",
        "lowercase", "languages"])]
    model: Option<PathBuf>,

    #[command(flatten)]
    learning: Learning,

    /// Make all letters small.
    #[arg(long)]
    lowercase: bool,

    /// Cut words as suits a language (give it twice: source, target); otherwise at white space.
    #[arg(long = "lang", value_name = "LANG")]
    languages: Vec<String>,

    /// The pairs as they were cut into words, which the links count.
    #[arg(long, value_name = "FILE")]
    prepared: Option<PathBuf>,

    /// Keep pairs with an empty side, without links, rather than stop at the first.
    #[arg(long)]
    allow_empty: bool,

    /// Threads; 0 takes every core.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,
}

#[derive(Clone, Copy, ValueEnum)]
enum SymmetryFlag {
    /// Links that both directions have.
    Intersect,
    /// Links that either has.
    Union,
    /// The intersection, and links of the union beside it while one of their words is free.
    GrowDiag,
    /// Then links of which one word is free.
    GrowDiagFinal,
    /// Then links of which both words are free.
    GrowDiagFinalAnd,
}

impl From<SymmetryFlag> for Symmetrization {
    fn from(flag: SymmetryFlag) -> Self {
        match flag {
            SymmetryFlag::Intersect => Symmetrization::Intersect,
            SymmetryFlag::Union => Symmetrization::Union,
            SymmetryFlag::GrowDiag => Symmetrization::GrowDiag,
            SymmetryFlag::GrowDiagFinal => Symmetrization::GrowDiagFinal,
            SymmetryFlag::GrowDiagFinalAnd => Symmetrization::GrowDiagFinalAnd,
        }
    }
}

impl WordAlign {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self.then {
            Some(Then::Score(flags)) => flags.run(),
            None => self.align.run(),
        }
    }
}

impl Align {
    fn run(self) -> Result<Outcome, Failure> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.into()).build();
        let pool = pool.map_err(|error| Failure::Failed(error.to_string()))?;
        pool.install(|| self.align())
    }

    fn align(&self) -> Result<Outcome, Failure> {
        let began = Instant::now();
        let out = self.out.as_ref().expect("clap asks for it");
        let outputs = [&self.forward, &self.reverse, &self.posteriors, &self.scores, &self.save];
        for path in outputs.into_iter().chain([&self.prepared]).flatten().chain([out]) {
            if path.as_os_str() == "-" {
                let message = "`-` is no file: standard output is kept for the result; name a file";
                return Err(Failure::Usage(message.to_owned()));
            }
            files::check_new_file(path, true)?;
        }
        let config = self.learning.config()?;
        let input = self.input()?;
        let known = self.model.as_deref().map(load).transpose()?;
        let bitext = self.read(&input, known.as_ref())?;
        let aligned = match known {
            Some(model) => link(model, &bitext),
            None => self.learn(&bitext, &config)?,
        };
        if let (Some(path), Some(model)) = (&self.save, &aligned.model) {
            model.save(path)?;
        }
        let links = self.write(out, &bitext, &aligned)?;
        let Aligned { passes: [forward, reverse], .. } = aligned;
        let sides = [bitext.source(), bitext.target()];
        let summary = Summary {
            pairs: bitext.len(),
            tokens: sides.map(|side| side.tokens().len()),
            types: sides.map(|side| side.words().len()),
            forward,
            reverse,
            symmetrize: self.symmetrize.into(),
            links,
            out: out.clone(),
            seconds: began.elapsed().as_secs_f64(),
        };
        Ok(Outcome::new(summary.in_words(), &summary))
    }

    fn input(&self) -> Result<ParallelText, Failure> {
        if self.pairs.is_empty() && self.source.is_empty() {
            let message = "no text: name a file of pairs, or give --source and --target";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(match self.source.is_empty() {
            true => ParallelText::Pairs(TextSource::new("pairs", &self.pairs)?),
            false => ParallelText::Parallel(
                TextSource::new("source", &self.source)?,
                TextSource::new("target", &self.target)?,
            ),
        })
    }

    fn preparing(&self) -> Result<BitextPreparation, Failure> {
        let languages = match self.languages.as_slice() {
            [] => None,
            [source, target] => Some([source.clone(), target.clone()]),
            _ => {
                let message = "--lang: give two, the source's and the target's";
                return Err(Failure::Usage(message.to_owned()));
            }
        };
        Ok(BitextPreparation { lowercase: self.lowercase, languages })
    }

    fn read(
        &self,
        input: &ParallelText,
        known: Option<&AlignmentModel>,
    ) -> Result<Bitext, Failure> {
        let preparing = match known {
            Some(model) => model.preparing.clone(),
            None => self.preparing()?,
        };
        let reader = BitextReader::new(preparing, self.allow_empty)?;
        let words = known.map(|model| (&model.source, &model.target));
        let total = match input {
            ParallelText::Pairs(source) => source.size()?,
            ParallelText::Parallel(source, target) => source.size()? + target.size()?,
        };
        let mut bar = Progress::new("reading", total >> 20);
        let mut steps = 0;
        let mut bytes = |read: u64| {
            while steps < read >> 20 {
                steps += 1;
                bar.step("MiB");
            }
        };
        let Some(path) = &self.prepared else {
            return Ok(reader.read(
                input,
                words,
                &mut BitextObserver { bytes: &mut bytes, pair: None },
            )?);
        };
        let mut bitext = None;
        files::write_with(path, |writer| {
            let mut written = Ok(());
            let mut pair = |source: &str, target: &str| {
                if written.is_ok() {
                    written = writeln!(writer, "{} ||| {}", source.trim(), target.trim());
                }
            };
            let mut heard = BitextObserver { bytes: &mut bytes, pair: Some(&mut pair) };
            bitext = Some(reader.read(input, words, &mut heard));
            match &bitext {
                Some(Err(_)) => Err(std::io::Error::other("the text could not be read")),
                _ => written,
            }
        })
        .or_else(|error| match bitext {
            Some(Err(_)) => Ok(()),
            _ => Err(error),
        })?;
        Ok(bitext.expect("read just now")?)
    }

    /// Learns one direction after the other; the first is kept only where it is still needed.
    fn learn(&self, bitext: &Bitext, config: &AlignmentConfig) -> Result<Aligned, Failure> {
        let keep = self.save.is_some() || self.posteriors.is_some() || self.scores.is_some();
        let mut passes = [Vec::new(), Vec::new()];
        let mut learn = |direction: AlignmentDirection| -> Result<(Option<DirectionModel>, DirectionalLinks), Failure> {
            let seen = &mut passes[direction as usize];
            let (lexicon, links) = train_direction(bitext, direction, config, &mut |pass| {
                say!("{}", describe(direction, pass, config.passes));
                seen.push(pass.clone());
            })?;
            Ok((keep.then_some(lexicon), links))
        };
        let (forward_lexicon, forward) = learn(AlignmentDirection::Forward)?;
        let (reverse_lexicon, reverse) = learn(AlignmentDirection::Reverse)?;
        let model = match (forward_lexicon, reverse_lexicon) {
            (Some(forward), Some(reverse)) => Some(AlignmentModel::new(bitext, forward, reverse)),
            _ => None,
        };
        Ok(Aligned { forward, reverse, model, passes })
    }
}

fn load(path: &Path) -> Result<AlignmentModel, Failure> {
    let _waiting = Waiting::new("reading the model");
    Ok(AlignmentModel::load(path)?)
}

fn link(model: AlignmentModel, bitext: &Bitext) -> Aligned {
    let _waiting = Waiting::new("linking");
    let [forward, reverse] = [AlignmentDirection::Forward, AlignmentDirection::Reverse]
        .map(|direction| model.link(bitext, direction));
    Aligned { forward, reverse, model: Some(model), passes: [Vec::new(), Vec::new()] }
}

fn describe(direction: AlignmentDirection, pass: &EmIteration, of: usize) -> String {
    let direction = match direction {
        AlignmentDirection::Forward => "forward",
        AlignmentDirection::Reverse => "reverse",
    };
    let EmIteration { pass, log_likelihood, perplexity, null, tension } = pass;
    format!(
        "{direction} {pass}/{of}: log-likelihood {log_likelihood:.1}, perplexity {perplexity:.2}, \
         tension {tension:.3}, linked to nothing {:.1} %",
        100.0 * null
    )
}
