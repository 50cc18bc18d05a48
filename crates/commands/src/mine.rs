//! `isogloss mine`: translation pairs between two texts of unequal size.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::measured::Extractor;
use arrays::{Matrix, Stack};
use clap::Args;
use geometry::mining::{
    Margin, MiningDirection, MiningResult, MiningScore, MiningSpace, NearestState, NeighbourSearch,
    mine, signature,
};
use models::sentences::{encode_lines, encode_to};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use text::{LineRules, TableRecord, TextSource};

use super::models::{Compute, Layers, SentenceFlags, two_models};
use super::record::{RecordFlags, pair, system};
use super::texts::{ColumnsFlag, by_language, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::{Progress, Waiting};
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  Two texts in an encoder's space; vectors and the state of the search are kept,
  so that the same command again continues where it stopped:
    isogloss mine --model run --text en=news.en.txt --text fr=news.fr.txt \\
      --layers 8 --center --work mining --out pairs.tsv
  The threshold with the best F1 on a development text, then used on another:
    isogloss mine --model run --text en=dev.en --text fr=dev.fr --gold dev.tsv \\
      --out dev.pairs.tsv --json > dev.json
    isogloss mine --model run --text en=test.en --text fr=test.fr \\
      --threshold-from dev.json --gold test.tsv --out test.pairs.tsv
  BUCC's files, whose lines are an id, a tab and a sentence:
    isogloss mine --model run --text fr=fr-en.test.fr --text en=fr-en.test.en --ids \\
      --threshold 1.06 --gold fr-en.test.gold --out pairs.tsv
  Vectors of any origin, such as `isogloss encode` writes:
    isogloss mine --source fr.npy --target en.npy --out pairs.tsv

The search is exact. Equal sentences of a text are one candidate, except with --ids and of vectors.";

/// How often the state of a long search is saved.
const SAVE_EVERY: Duration = Duration::from_secs(30);

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Mine {
    /// The folder of a run, or a Hugging Face folder, to encode --text with: one for both sides, or one for each.
    #[arg(
        long = "model",
        short = 'm',
        value_name = "DIR",
        requires = "texts",
        help_heading = "Input"
    )]
    pub models: Vec<PathBuf>,

    /// The two texts, a sentence a line: the first language is the source. Repeat for more files of either. Plain, gzip or
    /// zstd.
    #[arg(long = "text", short = 't', value_name = "LANG=FILE", value_parser = parse_text, requires = "models",
        help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Which vectors they are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub sentences: SentenceFlags,

    /// Each line is an id, a tab and a sentence, as in BUCC; pairs and gold pairs are then written as ids.
    #[arg(long, requires = "texts", help_heading = "Input")]
    pub ids: bool,

    /// Vectors of the source in place of text, rows x dimension: .npy, .npz, safetensors.
    #[arg(
        long,
        value_name = "FILE",
        requires = "target",
        conflicts_with = "texts",
        help_heading = "Input"
    )]
    pub source: Option<PathBuf>,

    /// Vectors of the target.
    #[arg(long, value_name = "FILE", requires = "source", help_heading = "Input")]
    pub target: Option<PathBuf>,

    /// The layer of the encoder, or of arrays of several; 0 is the embeddings [default: two thirds up, the eighth of
    /// twelve].
    #[arg(long, value_name = "LAYER", help_heading = "Mining")]
    pub layers: Option<Layers>,

    /// Subtract the mean vector of each side first.
    #[arg(long, help_heading = "Mining")]
    pub center: bool,

    /// How two sentences are scored (Artetxe and Schwenk 2019).
    #[arg(long, value_enum, default_value_t = MarginFlag::Ratio, help_heading = "Mining")]
    pub margin: MarginFlag,

    /// Which candidates become pairs.
    #[arg(long, value_enum, default_value_t = DirectionFlag::Max, help_heading = "Mining")]
    pub direction: DirectionFlag,

    /// Neighbours whose mean cosine a margin takes, and candidates of each sentence.
    #[arg(long, value_name = "K", default_value_t = 4, help_heading = "Mining",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub neighbors: usize,

    /// Write pairs of this score or more [default: all].
    #[arg(long, value_name = "X", help_heading = "Mining")]
    pub threshold: Option<f64>,

    /// Take the threshold with the best F1 from the --json result of mining a development text: with the same model,
    /// layer, margin, direction and neighbours.
    #[arg(long, value_name = "FILE", conflicts_with = "threshold", help_heading = "Mining")]
    pub threshold_from: Option<PathBuf>,

    /// Gold pairs, two columns with a tab between: sentences, ids with --ids, or row numbers of vectors, from 0. Prints
    /// precision, recall and F1 of all pairs above the threshold, as BUCC does, beside chance. Without a threshold, of every
    /// second source sentence at the threshold that is best for the others.
    #[arg(long, value_name = "FILE", help_heading = "Evaluation")]
    pub gold: Option<String>,

    /// The pairs, best first: score, source, target. Tab-separated (.tsv) or JSON lines (.jsonl); `-` is standard output.
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,

    /// Keep vectors and the state of the search in this folder: memory stays bounded whatever the texts' size, and the same
    /// command again continues where it stopped.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub work: Option<PathBuf>,

    /// Replace the file of pairs.
    #[arg(long, short, help_heading = "Output")]
    pub force: bool,

    #[command(flatten)]
    pub record: RecordFlags,

    #[command(flatten)]
    pub compute: Compute,
}

