//! LAPE: language activation probability entropy (Tang et al. 2024).
//!
//! The probabilities of a neuron in the languages are normalised to sum to 1; their entropy is low where the neuron is active
//! in few languages. Neurons that are rarely active everywhere are left out: in some language the probability must be above
//! the 95th percentile of all probabilities. Of the rest, the share with the lowest entropy is chosen, and a neuron is specific
//! to each language in which its probability is above that percentile. As in the authors' program, the percentile is the k-th
//! smallest probability, k being 95 % of their number, rounded.

/// The percentile of all activation probabilities that a neuron must exceed in a language.
const PERCENTILE: f64 = 0.95;

/// The neurons that were chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct NeuronSelection {
    /// The entropy of each neuron, in nats; 0 where it is active in no language.
    pub entropies: Vec<f64>,
    /// The probability that a neuron must exceed in a language.
    pub threshold: f64,
    /// The neurons specific to each language, in ascending order.
    pub specific: Vec<Vec<usize>>,
}

/// Chooses neurons by their activation probabilities in each language (languages x neurons). Of equal entropies the neuron with the
/// lower number comes first.
pub fn lape(probabilities: &[Vec<f64>], share: f64) -> NeuronSelection {
    let neurons = probabilities.first().map_or(0, Vec::len);
    let of = |neuron: usize| probabilities.iter().map(move |language| language[neuron]);
    let entropies: Vec<f64> = (0..neurons).map(|neuron| entropy(of(neuron))).collect();
    let mut all: Vec<f64> = probabilities.concat();
    all.sort_by(f64::total_cmp);
    let place = (all.len() as f64 * PERCENTILE).round_ties_even() as usize;
    let threshold = all.get(place.saturating_sub(1)).copied().unwrap_or(0.0);
    let mut chosen: Vec<usize> =
        (0..neurons).filter(|&neuron| of(neuron).any(|one| one > threshold)).collect();
    chosen.sort_by(|&a, &b| entropies[a].total_cmp(&entropies[b]));
    chosen.truncate((neurons as f64 * share).round_ties_even() as usize);
    chosen.sort_unstable();
    let specific = |language: &Vec<f64>| {
        chosen.iter().copied().filter(|&neuron| language[neuron] > threshold).collect()
    };
    NeuronSelection { threshold, specific: probabilities.iter().map(specific).collect(), entropies }
}

/// The entropy of probabilities that are normalised to sum to 1.
fn entropy(probabilities: impl Iterator<Item = f64> + Clone) -> f64 {
    let sum: f64 = probabilities.clone().sum();
    let normalized = probabilities.filter(|&one| one > 0.0).map(|one| one / sum);
    normalized.map(|one| -one * one.ln()).sum()
}
