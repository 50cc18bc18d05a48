//! The sections of the report, one for each question of the papers. To add one, write a [`ReportSection`] in a file of
//! its own and list it in [`ALL`].

mod align_contexts;
mod align_many;
mod align_sentences;
mod align_words;
mod bitext;
mod data_size;
mod demo;
mod distance;
mod elements;
mod language_identity;
pub(super) mod names;
mod new_language;
pub(super) mod parts;
mod predictors;
mod reinit;
mod shift;
mod shifted_transfer;
mod similarity;
mod transfer;

pub(super) use demo::{DemoMeasure, demo_layer, demo_measures};

use super::data::SettingView;
use super::exhibit::CaptionedItem;
use super::finding::PaperClaim;

/// One question, the claims of the papers, and our figures and tables.
pub(super) struct ReportSection {
    /// An identifier of letters and hyphens, which its figures begin with.
    pub(super) id: &'static str,
    /// The question.
    pub(super) title: &'static str,
    /// Where the papers discuss it.
    pub(super) place: &'static str,
    /// The studies that its records come from.
    pub(super) studies: &'static [&'static str],
    /// The experiment, for readers who have not read the papers.
    pub(super) method: &'static str,
    /// What the papers claim; the first is the section's title where it holds.
    pub(super) claims: &'static [PaperClaim],
    /// The section's title where the first claim fails.
    pub(super) fails: &'static str,
    /// The numbers that the title ends with; empty where there are none.
    pub(super) numbers: fn(&SettingView<'_>) -> String,
    /// Figures and tables of one setting. The first argument begins the identifiers of its figures.
    pub(super) show: fn(&str, &SettingView<'_>) -> Vec<CaptionedItem>,
}

/// In the order of the page.
pub(super) const ALL: &[&ReportSection] = &[
    &demo::DEMO,
    &transfer::TABLE,
    &transfer::DOMAIN,
    &transfer::ANCHORS,
    &transfer::SHARING,
    &distance::DISTANCE,
    &align_words::ALIGN_WORDS,
    &align_many::ALIGN_MANY,
    &align_contexts::ALIGN_CONTEXTS,
    &align_sentences::ALIGN_SENTENCES,
    &similarity::SIMILARITY,
    &predictors::PREDICTORS,
    &data_size::DATA_SIZE,
    &data_size::WINDOW,
    &shift::LANGUAGE_SHIFT,
    &shifted_transfer::SHIFTED_TRANSFER,
    &reinit::REINIT,
    &language_identity::LANGUAGE_IDENTITY,
    &bitext::BITEXT,
    &new_language::NEW_LANGUAGE,
    &elements::ELEMENTS,
];
