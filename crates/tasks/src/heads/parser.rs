//! A deep biaffine parser (Dozat and Manning 2016): four small networks give every word a vector as
//! head and as dependent, for arcs and for relations.
//!
//! The score of an arc is `(d · U + u) · h`. What else a biaffine form with biases has (a weight for
//! the dependent alone, a constant) is the same for every head of a word, and so changes neither its
//! softmax nor its tree: it is left out. The scores of relations have all four terms. A tree is
//! chosen first, and then for each of its arcs a relation.

use serde::{Deserialize, Serialize};
use tensor::{Activation, Affine, Indices, Params, Spans, Tape, Tensor, Var};

use super::{Head, Maker, highest, spans};
use crate::labelled::{Answer, Example, Labels, NONE};
use crate::parse::{ROOT, Scores};

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
    /// label x (classes · label): a bilinear form for each class, and what a head adds alone.
    pairs: Affine,
    /// label x classes: what a dependent adds alone.
    dependent: Affine,
    classes: usize,
    /// The class of the word that hangs from the root.
    root: u32,
    dropout: f32,
}

/// The vectors of a batch as the parser's networks see them.
struct Seen {
    /// A row for every root and word.
    all: Spans,
    /// A row for every word.
    words: Spans,
    /// Words x arcs: the scores of every head in the sentence, the root's first.
    arcs: Var,
    /// (Roots and words) x label.
    label_heads: Var,
    /// Words x label.
    label_dependents: Var,
}

impl Parser {
    /// Adds the weights of a parser over vectors of this width.
    pub fn new(
        params: &mut Params,
        seed: u64,
        dim: usize,
        sizes: ParserSizes,
        labels: &Labels,
        dropout: f32,
    ) -> Self {
        let mut maker = Maker { params, seed };
        let ParserSizes { arc, label } = sizes;
        let classes = labels.len();
        // Glorot's deviation, for networks that share no weights with the encoder.
        let glorot = |inputs: usize, outputs: usize| (2.0 / (inputs + outputs) as f32).sqrt();
        let mut network = |name: &str, size| maker.affine(name, dim, size, glorot(dim, size));
        Self {
            arc_head: network("arc_head", arc),
            arc_dependent: network("arc_dependent", arc),
            label_head: network("label_head", label),
            label_dependent: network("label_dependent", label),
            // Forms that score pairs begin by scoring all alike.
            arc: maker.affine("arc", arc, arc, 0.0),
            pairs: maker.affine("label", label, classes * label, 0.0),
            dependent: maker.affine("label_bias", label, classes, 0.0),
            classes,
            root: labels.id(ROOT),
            dropout,
        }
    }

    fn network(&self, tape: &mut Tape<'_>, x: Var, network: Affine) -> Var {
        let y = tape.linear(x, network, Activation::Elu);
        tape.drop(y, self.dropout)
    }

    fn see(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Seen {
        let all = spans(examples);
        let words = Spans::of_lengths(examples.iter().map(|example| example.wanted.len() - 1));
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
        Seen { all, words, arcs, label_heads, label_dependents }
    }

    /// The scores of relations: given words x classes, each with the given row as its head.
    fn labels(&self, tape: &mut Tape<'_>, seen: &Seen, words: &Indices, heads: &Indices) -> Var {
        let heads = tape.select(seen.label_heads, heads);
        let dependents = tape.select(seen.label_dependents, words);
        let wide = tape.linear(dependents, self.pairs, Activation::None);
        let pairs = tape.block_dots(wide, heads);
        let alone = tape.linear(dependents, self.dependent, Activation::None);
        tape.residual(alone, pairs, 0.0)
    }
}

impl Head for Parser {
    /// Losses of arcs and of relations at the right heads, both means over the words whose head is
    /// known.
    fn loss(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Tensor {
        let seen = self.see(tape, vectors, examples);
        let (mut words, mut widths, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        let (mut head_rows, mut classes) = (Vec::new(), Vec::new());
        for ((example, all), span) in examples.iter().zip(seen.all.iter()).zip(seen.words.iter()) {
            for (answer, word) in example.targets.iter().zip(span) {
                if answer.head != NONE {
                    words.push(word as u32);
                    widths.push(all.len() as u32);
                    heads.push(answer.head);
                    head_rows.push(all.start as u32 + answer.head);
                    classes.push(answer.class);
                }
            }
        }
        let words = Indices::from(words);
        let weight = 1.0 / words.len().max(1) as f32;
        let arcs = tape.select(seen.arcs, &words);
        let mut score = tape.cross_entropy(arcs, &widths.into(), &heads.into(), weight);
        let labels = self.labels(tape, &seen, &words, &head_rows.into());
        let widths = std::iter::repeat_n(self.classes as u32, words.len()).collect();
        let relations = tape.cross_entropy(labels, &widths, &classes.into(), weight);
        tape.params().device().kernels().add(&mut score, &relations);
        score
    }

    fn answer(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Vec<Vec<Answer>> {
        let seen = self.see(tape, vectors, examples);
        let stride = tape.value(seen.arcs).cols();
        let arcs = tape.value(seen.arcs).to_vec();
        let (mut heads, mut rows) = (Vec::new(), Vec::new());
        for (all, words) in seen.all.iter().zip(seen.words.iter()) {
            let scores = Scores::new(&arcs[words.start * stride..], words.len(), stride);
            let tree = scores.best_tree();
            rows.extend(tree.iter().map(|head| all.start as u32 + head));
            heads.push(tree);
        }
        let every: Indices = (0..rows.len() as u32).collect();
        let labels = self.labels(tape, &seen, &every, &rows.into());
        let labels = tape.value(labels).to_vec();
        let mut scores = labels.chunks(self.classes);
        let mut answer = |head: u32| {
            let mut row = scores.next().expect("a row for every word").to_vec();
            if let Some(root) = row.get_mut(self.root as usize) {
                // The relation of the root is that of the root alone.
                *root = if head == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
            }
            Answer { class: highest(&row), head }
        };
        heads.into_iter().map(|tree| tree.into_iter().map(&mut answer).collect()).collect()
    }
}
