//! The sections of the report, one for each question of the papers. To add one, write a file of claims, or a [`ReportSection`] where
//! a file cannot say it, and list it in [`ALL`].

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
pub(super) use transfer::against_paper;

use std::sync::LazyLock;

use super::claims::section;
use super::data::SettingView;
use super::exhibit::CaptionedItem;
use super::finding::PaperClaim;

/// One question, the claims of the papers, and our figures and tables.
pub(super) struct ReportSection {
    /// An identifier of letters and hyphens, which its figures begin with.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
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
    pub(super) numbers: &'static (dyn Fn(&SettingView<'_>) -> String + Send + Sync),
    /// Figures and tables of one setting. The first argument begins the identifiers of its figures.
    pub(super) show: &'static ShowSection,
}

/// Figures and tables of a section in a setting.
pub(super) type ShowSection = dyn Fn(&str, &SettingView<'_>) -> Vec<CaptionedItem> + Send + Sync;

/// In the order of the page.
pub(super) static ALL: LazyLock<Vec<&'static ReportSection>> = LazyLock::new(|| {
    vec![
        &demo::DEMO,
        &transfer::TABLE,
        &transfer::DOMAIN,
        &transfer::ANCHORS,
        &transfer::SHARING,
        &distance::DISTANCE,
        section(include_str!("../claims/align-words.toml"), &align_words::show),
        section(include_str!("../claims/align-many.toml"), &align_many::show),
        &align_contexts::ALIGN_CONTEXTS,
        section(include_str!("../claims/align-sentences.toml"), &align_sentences::show),
        &similarity::SIMILARITY,
        &predictors::PREDICTORS,
        &data_size::DATA_SIZE,
        &data_size::WINDOW,
        &shift::LANGUAGE_SHIFT,
        &shifted_transfer::SHIFTED_TRANSFER,
        &reinit::REINIT,
        section(include_str!("../claims/language-identity.toml"), &language_identity::show),
        section(include_str!("../claims/bitext.toml"), &bitext::show),
        &new_language::NEW_LANGUAGE,
        section(include_str!("../claims/elements.toml"), &elements::show),
    ]
});
