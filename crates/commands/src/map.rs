//! `isogloss map`: pictures of representation spaces.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use arrays::Matrix;
use clap::{Args, ValueEnum};
use draw::ColourScheme;
use draw::figure::{
    self, FigureResult, LayeredSpace, MapLabel, MapPanel, SpaceFigure, SpaceMap, SpaceView,
};
use draw::spaces;
use geometry::lexicon::Lexicon;
use models::parallel::{ParallelSide, RowSelection, read_pair, read_pair_some, read_some};
use models::sentences::{encode_pairs, mean_vectors};
use models::words::whole_words;
use serde::Serialize;
use shift::means::MeanVectors;
use train::pretrain::ProbeSeries;
use vectors::WordVectors;
use vectors::formats::{self, ReadOptions};

use crate::failure::Failure;
use crate::models::{Compute, Layers, SentenceFlags};
use crate::outcome::Outcome;
use crate::request::Request;
use crate::shift::MEANS;
use crate::texts::{ColumnsFlag, parse_text};

const EXAMPLES: &str = "Examples:
  How a shared space emerged in a run, from what it saved while it was trained:
    isogloss map --figure emergence --model run --out emergence.svg
  What its layers do, in the end or after step 400:
    isogloss map --figure layers --model run --out layers.pdf
    isogloss map --figure layers --model run@400 --out layers-400.pdf
  What the difference of mean vectors does to sentences:
    isogloss map --figure shift --model run --means means.safetensors --out shift.svg
  Sentences of three languages in multilingual BERT, translations joined by lines:
    isogloss map --model mbert --layers 0,4,8,12 --parallel en=en.txt --parallel fr=fr.txt \\
      --parallel zh=zh.txt --view centered --out map.png
  Words of the vocabulary of a run of ours, as it reads them after step 400:
    isogloss map --model run@400 --vocab qaa --vocab qab --layers 1,4 --out words.svg
  Word vectors, translations joined by a dictionary, and the points as a table:
    isogloss map --vectors en=en.vec --vectors fr=fr.vec --dictionary en-fr.txt --view aligned \\
      --out map.csv

The file's name decides what is written: .svg, .pdf, .png (twice the size) or .csv (every point, with
its text).";

/// Points of each language on a map.
const DRAWN: usize = 200;
/// Sentences of a given model whose token translations are counted.
const TRANSLATED: usize = 100;