flag_values! {
    /// A choice of `mine`.
    pub enum MarginFlag => Margin {
        /// The cosine, divided by the mean cosine of both to their nearest neighbours.
        Ratio,
        /// The cosine, less that mean.
        Distance,
        /// The cosine alone.
        Absolute,
    }
}

flag_values! {
    /// A choice of `mine`.
    pub enum DirectionFlag => MiningDirection {
        /// The best target of each source.
        Forward,
        /// The best source of each target.
        Backward,
        /// The best in both directions.
        Intersection,
        /// The best of both directions, highest score first, each sentence at most once.
        Max,
    }
}

/// One side: what its rows are called, and their vectors.
struct MiningSide {
    names: RowNames,
    vectors: Stack,
    space: MiningSpace,
    key: String,
    repeated: usize,
    truncated: usize,
}

/// A threshold that was chosen on a development text.
struct ChosenThreshold {
    file: PathBuf,
    threshold: f64,
    spaces: [MiningSpace; 2],
}

impl ChosenThreshold {
    /// Refuses a side (0 is the source) whose scores are not comparable with those that it was chosen among.
    fn check(&self, side: usize, here: &MiningSpace) -> Result<(), Failure> {
        let (file, chosen) = (self.file.display(), &self.spaces[side]);
        let name = ["source", "target"][side];
        if let Some(difference) = here.difference(chosen) {
            return Err(Failure::Failed(format!(
                "{file}: its threshold was chosen for a {name} {difference}; mine the development text in the same way, or give the \
                 threshold itself as --threshold {}",
                self.threshold
            )));
        }
        if !here.is_comparable(chosen) {
            say!(
                "warning: {file}: vectors do not say which model and layer they are of; make sure that those of the {name} \
                 are of the same"
            );
        }
        Ok(())
    }
}

/// What the rows of a side are called.
enum RowNames {
    Numbers(usize),
    Names(Vec<String>),
}

impl RowNames {
    fn of(&self, row: u32) -> String {
        match self {
            RowNames::Numbers(_) => row.to_string(),
            RowNames::Names(names) => names[row as usize].clone(),
        }
    }

    fn rows(&self) -> HashMap<String, u32> {
        let count = match self {
            RowNames::Numbers(count) => *count,
            RowNames::Names(names) => names.len(),
        };
        (0..count as u32).map(|row| (self.of(row), row)).collect()
    }
}

/// A pair as it is written.
#[derive(Serialize)]
struct MinedRecord {
    score: f32,
    source: String,
    target: String,
}

impl TableRecord for MinedRecord {
    const COLUMNS: &'static [&'static str] = &["score", "source", "target"];

    fn lines(&self, line: &mut dyn FnMut(&[&str])) {
        line(&[&format!("{:.6}", self.score), &self.source, &self.target]);
    }
}

