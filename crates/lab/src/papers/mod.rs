//! The numbers that the two papers print, each with its table or figure, to compare with ours.
//!
//! They are read from `numbers.toml` and selected as records are: by measure and factors. P1 is Conneau et al.
//! 2020, P2 Liu et al. 2020.

mod items;

pub use items::{ITEMS, ItemCoverage, ItemRun, PaperItem, coverage, item};

use std::sync::LazyLock;

use serde::Deserialize;

use crate::record::{Factors, Origin, Record};

pub struct Paper {
    pub citation: &'static str,
    pub title: &'static str,
    pub url: &'static str,
}

/// P1 and P2.
pub const PAPERS: [Paper; 2] = [
    Paper {
        citation: "Conneau et al. 2020",
        title: "Emerging Cross-lingual Structure in Pretrained Language Models (ACL)",
        url: "https://aclanthology.org/2020.acl-main.536/",
    },
    Paper {
        citation: "Liu et al. 2020",
        title: "A Study of Cross-Lingual Ability and Language-specific Information in Multilingual BERT",
        url: "https://arxiv.org/abs/2004.09205",
    },
];

#[derive(Clone, Debug, PartialEq)]
pub struct PublishedValue {
    /// 1 or 2.
    pub paper: u8,
    pub place: String,
    /// What was measured, as our records name it.
    pub measure: String,
    /// What it depends on, as our records name it.
    pub factors: Factors,
    /// The number, on our scale.
    pub value: f64,
}

impl PublishedValue {
    /// The number as one of ours, of a first seed.
    pub(crate) fn record(&self) -> Record {
        let mut factors = self.factors.clone();
        if self.paper == 2 && self.measure == "accuracy" {
            // The only task of that paper.
            factors.insert("task".to_owned(), "nli".to_owned());
        }
        let origin = Origin { study: self.place.clone(), seed: 1, ..Origin::default() };
        let (measure, value) = (self.measure.clone(), self.value);
        Record { origin, measure, factors, value, ..Record::default() }
    }
}

#[derive(Deserialize)]
struct File {
    table: Vec<PublishedTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedTable {
    paper: u8,
    place: String,
    unit: f64,
    /// The factor that the rows differ in.
    down: String,
    across: Vec<Factors>,
    rows: Vec<Vec<PublishedCell>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PublishedCell {
    Number(f64),
    Word(String),
}

static VALUES: LazyLock<Vec<PublishedValue>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("numbers.toml")).expect("our own file is right");
    file.table.iter().flat_map(PublishedTable::values).collect()
});

impl PublishedTable {
    fn values(&self) -> Vec<PublishedValue> {
        let mut values = Vec::new();
        for row in &self.rows {
            let Some((PublishedCell::Word(name), cells)) = row.split_first() else {
                panic!("{}: a row has no name", self.place)
            };
            assert_eq!(cells.len(), self.across.len(), "{}, row {name}", self.place);
            for (cell, column) in cells.iter().zip(&self.across) {
                let PublishedCell::Number(number) = cell else { continue };
                let mut factors = column.clone();
                let measure = factors.remove("measure").expect("a column has a measure");
                factors.insert(self.down.clone(), name.clone());
                // Rounded, since 73.6 × 0.01 is not exactly what the paper printed.
                let value = (number * self.unit * 1e6).round() / 1e6;
                values.push(PublishedValue {
                    paper: self.paper,
                    place: self.place.clone(),
                    measure,
                    factors,
                    value,
                });
            }
        }
        values
    }
}

/// All values of one place, such as Table 1 of Conneau et al. 2020 (P1).
pub fn at(paper: u8, place: &str) -> impl Iterator<Item = &'static PublishedValue> {
    VALUES.iter().filter(move |published| published.paper == paper && published.place == place)
}

/// The one number of a place with this measure and exactly these factors.
pub fn number(paper: u8, place: &str, measure: &str, factors: &[(&str, &str)]) -> Option<f64> {
    let same = |published: &&PublishedValue| {
        published.measure == measure
            && published.factors.len() == factors.len()
            && factors
                .iter()
                .all(|(name, value)| published.factors.get(*name).is_some_and(|own| own == value))
    };
    at(paper, place).find(same).map(|published| published.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The papers' printed means are those of their printed columns: a typing error would show.
    #[test]
    fn columns_give_the_printed_means() {
        for (measure, task) in [("accuracy", "nli"), ("f1", "ner"), ("las", "parse")] {
            for published in
                at(1, "Table 1, means").filter(|published| published.measure == measure)
            {
                let condition = &published.factors["condition"];
                let of = |language| {
                    let factors =
                        [("condition", &**condition), ("task", task), ("language", language)];
                    number(1, "Table 1", measure, &factors).unwrap()
                };
                let mean = (of("fr") + of("ru") + of("zh")) / 3.0;
                assert!(
                    (mean - published.value).abs() < 0.001,
                    "{condition} {task}: {mean} and {}",
                    published.value
                );
            }
        }
        for pair in ["en-en'", "en-fr", "en-de", "en-ru", "en-zh"] {
            for system in ["bilingual", "monolingual", "untrained"] {
                let of = |layer: &str| {
                    number(
                        1,
                        "Figure 7",
                        "cka",
                        &[("pair", pair), ("system", system), ("layer", layer)],
                    )
                    .unwrap()
                };
                let mean = (0..9).map(|layer| of(&layer.to_string())).sum::<f64>() / 9.0;
                assert!(
                    (mean - of("mean")).abs() < 0.0151,
                    "{pair} {system}: {mean} and {}",
                    of("mean")
                );
            }
        }
        for row in ["all-layers", "last-n", "last-n-shift"] {
            let all = at(2, "Table 4").filter(|published| published.factors["row"] == row);
            let others: Vec<f64> = all
                .filter(|published| !["en", "mean"].contains(&&*published.factors["language"]))
                .map(|published| published.value)
                .collect();
            assert_eq!(others.len(), 11);
            let mean = others.iter().sum::<f64>() / 11.0;
            let printed =
                number(2, "Table 4", "accuracy", &[("row", row), ("language", "mean")]).unwrap();
            assert!((mean - printed).abs() < 0.001, "{row}: {mean} and {printed}");
        }
    }

    #[test]
    fn every_table_of_both_papers_is_here() {
        let counts = [
            (1, "Table 1", 90),
            (1, "Table 1, means", 30),
            (1, "Figure 7", 150),
            (2, "Table 2", 84),
            (2, "Table 3", 14),
            (2, "Table 4", 38),
            (2, "Table 4, weights", 11),
        ];
        for (paper, place, count) in counts {
            assert_eq!(at(paper, place).count(), count, "{place}");
        }
        assert_eq!(
            number(2, "Table 4", "accuracy", &[("row", "last-n-shift"), ("language", "en")]),
            None
        );
    }
}
