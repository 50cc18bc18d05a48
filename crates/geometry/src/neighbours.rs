//! The nearest neighbours of words or sentences among those of several languages, layer by layer.
//!
//! Neighbours are listed for each language by itself: in a space with a strong language component the
//! nearest of all are those of the query's own language, and nothing of the other would be seen.

use arrays::Matrix;
use serde::{Deserialize, Serialize};
use tensor::Device;

use crate::normalize::{Step, mean, normalize, subtract};
use crate::search::{Measure, Scores, unwatched};
use crate::{Error, Result};

/// Words or sentences of a language and their vectors.
pub struct NamedVectors {
    /// The language.
    pub language: String,
    /// The words or sentences.
    pub names: Vec<String>,
    /// Their vectors at each layer, names x dim; the number of the layer where there are layers.
    pub layers: Vec<(Option<usize>, Matrix)>,
}

/// The nearest neighbours of some words or sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighboursResult {
    /// What was found for each query.
    pub queries: Vec<QueryNeighbours>,
    /// How many candidates each language had.
    pub candidates: Vec<CandidateCount>,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// How many candidates a language has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateCount {
    /// The language.
    pub language: String,
    /// Different words or sentences.
    pub candidates: usize,
}

/// The nearest neighbours of a word or sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryNeighbours {
    /// The word or sentence.
    pub query: String,
    /// Its language.
    pub language: String,
    /// What was found at each layer.
    pub layers: Vec<LayerNeighbours>,
}

/// What was found at a layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerNeighbours {
    /// The layer, where there are layers; 0 is the embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<usize>,
    /// What was found in each language.
    pub languages: Vec<LanguageNeighbours>,
}

/// What was found in a language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageNeighbours {
    /// The language.
    pub language: String,
    /// The nearest, best first.
    pub neighbors: Vec<CosineNeighbour>,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CosineNeighbour {
    /// The word or sentence.
    pub text: String,
    /// Its cosine with the query.
    pub cosine: f32,
}

/// The `k` nearest by cosine of each query among the candidates of each language; the query itself is none
/// of them. With `center`, the mean of a language's candidates is subtracted from its vectors, and from the
/// queries that of their own language, which then must have candidates.
///
/// # Errors
/// Where layers do not match, a vector is zero, or a query's language has no mean.
pub fn nearest(
    queries: &NamedVectors,
    candidates: &[NamedVectors],
    k: usize,
    center: bool,
    device: &Device,
) -> Result<NeighboursResult> {
    let own = candidates.iter().find(|other| other.language == queries.language);
    if center && own.is_none() {
        let language = &queries.language;
        return Err(Error::of_key(
            "center",
            format!("`{language}` has no candidates whose mean could be subtracted; give some"),
        ));
    }
    let blank = |query: &String| QueryNeighbours {
        query: query.clone(),
        language: queries.language.clone(),
        layers: Vec::new(),
    };
    let mut found: Vec<QueryNeighbours> = queries.names.iter().map(blank).collect();
    for (at, (layer, vectors)) in queries.layers.iter().enumerate() {
        check(vectors, queries)?;
        let mut vectors = vectors.clone();
        if let Some(own) = own.filter(|_| center) {
            subtract(&mut vectors, &mean(&own.layers[at].1));
        }
        let mut of_layer = vec![Vec::new(); queries.names.len()];
        for side in candidates {
            let (of_side, matrix) = &side.layers[at];
            check(matrix, side)?;
            if of_side != layer || matrix.cols() != vectors.cols() {
                let reason = format!(
                    "`{}` has vectors of {} dimensions, `{}` of {}",
                    side.language,
                    matrix.cols(),
                    queries.language,
                    vectors.cols()
                );
                return Err(Error::request(reason, "give one space"));
            }
            let mut matrix = matrix.clone();
            if center {
                normalize(&mut matrix, &[Step::Center]);
            }
            let listed = of_language(&vectors, matrix, queries, side, k, device);
            of_layer.iter_mut().zip(listed).for_each(|(all, one)| all.push(one));
        }
        for (query, languages) in found.iter_mut().zip(of_layer) {
            query.layers.push(LayerNeighbours { layer: *layer, languages });
        }
    }
    let count = |side: &NamedVectors| CandidateCount {
        language: side.language.clone(),
        candidates: side.names.len(),
    };
    Ok(NeighboursResult {
        queries: found,
        candidates: candidates.iter().map(count).collect(),
        signature: signature(center),
    })
}