impl Request for Mine {
    const NAME: &str = "mine";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["layers", "center", "out"];
}

impl Mine {
    pub fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, self.force)?;
        text::check_table_name(&self.out)?;
        let chosen = self.chosen()?;
        let threshold = chosen.as_ref().map(|chosen| chosen.threshold).or(self.threshold);
        let _lock = self.work.as_deref().map(files::FolderLock::take_for_work).transpose()?;
        let (sides, layer) = self.sides(chosen.as_ref())?;
        let (found, seconds) = self.search(&sides)?;
        let how = (self.margin.into(), self.direction.into());
        let pairs = mine([&found[0], &found[1]], how.0, how.1);
        let rows = [0, 1].map(|side: usize| found[side].rows());
        let gold = self.gold.as_ref().map(|file| read_gold(file, &sides)).transpose()?;
        let known = MiningResult {
            layer,
            rows,
            repeated: [sides[0].repeated, sides[1].repeated],
            truncated: [sides[0].truncated, sides[1].truncated],
            threshold,
            spaces: Some([0, 1].map(|side: usize| sides[side].space.clone())),
            seconds,
            signature: signature(how, self.neighbors, self.center),
            ..MiningResult::default()
        };
        let (result, kept) = known.keep(pairs, gold.as_ref());
        text::write_table(
            &self.out,
            kept.iter().map(|pair| MinedRecord {
                score: pair.score,
                source: sides[0].names.of(pair.source),
                target: sides[1].names.of(pair.target),
            }),
        )?;
        let outcome = Outcome::new(describe(&result, &self.out), &result).beside(&self.out);
        let known = system(&self.models).into_iter().chain(pair(&self.texts));
        Ok(self.record.keep(outcome, Extractor::Mining, 1, known))
    }

    /// The threshold of --threshold-from.
    fn chosen(&self) -> Result<Option<ChosenThreshold>, Failure> {
        let Some(path) = &self.threshold_from else { return Ok(None) };
        let refuse = |reason: &str| {
            Failure::Failed(format!(
                "{}: {reason}; give what `isogloss mine --gold … --json` printed",
                path.display()
            ))
        };
        let text = files::limits::read_text(path).map_err(|error| refuse(&error.to_string()))?;
        let result: MiningResult =
            serde_json::from_str(&text).map_err(|error| refuse(&error.to_string()))?;
        let ours =
            signature((self.margin.into(), self.direction.into()), self.neighbors, self.center);
        if result.signature != ours {
            return Err(refuse(&format!(
                "its pairs were mined in another way ({} and not {ours})",
                result.signature
            )));
        }
        let best = result
            .best
            .ok_or_else(|| refuse("it has no `best` threshold, as no gold pairs were given"))?;
        let spaces = result.spaces.ok_or_else(|| {
            refuse("it does not say which model and layer its threshold was chosen with, as an earlier version wrote it")
        })?;
        Ok(Some(ChosenThreshold { file: path.clone(), threshold: best.threshold, spaces }))
    }

    /// Both sides with their vectors, and the layer of the encoder.
    fn sides(
        &self,
        chosen: Option<&ChosenThreshold>,
    ) -> Result<([MiningSide; 2], Option<usize>), Failure> {
        // Before anything is encoded, which may take hours.
        let check = |side: usize, space: &MiningSpace| {
            chosen.map_or(Ok(()), |chosen| chosen.check(side, space))
        };
        if let (Some(source), Some(target)) = (&self.source, &self.target) {
            let sides = [self.vectors(source)?, self.vectors(target)?];
            [0, 1].into_iter().try_for_each(|side| check(side, &sides[side].space))?;
            return Ok((sides, None));
        }
        let languages = by_language(&self.texts);
        let [first, second] = &languages[..] else {
            let message = format!(
                "{} languages of text; give two, as --text LANG=FILE for each, or --source and --target",
                languages.len()
            );
            return Err(Failure::Usage(message));
        };
        let folders = two_models(&self.models)?;
        let mut model = self.compute.open_states(folders[0], &self.sentences)?;
        let space = self.space(&model)?;
        check(0, &space)?;
        let layer = space.layer;
        let one = self.encode(&mut model, first, space)?;
        if folders[1] != folders[0] {
            model = self.compute.open_states(folders[1], &self.sentences)?;
        }
        let space = self.space(&model)?;
        check(1, &space)?;
        let two = self.encode(&mut model, second, space)?;
        Ok(([one, two], layer))
    }

    /// What the vectors of a model are of.
    fn space(&self, model: &models::PretrainedModel) -> Result<MiningSpace, Failure> {
        let config = model.encoder.config();
        let layer = Some(self.layer(config.layers)?);
        let last = layer == Some(config.layers);
        let dim = model.sentence_vectors.width(config.dim, last);
        let model = format!("{}{}", model.fingerprint, model.sentence_vectors.signature());
        Ok(MiningSpace { model: Some(model), layer, dim })
    }

    fn layer(&self, above: usize) -> Result<usize, Failure> {
        let Some(layers) = &self.layers else { return Ok((2 * above).div_ceil(3)) };
        match layers.of(above)?[..] {
            [layer] => Ok(layer),
            _ => Err(Failure::Usage("--layers: pairs are mined at one layer; name one".to_owned())),
        }
    }

    fn vectors(&self, path: &Path) -> Result<MiningSide, Failure> {
        let mut vectors = Stack::open(path)?;
        let mut layer = None;
        if vectors.layers() > 1 {
            let chosen = self.layer(vectors.layers() - 1)?;
            vectors.keep(&[chosen]);
            layer = Some(chosen);
        }
        // A state is only taken up again for the same vectors.
        let mut hasher = blake3::Hasher::new();
        if self.work.is_some() {
            hash_file(path, &mut hasher)?;
        }
        hasher.update(format!("{:?}", self.layers).as_bytes());
        Ok(MiningSide {
            names: RowNames::Numbers(vectors.rows()),
            space: MiningSpace { model: None, layer, dim: vectors.dim(0) },
            key: hasher.finalize().to_hex().to_string(),
            vectors,
            repeated: 0,
            truncated: 0,
        })
    }

    /// Reads a text and encodes it, unless its vectors are there.
    fn encode(
        &self,
        model: &mut models::PretrainedModel,
        (language, files): &(&str, Vec<String>),
        space: MiningSpace,
    ) -> Result<MiningSide, Failure> {
        let (layer, dim) = (space.layer.expect("a model's vectors are of a layer"), space.dim);
        let (names, lines, repeated) = self.lines(language, files)?;
        let mut hasher = blake3::Hasher::new();
        let vectors = model.sentence_vectors.signature();
        let of = format!("{}{vectors} {language} {layer}\n", model.fingerprint);
        hasher.update(of.as_bytes());
        lines.iter().for_each(|line| _ = hasher.update(line.as_bytes()).update(b"\n"));
        let key = hasher.finalize().to_hex().to_string();
        let mut bar: Option<Progress> = None;
        let label = format!("encoding {language}");
        let progress = |done: usize, total: usize| {
            let bar = bar.get_or_insert_with(|| Progress::new(&label, total as u64));
            bar.reach(done as u64, "sentences");
        };
        let place = (*language, files[0].as_str());
        let (vectors, truncated) = match &self.work {
            None => {
                let encoded = encode_lines(model, place, &lines, &[layer], progress)?;
                let values = encoded.layers.into_iter().next().unwrap_or_default();
                let matrix = Matrix::new(lines.len(), dim, values);
                (Stack::of(&files[0], vec![matrix]), encoded.truncated)
            }
            Some(folder) => {
                let path = folder.join(format!("vectors-{}.npy", &key[..16]));
                let truncated = match SavedVectors::verified(&path)? {
                    Some(saved) => saved.truncated,
                    None => {
                        let truncated = encode_to(&path, model, place, &lines, layer, progress)?;
                        SavedVectors::note(&path, truncated)?;
                        truncated
                    }
                };
                (Stack::open(&path)?, truncated)
            }
        };
        let names = RowNames::Names(names.unwrap_or(lines));
        Ok(MiningSide { names, vectors, space, key, repeated, truncated })
    }

    /// The ids, where there are some, the sentences of a text, and how many repeat an earlier one.
    fn lines(&self, language: &str, files: &[String]) -> Result<NamedLines, Failure> {
        let source = TextSource::new(language, files)?.with_columns(&self.columns.columns);
        if self.ids {
            let mut reader = source.raw_lines(LineRules::default());
            let (mut ids, mut lines) = (Vec::new(), Vec::new());
            while let Some(line) = reader.next_line()? {
                let Some((id, sentence)) = line.split_once('\t') else {
                    let place = format!("{}:{}", reader.name(), reader.number());
                    return Err(Failure::Failed(format!(
                        "{place}: no tab; write an id, a tab and a sentence, or leave out --ids"
                    )));
                };
                ids.push(id.trim().to_owned());
                lines.push(sentence.trim().to_owned());
            }
            return Ok((Some(ids), lines, 0));
        }
        let mut seen = FxHashSet::default();
        let (mut lines, mut repeated) = (Vec::new(), 0);
        for line in models::sentences::lines(&source) {
            let line = line?;
            match seen.insert(line.clone()) {
                true => lines.push(line),
                false => repeated += 1,
            }
        }
        Ok((None, lines, repeated))
    }

    /// The nearest neighbours of both sides, and the seconds that took.
    fn search(
        &self,
        sides: &[MiningSide; 2],
    ) -> Result<([geometry::search::Neighbours; 2], f64), Failure> {
        let key = format!("{} {} {} {}", sides[0].key, sides[1].key, self.center, self.neighbors);
        let key = blake3::hash(key.as_bytes()).to_hex().to_string();
        let file =
            self.work.as_ref().map(|folder| folder.join(format!("search-{}.state", &key[..16])));
        let began = Instant::now();
        let found = self.compute.run(|device| {
            let search =
                NeighbourSearch::new(&sides[0].vectors, &sides[1].vectors, self.center, device)?;
            let mut state = search.start(self.neighbors, &key);
            if let Some(file) = &file {
                // Said under --quiet too: the search that was paid for is lost.
                state = state.resume(file, &mut |note| complain!("warning: {note}"))?;
                if state.done() > 0 {
                    say!("continuing after {} of {} blocks", state.done(), search.steps());
                }
            }
            let bar = std::sync::Mutex::new(Progress::new("searching", search.steps() * 1000));
            let mut saved = Instant::now();
            let steps = search.steps();
            let save = |state: &NearestState| match &file {
                Some(file) if saved.elapsed() >= SAVE_EVERY || state.done() == steps => {
                    saved = Instant::now();
                    state.save(file)
                }
                _ => Ok(()),
            };
            search.run(state, save, &|done, _| {
                let mut bar = bar.lock().expect("no panic while it is held");
                bar.reach(done, "thousandths of blocks");
            })
        })??;
        Ok((found, began.elapsed().as_secs_f64()))
    }
}

