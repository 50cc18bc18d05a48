//! Figures and tables that files describe: curves over layers, and tables of means.

use serde::Deserialize;
use terms::Task;

use super::{Levels, Value};
use crate::draw::Chart;
use crate::report::data::StudyData;
use crate::report::exhibit::{
    BEYOND, CaptionedItem, ItemPlace, ReportTable, TableCell, replicates,
};
use crate::report::sections::names::level_name;
use crate::report::sections::parts::{figure, named, over_layers, pairs_of};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShownFile {
    /// Whether it is one of those that code makes: the next.
    #[serde(default)]
    code: bool,
    /// The measure whose numbers by layer are curves; `score` is each task's own.
    #[serde(default)]
    curves: String,
    /// The measures whose levels are rows: `f1|las`.
    #[serde(default)]
    table: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    title: String,
    /// The paper and its items: `1 Figure 6, Figure 8`; empty beyond the papers.
    #[serde(default)]
    place: String,
    #[serde(default)]
    caption: String,
    #[serde(default)]
    unit: String,
    /// A panel for each level of these factors, each with the levels that come first.
    #[serde(default)]
    panels: Vec<String>,
    /// What all curves have in common.
    #[serde(default, rename = "where")]
    among: Levels,
    /// The name of each curve, and its levels.
    #[serde(default)]
    series: Vec<(String, Levels)>,
    /// The head, the factor and its first levels, of which there is a row each.
    #[serde(default)]
    rows: Vec<(String, String, String)>,
    /// The head, and the quantity.
    #[serde(default)]
    columns: Vec<(String, Value)>,
}

impl ShownFile {
    pub(super) fn item(
        &self,
        id: &str,
        data: &StudyData<'_>,
        code: &mut impl Iterator<Item = CaptionedItem>,
    ) -> Option<CaptionedItem> {
        if self.code {
            return code.next();
        }
        let place = match self.place.split_once(' ') {
            Some((paper, names)) => {
                let paper = paper.parse().expect("a place begins with the paper");
                replicates(paper, &names.split(", ").collect::<Vec<_>>())
            }
            None => ItemPlace::from(BEYOND),
        };
        Some(match self.curves.is_empty() {
            true => CaptionedItem::table(place, &*self.caption, self.rows(data)),
            false => {
                let mut charts = Vec::new();
                self.panel(data, &self.panels, &[], &mut charts);
                CaptionedItem::figure(
                    place,
                    &*self.caption,
                    figure(named(id, &self.id), &self.title, &charts),
                )
            }
        })
    }

    /// The charts of all levels of the factors that are left, with what was chosen of those before.
    fn panel(
        &self,
        data: &StudyData<'_>,
        factors: &[String],
        at: &[(&str, &str)],
        charts: &mut Vec<Chart>,
    ) {
        let task = at.iter().find(|(factor, _)| *factor == "task");
        let task = task.and_then(|(_, task)| task.parse::<Task>().ok());
        let (measure, unit) = match task {
            Some(task) => (task.measure(), task.unit()),
            None => (&*self.curves, &*self.unit),
        };
        let Some((named, rest)) = factors.split_first() else {
            let series: Vec<_> =
                self.series.iter().map(|(name, levels)| (&**name, levels.named())).collect();
            let mut order = at.to_vec();
            // A task is named first, and the languages before what else they differ in.
            let places = ["task", "pair", "order", "distance"];
            order.sort_by_key(|(factor, _)| places.iter().position(|one| one == factor));
            let title = order.iter().map(|(factor, level)| match *factor {
                "order" => format!("{level} order"),
                factor => level_name(data, factor, level),
            });
            let title = title.collect::<Vec<_>>().join(", ");
            let common = at.iter().filter(|(factor, _)| *factor != "distance").copied();
            let common: Vec<_> = self.among.named().into_iter().chain(common).collect();
            charts.extend(over_layers(data, measure, &common, &series, (&title, unit)));
            return;
        };
        let (factor, first) = named.split_once(' ').unwrap_or((named, ""));
        let levels = match factor {
            "task" => Task::all().map(|task| task.name().to_owned()).collect(),
            _ => levels(data, &[measure], factor, first),
        };
        if levels.is_empty() && factor != "pair" {
            return self.panel(data, rest, at, charts);
        }
        for level in &levels {
            let at = [at, &[(factor, &**level)]].concat();
            match factor {
                "distance" => self.panel(&data.only(factor, level), rest, &at, charts),
                _ => self.panel(data, rest, &at, charts),
            }
        }
    }

    fn rows(&self, data: &StudyData<'_>) -> ReportTable {
        let heads = self.rows.iter().map(|(head, ..)| head);
        let heads: Vec<&str> =
            heads.chain(self.columns.iter().map(|(head, _)| head)).map(String::as_str).collect();
        let mut table = ReportTable::new(&heads);
        self.row(data, &self.rows, &[], &mut table);
        table
    }

    fn row(
        &self,
        data: &StudyData<'_>,
        factors: &[(String, String, String)],
        at: &[(&str, &str)],
        table: &mut ReportTable,
    ) {
        let Some(((_, factor, first), rest)) = factors.split_first() else {
            let mut names = at.iter().map(|(factor, level)| level_name(data, factor, level));
            let mut row: Vec<TableCell> = names.next().map(TableCell::Name).into_iter().collect();
            row.extend(names.map(TableCell::Text));
            let chosen = at.iter().copied().filter(|(_, level)| !level.is_empty());
            let chosen = Levels::from_iter(chosen);
            row.extend(self.columns.iter().map(|(_, value)| {
                TableCell::Ours(value.clone().among(&chosen).observations(data).sample().mean())
            }));
            table.rows.push(row);
            return;
        };
        let measures: Vec<&str> = self.table.split('|').collect();
        let mut levels = levels(data, &measures, factor, first);
        if levels.is_empty() && factor == "order" {
            levels.push(String::new());
        }
        for level in &levels {
            self.row(data, rest, &[at, &[(&**factor, &**level)]].concat(), table);
        }
    }
}

/// The levels of a factor, of which some come first: of pairs those of the papers.
fn levels(data: &StudyData<'_>, measures: &[&str], factor: &str, first: &str) -> Vec<String> {
    match (factor, first) {
        ("pair", "") => pairs_of(data, measures),
        _ => data.levels(measures, factor, &first.split(' ').collect::<Vec<_>>()),
    }
}
