//! Words aligned from the hidden states of an encoder: no training, any model that reads both languages.
//!
//! Both sides are encoded in batches up to the last layer that is asked for, a chunk of pairs at a time, and the
//! links of every layer and extraction are taken from the similarities of their subwords, or of words as means of
//! their subwords. A word is linked where one of its subwords is, as in SimAlign and awesome-align.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use models::PretrainedModel;
use models::states::{HiddenStates, for_each_until};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use text::{LineRules, TextSource};

use crate::bitext::Bitext;
use crate::dictionary::{PairTexts, lexicon};
use crate::extraction::{LinkExtraction, SimilarityMatrix};
use crate::input::{BitextPreparation, BitextReader, PairRules, ParallelText};
use crate::job::{AlignmentObserver, align_bitext, put, read, write_lines};
use crate::learn::AlignmentConfig;
use crate::links::WordLinks;
use crate::score::{AlignmentScore, GoldLinks, LinkCounts};
use crate::symmetrize::Symmetrization;
use crate::{Error, Result};

/// Vectors that are held at once, in values of all layers and both sides: half a gibibyte.
const CHUNK_VALUES: usize = 1 << 27;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlignmentUnit {
    /// Subwords; words are linked where one of their subwords is.
    Subwords,
    /// Words, each the mean of its subwords.
    Words,
}

/// What to align by an encoder, how, and where to.
pub struct EncoderAlignRequest<'a> {
    /// The parallel text.
    pub text: &'a ParallelText,
    /// How it is preprocessed, and its languages.
    pub preparation: BitextPreparation,
    /// Which pairs are read.
    pub rules: PairRules,
    /// The layers, 0 for the embeddings.
    pub layers: Vec<usize>,
    /// How links are extracted.
    pub extractions: Vec<LinkExtraction>,
    /// What is compared.
    pub unit: AlignmentUnit,
    /// The least probability of softmax in either direction.
    pub threshold: f32,
    /// Gold links, and the number of their first word (0 or 1).
    pub gold: Option<(TextSource, u16)>,
    /// The files to write, of one layer and one extraction.
    pub outputs: EncoderAlignOutputs,
}

/// The files to write.
#[derive(Clone, Debug, Default)]
pub struct EncoderAlignOutputs {
    /// The links, `0-0 1-2`.
    pub links: Option<PathBuf>,
    /// Each link with its confidence, `0-0:0.9312`.
    pub confidences: Option<PathBuf>,
    /// The tokenized pairs.
    pub prepared: Option<PathBuf>,
    /// The links in words, `le=the chat=cat`.
    pub readable: Option<PathBuf>,
    /// The lexicon of linked words.
    pub lexicon: Option<PathBuf>,
}

impl EncoderAlignOutputs {
    /// All of them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let Self { links, confidences, prepared, readable, lexicon } = self;
        [links, confidences, prepared, readable, lexicon]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    /// Whether links are written, rather than evaluated alone.
    fn keeps_links(&self) -> bool {
        let Self { links, confidences, readable, lexicon, .. } = self;
        [links, confidences, readable, lexicon].into_iter().any(Option::is_some)
    }
}

/// The links of one layer by one extraction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerLinks {
    /// The layer, 0 for the embeddings.
    pub layer: usize,
    /// How links were extracted.
    pub extraction: LinkExtraction,
    /// Links of words.
    pub links: u64,
    /// Their mean confidence, 0 where there is none.
    pub confidence: f64,
    /// Against gold links, where some were given and a link was predicted.
    pub score: Option<AlignmentScore>,
}

/// What other ways to align the same text get against the same gold links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceLinks {
    /// `ibm2`: IBM model 2 trained on this text. `diagonal`: word i is linked to the word at the same share of
    /// the other sentence.
    pub method: String,
    /// Against gold links.
    pub score: AlignmentScore,
}

