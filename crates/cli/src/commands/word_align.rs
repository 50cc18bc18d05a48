//! `isogloss word-align`: which words of parallel text stand for one another.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use align::{
    Bitext, Config, Direction, Heard, Input, Lexicon, Links, Model, OneWay, Pass, Preparing,
    Reader, Symmetry, Tally, compare, symmetrise, train_direction,
};
use clap::{Args, Subcommand, ValueEnum};
use rayon::prelude::*;
use serde::Serialize;
use text::Source;

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
struct ScoreFlags {
    /// Gold links, a sentence pair a line: `0-0` is sure, `0?0` or `0p0` possible.
    #[arg(long, value_name = "FILE")]
    gold: String,

    /// Links to be judged: `0-0`.
    #[arg(long, value_name = "FILE")]
    predicted: String,

    /// The gold standard counts places from 1.
    #[arg(long)]
    gold_from_one: bool,
}

#[derive(Args)]
struct Align {
    /// Pairs, one a line, with `|||` or a tab between; plain, gzip or zstd, `-` for standard input.
    #[arg(value_name = "PAIRS")]
    pairs: Vec<String>,

    /// The source side, if the sides are files of their own.
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
    symmetrise: SymmetryFlag,

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

#[derive(Args)]
struct Learning {
    /// Passes through the text; the last one only links [default: 5].
    #[arg(long, value_name = "N")]
    passes: Option<usize>,

    /// The probability that a word is linked to nothing [default: 0.08].
    #[arg(long, value_name = "P")]
    null: Option<f64>,

    /// How strongly links keep to the diagonal, at first; 0 (fixed) is model 1 [default: 2].
    #[arg(long, value_name = "X")]
    tension: Option<f64>,

    /// The most that the tension grows to; more fits the text better and links it worse
    /// [default: 4].
    #[arg(long, value_name = "X", conflicts_with_all = ["fixed_tension", "compat"])]
    most_tension: Option<f64>,

    /// Keep the tension as it is.
    #[arg(long)]
    fixed_tension: bool,

    /// The Dirichlet prior of variational Bayes [default: 0.01].
    #[arg(long, value_name = "ALPHA", conflicts_with = "plain")]
    prior: Option<f64>,

    /// Plain expectation-maximisation, without a prior.
    #[arg(long)]
    plain: bool,

