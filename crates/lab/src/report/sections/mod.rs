//! The sections of the report, one for each question of the papers. To add one, write its file in `claims`: claims, numbers, curves
//! and tables. What a file cannot say is [`SectionCode`].

mod align_many;
mod align_words;
mod bitext;
mod data_size;
mod demo;
mod distance;
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
    let shown = |show: &'static ShowSection| SectionCode { show: Some(show), ..Default::default() };
    macro_rules! file {
        ($id:literal, $code:expr) => {
            section(include_str!(concat!("../claims/", $id, ".toml")), $code)
        };
    }
    vec![
        file!("demo", demo::CODE),
        file!("table-1", transfer::TABLE_1),
        file!("domain", shown(&transfer::show_domain)),
        file!("anchors", shown(&transfer::show_anchors)),
        file!("sharing", shown(&transfer::show_sharing)),
        file!("distance", shown(&distance::show)),
        file!("align-words", shown(&align_words::show)),
        file!("align-many", shown(&align_many::show)),
        file!("align-contexts", SectionCode::default()),
        file!("align-sentences", SectionCode::default()),
        file!("similarity", shown(&similarity::show)),
        file!("predictors", predictors::CODE),
        file!("data-size", shown(&data_size::sizes)),
        file!("window", shown(&data_size::windows)),
        file!("language-shift", shift::CODE),
        file!("shifted-transfer", shifted_transfer::CODE),
        file!("reinit", reinit::CODE),
        file!("language-identity", shown(&language_identity::show)),
        file!("bitext", shown(&bitext::show)),
        file!("new-language", new_language::CODE),
        file!("elements", SectionCode::default()),
    ]
});