/// The result of aligning a parallel text by an encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncoderAlignResult {
    /// The languages, source and target.
    pub languages: [String; 2],
    /// The fingerprint of the weights.
    pub model: String,
    /// Sentence pairs.
    pub pairs: usize,
    /// Pairs of which a side is longer than the model reads; they have no links.
    pub too_long: usize,
    /// Word tokens of source and target.
    pub tokens: [usize; 2],
    /// What was compared.
    pub unit: AlignmentUnit,
    /// Every layer by every extraction.
    pub alignments: Vec<LayerLinks>,
    /// Other ways to align the text, where gold links were given.
    pub references: Vec<ReferenceLinks>,
    /// The file of links.
    pub out: Option<PathBuf>,
    /// Seconds of encoding and extraction.
    pub seconds: f64,
    /// What may be wrong with the input.
    pub warnings: Vec<String>,
    /// How the text was aligned.
    pub signature: String,
}

type ScoredLink = ((u16, u16), f32);

/// Aligns a parallel text by an encoder and writes what was asked for. `progress` is called with how many pairs are
/// done, and of how many.
///
/// # Errors
/// Where the text, the gold links or an output is at fault, where outputs are asked for of more than one layer and
/// extraction, and where the model does not know a language.
pub fn align_with_encoder(
    model: &mut PretrainedModel,
    request: &EncoderAlignRequest<'_>,
    observer: &mut dyn AlignmentObserver,
    mut progress: impl FnMut(usize, usize),
) -> Result<EncoderAlignResult> {
    let EncoderAlignRequest { text, preparation, layers, extractions, outputs, .. } = request;
    let methods: Vec<(usize, LinkExtraction)> =
        layers.iter().flat_map(|&layer| extractions.iter().map(move |&how| (layer, how))).collect();
    check(&methods, outputs)?;
    let _together = files::lock_outputs(outputs.paths());
    let reader = BitextReader::new(preparation.clone(), request.rules)?;
    let (bitext, texts) = read(&reader, text, None, (outputs.prepared.as_deref(), true), observer)?;
    let gold = request.gold.as_ref().map(|gold| read_gold(gold, bitext.len())).transpose()?;
    observer.linking();
    let began = Instant::now();
    let mut tally = Tally::new(methods.len(), outputs.keeps_links());
    let aligner = ChunkAligner { request, texts: &texts, pairs: bitext.len() };
    let mut first = 0;
    while first < bitext.len() {
        let chunk = aligner.align(model, first)?;
        first += chunk.len();
        tally.add(chunk, gold.as_deref());
        progress(first, bitext.len());
    }
    let seconds = began.elapsed().as_secs_f64();
    let sides = [bitext.source(), bitext.target()];
    let result = EncoderAlignResult {
        languages: preparation.languages.clone(),
        model: model.fingerprint.clone(),
        pairs: bitext.len(),
        too_long: tally.too_long,
        tokens: sides.map(|side| side.tokens().len()),
        unit: request.unit,
        alignments: tally.alignments(&methods, gold.is_some()),
        references: gold.as_deref().map_or(Ok(Vec::new()), |gold| references(&bitext, gold))?,
        out: outputs.links.clone(),
        seconds,
        warnings: preparation.warnings(),
        signature: signature(request),
    };
    write(outputs, &tally.kept, &texts)?;
    Ok(result)
}

/// Files hold the links of one layer and one extraction.
fn check(methods: &[(usize, LinkExtraction)], outputs: &EncoderAlignOutputs) -> Result<()> {
    if methods.len() > 1 && outputs.keeps_links() {
        let reason = format!("{} alignments and one file of links", methods.len());
        let remedy = "choose one layer and one extraction to write links, or compare several against gold links \
                      without writing any";
        return Err(Error::request(reason, remedy));
    }
    Ok(())
}

