//! How large an experiment is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A set of sizes and training lengths that go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Invented languages, minutes on two CPU cores.
    Tiny,
    /// Real text, minutes to an hour on one GPU.
    Small,
    /// The sizes of the papers, hours to days on GPUs.
    Paper,
}

impl Scale {
    /// Every scale, smallest first.
    pub const ALL: [Self; 3] = [Self::Tiny, Self::Small, Self::Paper];

    /// Its name in configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Small => "small",
            Self::Paper => "paper",
        }
    }

    /// What it is for, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Tiny => "invented languages, minutes on two CPU cores",
            Self::Small => "real text; sized for a GPU, slow on a CPU",
            Self::Paper => "the papers' own numbers: days on eight GPUs",
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scale {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scale| scale.name() == name);
        known.ok_or_else(|| format!("unknown scale '{name}'; there are: tiny, small, paper"))
    }
}
