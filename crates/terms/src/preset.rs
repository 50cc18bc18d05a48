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
    Row(Preset::SepEmbL1To3, "sep-emb-l1-3", "embeddings, softmax and the lower 3 of 8 layers separate (at tiny 2 of 4)"),
    Row(Preset::SepEmbL1To6, "sep-emb-l1-6", "embeddings, softmax and the lower 6 of 8 layers separate (at tiny 3 of 4)"),
    Row(Preset::SepL1To3, "sep-l1-3", "the lower 3 of 8 layers separate (at tiny 2 of 4)"),
    Row(Preset::SepL1To6, "sep-l1-6", "the lower 6 of 8 layers separate (at tiny 3 of 4)"),
    Row(Preset::Monolingual, "monolingual", "the first language alone"),
    Row(Preset::SameLanguage, "same-language", "the first language twice, as en and en-b, embeddings and softmax separate"),
    Row(Preset::Untrained, "untrained", "no training: the weights as they are initialised"),
    Row(Preset::Window20, "window-20", "inputs cut to 20 tokens (at tiny 5)"),
    Row(Preset::Sentences200k, "sentences-200k", "200k sentences of every language (Liu et al. 2020: of 15; at tiny 20k)"),
    Row(Preset::Sentences1000k, "sentences-1000k", "1,000k sentences of every language (at tiny 100k)"),
    Row(Preset::Sentences200kWindow20, "sentences-200k-window-20", "200k sentences, inputs cut to 20 tokens (at tiny 20k, 5)"),
    Row(Preset::Sentences1000kWindow20, "sentences-1000k-window-20", "1,000k sentences, inputs cut to 20 tokens (at tiny 100k, 5)"),
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

    /// The most tokens of an input, where it cuts inputs: 20, as Liu et al. 2020 cut sentences of some
    /// thirty; at `tiny`, where the sentences of invented languages have six words or so, 5.
    pub fn window(self, scale: Scale) -> Option<usize> {
        let cuts = self.name().ends_with("window-20");
        cuts.then_some(if scale == Scale::Tiny { 5 } else { 20 })
    }

    /// The layers of its encoder at a scale: those of the scale, but twelve in the encoders of
    /// Liu et al. 2020, which have the shape of multilingual BERT.
    pub fn layers(self, scale: Scale) -> usize {
        let like_bert = scale == Scale::Paper && self.sentences(scale).is_some();
        if like_bert { 12 } else { scale.layers() }
    }

    /// How many of an encoder's layers, from the first on, are separate for each language, where it
    /// separates layers: 3 or 6 of the eight of Conneau et al. 2020, and as large a share of any other
    /// depth, rounded to whole layers.
    pub fn separate_layers(self, layers: usize) -> Option<usize> {
        let of_eight = match self {
            Self::SepEmbL1To3 | Self::SepL1To3 => 3,
            Self::SepEmbL1To6 | Self::SepL1To6 => 6,
            _ => return None,
        };
        // Any number may be asked for: none may overflow.
        Some(((layers.min(1 << 32) * of_eight + 4) / 8).max(1))
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

    /// Half of the layers at `tiny`, where it cannot be three eighths: summaries must say so.
    #[test]
    fn summaries_say_which_layers_are_separate() {
        for preset in Preset::all() {
            let at = |scale: Scale| Some((preset.separate_layers(scale.layers())?, scale.layers()));
            let Some((tiny, of_tiny)) = at(Scale::Tiny) else { continue };
            let (paper, of_paper) = at(Scale::Paper).unwrap();
            assert_eq!(at(Scale::Small), at(Scale::Paper));
            let says = format!(
                "lower {paper} of {of_paper} layers separate (at tiny {tiny} of {of_tiny})"
            );
            assert!(preset.summary().ends_with(&says), "{}", preset.summary());
        }
        assert_eq!(Preset::SepL1To3.separate_layers(4), Some(2));
        assert_eq!(Preset::SepEmbL1To6.separate_layers(12), Some(9));
        assert_eq!(Preset::SepEmb.separate_layers(8), None);
    }

    #[test]
    fn liu_et_al_have_the_depth_of_bert_at_their_own_scale() {
        let layers = |preset: Preset| Scale::ALL.map(|scale| preset.layers(scale));
        assert_eq!(layers(Preset::Sentences200k), [4, 8, 12]);
        assert_eq!(layers(Preset::Sentences1000kWindow20), [4, 8, 12]);
        assert_eq!(layers(Preset::Window20), [4, 8, 8]);
        assert_eq!(Preset::Window20.window(Scale::Paper), Some(20));
        assert_eq!(Preset::Sentences200kWindow20.window(Scale::Tiny), Some(5));
        assert_eq!(Preset::Sentences200k.window(Scale::Tiny), None);
    }

    #[test]
    fn tiny_takes_a_tenth_of_the_sentences() {
        assert_eq!(Preset::Sentences1000k.sentences(Scale::Tiny), Some(100_000));
        assert_eq!(Preset::Sentences200kWindow20.sentences(Scale::Paper), Some(200_000));
        assert_eq!(Preset::Default.sentences(Scale::Paper), None);
    }
}
