//! Which parts of an encoder are separate for each language.
//!
//! Every condition of parameter sharing is one line: `none`, `embeddings`, `embeddings, 1-3`,
//! `1-6`, and likewise any other set of layers, from the bottom or from the top.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The parts that each language has for itself; all else is shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SharingPlan {
    /// Token embeddings and, tied to them, the softmax with its bias.
    pub tokens: bool,
    /// Position embeddings.
    pub positions: bool,
    /// Special tokens (beginning, end, unknown, mask): a row of the one embedding table for each language. Not
    /// set where token embeddings are separate, which have them anyway.
    pub specials: bool,
    /// Layers, counted from 1.
    pub layers: BTreeSet<usize>,
}

impl SharingPlan {
    /// Everything shared.
    pub fn none() -> Self {
        Self::default()
    }
}

impl FromStr for SharingPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut plan = Self::none();
        if text.trim() == "none" {
            return Ok(plan);
        }
        for item in text.split(',').map(str::trim) {
            match item {
                "embeddings" => (plan.tokens, plan.positions) = (true, true),
                "positions" => plan.positions = true,
                "specials" => plan.specials = true,
                _ => plan.layers.extend(layers(item)?),
            }
        }
        plan.specials &= !plan.tokens;
        Ok(plan)
    }
}

/// No encoder has more layers than this; a range is written out before it meets one.
const DEEPEST: usize = 1000;

/// One layer, or a range of them.
fn layers(item: &str) -> Result<std::ops::RangeInclusive<usize>, String> {
    let number = |text: &str| {
        text.trim().parse::<usize>().ok().filter(|number| (1..=DEEPEST).contains(number))
    };
    let range = match item.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)),
        None => number(item).zip(number(item)),
    };
    match range {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err(format!(
            "'{item}' is neither 'embeddings', 'positions', 'specials', a layer such as 4, nor a range of \
             layers such as 1-3; layers are counted from 1, and 'none' shares everything"
        )),
    }
}

impl fmt::Display for SharingPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        match (self.tokens, self.positions) {
            (true, _) => items.push("embeddings".to_owned()),
            (false, true) => items.push("positions".to_owned()),
            (false, false) => {}
        }
        if self.specials {
            items.push("specials".to_owned());
        }
        let mut layers = self.layers.iter().copied().peekable();
        while let Some(first) = layers.next() {
            let mut last = first;
            while let Some(next) = layers.next_if_eq(&(last + 1)) {
                last = next;
            }
            items.push(if first == last { first.to_string() } else { format!("{first}-{last}") });
        }
        f.write_str(if items.is_empty() { "none" } else { "" })?;
        f.write_str(&items.join(", "))
    }
}

impl TryFrom<String> for SharingPlan {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<SharingPlan> for String {
    fn from(plan: SharingPlan) -> Self {
        plan.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_one_line() {
        for line in ["none", "embeddings", "embeddings, 1-3", "embeddings, 1-6", "1-3", "1-6"] {
            assert_eq!(line.parse::<SharingPlan>().unwrap().to_string(), line);
        }
        let odd: SharingPlan = "8, 1-2,positions , 4-4".parse().unwrap();
        assert_eq!(odd.to_string(), "positions, 1-2, 4, 8");
        assert!(!odd.tokens && odd.positions && !odd.specials);
        let elements: SharingPlan = "specials, positions".parse().unwrap();
        assert_eq!(elements.to_string(), "positions, specials");
        let all: SharingPlan = "embeddings, specials".parse().unwrap();
        assert_eq!(all.to_string(), "embeddings", "which has special tokens of its own");
    }

    #[test]
    fn nonsense_is_named() {
        for line in ["", "0", "3-1", "embeddings,,1", "top", "1-", "-2", "1-2-3", "1-99999999999"] {
            let error = line.parse::<SharingPlan>().unwrap_err();
            assert!(error.contains("is neither"), "{line}: {error}");
        }
    }
}