    /// Reproduce another program's arithmetic, with its faults (its tension begins at 4).
    #[arg(long, value_enum, value_name = "PROGRAM")]
    compat: Option<Compat>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compat {
    /// fast_align as of 2016.
    #[value(name = "fast_align")]
    FastAlign,
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

impl From<SymmetryFlag> for Symmetry {
    fn from(flag: SymmetryFlag) -> Self {
        match flag {
            SymmetryFlag::Intersect => Symmetry::Intersect,
            SymmetryFlag::Union => Symmetry::Union,
            SymmetryFlag::GrowDiag => Symmetry::GrowDiag,
            SymmetryFlag::GrowDiagFinal => Symmetry::GrowDiagFinal,
            SymmetryFlag::GrowDiagFinalAnd => Symmetry::GrowDiagFinalAnd,
        }
    }
}

/// What was done.
#[derive(Serialize)]
struct Summary {
    pairs: usize,
    /// Words of both sides, and different ones.
    tokens: [usize; 2],
    types: [usize; 2],
    /// By direction; empty where nothing was learned.
    forward: Vec<Pass>,
    reverse: Vec<Pass>,
    symmetrise: Symmetry,
    links: u64,
    out: PathBuf,
    seconds: f64,
}

impl WordAlign {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self.then {
            Some(Then::Score(flags)) => flags.run(),
            None => self.align.run(),
        }
    }
}

impl ScoreFlags {
    fn run(self) -> Result<Outcome, Failure> {
        #[derive(Serialize)]
        struct Scored {
            #[serde(flatten)]
            score: align::Score,
            sentences: u64,
            found: u64,
            sure: u64,
            possible: u64,
        }
        let gold = Source::new("gold", &[self.gold])?;
        let predicted = Source::new("predicted", &[self.predicted])?;
        let tally = compare(&gold, &predicted, u16::from(self.gold_from_one))?;
        let Some(score) = tally.score() else {
            return Err(Failure::Usage(format!(
                "{} links found and {} sure gold links: there is nothing to compare",
                tally.found, tally.sure
            )));
        };
        let Tally { sentences, found, sure, possible, .. } = tally;
        let text = format!(
            "precision {:.4}  recall {:.4}  F {:.4}  AER {:.4}\n\
             {sentences} sentence pairs, {found} links found, {sure} sure and {} possible in gold\n",
            score.precision,
            score.recall,
            score.f,
            score.aer,
            possible - sure,
        );
        Ok(Outcome::new(text, &Scored { score, sentences, found, sure, possible }))
    }
}

/// Both directions' links, and the model where something asks for it.
struct Aligned {
    forward: OneWay,
    reverse: OneWay,
    model: Option<Model>,
    passes: [Vec<Pass>; 2],
}

impl Align {
    fn run(self) -> Result<Outcome, Failure> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.into()).build()?;
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
            files::check_new_file(path)?;
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
            symmetrise: self.symmetrise.into(),
            links,
            out: out.clone(),
            seconds: began.elapsed().as_secs_f64(),
        };
        Ok(Outcome::new(summary.in_words(), &summary))
    }

    fn input(&self) -> Result<Input, Failure> {
        if self.pairs.is_empty() && self.source.is_empty() {
            let message = "no text: name a file of pairs, or give --source and --target";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(match self.source.is_empty() {
            true => Input::Pairs(Source::new("pairs", &self.pairs)?),
            false => Input::Parallel(
                Source::new("source", &self.source)?,
                Source::new("target", &self.target)?,
            ),
        })
    }

    fn preparing(&self) -> Result<Preparing, Failure> {
        let languages = match self.languages.as_slice() {
            [] => None,
            [source, target] => Some([source.clone(), target.clone()]),
            _ => {
                let message = "--lang: give two, the source's and the target's";
                return Err(Failure::Usage(message.to_owned()));
            }
        };
        Ok(Preparing { lowercase: self.lowercase, languages })
    }

    fn read(&self, input: &Input, known: Option<&Model>) -> Result<Bitext, Failure> {
        let preparing = match known {
            Some(model) => model.preparing.clone(),
            None => self.preparing()?,
        };
        let reader = Reader::new(preparing, self.allow_empty)?;
        let words = known.map(|model| (&model.source, &model.target));
        let total = match input {
            Input::Pairs(source) => source.size()?,
            Input::Parallel(source, target) => source.size()? + target.size()?,
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
            return Ok(reader.read(input, words, &mut Heard { bytes: &mut bytes, pair: None })?);
        };
        let mut bitext = None;
        files::write_with(path, |writer| {
            let mut written = Ok(());
            let mut pair = |source: &str, target: &str| {
                if written.is_ok() {
                    written = writeln!(writer, "{} ||| {}", source.trim(), target.trim());
                }
            };
            let mut heard = Heard { bytes: &mut bytes, pair: Some(&mut pair) };
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
    fn learn(&self, bitext: &Bitext, config: &Config) -> Result<Aligned, Failure> {
        let keep = self.save.is_some() || self.posteriors.is_some() || self.scores.is_some();
        let mut passes = [Vec::new(), Vec::new()];
        let mut learn = |direction: Direction| -> Result<(Option<Lexicon>, OneWay), Failure> {
            let seen = &mut passes[direction as usize];
            let (lexicon, links) = train_direction(bitext, direction, config, &mut |pass| {
                eprintln!("{}", describe(direction, pass, config.passes));
                seen.push(pass.clone());
            })?;
            Ok((keep.then_some(lexicon), links))
        };
        let (forward_lexicon, forward) = learn(Direction::Forward)?;
        let (reverse_lexicon, reverse) = learn(Direction::Reverse)?;
        let model = match (forward_lexicon, reverse_lexicon) {
            (Some(forward), Some(reverse)) => Some(Model::new(bitext, forward, reverse)),
            _ => None,
        };
        Ok(Aligned { forward, reverse, model, passes })
    }

    /// Writes all that was asked for; what comes back is the number of links.
    fn write(&self, out: &Path, bitext: &Bitext, aligned: &Aligned) -> Result<u64, Failure> {
        let Aligned { forward, reverse, model, .. } = aligned;
        let pairs = bitext.len();
        let both = |s| {
            let (forward, reverse) = (forward.links(bitext, s), reverse.links(bitext, s));
            symmetrise(&forward, &reverse, self.symmetrise.into())
        };
        for (path, one_way) in [(&self.forward, forward), (&self.reverse, reverse)] {
            if let Some(path) = path {
                write_lines(path, pairs, |s, text| put(&one_way.links(bitext, s), text))?;
            }
        }
        if let (Some(path), Some(model)) = (&self.posteriors, model) {
            write_lines(path, pairs, |s, text| {
                let explained =
                    model.explain(bitext.source().sentence(s), bitext.target().sentence(s));
                for (index, link) in both(s).iter().enumerate() {
                    let [forward, reverse] = explained.posteriors(link);
                    let space = if index > 0 { " " } else { "" };
                    let (i, j) = link;
                    let _ = write!(text, "{space}{i}-{j}:{forward:.4}:{reverse:.4}");
                }
                0
            })?;
        }
        if let (Some(path), Some(model)) = (&self.scores, model) {
            write_lines(path, pairs, |s, text| {
                let explained =
                    model.explain(bitext.source().sentence(s), bitext.target().sentence(s));
                let [forward, reverse] = explained.log_probabilities;
                let _ = write!(text, "{forward:.6}\t{reverse:.6}");
                0
            })?;
        }
        write_lines(out, pairs, |s, text| put(&both(s), text))
    }
}

impl Learning {
    fn config(&self) -> Result<Config, Failure> {
        let usual = Config::default();
        let config = Config {
            passes: self.passes.unwrap_or(usual.passes),
            null: self.null.unwrap_or(usual.null),
            tension: self.tension.unwrap_or(match self.compat {
                Some(Compat::FastAlign) => 4.0,
                None => usual.tension,
            }),
            most_tension: self.most_tension.unwrap_or(usual.most_tension),
            learn_tension: !self.fixed_tension,
            prior: if self.plain { None } else { self.prior.or(usual.prior) },
            like_fast_align: self.compat.is_some(),
        };
        config.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(config)
    }
}

fn load(path: &Path) -> Result<Model, Failure> {
    let _waiting = Waiting::new("reading the model");
    Ok(Model::load(path)?)
}

fn link(model: Model, bitext: &Bitext) -> Aligned {
    let _waiting = Waiting::new("linking");
    let [forward, reverse] =
        [Direction::Forward, Direction::Reverse].map(|direction| model.link(bitext, direction));
    Aligned { forward, reverse, model: Some(model), passes: [Vec::new(), Vec::new()] }
}

fn describe(direction: Direction, pass: &Pass, of: usize) -> String {
    let direction = match direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
    };
    let Pass { pass, log_likelihood, perplexity, null, tension } = pass;
    format!(
        "{direction} {pass}/{of}: log-likelihood {log_likelihood:.1}, perplexity {perplexity:.2}, \
         tension {tension:.3}, linked to nothing {:.1} %",
        100.0 * null
    )
}

fn put(links: &Links, text: &mut String) -> u64 {
    let _ = write!(text, "{links}");
    links.len() as u64
}

/// Writes a line for each pair, made side by side in blocks; sums up what `line` counts.
fn write_lines(
    path: &Path,
    pairs: usize,
    line: impl Fn(usize, &mut String) -> u64 + Sync,
) -> Result<u64, Failure> {
    const BLOCK: usize = 1 << 12;
    const BLOCKS: usize = 64;
    let block = |from: usize| {
        let (mut text, mut count) = (String::new(), 0);
        for s in from..(from + BLOCK).min(pairs) {
            count += line(s, &mut text);
            text.push('\n');
        }
        (text, count)
    };
    let mut total = 0;
    files::write_with(path, |writer| {
        let starts: Vec<usize> = (0..pairs).step_by(BLOCK).collect();
        for run in starts.chunks(BLOCKS) {
            let blocks: Vec<(String, u64)> = run.par_iter().map(|&from| block(from)).collect();
            for (text, count) in blocks {
                writer.write_all(text.as_bytes())?;
                total += count;
            }
        }
        Ok(())
    })?;
    Ok(total)
}

impl Summary {
    fn in_words(&self) -> String {
        let Self { pairs, tokens, types, links, seconds, out, .. } = self;
        format!(
            "{}: {links} links for {pairs} sentence pairs in {seconds:.1} s\n  \
             source    {} words, {} different\n  target    {} words, {} different\n",
            out.display(),
            tokens[0],
            types[0],
            tokens[1],
            types[1],
        )
    }
}