/// Flags of `map`.
#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct MapCommand {
    /// The folder of a run, a snapshot of it (RUN@STEP), or a Hugging Face folder.
    #[arg(short, long, value_name = "DIR", help_heading = "Input")]
    pub model: Option<PathBuf>,

    /// Draw one of three figures in place of a map.
    #[arg(long, value_enum, value_name = "NAME", requires = "model",
        conflicts_with_all = ["vectors", "texts"])]
    pub figure: Option<NamedFigure>,

    /// Sentences, one a line, with their language; repeat for more languages.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text, requires = "model",
        conflicts_with_all = ["parallel", "vectors"], help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    /// The same where line i says the same in every language: translations are joined by lines.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, requires = "model",
        conflicts_with = "vectors", help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    #[command(flatten)]
    columns: ColumnsFlag,

    #[command(flatten)]
    sentences: SentenceFlags,

    /// Word vectors of a language, in any format of `vectors convert`; repeat for more languages.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, conflicts_with = "model",
        help_heading = "Input")]
    vectors: Vec<(String, String)>,

    /// A dictionary from the first to the second language of --vectors: its words are drawn, and
    /// translations joined.
    #[arg(long, value_name = "FILE", requires = "vectors", help_heading = "Input")]
    dictionary: Option<PathBuf>,

    /// The language mean vectors of --figure shift, as `shift means` wrote them [default:
    /// means.safetensors in the run's folder].
    #[arg(long, value_name = "FILE", requires = "figure", help_heading = "Input")]
    means: Option<PathBuf>,

    /// Of a run of more than two languages, the pair whose figure is drawn [default: the first].
    #[arg(long, value_name = "A-B", requires = "figure", help_heading = "Input")]
    pub pair: Option<String>,

    /// The words of a language that are one subword of the model's vocabulary, most frequent first, each encoded as
    /// a sentence of one word; repeat for more languages.
    #[arg(long, value_name = "LANG", requires = "model",
        conflicts_with_all = ["texts", "parallel", "vectors", "figure"], help_heading = "Input")]
    pub vocab: Vec<String>,

    /// Draw at most the first N sentences or words of each language [default: 200 of a map, all of --figure].
    #[arg(short = 'n', long, value_name = "N", help_heading = "Input",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..))]
    pub limit: Option<usize>,

    /// Draw a random sample of N sentences of --text or --parallel, by --seed: of every language the same lines.
    #[arg(long, value_name = "N", conflicts_with_all = ["limit", "vocab", "vectors"], help_heading = "Input",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..))]
    pub sample_size: Option<usize>,

    /// Seed of --sample-size.
    #[arg(long, default_value_t = 1, help_heading = "Input")]
    pub seed: u64,

    /// Which layers, a panel each: all, or such as 0,4-8; 0 is the embeddings. Of --figure emergence and
    /// shift, one layer [default of emergence: the best raw retrieval in the end; of shift: five sixths of the way
    /// up].
    #[arg(long, default_value = "all")]
    pub layers: Layers,

    /// What is done to the vectors before they are drawn.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = View::Raw)]
    pub view: View,

    /// The colours of the file.
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Colors::Light, help_heading = "Output")]
    colors: Colors,

    /// The file to write: .svg, .pdf, .png or .csv.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace a file that exists.
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    compute: Compute,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum NamedFigure {
    /// Six moments of training over the curves of retrieval and of the language's share of variance.
    Emergence,
    /// Every layer on the axis between the languages' means (supervised) and the first within them.
    Layers,
    /// Sentences translated token by token as the difference of means is added by tenths.
    Shift,
}

flag_values! {
    /// What is done to vectors.
    pub enum View => SpaceView {
        /// Nothing.
        Raw,
        /// Each language's mean is subtracted.
        Centered,
        /// And each language is mapped onto the first by Procrustes, learned from the very pairs that are
        /// drawn.
        Aligned,
    }
}

