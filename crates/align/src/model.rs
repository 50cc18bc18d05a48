//! The model of both directions, which can be saved and links new text as the training text.

use crate::bitext::Bitext;
use crate::input::BitextPreparation;
use crate::learn::{AlignmentConfig, DirectionalLinks, EmIteration, link, train_direction};
use crate::lexicon::DirectionModel;
use crate::links::WordLinks;
use crate::symmetrize::{Symmetrization, symmetrize};
use crate::view::AlignmentDirection;
use crate::words::WordIndex;
use crate::{Error, Result};

/// Two vocabularies and the trained parameters of both directions.
#[derive(Debug)]
pub struct AlignmentModel {
    /// The words of the first language.
    pub source: WordIndex,
    /// The words of the second language.
    pub target: WordIndex,
    /// Target words explained by source words.
    pub forward: DirectionModel,
    /// Source words explained by target words.
    pub reverse: DirectionModel,
    /// How the text was preprocessed.
    pub preparation: BitextPreparation,
}

/// Trains both directions; `watch` is called after every iteration.
pub fn train(
    bitext: &Bitext,
    config: &AlignmentConfig,
    watch: &mut dyn FnMut(AlignmentDirection, &EmIteration),
) -> Result<AlignmentModel> {
    let mut learn = |direction| {
        train_direction(bitext, direction, config, &mut |pass| watch(direction, pass))
            .map(|(lexicon, _)| lexicon)
    };
    let forward = learn(AlignmentDirection::Forward)?;
    let reverse = learn(AlignmentDirection::Reverse)?;
    Ok(AlignmentModel::new(bitext, forward, reverse))
}

/// The posterior probabilities of one sentence pair's alignments.
#[derive(Clone, Debug, PartialEq)]
pub struct PairPosteriors {
    /// The links of the forward direction.
    pub forward: WordLinks,
    /// The links of the reverse direction.
    pub reverse: WordLinks,
    /// The logarithms of the probability of the target given the source, and the other way round.
    pub log_probabilities: [f64; 2],
    /// target x (source + 1): the probability that each source word, or none, stands behind each
    /// target word.
    forward_posteriors: Vec<f64>,
    /// source x (target + 1), likewise.
    reverse_posteriors: Vec<f64>,
    lengths: [usize; 2],
}

impl PairPosteriors {
    /// The probabilities of a link in the forward and in the reverse direction.
    pub fn posteriors(&self, (source, target): (u16, u16)) -> [f64; 2] {
        let (i, j) = (usize::from(source), usize::from(target));
        let [n, m] = self.lengths;
        [self.forward_posteriors[j * (n + 1) + i], self.reverse_posteriors[i * (m + 1) + j]]
    }

    /// The symmetrized links.
    pub fn links(&self, symmetry: Symmetrization) -> WordLinks {
        symmetrize(&self.forward, &self.reverse, symmetry)
    }
}

impl AlignmentModel {
    /// Combines two directions that were trained on this text.
    pub fn new(bitext: &Bitext, forward: DirectionModel, reverse: DirectionModel) -> Self {
        Self {
            source: bitext.source().words().clone(),
            target: bitext.target().words().clone(),
            forward,
            reverse,
            preparation: bitext.preparation().clone(),
        }
    }

    /// The preprocessing for new text of these languages; refuses them where they are the model's in
    /// the opposite order, or others.
    pub fn preparation_for(&self, languages: &[String; 2]) -> Result<BitextPreparation> {
        let known = &self.preparation.languages;
        if known == languages || known.iter().any(String::is_empty) {
            return Ok(self.preparation.clone());
        }
        let [source, target] = known;
        let reason = format!(
            "the model is of `{source}` and `{target}`, and the text of `{}` and `{}`",
            languages[0], languages[1]
        );
        let swapped = [&languages[1], &languages[0]] == [source, target];
        let remedy = match swapped {
            true => "give the two sides in the model's order",
            false => "give text of the model's languages, or train another model",
        };
        Err(Error::request(reason, remedy))
    }

    /// Links a text with ids of this model's vocabularies, in one direction.
    pub fn link(&self, bitext: &Bitext, direction: AlignmentDirection) -> DirectionalLinks {
        let lexicon = match direction {
            AlignmentDirection::Forward => &self.forward,
            AlignmentDirection::Reverse => &self.reverse,
        };
        link(lexicon, bitext, direction)
    }

    /// Everything about one sentence pair, its words given as ids.
    pub fn explain(&self, source: &[u32], target: &[u32]) -> PairPosteriors {
        let (forward_posteriors, forward_log) = self.forward.posteriors(source, target);
        let (reverse_posteriors, reverse_log) = self.reverse.posteriors(target, source);
        let forward = most_likely(&forward_posteriors, source.len());
        let reverse = most_likely(&reverse_posteriors, target.len());
        let transposed = reverse.into_iter().map(|(given, explained)| (explained, given)).collect();
        PairPosteriors {
            forward: WordLinks::new(forward),
            reverse: WordLinks::new(transposed),
            log_probabilities: [forward_log, reverse_log],
            forward_posteriors,
            reverse_posteriors,
            lengths: [source.len(), target.len()],
        }
    }

    /// Everything about one sentence pair, its words told apart by white space.
    pub fn explain_text(&self, source: &str, target: &str) -> PairPosteriors {
        let ids = |words: &WordIndex, text: &str| -> Vec<u32> {
            text.split_ascii_whitespace().map(|word| words.id(word)).collect()
        };
        self.explain(&ids(&self.source, source), &ids(&self.target, target))
    }
}

/// (given, explained) for each explained word whose most likely place is not nothing, which comes
/// first among equals; then the first place does.
fn most_likely(posteriors: &[f64], given: usize) -> Vec<(u16, u16)> {
    let best = |row: &[f64]| {
        let (places, nothing) = row.split_at(given);
        let first = (nothing[0], None);
        let most = (0_u16..).zip(places).fold(first, |most, (place, &probability)| {
            if probability > most.0 { (probability, Some(place)) } else { most }
        });
        most.1
    };
    let rows = posteriors.chunks_exact(given + 1);
    (0..).zip(rows).filter_map(|(explained, row)| Some((best(row)?, explained))).collect()
}
