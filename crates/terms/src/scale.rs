//! How large an experiment is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named;

/// A set of sizes and training lengths that go together.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Invented languages, minutes on two CPU cores.
    #[default]
    Tiny,
    /// Real text, minutes to an hour on one GPU.
    Small,
    /// The sizes of the papers, hours to days on GPUs.
    Paper,
}

named!(Scale { Tiny => "tiny", Small => "small", Paper => "paper" });

impl Scale {
    /// The updates of a pretraining, where nothing else is asked for.
    ///
    /// At `paper`: 200 epochs of 200,000 sequences for each of eight GPUs, 96 at a time, which is
    /// 2,083 updates of 8 x 96 sequences an epoch. Conneau et al. 2020 (§3.1) write that an epoch
    /// contains 200k *batches*; but the program that they used (XLM) ends an epoch after so many
    /// sequences on each GPU, and 200 epochs of 200k batches would be 96 times as many updates, 40
    /// million of 197k tokens: months, not days, of their eight GPUs.
    pub fn steps(self) -> u64 {
        match self {
            Self::Tiny => 6000,
            Self::Small => 8_000,
            Self::Paper => 417_000,
        }
    }

    /// The layers of an encoder.
    pub fn layers(self) -> usize {
        match self {
            Self::Tiny => 4,
            Self::Small | Self::Paper => 8,
        }
    }

    /// The dimension of an encoder's hidden states.
    pub fn dim(self) -> usize {
        match self {
            Self::Tiny => 48,
            Self::Small => 512,
            Self::Paper => 768,
        }
    }

    /// What it is for, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Tiny => "invented languages, minutes on two CPU cores",
            Self::Small => "real text; sized for a GPU, slow on a CPU",
            Self::Paper => {
                "the papers' own numbers: 200 epochs of 2,083 updates, about 19 hours on one H200"
            }
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scale| scale.name() == name);
        known.ok_or_else(|| format!("unknown scale '{name}'; there are: tiny, small, paper"))
    }
}
