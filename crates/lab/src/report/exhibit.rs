//! Figures and tables with captions.

use super::tokens::TokenSentence;
use crate::draw::Figure;
use crate::papers::{PAPERS, PaperItem, item};
use terms::Estimate;

/// For what the papers do not have.
pub(super) const BEYOND: &str = "Beyond the paper";

/// What an exhibit stands for: items of a paper, or words of our own.
pub(super) struct ItemPlace {
    /// The items, as the list of all has them.
    pub(super) items: Vec<&'static PaperItem>,
    /// As captions name it, such as `Conneau et al. 2020, Figure 4a`.
    pub(super) text: String,
}

/// The place of items of a paper, by their names in the list of all items.
pub(super) fn replicates(paper: u8, names: &[&str]) -> ItemPlace {
    let citation = PAPERS[usize::from(paper) - 1].citation;
    let items: Vec<&PaperItem> = names.iter().map(|name| item(paper, name)).collect();
    ItemPlace { items, text: format!("{citation}, {}", names.join(", ")) }
}

impl From<&str> for ItemPlace {
    fn from(text: &str) -> Self {
        Self { items: Vec::new(), text: text.to_owned() }
    }
}

/// A figure or a table with its caption.
pub(super) struct CaptionedItem {
    /// The tables and figures of a paper that it replicates.
    pub(super) place: ItemPlace,
    pub(super) caption: String,
    pub(super) content: ItemContent,
    /// It is the same in every setting, and shown in the first alone.
    pub(super) once: bool,
}

pub(super) enum ItemContent {
    Figure(Figure),
    Table(ReportTable),
    Sentences(Vec<TokenSentence>),
}

#[derive(Default)]
pub(super) struct ReportTable {
    /// Headers that span several columns; may be empty.
    pub(super) groups: Vec<(String, usize)>,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<TableCell>>,
}

#[derive(Clone)]
pub(super) enum TableCell {
    Name(String),
    Text(String),
    /// Our mean with its interval and n.
    Ours(Option<Estimate>),
    /// The same of counts.
    Count(Option<Estimate>),
    /// The same in per cent.
    Percent(Option<Estimate>),
    /// A number of a paper, with this many digits.
    Paper(Option<f64>, usize),
}

impl ReportTable {
    pub(super) fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl CaptionedItem {
    pub(super) fn figure(
        place: impl Into<ItemPlace>,
        caption: impl Into<String>,
        figure: Figure,
    ) -> Self {
        Self {
            place: place.into(),
            caption: caption.into(),
            content: ItemContent::Figure(figure),
            once: false,
        }
    }

    pub(super) fn table(
        place: impl Into<ItemPlace>,
        caption: impl Into<String>,
        table: ReportTable,
    ) -> Self {
        Self {
            place: place.into(),
            caption: caption.into(),
            content: ItemContent::Table(table),
            once: false,
        }
    }

    pub(super) fn sentences(
        place: impl Into<ItemPlace>,
        caption: impl Into<String>,
        sentences: Vec<TokenSentence>,
    ) -> Self {
        Self {
            place: place.into(),
            caption: caption.into(),
            content: ItemContent::Sentences(sentences),
            once: false,
        }
    }

    /// For what does not depend on our results.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.content {
            ItemContent::Figure(figure) => figure.panels.is_empty(),
            ItemContent::Table(table) => table.is_empty(),
            ItemContent::Sentences(sentences) => sentences.is_empty(),
        }
    }
}