fn signature(request: &EncoderAlignRequest<'_>) -> String {
    let EncoderAlignRequest { extractions, unit, threshold, .. } = request;
    let names: Vec<&str> = extractions.iter().map(|one| one.name()).collect();
    let unit = match unit {
        AlignmentUnit::Subwords => "subwords",
        AlignmentUnit::Words => "words",
    };
    let threshold = match extractions.contains(&LinkExtraction::Softmax) {
        true => format!("|threshold:{threshold}"),
        false => String::new(),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("word-align|states|{}|{unit}{threshold}|v:{version}", names.join(","))
}

fn read_gold((source, first): &(TextSource, u16), pairs: usize) -> Result<Vec<GoldLinks>> {
    let mut lines = source.raw_lines(LineRules::default());
    let mut gold = Vec::new();
    while let Some(line) = lines.next_line()? {
        let links = GoldLinks::parse(line, *first);
        gold.push(links.ok_or_else(|| {
            let remedy = "write `0-0` for a sure link and `0?0` for a possible one, counted from 0 or, if so said, 1";
            Error::line(lines.name(), lines.number(), "not links", remedy)
        })?);
    }
    let name = source.names().next().unwrap_or_default();
    if gold.len() != pairs {
        let reason = format!("has {} lines, and the text {pairs} sentence pairs", gold.len());
        return Err(Error::file(name, reason, "give the gold links of this very text"));
    }
    if gold.iter().all(|links| links.sure.is_empty()) {
        return Err(Error::file(name, "has no sure link", "mark sure links as `0-0`"));
    }
    Ok(gold)
}

/// IBM model 2 and the diagonal against the same gold links.
fn references(bitext: &Bitext, gold: &[GoldLinks]) -> Result<Vec<ReferenceLinks>> {
    let (config, symmetrization) = (AlignmentConfig::default(), Symmetrization::GrowDiagFinalAnd);
    let trained = align_bitext(bitext, &config, symmetrization, &mut ())?.links;
    let diagonal = (0..bitext.len()).map(|pair| {
        let [m, n] = [bitext.source(), bitext.target()].map(|side| side.length(pair));
        diagonal(m, n)
    });
    let score = |links: Vec<WordLinks>| {
        let mut counts = LinkCounts::default();
        gold.iter().zip(&links).for_each(|(gold, links)| counts.add(gold, links));
        counts.score()
    };
    Ok(vec![
        ReferenceLinks { method: "ibm2".to_owned(), score: score(trained)? },
        ReferenceLinks { method: "diagonal".to_owned(), score: score(diagonal.collect())? },
    ])
}

/// Each word of the longer sentence to the word at the same share of the shorter one.
fn diagonal(m: usize, n: usize) -> WordLinks {
    let place = |at: usize, of: usize, other: usize| (at * other / of.max(1)) as u16;
    let links = match m >= n {
        true => (0..m).filter(|_| n > 0).map(|i| (i as u16, place(i, m, n))).collect(),
        false => (0..n).filter(|_| m > 0).map(|j| (place(j, n, m), j as u16)).collect(),
    };
    WordLinks::new(links)
}

/// A pair's links by every method; none where a side is too long.
type PairLinks = Option<Vec<Vec<ScoredLink>>>;

struct Tally {
    counts: Vec<LinkCounts>,
    links: Vec<u64>,
    confidence: Vec<f64>,
    too_long: usize,
    keep: bool,
    /// The links of every pair by the one method, where they are written.
    kept: Vec<Vec<ScoredLink>>,
}

impl Tally {
    fn new(methods: usize, keep: bool) -> Self {
        Self {
            counts: vec![LinkCounts::default(); methods],
            links: vec![0; methods],
            confidence: vec![0.0; methods],
            too_long: 0,
            keep,
            kept: Vec::new(),
        }
    }

    fn add(&mut self, chunk: Vec<PairLinks>, gold: Option<&[GoldLinks]>) {
        for pair in chunk {
            self.too_long += usize::from(pair.is_none());
            let mut methods = pair.unwrap_or_else(|| vec![Vec::new(); self.counts.len()]);
            for (method, links) in methods.iter().enumerate() {
                self.links[method] += links.len() as u64;
                self.confidence[method] += links.iter().map(|link| f64::from(link.1)).sum::<f64>();
                let counts = &mut self.counts[method];
                match gold {
                    Some(gold) => counts.add(&gold[counts.sentences as usize], &plain(links)),
                    None => counts.sentences += 1,
                }
            }
            if self.keep {
                self.kept.push(methods.swap_remove(0));
            }
        }
    }

    fn alignments(&self, methods: &[(usize, LinkExtraction)], scored: bool) -> Vec<LayerLinks> {
        let row = |(number, &(layer, extraction)): (usize, &(usize, LinkExtraction))| {
            let links = self.links[number];
            let confidence = self.confidence[number] / links.max(1) as f64;
            let score = if scored { self.counts[number].score().ok() } else { None };
            LayerLinks { layer, extraction, links, confidence, score }
        };
        methods.iter().enumerate().map(row).collect()
    }
}

fn plain(links: &[ScoredLink]) -> WordLinks {
    WordLinks::new(links.iter().map(|link| link.0).collect())
}

struct ChunkAligner<'a> {
    request: &'a EncoderAlignRequest<'a>,
    texts: &'a PairTexts,
    pairs: usize,
}