impl View {
    pub fn named(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Colors {
    /// On white.
    Light,
    /// On near black.
    Dark,
}

impl Request for MapCommand {
    const NAME: &str = "map";
    const REVISION: u32 = 1;
}

impl MapCommand {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Outcome, Failure> {
        let kind = self.kind()?;
        files::check_new_file(&self.out, self.force)?;
        let drawn = match self.figure {
            Some(NamedFigure::Emergence) => self.emergence()?,
            Some(NamedFigure::Layers) => self.layers()?,
            Some(NamedFigure::Shift) => self.shift()?,
            None => figure::map(&self.space()?),
        };
        let scheme = match self.colors {
            Colors::Light => ColourScheme::Light,
            Colors::Dark => ColourScheme::Dark,
        };
        let svg = || drawn.svg_in(scheme);
        let bytes = match kind {
            FileKind::Svg => svg().into_bytes(),
            FileKind::Pdf => draw::pdf(&svg())?,
            FileKind::Png => draw::png(&svg(), 2.0)?,
            FileKind::Csv => drawn.figure.csv().into_bytes(),
        };
        files::write(&self.out, bytes)?;
        let SpaceFigure { figure, caption } = drawn;
        let result =
            FigureResult { out: self.out, figure: figure.id, title: figure.title, caption };
        let mut text = format!("{}\n{}\n", result.out.display(), result.title);
        let _ = writeln!(text, "{}", result.caption);
        Ok(Outcome::new(text, &result))
    }

    /// What is written, by the file's name.
    fn kind(&self) -> Result<FileKind, Failure> {
        let extension = self.out.extension().and_then(|extension| extension.to_str());
        Ok(match extension.map(str::to_lowercase).as_deref() {
            Some("svg") => FileKind::Svg,
            Some("pdf") => FileKind::Pdf,
            Some("png") => FileKind::Png,
            Some("csv") => FileKind::Csv,
            _ => {
                let message = format!(
                    "--out {}: name a file that ends in .svg, .pdf, .png or .csv",
                    self.out.display()
                );
                return Err(Failure::Usage(message));
            }
        })
    }

    fn model(&self) -> Result<&Path, Failure> {
        let none = || Failure::Usage("give --model with --text or --parallel, or --vectors".into());
        self.model.as_deref().ok_or_else(none)
    }

    /// What the run has saved of the pair that is asked for.
    fn series(&self) -> Result<ProbeSeries, Failure> {
        let name = self.model()?;
        // States of a step need no snapshot of it.
        let before = name.to_str().and_then(|name| name.rsplit_once('@')).map(|(run, _)| run);
        let run = match before.filter(|run| !name.is_dir() && Path::new(run).is_dir()) {
            Some(run) => Path::new(run),
            None => name,
        };
        if !run.is_dir() {
            let run = run.display();
            return Err(Failure::Usage(format!(
                "{run}: no such folder; name a run or a Hugging Face folder"
            )));
        }
        let mut all = ProbeSeries::read(run)?;
        let names: Vec<String> = all.iter().map(|series| series.languages.join("-")).collect();
        let place = match &self.pair {
            None => Some(0),
            Some(pair) => names.iter().position(|name| name == pair),
        };
        match place {
            _ if all.is_empty() => Err(Failure::Usage(format!(
                "{} has saved no states while it was trained (they need parallel text in the key `probes`, and \
                 the key `trajectory` not set to false); give --parallel for --figure layers and shift",
                run.display()
            ))),
            Some(place) => Ok(all.swap_remove(place)),
            None => {
                let message = format!("--pair: the run has saved states of {}", names.join(", "));
                Err(Failure::Usage(message))
            }
        }
    }

    /// The step that a model's name ends with, of those whose states a run has saved; the last if it names
    /// none.
    fn step(&self, series: &ProbeSeries) -> Result<u64, Failure> {
        let steps: Vec<u64> = series.points.iter().map(|point| point.step).collect();
        let name = self.model()?;
        let last = steps[steps.len() - 1];
        if name.is_dir() {
            return Ok(last);
        }
        let step = name.to_str().and_then(|name| name.rsplit_once('@')?.1.parse().ok());
        step.filter(|step| steps.contains(step)).ok_or_else(|| {
            let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
            let name = name.display();
            Failure::Usage(format!("{name}: states were saved after steps {}", steps.join(", ")))
        })
    }

    fn emergence(&self) -> Result<SpaceFigure, Failure> {
        let series = self.series()?;
        let layer = match (&self.layers, self.view) {
            (Layers::All, View::Raw) => return Ok(figure::emergence(&series)?),
            (Layers::All, _) => {
                let message = "--view: name the layer of --figure emergence by --layers";
                return Err(Failure::Usage(message.into()));
            }
            (layers, _) => match layers.of(series.layers() - 1)?[..] {
                [layer] => layer,
                _ => {
                    let message = "--layers: --figure emergence is drawn at one layer";
                    return Err(Failure::Usage(message.into()));
                }
            },
        };
        Ok(figure::emergence_of(&series, layer, self.view.into())?)
    }

    fn layers(&self) -> Result<SpaceFigure, Failure> {
        if self.parallel.is_empty() {
            let series = self.series()?;
            let step = self.step(&series)?;
            return Ok(figure::layers(&LayeredSpace::of_series(&series, step)?));
        }
        let folder = self.model()?;
        let chosen = self.limit.is_some() || self.sample_size.is_some();
        let selection = if chosen { self.selection() } else { RowSelection::All };
        let sides = read_pair_some(&self.parallel, &self.columns.columns, selection)?;
        let mut models = vec![self.compute.open_states(folder, &self.sentences)?];
        let numbers = self.layers.of(models[0].encoder.config().layers)?;
        let encoded = encode_pairs(&mut models, &sides, [&numbers, &numbers], |_| {})?;
        let name = folder.display().to_string();
        let space = self
            .compute
            .run(|device| LayeredSpace::of_pairs(&name, &encoded, &numbers, device))??;
        Ok(figure::layers(&space))
    }

    fn shift(&self) -> Result<SpaceFigure, Failure> {
        let folder = self.model()?;
        let device = self.compute.device()?;
        let mut model = self.compute.open(folder)?;
        let path = self.means.clone().unwrap_or_else(|| folder.join(MEANS));
        if !path.is_file() {
            return Err(Failure::Usage(format!(
                "{} is not there; make it with `isogloss shift means --model {} --text LANG=FILE … --out \
                 FILE`, and name it by --means",
                path.display(),
                folder.display()
            )));
        }
        let means = MeanVectors::open(&path, &model)?;
        let depth = model.encoder.config().layers;
        let layer = match &self.layers {
            Layers::All => spaces::translating_layer(depth),
            layers => match layers.of(depth)?[..] {
                [layer] => layer,
                _ => return Err(Failure::Usage("--layers: a shift is made at one layer".into())),
            },
        };
        if self.parallel.is_empty() {
            let series = self.series()?;
            return Ok(spaces::shift_of_series(
                folder, &mut model, &means, &series, layer, &device,
            )?);
        }
        let [from, to] = read_pair(&self.parallel, &self.columns.columns)?;
        let lines = from.lines.iter().zip(&to.lines).take(TRANSLATED);
        let pairs: Vec<(&str, &str)> = lines.map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let languages = [from.language.as_str(), to.language.as_str()];
        let (result, _) =
            spaces::translations(&mut model, &means, languages, &pairs, layer, &device)?;
        Ok(figure::shift(&result, &[]))
    }

    fn selection(&self) -> RowSelection {
        match self.sample_size {
            Some(size) => RowSelection::Sample { size, seed: self.seed },
            None => RowSelection::First(self.limit()),
        }
    }

    /// How many points of each language a map has.
    fn limit(&self) -> usize {
        self.limit.unwrap_or(DRAWN)
    }

    fn space(&self) -> Result<SpaceMap, Failure> {
        let mut space = match self.vectors.is_empty() {
            false => self.words()?,
            true => self.sentences()?,
        };
        let paired = !space.joined.is_empty();
        if self.view == View::Aligned && !paired {
            let message = "--view aligned: a map is learned from translations; give --parallel, or \
                           --dictionary with --vectors";
            return Err(Failure::Usage(message.into()));
        }
        for panel in &mut space.panels {
            SpaceView::from(self.view).apply(&mut panel.groups);
        }
        space.mode = SpaceView::from(self.view).in_words().to_owned();
        Ok(space)
    }

    fn sentences(&self) -> Result<SpaceMap, Failure> {
        let folder = self.model()?;
        let mut model = self.compute.open_states(folder, &self.sentences)?;
        let sides = match (self.parallel.is_empty(), self.texts.is_empty()) {
            (false, _) => read_some(&self.parallel, &self.columns.columns, self.selection())?.0,
            (true, false) => self.texts()?,
            (true, true) if !self.vocab.is_empty() => {
                let side = |language: &String| {
                    let words = whole_words(&model, language, self.limit())?;
                    Ok::<_, Failure>(ParallelSide::new(language, language, words))
                };
                self.vocab.iter().map(side).collect::<Result<_, _>>()?
            }
            (true, true) => {
                let message = "give sentences: --text or --parallel LANG=FILE for each language; or words, by \
                               --vocab LANG; or --figure";
                return Err(Failure::Usage(message.into()));
            }
        };
        let numbers = self.layers.of(model.encoder.config().layers)?;
        let mut panels: Vec<MapPanel> = numbers
            .iter()
            .map(|&layer| MapPanel { name: figure::layer_name(layer), groups: Vec::new() })
            .collect();
        let device = self.compute.device()?;
        for side in &sides {
            let (layers, _) = device.run(|| mean_vectors(&mut model, side, &numbers))?;
            panels.iter_mut().zip(layers).for_each(|(panel, layer)| panel.groups.push(layer));
        }
        let joined = match self.parallel.is_empty() {
            true => Vec::new(),
            false => figure::joined_rows(sides[0].lines.len()),
        };
        Ok(SpaceMap {
            languages: sides.iter().map(|side| side.language.clone()).collect(),
            panels,
            items: if self.vocab.is_empty() { "sentences" } else { "words" },
            mode: String::new(),
            joined,
            labels: Vec::new(),
            texts: sides.into_iter().map(|side| side.lines).collect(),
        })
    }

    /// Sentences that are no translations of one another.
    fn texts(&self) -> Result<Vec<ParallelSide>, Failure> {
        let mut sides: Vec<ParallelSide> = Vec::new();
        for (language, file) in &self.texts {
            let source =
                models::sentences::open(std::slice::from_ref(file), &self.columns.columns)?;
            let lines = models::sentences::lines(&source);
            let lines = match self.selection() {
                // Nothing beyond them is looked at.
                RowSelection::First(limit) => lines.take(limit).collect::<models::Result<_>>()?,
                selection => selection.choose(lines)?.0,
            };
            if sides.iter().any(|side| side.language == *language) {
                let message = format!("--text {language}={file}: give one file for each language");
                return Err(Failure::Usage(message));
            }
            sides.push(ParallelSide::new(language, file, lines));
        }
        Ok(sides)
    }

    fn words(&self) -> Result<SpaceMap, Failure> {
        let tables: Vec<WordVectors> = self
            .vectors
            .iter()
            .map(|(_, file)| formats::read(Path::new(file), ReadOptions::default()))
            .collect::<Result<_, _>>()?;
        let first = &self.vectors[0].1;
        if let Some(other) = tables.iter().position(|table| table.dim() != tables[0].dim()) {
            let (file, dim) = (&self.vectors[other].1, tables[other].dim());
            let message = format!("{file} has dimension {dim}, {first} {}", tables[0].dim());
            return Err(Failure::Usage(message));
        }
        let rows = self.rows(&tables)?;
        let group = |(table, rows): (&WordVectors, &Vec<usize>)| {
            let values = rows.iter().flat_map(|&row| table.row(row)).copied().collect();
            Matrix::new(rows.len(), table.dim(), values)
        };
        let joined = match &self.dictionary {
            Some(_) => figure::joined_rows(rows[0].len()),
            None => Vec::new(),
        };
        let named = match &self.dictionary {
            Some(_) => joined.clone(),
            None => figure::joined_rows(rows.iter().map(Vec::len).min().unwrap_or(0)),
        };
        let texts: Vec<Vec<String>> = tables
            .iter()
            .zip(&rows)
            .map(|(table, rows)| rows.iter().map(|&row| table.word(row).to_owned()).collect())
            .collect();
        let labels = texts.iter().enumerate().flat_map(|(language, texts)| {
            let label = move |&row: &usize| MapLabel { language, row, text: texts[row].clone() };
            named.iter().map(label)
        });
        Ok(SpaceMap {
            languages: self.vectors.iter().map(|(language, _)| language.clone()).collect(),
            panels: vec![MapPanel {
                name: "word vectors".to_owned(),
                groups: tables.iter().zip(&rows).map(group).collect(),
            }],
            items: "words",
            mode: String::new(),
            joined,
            labels: labels.collect(),
            texts: texts.clone(),
        })
    }

    /// The rows of each table that are drawn: the first words, or those of the dictionary.
    fn rows(&self, tables: &[WordVectors]) -> Result<Vec<Vec<usize>>, Failure> {
        let Some(dictionary) = &self.dictionary else {
            return Ok(tables
                .iter()
                .map(|table| (0..table.len().min(self.limit())).collect())
                .collect());
        };
        let [source, target] = tables else {
            let message = "--dictionary joins two languages; give --vectors twice";
            return Err(Failure::Usage(message.into()));
        };
        let lexicon = Lexicon::read(dictionary, false, source, target)?;
        lexicon.remark(dictionary).iter().for_each(|line| say!("{line}"));
        let queries = lexicon.queries();
        let pairs = queries.iter().take(self.limit());
        let pairs: Vec<(u32, u32)> = pairs.map(|(word, found)| (*word, found[0])).collect();
        Ok(vec![
            pairs.iter().map(|pair| pair.0 as usize).collect(),
            pairs.iter().map(|pair| pair.1 as usize).collect(),
        ])
    }
}

enum FileKind {
    Svg,
    Pdf,
    Png,
    Csv,
}
