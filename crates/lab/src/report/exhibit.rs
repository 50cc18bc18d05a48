//! What a section shows: figures and tables, each with the place that it answers.

use crate::draw::Figure;
use terms::Estimate;

/// A figure or a table with its caption.
pub(super) struct CaptionedItem {
    /// Which table or figure of a paper it is, such as `Paper 1, Figure 4`.
    pub(super) place: String,
    /// What is seen, and how to read it.
    pub(super) caption: String,
    pub(super) content: ItemContent,
    /// The same in every setting, and so shown in the first alone.
    pub(super) once: bool,
}

/// The thing itself.
pub(super) enum ItemContent {
    Figure(Figure),
    Table(ReportTable),
}

/// A table.
#[derive(Default)]
pub(super) struct ReportTable {
    /// Heads that span several columns; empty where there are none.
    pub(super) groups: Vec<(String, usize)>,
    /// A head for each column.
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<TableCell>>,
}

/// What stands in a table.
#[derive(Clone)]
pub(super) enum TableCell {
    /// The name of a row.
    Name(String),
    /// Words.
    Text(String),
    /// Our mean, its interval and its n.
    Ours(Option<Estimate>),
    /// Ours, of things that are counted.
    Count(Option<Estimate>),
    /// Ours, as a percentage.
    Percent(Option<Estimate>),
    /// A number of a paper, with this many digits.
    Paper(Option<f64>, usize),
}

impl ReportTable {
    pub(super) fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), ..Self::default() }
    }

    /// Whether there is any number or text besides names.
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

    /// For what does not depend on our numbers.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        match &self.content {
            ItemContent::Figure(figure) => figure.panels.is_empty(),
            ItemContent::Table(table) => table.is_empty(),
        }
    }
}
