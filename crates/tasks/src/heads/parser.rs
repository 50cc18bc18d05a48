//! The deep biaffine parser of Dozat and Manning (2017): four small networks give every word a vector as head
//! and as dependent, for arcs and for relations.
//!
//! The score of an arc is `(d · U + u) · h`. What else a biaffine form with biases has (a weight for
//! the dependent alone, a constant) is the same for every head of a word, and so changes neither its
//! softmax nor its tree: it is left out. The scores of relations have all four terms. A tree is
//! chosen first, and then for each of its arcs a relation.

use serde::{Deserialize, Serialize};
use tensor::{Activation, Affine, Indices, Params, Spans, Tape, Tensor, Var};

use super::{Head, HeadWeights, argmax, spans};
use crate::labelled::{Annotation, Example, NONE};
use crate::parse::{ArcScores, ROOT};
use crate::registry::HeadShape;

/// How wide a parser is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParserSizes {
    /// Of the vectors by which arcs are scored.
    pub arc: usize,
    /// Of the vectors by which relations are scored.
    pub label: usize,
}

impl ParserSizes {
    /// 512 and 128, as parsers over large encoders have them, and less over small ones.
    pub fn for_dim(dim: usize) -> Self {
        Self { arc: (2 * dim).clamp(64, 512), label: dim.clamp(32, 128) }
    }
}

/// The weights of a parser.
#[derive(Clone, Copy, Debug)]
pub struct Parser {
    arc_head: Affine,
    arc_dependent: Affine,
    /// arc x arc.
    arc: Affine,
    label_head: Affine,
    label_dependent: Affine,
    /// label x (relations · label): a bilinear form for each relation, and what a head adds alone.
    pairs: Affine,
    /// label x relations: what a dependent adds alone.
    dependent: Affine,
    relations: usize,
    /// The id of the relation of a sentence's root.
    root: u32,
    dropout: f32,
}

/// What the parser's networks make of a batch.
struct ParserStates {
    /// The rows of each sentence where roots have one too.
    all: Spans,
    /// The rows of each sentence where only words have one.
    words: Spans,
    /// Words x arcs: the scores of every head in the sentence, the root's first.
    arcs: Var,
    /// (Roots and words) x label.
    label_heads: Var,
    /// Words x label.
    label_dependents: Var,
}

impl Parser {
    /// Adds the weights of a parser.
    pub fn new(params: &mut Params, shape: &HeadShape<'_>) -> Self {
        let HeadShape { seed, dim, labels, dropout, parser } = *shape;
        let mut weights = HeadWeights { params, seed };
        let ParserSizes { arc, label } = parser.unwrap_or(ParserSizes::for_dim(dim));
        let relations = labels.len();
        // Glorot and Bengio 2010, for networks that share no weights with the encoder.
        let glorot = |inputs: usize, outputs: usize| (2.0 / (inputs + outputs) as f32).sqrt();
        let mut network = |name: &str, size| weights.affine(name, dim, size, glorot(dim, size));
        Self {
            arc_head: network("arc_head", arc),
            arc_dependent: network("arc_dependent", arc),
            label_head: network("label_head", label),
            label_dependent: network("label_dependent", label),
            // Forms that score pairs begin by scoring all alike.
            arc: weights.affine("arc", arc, arc, 0.0),
            pairs: weights.affine("label", label, relations * label, 0.0),
            dependent: weights.affine("label_bias", label, relations, 0.0),
            relations,
            root: labels.id(ROOT),
            dropout,
        }
    }

    fn network(&self, tape: &mut Tape<'_>, x: Var, network: Affine) -> Var {
        let y = tape.linear(x, network, Activation::Elu);
        tape.drop(y, self.dropout)
    }

