//! Why words keep to topics: latent vectors of words and of topics, and their dot products.
//!
//! Strengths fall from dimension to dimension and the entries are skewed, so that no rotation,
//! reflection or renaming of topics leaves the world as it is. A learner of two languages can only
//! find the one mapping between them if there is only one.

use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use crate::config::MeaningConfig;

pub(crate) struct LatentVectors {
    scales: Vec<f64>,
    norm: f64,
    topics: Vec<Vec<f64>>,
    contrast: f64,
}

impl LatentVectors {
    pub(crate) fn new(config: &MeaningConfig, rng: &mut ChaCha8Rng) -> Self {
        let scales: Vec<f64> =
            (0..config.latent).map(|k| ((k + 1) as f64).powf(-config.latent_decay)).collect();
        let norm = scales.iter().map(|s| s.powi(4)).sum::<f64>().sqrt();
        let contrast = config.topic_contrast;
        let mut latents = Self { scales, norm, topics: Vec::new(), contrast };
        latents.topics = (0..config.topics).map(|_| latents.vector(rng)).collect();
        latents
    }

    pub(crate) fn vector(&self, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut entry = || -> f64 { Exp1.sample(rng) };
        self.scales.iter().map(|scale| scale * (entry() - 1.0)).collect()
    }

    /// A random vector correlated with `parent`.
    pub(crate) fn child(&self, parent: &[f64], rng: &mut ChaCha8Rng) -> Vec<f64> {
        parent.iter().zip(self.vector(rng)).map(|(p, own)| 0.6 * p + 0.8 * own).collect()
    }

    /// How much more or less likely each topic makes a word; `strength` scales the contrast.
    pub(crate) fn affinity(&self, vector: &[f64], strength: f64) -> Vec<f64> {
        let sigma = self.contrast * strength;
        let likeness = |topic: &Vec<f64>| -> f64 {
            topic.iter().zip(vector).map(|(t, v)| t * v).sum::<f64>() / self.norm
        };
        let bounded = |x: f64| (sigma * x).clamp(-3.0 * sigma, 3.0 * sigma).exp();
        self.topics.iter().map(|topic| bounded(likeness(topic))).collect()
    }
}
