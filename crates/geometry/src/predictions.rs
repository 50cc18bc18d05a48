//! What a search found: each query with its gold answers and its nearest neighbours, to be looked through.

use serde::{Deserialize, Serialize};
use text::TableRecord;

/// What was done to the vectors that were searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetrievalSpace {
    /// Nothing.
    Raw,
    /// Each side was mean-centred.
    Centered,
    /// The source side was mapped onto the target side.
    Aligned,
}

terms::named!(RetrievalSpace { Raw => "raw", Centered => "centered", Aligned => "aligned" });

/// From which side to which was searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetrievalDirection {
    /// Queries of the source side, answers of the target side.
    Forward,
    /// Queries of the target side.
    Backward,
}

terms::named!(RetrievalDirection { Forward => "forward", Backward => "backward" });

/// A query, what is right for it, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The layer, where there are layers; 0 is the embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<usize>,
    /// What was done to the vectors.
    pub space: RetrievalSpace,
    /// From which side to which.
    pub direction: RetrievalDirection,
    /// The word or sentence that was looked up.
    pub query: String,
    /// Its translations; any of them is right.
    pub gold: Vec<String>,
    /// The place of the first right neighbour, from 1; none where none of them is right.
    pub rank: Option<usize>,
    /// The nearest, best first.
    pub neighbors: Vec<ScoredNeighbour>,
}

/// One of the nearest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoredNeighbour {
    /// The word or sentence.
    pub text: String,
    /// Its score by the measure of the search.
    pub score: f32,
    /// Whether it is right.
    pub correct: bool,
}

impl Prediction {
    /// The same with these neighbours, best first: `(text, score, whether it is right)`.
    pub(crate) fn with(self, found: impl Iterator<Item = (String, f32, bool)>) -> Self {
        let neighbors: Vec<ScoredNeighbour> =
            found.map(|(text, score, correct)| ScoredNeighbour { text, score, correct }).collect();
        let rank = neighbors.iter().position(|neighbour| neighbour.correct).map(|at| at + 1);
        Self { rank, neighbors, ..self }
    }
}

impl TableRecord for Prediction {
    const COLUMNS: &'static [&'static str] =
        &["layer", "space", "direction", "query", "gold", "place", "neighbor", "score", "correct"];

    fn lines(&self, line: &mut dyn FnMut(&[&str])) {
        let layer = self.layer.map_or(String::new(), |layer| layer.to_string());
        let gold = self.gold.join(" | ");
        for (place, ScoredNeighbour { text, score, correct }) in (1..).zip(&self.neighbors) {
            line(&[
                &layer,
                self.space.name(),
                self.direction.name(),
                &self.query,
                &gold,
                &place.to_string(),
                text,
                &format!("{score:.6}"),
                if *correct { "1" } else { "0" },
            ]);
        }
    }
}