/// What is known of vectors that were encoded into the folder of `--work`, in a file beside them.
#[derive(Serialize, Deserialize)]
struct SavedVectors {
    truncated: usize,
    digest: String,
}

impl SavedVectors {
    fn path(vectors: &Path) -> PathBuf {
        vectors.with_extension("json")
    }

    fn note(vectors: &Path, truncated: usize) -> Result<(), Failure> {
        let note = Self { truncated, digest: digest_of(vectors)? };
        let text = serde_json::to_string(&note).expect("plain data");
        Ok(files::write(&Self::path(vectors), files::sealed::seal_json(&text))?)
    }

    /// Of vectors that are there and as they were written.
    fn verified(vectors: &Path) -> Result<Option<Self>, Failure> {
        if !vectors.is_file() {
            return Ok(None);
        }
        let note = Self::path(vectors);
        let read = |bytes: Vec<u8>| {
            let mut value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
            let sound = files::sealed::open_json(&mut value);
            sound.then(|| serde_json::from_value::<Self>(value).ok()).flatten()
        };
        // A command that was stopped between the two left vectors without a note.
        let Ok(bytes) = std::fs::read(&note) else { return Ok(None) };
        let damaged = match read(bytes) {
            None => note,
            Some(saved) if saved.digest == digest_of(vectors)? => return Ok(Some(saved)),
            Some(_) => vectors.to_owned(),
        };
        complain!(
            "warning: {}: not as it was written; the text is encoded again",
            damaged.display()
        );
        Ok(None)
    }
}

