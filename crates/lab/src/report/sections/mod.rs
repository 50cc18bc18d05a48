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

use super::claims::{SectionCode, section};
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
    macro_rules! file {
        ($id:literal, $show:path) => {
            file!($id, $show, SectionCode::default())
        };
        ($id:literal, $show:path, $code:expr) => {
            section(include_str!(concat!("../claims/", $id, ".toml")), &$show, $code)
        };
    }
    vec![
        file!("demo", demo::show, demo::CODE),
        file!("table-1", transfer::show_table, transfer::TABLE_1),
        file!("domain", transfer::show_domain),
        file!("anchors", transfer::show_anchors),
        file!("sharing", transfer::show_sharing),
        file!("distance", distance::show),
        file!("align-words", align_words::show),
        file!("align-many", align_many::show),
        file!("align-contexts", align_contexts::show),
        file!("align-sentences", align_sentences::show),
        file!("similarity", similarity::show),
        file!("predictors", predictors::show, predictors::CODE),
        file!("data-size", data_size::sizes),
        file!("window", data_size::windows),
        file!("language-shift", shift::show, shift::CODE),
        file!("shifted-transfer", shifted_transfer::show, shifted_transfer::CODE),
        file!("reinit", reinit::show, reinit::CODE),
        file!("language-identity", language_identity::show),
        file!("bitext", bitext::show),
        file!("new-language", new_language::show, new_language::CODE),
        file!("elements", elements::show),
    ]
});
