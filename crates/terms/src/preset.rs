//! The conditions that the papers compare, by the names that `--preset`, configurations and studies
//! give them. What each changes in a configuration is for crate `train` to say.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Scale;

/// A condition under which an encoder is pretrained.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "&'static str", try_from = "String")]
#[allow(missing_docs, reason = "the summaries say it")]
pub enum Preset {
    #[default]
    Default,
    WikiCc,
    DefaultAnchors,
    NoAnchors,
    ExtraAnchors,
    SepEmb,
    SepEmbL1To3,
    SepEmbL1To6,
    SepL1To3,
    SepL1To6,
    Monolingual,
    SameLanguage,
    Untrained,
    Window20,
    Sentences200k,
    Sentences1000k,
    Sentences200kWindow20,
    Sentences1000kWindow20,
}

struct Row(Preset, &'static str, &'static str);

#[rustfmt::skip]
const PRESETS: [Row; 18] = [
    Row(Preset::Default, "default", "one vocabulary learned from all languages together, everything shared"),
    Row(Preset::WikiCc, "wiki-cc", "as default, each language's text from another domain"),
    Row(Preset::DefaultAnchors, "default-anchors", "a vocabulary for each language, equal subwords shared"),
    Row(Preset::NoAnchors, "no-anchors", "a vocabulary for each language, nothing shared"),
    Row(Preset::ExtraAnchors, "extra-anchors", "words replaced by translations from a dictionary"),
    Row(Preset::SepEmb, "sep-emb", "embeddings and softmax separate"),
    Row(Preset::SepEmbL1To3, "sep-emb-l1-3", "embeddings, softmax and the lower 3 of 8 layers separate"),
    Row(Preset::SepEmbL1To6, "sep-emb-l1-6", "embeddings, softmax and the lower 6 of 8 layers separate"),
    Row(Preset::SepL1To3, "sep-l1-3", "the lower 3 of 8 layers separate"),
    Row(Preset::SepL1To6, "sep-l1-6", "the lower 6 of 8 layers separate"),
    Row(Preset::Monolingual, "monolingual", "the first language alone"),
    Row(Preset::SameLanguage, "same-language", "the first language twice, embeddings and softmax separate"),
    Row(Preset::Untrained, "untrained", "no training: the weights as they are initialised"),
    Row(Preset::Window20, "window-20", "inputs cut to 20 tokens"),
    Row(Preset::Sentences200k, "sentences-200k", "200k sentences of every language (Liu et al. 2020: of 15)"),
    Row(Preset::Sentences1000k, "sentences-1000k", "1,000k sentences of every language"),
    Row(Preset::Sentences200kWindow20, "sentences-200k-window-20", "200k sentences, inputs cut to 20 tokens"),
    Row(Preset::Sentences1000kWindow20, "sentences-1000k-window-20", "1,000k sentences, inputs cut to 20 tokens"),
];

impl Preset {
    /// Every preset, in the order in which they are listed.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        PRESETS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        PRESETS.iter().find(|row| row.0 == self).expect("every preset has a row")
    }

    /// Its name in configurations and on the command line.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it changes, in a line.
    pub fn summary(self) -> &'static str {
        self.row().2
    }

    /// The sentences of each language that it takes at a scale, where it limits them.
    pub fn sentences(self, scale: Scale) -> Option<u64> {
        let sentences = match self {
            Self::Sentences200k | Self::Sentences200kWindow20 => 200_000,
            Self::Sentences1000k | Self::Sentences1000kWindow20 => 1_000_000,
            _ => return None,
        };
        // A tenth of the sentences covers the lexicon and grammar of invented languages.
        Some(if scale == Scale::Tiny { sentences / 10 } else { sentences })
    }

    /// How many of the lower layers it separates in an encoder of so many: 3 or 6 of 8, or the nearest to that share.
    pub fn separate_layers(self, layers: usize) -> Option<usize> {
        let of_eight = match self {
            Self::SepEmbL1To3 | Self::SepL1To3 => 3,
            Self::SepEmbL1To6 | Self::SepL1To6 => 6,
            _ => return None,
        };
        // Any number may be asked for: none may overflow.
        Some(((layers.min(1 << 32) * of_eight + 4) / 8).max(1))
    }

    /// Whether inputs are cut to 20 tokens.
    pub fn has_window_20(self) -> bool {
        self.name().ends_with("window-20")
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Preset> for &'static str {
    fn from(preset: Preset) -> Self {
        preset.name()
    }
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = PRESETS.iter().find(|row| row.1 == name).map(|row| row.0);
        known.ok_or_else(|| {
            let names: Vec<_> = PRESETS.iter().map(|row| row.1).collect();
            format!("unknown preset '{name}'; there are: {}", names.join(", "))
        })
    }
}

impl TryFrom<String> for Preset {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_one_row_and_reads_back() {
        for (at, Row(preset, name, summary)) in PRESETS.iter().enumerate() {
            assert_eq!(*preset as usize, at, "{name}");
            assert_eq!(name.parse(), Ok(*preset));
            assert!(!summary.is_empty());
        }
        assert!("random".parse::<Preset>().unwrap_err().contains("untrained, "));
    }

    #[test]
    fn tiny_takes_a_tenth_of_the_sentences() {
        assert_eq!(Preset::Sentences1000k.sentences(Scale::Tiny), Some(100_000));
        assert_eq!(Preset::Sentences200kWindow20.sentences(Scale::Paper), Some(200_000));
        assert_eq!(Preset::Default.sentences(Scale::Paper), None);
    }
}