fn digest_of(path: &Path) -> Result<String, Failure> {
    let mut hasher = blake3::Hasher::new();
    hash_file(path, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn hash_file(path: &Path, hasher: &mut blake3::Hasher) -> Result<(), Failure> {
    let _waiting = Waiting::new(&format!("reading {}", path.display()));
    let read = std::fs::File::open(path).and_then(|mut file| std::io::copy(&mut file, hasher));
    read.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    Ok(())
}

/// Ids where there are some, sentences, and how many were left out as repeated.
type NamedLines = (Option<Vec<String>>, Vec<String>, usize);

/// Gold pairs as rows of both sides; one whose names are not there is refused.
fn read_gold(file: &str, sides: &[MiningSide; 2]) -> Result<FxHashSet<(u32, u32)>, Failure> {
    let source = TextSource::new("gold", &[file.to_owned()])?;
    let rows = [sides[0].names.rows(), sides[1].names.rows()];
    let mut lines = source.raw_lines(LineRules::default());
    let mut gold = FxHashSet::default();
    while let Some(line) = lines.next_line()?.map(str::to_owned) {
        if line.trim().is_empty() {
            continue;
        }
        let columns =
            line.split_once('\t').map(|(a, b)| [a, b.split('\t').next().unwrap_or_default()]);
        let place = || format!("{}:{}", source.names().next().unwrap_or(file), lines.number());
        let Some(columns) = columns else {
            return Err(Failure::Failed(format!(
                "{}: no tab between two sides; write `source`, a tab, `target`",
                place()
            )));
        };
        let mut found = [0; 2];
        for side in [0, 1] {
            let name = columns[side].trim();
            found[side] = *rows[side].get(name).ok_or_else(|| {
                let which = ["source", "target"][side];
                Failure::Failed(format!(
                    "{}: `{name}` is not in the {which}; give the gold pairs of these texts (the source first)", place()
                ))
            })?;
        }
        gold.insert((found[0], found[1]));
    }
    match gold.is_empty() {
        true => Err(Failure::Failed(format!(
            "{file}: holds no pair; give gold pairs, or leave out --gold"
        ))),
        false => Ok(gold),
    }
}

fn describe(result: &MiningResult, out: &Path) -> String {
    let MiningResult { rows, repeated, truncated, candidates, pairs, threshold, seconds, .. } =
        result;
    let mut text = format!(
        "{}: {pairs} pairs of {} and {} sentences, searched in {seconds:.1} s\n",
        out.display(),
        rows[0],
        rows[1]
    );
    if let Some(threshold) = threshold {
        text += &format!(
            "  of {candidates} candidates, those with a score of {threshold:.4} or more\n"
        );
    }
    if repeated.iter().sum::<usize>() > 0 {
        text += &format!(
            "  {} and {} sentences repeat an earlier one and were left out\n",
            repeated[0], repeated[1]
        );
    }
    if truncated.iter().sum::<usize>() > 0 {
        text += &format!("  {} and {} sentences were truncated\n", truncated[0], truncated[1]);
    }
    let line = |what: &str, score: &MiningScore| {
        let MiningScore { threshold, predicted, correct, gold, precision, recall, f1, f1_chance } =
            score;
        format!(
            "  {what}: precision {precision:.4}  recall {recall:.4}  F1 {f1:.4} (chance {f1_chance:.4}): {correct} of \
             {gold} gold pairs among {predicted}, threshold {threshold:.4}\n"
        )
    };
    text += &result.score.iter().map(|score| line("at this threshold", score)).collect::<String>();
    text += &result
        .best
        .iter()
        .map(|score| line("at the best threshold for these gold pairs, hence too high", score))
        .collect::<String>();
    text += &result
        .held_out
        .iter()
        .map(|score| line("every second source sentence, by the threshold of the others", score))
        .collect::<String>();
    text + &result.signature
}
