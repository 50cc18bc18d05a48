//! F1 over entity spans, micro-averaged, as `conlleval` (Tjong Kim Sang and De Meulder 2003) and `seqeval`
//! compute it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::spans::{BioTag, EntitySpan, Repair, spans};
use crate::counts::{PrecisionRecall, label_table};
use crate::registry::{TaskScore, signature};

/// The scores of NER.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NerScore {
    /// Over all entities together.
    pub micro: PrecisionRecall,
    /// For each type.
    pub types: BTreeMap<String, PrecisionRecall>,
    /// Sentences.
    pub sentences: usize,
    /// Words.
    pub words: usize,
    /// The same over characters, where words were segmented from them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub characters: Option<PrecisionRecall>,
    /// What exactly was computed.
    pub signature: String,
}

/// Scores the tags of sentences, each a pair of gold and predicted.
pub fn score<'a>(
    sentences: impl IntoIterator<Item = (&'a [BioTag], &'a [BioTag])>,
    repair: Repair,
) -> NerScore {
    let mut types: BTreeMap<String, PrecisionRecall> = BTreeMap::new();
    let (mut count, mut words) = (0, 0);
    for (gold, predicted) in sentences {
        count += 1;
        words += gold.len();
        let (gold, predicted) = (spans(gold, repair), spans(predicted, repair));
        for span in &gold {
            types.entry(span.kind.clone()).or_default().gold += 1;
        }
        for span in &predicted {
            let of_type = types.entry(span.kind.clone()).or_default();
            of_type.predicted += 1;
            let same = |other: &EntitySpan| (other.start, other.end).cmp(&(span.start, span.end));
            let right = gold.binary_search_by(same).is_ok_and(|at| gold[at].kind == span.kind);
            of_type.right += usize::from(right);
        }
    }
    let micro = types.values().fold(PrecisionRecall::default(), |sum, of_type| PrecisionRecall {
        gold: sum.gold + of_type.gold,
        predicted: sum.predicted + of_type.predicted,
        right: sum.right + of_type.right,
        ..sum
    });
    let rule = if repair == Repair::Paper { "paper" } else { "conventional" };
    let signature = signature(&format!("ner|f1:micro|spans:exact|repair:{rule}"));
    let types = types.into_iter().map(|(kind, counts)| (kind, counts.with_shares())).collect();
    let micro = micro.with_shares();
    NerScore { micro, types, sentences: count, words, characters: None, signature }
}

impl TaskScore for NerScore {
    fn value(&self) -> f64 {
        self.micro.f1
    }

    fn signature(&self) -> &str {
        &self.signature
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        let share = |share: f64| format!("{share:.4}");
        let mut details = vec![
            ("precision", share(self.micro.precision)),
            ("recall", share(self.micro.recall)),
            ("entities", self.micro.gold.to_string()),
            ("sentences", self.sentences.to_string()),
        ];
        details.extend(self.characters.map(|over| ("F1 over characters", share(over.f1))));
        details
    }
}

impl fmt::Display for NerScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = self.types.iter().map(|(kind, of_type)| (kind.as_str(), of_type));
        f.write_str(&label_table([("all", &self.micro)].into_iter().chain(types)))
    }
}
