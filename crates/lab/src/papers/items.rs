//! Every table, figure and appendix of both papers: the study that makes it, the section of the report that shows it, and on what
//! it has been run. The captions of the report are made from this list.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::PAPERS;
use crate::record::Record;
use crate::report::setting_of;

/// A table, figure or appendix of a paper.
#[derive(Debug, PartialEq, Eq)]
pub struct PaperItem {
    /// 1 or 2.
    pub paper: u8,
    /// Its name, such as `Figure 4a`.
    pub name: &'static str,
    pub shows: &'static str,
    /// The studies that make it; none of a diagram.
    pub studies: &'static [&'static str],
    /// The section of the report that shows it first; empty of a diagram.
    pub section: &'static str,
}

const fn made(
    paper: u8,
    name: &'static str,
    studies: &'static [&'static str],
    section: &'static str,
    shows: &'static str,
) -> PaperItem {
    PaperItem { paper, name, shows, studies, section }
}

/// A drawing of the method, which has no results.
const fn diagram(paper: u8, name: &'static str, shows: &'static str) -> PaperItem {
    PaperItem { paper, name, shows, studies: &[], section: "" }
}

/// Every item, in the order of the papers.
#[rustfmt::skip]
pub static ITEMS: [PaperItem; 24] = [
    diagram(1, "Figure 1", "which parts of the encoder are shared"),
    diagram(1, "Figure 2", "how monolingual encoders are compared"),
    made(1, "Figure 3", &["table-1", "domain", "anchors", "sharing"], "table-1", "zero-shot transfer by condition, three columns of Table 1"),
    made(1, "Table 1", &["table-1", "domain", "anchors", "sharing", "distance"], "table-1", "zero-shot transfer under ten conditions, three tasks, three languages"),
    made(1, "Figure 4a", &["align-words"], "align-words", "word translation by aligned embedding tables and by fastText"),
    made(1, "Figure 4b", &["align-words"], "align-words", "word translation by aligned contextual vectors, by layer"),
    made(1, "Figure 5", &["align-contexts"], "align-contexts", "NER and parsing through a map between monolingual encoders, by layer"),
    made(1, "Figure 6", &["align-sentences"], "align-sentences", "sentence retrieval after alignment, by layer"),
    made(1, "Figure 7", &["similarity"], "similarity", "CKA of bilingual, monolingual and untrained encoders, by layer"),
    made(1, "Figure 8", &["align-contexts"], "align-contexts", "appendix A: the same map within a bilingual encoder, by layer"),
    made(2, "Figure 1", &["data-size"], "data-size", "word retrieval of encoder, Word2Vec and GloVe, little text"),
    made(2, "Figure 2", &["data-size"], "data-size", "zero-shot NLI of the same, little text"),
    made(2, "Figure 3", &["data-size"], "data-size", "word retrieval, much text"),
    made(2, "Figure 4", &["data-size"], "data-size", "zero-shot NLI, much text"),
    made(2, "Figure 5", &["window"], "window", "word retrieval with full and with short inputs, little and much text"),
    made(2, "Figure 6a", &["window"], "window", "zero-shot NLI by amount of text, with short inputs and with full ones"),
    made(2, "Figure 6b", &["window"], "window", "relative change of zero-shot NLI by short inputs"),
    made(2, "Table 1", &["language-shift"], "language-shift", "sentences and their token translations"),
    made(2, "Table 2", &["language-shift"], "language-shift", "BLEU-1 and token conversion rate by direction"),
    made(2, "Figure 7", &["language-shift"], "language-shift", "token conversion rate by layer and weight"),
    made(2, "Table 3", &["language-shift"], "language-shift", "token sets of the languages, and what they share"),
    made(2, "Figure 8a", &["language-shift"], "language-shift", "BLEU-1 over weights"),
    made(2, "Figure 8b", &["language-shift"], "language-shift", "BLEU-1 over layers"),
    made(2, "Table 4", &["shifted-transfer", "language-shift"], "shifted-transfer", "zero-shot transfer without and with a shift, by language"),
];

/// The item of a paper with this name.
///
/// # Panics
///
/// Where there is none: captions are made of names that stand in the program.
pub fn item(paper: u8, name: &str) -> &'static PaperItem {
    let found = ITEMS.iter().find(|item| item.paper == paper && item.name == name);
    found.unwrap_or_else(|| panic!("paper {paper} has no {name}"))
}

/// An item with the commands that make it and the results that there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemCoverage {
    pub paper: &'static str,
    pub item: &'static str,
    pub shows: &'static str,
    pub commands: Vec<String>,
    /// The section of the report that shows it.
    pub section: Option<&'static str>,
    pub not_made: Option<&'static str>,
    pub runs: Vec<ItemRun>,
}

/// The results of a study in one setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemRun {
    pub study: String,
    /// Scale and kind of languages.
    pub setting: String,
    pub pairs: Vec<String>,
    pub seeds: Vec<u64>,
}

/// What a study has been run on.
type PairsAndSeeds = (BTreeSet<String>, BTreeSet<u64>);

/// Every item, with what of it is among some records.
pub fn coverage(records: &[Record]) -> Vec<ItemCoverage> {
    let mut runs: BTreeMap<(&str, String), PairsAndSeeds> = BTreeMap::new();
    for record in records {
        let Some(setting) = setting_of(record) else { continue };
        let (pairs, seeds) = runs.entry((&record.origin.study, setting)).or_default();
        pairs.extend(record.factors.get("pair").cloned());
        seeds.insert(record.origin.seed);
    }
    let of_study = |study: &&str| {
        let own = runs.iter().filter(move |((name, _), _)| name == study);
        own.map(|((study, setting), (pairs, seeds))| ItemRun {
            study: (*study).to_owned(),
            setting: setting.clone(),
            pairs: pairs.iter().cloned().collect(),
            seeds: seeds.iter().copied().collect(),
        })
        .collect::<Vec<_>>()
    };
    let covered = |item: &PaperItem| ItemCoverage {
        paper: PAPERS[usize::from(item.paper) - 1].citation,
        item: item.name,
        shows: item.shows,
        commands: item.studies.iter().map(|name| format!("isogloss study run {name}")).collect(),
        section: (!item.section.is_empty()).then_some(item.section),
        not_made: item.studies.is_empty().then_some("a diagram of the method, without results"),
        runs: item.studies.iter().flat_map(of_study).collect(),
    };
    ITEMS.iter().map(covered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Study;

    #[test]
    fn every_item_is_made_by_a_study_that_exists() {
        for item in &ITEMS {
            for study in item.studies {
                assert!(Study::names().any(|name| name == *study), "{}: {study}", item.name);
            }
            assert_eq!(item.studies.is_empty(), item.section.is_empty(), "{}", item.name);
        }
        let named = |paper: u8, kind: &str| {
            let own = |item: &&PaperItem| item.paper == paper && item.name.starts_with(kind);
            let number = |item: &PaperItem| {
                let number = item.name.split(' ').nth(1).unwrap();
                number.trim_end_matches(char::is_alphabetic).parse::<u32>().unwrap()
            };
            ITEMS
                .iter()
                .filter(own)
                .map(number)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<u32>>()
        };
        let (figures, tables): (Vec<u32>, Vec<u32>) = ((1..=8).collect(), (1..=4).collect());
        assert_eq!([named(1, "Figure"), named(2, "Figure")], [figures.clone(), figures]);
        assert_eq!([named(1, "Table"), named(2, "Table")], [vec![1], tables]);
    }
}