/// A sentence as subwords: ids with the special tokens, and where each word begins and the last ends.
struct SubwordSentence {
    ids: Vec<u32>,
    bounds: Vec<u32>,
}

struct SideVectors {
    /// At each layer: the units of all sentences, one after the other.
    layers: Vec<Vec<f32>>,
    /// The first unit of each sentence; one more for the end.
    starts: Vec<usize>,
}

impl SideVectors {
    fn of(&self, layer: usize, sentence: usize, dim: usize) -> &[f32] {
        &self.layers[layer][self.starts[sentence] * dim..self.starts[sentence + 1] * dim]
    }
}

impl ChunkAligner<'_> {
    /// The links of the pairs from `first` on, as many as fit in memory.
    fn align(&self, model: &mut PretrainedModel, first: usize) -> Result<Vec<PairLinks>> {
        let dim = model.encoder.config().dim;
        let pairs = self.tokenize(model, first, dim)?;
        let fitting: Vec<&[SubwordSentence; 2]> = pairs.iter().flatten().collect();
        let source = self.encode(model, 0, &fitting)?;
        let target = self.encode(model, 1, &fitting)?;
        let links = |at: usize| -> Vec<Vec<ScoredLink>> {
            let mut all = Vec::new();
            for layer in 0..self.request.layers.len() {
                let sides = [source.of(layer, at, dim), target.of(layer, at, dim)];
                let matrix = SimilarityMatrix::new(sides[0], sides[1], dim);
                for &extraction in &self.request.extractions {
                    all.push(self.word_links(fitting[at], &matrix, extraction));
                }
            }
            all
        };
        let mut found: Vec<_> = (0..fitting.len()).into_par_iter().map(links).collect();
        let mut found = found.drain(..);
        Ok(pairs.iter().map(|pair| pair.as_ref().and_then(|_| found.next())).collect())
    }

    /// Pairs as subwords until the chunk is full; none for a pair with a side that the model cannot read whole.
    fn tokenize(
        &self,
        model: &PretrainedModel,
        first: usize,
        dim: usize,
    ) -> Result<Vec<Option<[SubwordSentence; 2]>>> {
        let languages = &self.request.preparation.languages;
        let mut readers = Vec::new();
        for language in languages {
            readers.push(model.sentences(language)?);
        }
        let (mut pairs, mut values) = (Vec::new(), 0);
        for pair in first..self.pairs {
            let mut sides = Vec::new();
            for (words, reader) in self.texts.words(pair).into_iter().zip(&mut readers) {
                let encoded = reader.words(&words)?;
                if encoded.ids.len() > reader.max_subwords() {
                    continue;
                }
                let end = encoded.ids.len() as u32;
                values += encoded.ids.len() * dim * self.request.layers.len();
                let bounds = encoded.firsts.iter().copied().chain([end]).collect();
                sides.push(SubwordSentence {
                    ids: reader.with_special_tokens(&encoded.ids),
                    bounds,
                });
            }
            pairs.push(sides.try_into().ok());
            if values >= CHUNK_VALUES {
                break;
            }
        }
        Ok(pairs)
    }

    /// The vectors of one side, encoded no further than the last layer that is asked for.
    fn encode(
        &self,
        model: &mut PretrainedModel,
        side: usize,
        pairs: &[&[SubwordSentence; 2]],
    ) -> Result<SideVectors> {
        let EncoderAlignRequest { layers, unit, preparation, .. } = self.request;
        let language = model.sentences(&preparation.languages[side])?.language();
        let mut vectors = SideVectors { layers: vec![Vec::new(); layers.len()], starts: vec![0] };
        for pair in pairs {
            let SubwordSentence { bounds, .. } = &pair[side];
            let units = match unit {
                AlignmentUnit::Subwords => bounds.last().map_or(0, |&end| end as usize),
                AlignmentUnit::Words => bounds.len() - 1,
            };
            vectors.starts.push(vectors.starts[vectors.starts.len() - 1] + units);
        }
        let last = layers.iter().copied().max();
        let ids = pairs.iter().map(|pair| Ok::<_, Error>(pair[side].ids.as_slice()));
        for_each_until(model.parts(), language, last, ids, |states| {
            for (values, &layer) in vectors.layers.iter_mut().zip(layers) {
                match unit {
                    AlignmentUnit::Subwords => {
                        models::states::Pooling::None.push(states, layer, values);
                    }
                    AlignmentUnit::Words => word_means(states, layer, (side, pairs), values),
                }
            }
            Ok(())
        })?;
        Ok(vectors)
    }

    /// Links of units as links of words, each with the confidence of its best pair of units.
    fn word_links(
        &self,
        pair: &[SubwordSentence; 2],
        matrix: &SimilarityMatrix,
        extraction: LinkExtraction,
    ) -> Vec<ScoredLink> {
        let word = |side: usize, at: usize| match self.request.unit {
            AlignmentUnit::Words => at as u16,
            AlignmentUnit::Subwords => {
                let starts = &pair[side].bounds;
                (starts[..starts.len() - 1].partition_point(|&start| start as usize <= at) - 1)
                    as u16
            }
        };
        let units = matrix.extract(extraction, self.request.threshold);
        let mut links: Vec<ScoredLink> = units
            .iter()
            .map(|link| ((word(0, link.source), word(1, link.target)), link.confidence))
            .collect();
        links.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        links.dedup_by_key(|link| link.0);
        links
    }
}

