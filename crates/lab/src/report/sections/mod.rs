//! The sections of the report, one for each question of the papers. To add one, write a [`ReportSection`] in the
//! file of its family and name it in [`ALL`].

mod alignment;
mod data_size;
mod demo;
mod distance;
mod parts;
mod shift;
mod shifted_transfer;
mod similarity;
mod transfer;

use super::data::SettingView;
use super::exhibit::CaptionedItem;
use super::finding::PaperClaim;

/// One question, what the papers found, and what we show for it.
pub(super) struct ReportSection {
    /// A name of letters and hyphens: of the part of the page, and of its figures.
    pub(super) id: &'static str,
    /// The question in a few words.
    pub(super) title: &'static str,
    /// Where the papers ask it.
    pub(super) place: &'static str,
    /// The studies that its numbers come from.
    pub(super) studies: &'static [&'static str],
    /// What was asked and done, for someone who has not read the papers.
    pub(super) asks: &'static str,
    /// What the papers found.
    pub(super) claims: &'static [PaperClaim],
    /// Figures and tables of one setting. The first argument begins the names of its figures.
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
    &alignment::WORDS,
    &alignment::CONTEXTS,
    &alignment::SENTENCES,
    &similarity::SIMILARITY,
    &data_size::DATA_SIZE,
    &data_size::WINDOW,
    &shift::LANGUAGE_SHIFT,
    &shifted_transfer::SHIFTED_TRANSFER,
];