    fn states(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> ParserStates {
        let all = spans(examples);
        let words = Spans::of_lengths(examples.iter().map(|example| example.positions.len() - 1));
        let rows: Indices =
            all.iter().flat_map(|span| span.skip(1)).map(|row| row as u32).collect();
        let vectors = tape.drop(vectors, self.dropout);
        let dependents = tape.select(vectors, &rows);
        let arc_heads = self.network(tape, vectors, self.arc_head);
        let arc_dependents = self.network(tape, dependents, self.arc_dependent);
        let queries = tape.linear(arc_dependents, self.arc, Activation::None);
        let arcs = tape.pair_scores(queries, arc_heads, &words, &all);
        let label_heads = self.network(tape, vectors, self.label_head);
        let label_dependents = self.network(tape, dependents, self.label_dependent);
        ParserStates { all, words, arcs, label_heads, label_dependents }
    }

    /// The scores of relations of some words, each with the given row as its head: words x relations.
    fn labels(
        &self,
        tape: &mut Tape<'_>,
        states: &ParserStates,
        words: &Indices,
        heads: &Indices,
    ) -> Var {
        let heads = tape.select(states.label_heads, heads);
        let dependents = tape.select(states.label_dependents, words);
        let wide = tape.linear(dependents, self.pairs, Activation::None);
        let pairs = tape.block_dots(wide, heads);
        let alone = tape.linear(dependents, self.dependent, Activation::None);
        tape.residual(alone, pairs, 0.0)
    }
}

impl Head for Parser {
    /// Losses of arcs and of relations at the gold heads, both means over the words whose head is
    /// known.
    fn loss(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Tensor {
        let states = self.states(tape, vectors, examples);
        let (mut words, mut widths, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        let (mut head_rows, mut labels) = (Vec::new(), Vec::new());
        for ((example, all), span) in
            examples.iter().zip(states.all.iter()).zip(states.words.iter())
        {
            for (gold, word) in example.gold.iter().zip(span) {
                if gold.head != NONE {
                    words.push(word as u32);
                    widths.push(all.len() as u32);
                    heads.push(gold.head);
                    head_rows.push(all.start as u32 + gold.head);
                    labels.push(gold.label);
                }
            }
        }
        let words = Indices::from(words);
        let weight = 1.0 / words.len().max(1) as f32;
        let arcs = tape.select(states.arcs, &words);
        let mut score = tape.cross_entropy(arcs, &widths.into(), &heads.into(), weight);
        let scores = self.labels(tape, &states, &words, &head_rows.into());
        let widths = std::iter::repeat_n(self.relations as u32, words.len()).collect();
        let relations = tape.cross_entropy(scores, &widths, &labels.into(), weight);
        tape.params().device().kernels().add(&mut score, &relations);
        score
    }

    fn predict(
        &self,
        tape: &mut Tape<'_>,
        vectors: Var,
        examples: &[&Example],
    ) -> Vec<Vec<Annotation>> {
        let states = self.states(tape, vectors, examples);
        let stride = tape.value(states.arcs).cols();
        let arcs = tape.value(states.arcs).to_vec();
        let (mut heads, mut rows) = (Vec::new(), Vec::new());
        for (all, words) in states.all.iter().zip(states.words.iter()) {
            let scores = ArcScores::new(&arcs[words.start * stride..], words.len(), stride);
            let tree = scores.best_tree();
            rows.extend(tree.iter().map(|head| all.start as u32 + head));
            heads.push(tree);
        }
        let every: Indices = (0..rows.len() as u32).collect();
        let labels = self.labels(tape, &states, &every, &rows.into());
        let labels = tape.value(labels).to_vec();
        let mut scores = labels.chunks(self.relations);
        let mut annotation = |head: u32| {
            let mut row = scores.next().expect("a row for every word").to_vec();
            if let Some(root) = row.get_mut(self.root as usize) {
                // `root` is the relation of the root, and of no other word.
                *root = if head == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
            }
            Annotation { label: argmax(&row), head }
        };
        heads.into_iter().map(|tree| tree.into_iter().map(&mut annotation).collect()).collect()
    }
}
