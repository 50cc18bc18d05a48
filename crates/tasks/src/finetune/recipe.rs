//! Grids of settings, and what a request changes of them.

use serde::{Deserialize, Serialize};
use terms::Task;

use crate::registry::definition;

/// How the learning rate changes over the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LrSchedule {
    /// Linear warmup over the first tenth of the steps, then linear decay to 0.
    Linear,
    /// Always the same.
    Constant,
}

/// The settings by which a task is fine-tuned.
#[derive(Clone, Debug, PartialEq)]
pub struct FinetuneRecipe {
    /// Batch sizes in sequences, each to be tried.
    pub batch: Vec<usize>,
    /// Learning rates, each to be tried.
    pub lr: Vec<f64>,
    /// Learning rates of the head, each to be tried; the encoder's where there are none.
    pub head_lr: Vec<f64>,
    /// Epochs.
    pub epochs: u32,
    /// The schedule of the learning rate.
    pub schedule: LrSchedule,
    /// Dropout within the head.
    pub dropout: f32,
    /// How often a setting that did not learn is trained again, at half the learning rates.
    pub restarts: u32,
}

/// What a request changes of a recipe.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecipeOverrides {
    /// Batch sizes; the recipe's where there are none.
    pub batch: Vec<usize>,
    /// Learning rates; the recipe's where there are none.
    pub lr: Vec<f64>,
    /// Learning rates of the head.
    pub head_lr: Vec<f64>,
    /// Epochs.
    pub epochs: Option<u32>,
    /// The schedule of the learning rate.
    pub schedule: Option<LrSchedule>,
    /// Dropout within the head.
    pub dropout: Option<f32>,
    /// How often a setting that did not learn is trained again.
    pub restarts: Option<u32>,
}

/// How large an encoder is that is fine-tuned. A learning rate that is right for one size leaves little of
/// what a larger one has learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncoderSize {
    /// Like scale `tiny`; new layers over frozen ones, too.
    Tiny,
    /// Like scale `small`.
    Small,
    /// Like scale `paper`, and pretrained models from elsewhere.
    Base,
}

impl EncoderSize {
    /// By the columns of the hidden states.
    pub fn of_dim(dim: usize) -> Self {
        match dim {
            0..128 => Self::Tiny,
            128..640 => Self::Small,
            _ => Self::Base,
        }
    }
}

impl FinetuneRecipe {
    /// A task's grid of the literature.
    pub fn of_papers(task: Task) -> Self {
        definition(task).paper_recipe()
    }

    /// A task's one setting that suits an encoder of a size. At `small`, learning rates are those that were
    /// best on English development sets (`bench/notes/`); a grid of one seed for NER, parsing and NLI,
    /// from which POS tagging and classification take the first. One NLI run in ten did not learn at that rate
    /// (English at chance), as is known of fine-tuning BERT (Mosbach et al. 2021), and is trained again.
    pub fn quick_for(task: Task, size: EncoderSize) -> Self {
        let quick = definition(task).quick_recipe();
        match (size, task) {
            (EncoderSize::Tiny, _) => quick,
            (EncoderSize::Small, Task::Nli) => {
                Self { lr: vec![1e-4], epochs: 3, restarts: 2, ..quick }
            }
            (EncoderSize::Small, _) => Self { lr: vec![2e-4], head_lr: vec![1e-3], ..quick },
            (EncoderSize::Base, _) => Self { lr: vec![3e-5], ..quick },
        }
    }

    /// The grid of Conneau et al. 2020 for NER and parsing, which is that of Devlin et al. 2019.
    pub(crate) fn tagging() -> Self {
        Self {
            batch: vec![16, 32],
            lr: vec![2e-5, 3e-5, 5e-5],
            head_lr: vec![],
            epochs: 10,
            schedule: LrSchedule::Linear,
            dropout: 0.1,
            restarts: 0,
        }
    }

    /// One setting that suits small encoders.
    pub(crate) fn quick(epochs: u32) -> Self {
        Self { batch: vec![32], lr: vec![1e-3], epochs, ..Self::tagging() }
    }

    /// The recipe with some changes. Learning rates that are given hold for the head too, unless it is
    /// given its own.
    pub fn with(self, overrides: &RecipeOverrides) -> Self {
        fn or<T: Clone>(given: &[T], default: Vec<T>) -> Vec<T> {
            if given.is_empty() { default } else { given.to_vec() }
        }
        let head_lr = if overrides.lr.is_empty() { self.head_lr } else { Vec::new() };
        Self {
            batch: or(&overrides.batch, self.batch),
            lr: or(&overrides.lr, self.lr),
            head_lr: or(&overrides.head_lr, head_lr),
            epochs: overrides.epochs.unwrap_or(self.epochs),
            schedule: overrides.schedule.unwrap_or(self.schedule),
            dropout: overrides.dropout.unwrap_or(self.dropout),
            restarts: overrides.restarts.unwrap_or(self.restarts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grids_of_the_paper() {
        let settings = |task| {
            let FinetuneRecipe { batch, lr, head_lr, .. } = FinetuneRecipe::of_papers(task);
            batch.len() * lr.len() * head_lr.len().max(1)
        };
        assert_eq!([Task::Nli, Task::Ner, Task::Parse].map(settings), [18, 6, 6]);
        assert_eq!([Task::Pos, Task::Classify].map(settings), [6, 6]);
    }

    #[test]
    fn the_quick_setting_follows_the_size() {
        let rates = |task, dim| {
            let recipe = FinetuneRecipe::quick_for(task, EncoderSize::of_dim(dim));
            (recipe.lr, recipe.head_lr, recipe.epochs)
        };
        assert_eq!(rates(Task::Ner, 48), (vec![1e-3], vec![], 3));
        assert_eq!(rates(Task::Nli, 48), (vec![1e-3], vec![], 10));
        assert_eq!(rates(Task::Ner, 512), (vec![2e-4], vec![1e-3], 3));
        assert_eq!(rates(Task::Parse, 256), (vec![2e-4], vec![1e-3], 5));
        assert_eq!(rates(Task::Nli, 512), (vec![1e-4], vec![], 3));
        assert_eq!(rates(Task::Parse, 768), (vec![3e-5], vec![], 5));
    }

    #[test]
    fn learning_rates_that_are_given_hold_for_the_head_too() {
        let overrides = RecipeOverrides { lr: vec![1e-4], ..RecipeOverrides::default() };
        let recipe = FinetuneRecipe::of_papers(Task::Nli).with(&overrides);
        assert_eq!((recipe.lr, recipe.head_lr, recipe.epochs), (vec![1e-4], vec![], 200));
    }
}