fn signature(center: bool) -> String {
    let center = if center { "language-mean" } else { "none" };
    format!("neighbours|cosine|centered:{center}|ties:lower-row|v{}", env!("CARGO_PKG_VERSION"))
}

/// The nearest of each query in one language.
fn of_language(
    queries: &Matrix,
    candidates: Matrix,
    asked: &NamedVectors,
    side: &NamedVectors,
    k: usize,
    device: &Device,
) -> Vec<LanguageNeighbours> {
    let scores = Scores::new(queries.clone(), candidates, Measure::Cosine, device, &unwatched);
    // One more, in case the query itself is among them.
    let nearest = scores.nearest(k + 1);
    let of_query = |(row, query): (usize, &String)| {
        let is_query = |text: &str| side.language == asked.language && text == query;
        let found = nearest.ids(row).iter().zip(nearest.scores(row));
        let named = found.map(|(&id, &cosine)| (&side.names[id as usize], cosine));
        let kept = named.filter(|(text, _)| !is_query(text)).take(k);
        let neighbour =
            |(text, cosine): (&String, f32)| CosineNeighbour { text: text.clone(), cosine };
        LanguageNeighbours {
            language: side.language.clone(),
            neighbors: kept.map(neighbour).collect(),
        }
    };
    asked.names.iter().enumerate().map(of_query).collect()
}

fn check(matrix: &Matrix, of: &NamedVectors) -> Result<()> {
    if matrix.rows() == 0 {
        return Err(Error::input(&of.language, "has no candidate", "give text that is not empty"));
    }
    matrix.check(&of.language, |row| format!("`{}`", of.names[row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(language: &str, names: &[&str], values: &[f32]) -> NamedVectors {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let matrix = Matrix::new(names.len(), 2, values.to_vec());
        NamedVectors { language: language.to_owned(), names, layers: vec![(Some(3), matrix)] }
    }

    fn found(result: &NeighboursResult, language: usize, expected: &[(&str, f32)]) {
        let neighbours = &result.queries[0].layers[0].languages[language].neighbors;
        let texts: Vec<&str> = neighbours.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, expected.iter().map(|(text, _)| *text).collect::<Vec<_>>());
        for (one, (_, cosine)) in neighbours.iter().zip(expected) {
            assert!((one.cosine - cosine).abs() < 1e-6, "{one:?} is not {cosine}");
        }
    }

    /// Worked by hand. Raw, `chat` (1, 2) is closest to `dog` (1, 2) of English; the means are (2, 2) in
    /// French and (2, 0) in English, without which `chat` is (-1, 0), `cat` (-1, 0) and `dog` (-1, 2).
    #[test]
    fn each_language_by_itself_raw_and_centred() {
        let french = named("fr", &["chat", "chien"], &[1.0, 2.0, 3.0, 2.0]);
        let english = named("en", &["cat", "dog", "bird"], &[1.0, 0.0, 1.0, 2.0, 4.0, -2.0]);
        let query = named("fr", &["chat"], &[1.0, 2.0]);
        let cpu = Device::cpu(1).unwrap();
        let sides = [english, french];
        let raw = nearest(&query, &sides, 2, false, &cpu).unwrap();
        assert_eq!(raw.queries[0].layers[0].layer, Some(3));
        found(&raw, 0, &[("dog", 1.0), ("cat", 1.0 / 5.0_f32.sqrt())]);
        // The query is not its own neighbour.
        found(&raw, 1, &[("chien", 7.0 / 65.0_f32.sqrt())]);
        let centred = nearest(&query, &sides, 1, true, &cpu).unwrap();
        found(&centred, 0, &[("cat", 1.0)]);
        found(&centred, 1, &[("chien", -1.0)]);
        let refused = nearest(&query, &sides[..1], 1, true, &cpu).unwrap_err();
        assert!(terms::Fault::is_usage(&refused) && refused.to_string().contains("`fr`"));
    }
}
