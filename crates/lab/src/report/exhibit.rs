//! Figures and tables with captions.

use crate::draw::Figure;
use terms::Estimate;

/// A figure or a table with its caption.
pub(super) struct CaptionedItem {
    /// The table or figure of a paper that it replicates, such as `Conneau et al. 2020, Figure 4`.
    pub(super) place: String,
    /// What it shows.
    pub(super) caption: String,
    pub(super) content: ItemContent,
    /// It is the same in every setting, and shown in the first alone.
    pub(super) once: bool,
}

/// A figure or a table.
pub(super) enum ItemContent {
    Figure(Figure),
    Table(ReportTable),
}

/// A table.
#[derive(Default)]
pub(super) struct ReportTable {
    /// Headers that span several columns; may be empty.
    pub(super) groups: Vec<(String, usize)>,
    /// A header for each column.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<TableCell>>,
}

/// A cell of a table.
#[derive(Clone)]
pub(super) enum TableCell {
    /// The name of a row.
    Name(String),
    /// Text.
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

    /// Whether it has no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl CaptionedItem {
    pub(super) fn figure(place: &str, caption: impl Into<String>, figure: Figure) -> Self {
        Self {
            place: place.to_owned(),
            caption: caption.into(),
            content: ItemContent::Figure(figure),
            once: false,
        }
    }

    pub(super) fn table(place: &str, caption: impl Into<String>, table: ReportTable) -> Self {
        Self {
            place: place.to_owned(),
            caption: caption.into(),
            content: ItemContent::Table(table),
            once: false,
        }
    }

    /// For what does not depend on our results.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Whether it has nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        match &self.content {
            ItemContent::Figure(figure) => figure.panels.is_empty(),
            ItemContent::Table(table) => table.is_empty(),
        }
    }
}