/// Appends the mean of every word's subwords.
fn word_means(
    states: &HiddenStates<'_>,
    layer: usize,
    (side, pairs): (usize, &[&[SubwordSentence; 2]]),
    values: &mut Vec<f32>,
) {
    let words = |sentence: usize| {
        let start = states.inner(sentence).start;
        let bounds = &pairs[states.first + sentence][side].bounds;
        bounds.windows(2).map(move |word| start + word[0] as usize..start + word[1] as usize)
    };
    let ranges: Vec<_> = (0..states.sentences()).flat_map(words).collect();
    values.extend(states.means(layer, &ranges));
}

fn write(outputs: &EncoderAlignOutputs, kept: &[Vec<ScoredLink>], texts: &PairTexts) -> Result<()> {
    let pairs = kept.len();
    if let Some(path) = &outputs.confidences {
        write_lines(path, pairs, |pair, text| {
            for (index, ((i, j), confidence)) in kept[pair].iter().enumerate() {
                let space = if index > 0 { " " } else { "" };
                let _ = write!(text, "{space}{i}-{j}:{confidence:.4}");
            }
            0
        })?;
    }
    if let Some(path) = &outputs.readable {
        write_lines(path, pairs, |pair, text| {
            texts.put(pair, &plain(&kept[pair]), text);
            0
        })?;
    }
    if let Some(path) = &outputs.lexicon {
        text::write_table(path, lexicon(texts, pairs, |pair| plain(&kept[pair])))?;
    }
    if let Some(path) = &outputs.links {
        write_lines(path, pairs, |pair, text| put(&plain(&kept[pair]), text))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagonal_by_hand() {
        assert_eq!(diagonal(2, 4).to_string(), "0-0 0-1 1-2 1-3");
        assert_eq!(diagonal(3, 2).to_string(), "0-0 1-0 2-1");
        assert!(diagonal(0, 3).is_empty() && diagonal(3, 0).is_empty());
    }
}
