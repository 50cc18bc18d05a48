//! Studies of one's own: their claims are tested; their measures are drawn by factor, and tabulated.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::claims::own_section;
use super::data::SettingView;
use super::exhibit::{ReportTable, TableCell};
use super::observations::SeedSample;
use super::sections::names::{OTHERS, system_colour};
use super::sections::parts::{chance, mark, point};
use super::sections::{self, ReportSection};
use super::{SectionResults, fill, judged};
use crate::draw::{Chart, DotChart, DotRow, Figure, LineChart, LineSeries, ReferenceLine};
use crate::record::{Factors, Record};
use crate::store::natural;
use crate::study::Study;
use terms::Estimate;

/// The most rows that are shown of a study, panels that are drawn of it, and levels of a factor in a panel.
const MOST_ROWS: usize = 60;
const MOST_PANELS: usize = 9;
const MOST_LEVELS: usize = 12;

/// A study that no section is about.
pub(super) struct UserStudy<'a> {
    pub(super) name: &'a str,
    /// Each measure by the factor with most levels.
    pub(super) figure: Figure,
    /// Means over seeds.
    pub(super) table: ReportTable,
    /// How many means the table leaves out.
    pub(super) left_out: usize,
    /// Its claims with their verdicts.
    pub(super) tested: Option<SectionResults<'a>>,
}

/// The studies among the records that no section is about, and those whose files have claims.
pub(super) fn studies<'a>(
    records: &'a [Record],
    views: &'a [SettingView<'a>],
    files: &[Study],
) -> Vec<UserStudy<'a>> {
    let known = |study: &str| sections::ALL.iter().any(|section| section.studies.contains(&study));
    let file = |study: &str| files.iter().find(|file| file.name == study);
    let mut studies: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let study = &*record.origin.study;
        if !known(study) || file(study).is_some() {
            studies.entry(study).or_default().push(record);
        }
    }
    let of = |(number, (name, records)): (usize, (_, Vec<&Record>))| {
        let tested = file(name).map(|file| tested(own_section(number, file), views));
        UserStudy { tested, ..UserStudy::of(number, name, &records) }
    };
    studies.into_iter().enumerate().map(of).collect()
}

/// The claims of a study with their verdicts. They are a family of their own: what someone asks besides changes no verdict on the papers.
fn tested<'a>(section: &'static ReportSection, views: &'a [SettingView<'a>]) -> SectionResults<'a> {
    let judged: Vec<_> = views.iter().map(|view| judged(view, &[section])).collect();
    fill(section, views, &judged)
}

impl<'a> UserStudy<'a> {
    fn of(number: usize, name: &'a str, records: &[&Record]) -> Self {
        let mut seeds: BTreeMap<(&str, &str, &Factors), Vec<f64>> = BTreeMap::new();
        for record in records {
            let key = (&*record.origin.scale, &*record.measure, &record.factors);
            seeds.entry(key).or_default().push(record.value);
        }
        let mut means: Vec<_> = seeds.into_iter().collect();
        means.sort_by(|((a, b, c), _), ((x, y, z), _)| {
            a.cmp(x).then_with(|| b.cmp(y)).then_with(|| in_order(c, z))
        });
        let left_out = means.len().saturating_sub(MOST_ROWS);
        let names: BTreeSet<&String> = records.iter().flat_map(|one| one.factors.keys()).collect();
        let mut table = ReportTable::new(&["measure", "scale"]);
        table.heads.extend(names.iter().map(|name| name.to_string()));
        table.heads.push("mean".to_owned());
        for ((scale, measure, factors), values) in means.into_iter().take(MOST_ROWS) {
            let start = [TableCell::Name(measure.to_owned()), TableCell::Text(scale.to_owned())];
            let level = |name: &&String| factors.get(*name).cloned().unwrap_or_default();
            let levels = names.iter().map(level).map(TableCell::Text);
            let mean = TableCell::Ours(Estimate::of(&values));
            table.rows.push(start.into_iter().chain(levels).chain([mean]).collect());
        }
        Self { name, figure: figure(number, name, records), table, left_out, tested: None }
    }
}

/// Each measure at each scale: over the factor with most levels, a series for each level of the next.
fn figure(number: usize, name: &str, records: &[&Record]) -> Figure {
    let mut measures: BTreeMap<(&str, &str), Vec<&Record>> = BTreeMap::new();
    for record in records {
        measures.entry((&record.measure, &record.origin.scale)).or_default().push(record);
    }
    // A recorded chance is a line in the panel of its measure.
    let chances: BTreeMap<(String, &str), f64> = measures
        .iter()
        .filter_map(|((measure, scale), records)| {
            let of = measure.strip_suffix("_chance")?.to_owned();
            let sum: f64 = records.iter().map(|record| record.value).sum();
            Some(((of, *scale), sum / records.len() as f64))
        })
        .collect();
    measures.retain(|(measure, _), _| !measure.ends_with("_chance"));
    let several = measures.keys().map(|(_, scale)| scale).collect::<BTreeSet<_>>().len() > 1;
    let chart = |((measure, scale), records): ((&str, &str), Vec<&Record>)| {
        let title = if several { format!("{measure}, {scale}") } else { measure.to_owned() };
        let of = measure.trim_end_matches("_different").to_owned();
        let reference = chances.get(&(of, scale)).map(|value| chance(*value));
        chart(&title, measure, &records, reference)
    };
    let charts: Vec<Chart> = measures.into_iter().filter_map(chart).take(MOST_PANELS).collect();
    let title = format!("Results of {name} by factor");
    Figure::of(format!("own-{number}-measures"), title, &charts)
}

fn chart(
    title: &str,
    measure: &str,
    records: &[&Record],
    reference: Option<ReferenceLine>,
) -> Option<Chart> {
    let factors = varying(records);
    let (across, series) = match &factors[..] {
        [] => return None,
        [only] => (only, None),
        [first, second, ..] => (first, Some(second)),
    };
    let samples = |across_level: &str, series_level: Option<&str>| {
        let is = |record: &&&Record, factor: &str, level: &str| {
            record.factors.get(factor).is_some_and(|own| own == level)
        };
        let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let own = records.iter().filter(|record| {
            is(record, &across.0, across_level)
                && series
                    .zip(series_level)
                    .is_none_or(|(series, level)| is(record, &series.0, level))
        });
        for record in own {
            seeds.entry(record.origin.seed).or_default().push(record.value);
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        SeedSample(seeds.into_iter().map(|(seed, values)| (seed, mean(values))).collect())
    };
    let all = [String::new()];
    let names: &[String] = series.map_or(&all[..], |(_, levels)| levels);
    let level = |name: &String| (!name.is_empty()).then_some(name.as_str()).map(str::to_owned);
    let colour = |(place, name): (usize, &String)| {
        system_colour(name).unwrap_or(place + if names.len() > 1 { OTHERS } else { 0 })
    };
    if across.1.iter().all(|level| level.parse::<f64>().is_ok()) && across.1.len() > 2 {
        let line = |(place, name): (usize, &String)| LineSeries {
            name: name.clone(),
            colour: colour((place, name)),
            dashed: false,
            points: across
                .1
                .iter()
                .filter_map(|x| point(x.parse().ok()?, &samples(x, level(name).as_deref())))
                .collect(),
        };
        let lines = names.iter().enumerate().map(line).collect();
        let (across, unit) = (across.0.clone(), measure.to_owned());
        let title = title.to_owned();
        return Some(Chart::Lines(LineChart {
            title,
            across,
            unit,
            lines,
            references: reference.into_iter().collect(),
            ..LineChart::default()
        }));
    }
    let row = |name: &String| DotRow {
        name: format!("{} {name}", across.0),
        marks: names
            .iter()
            .enumerate()
            .map(|(place, series)| {
                let sample = samples(name, level(series).as_deref());
                mark(series, colour((place, series)), &sample, None)
            })
            .collect(),
    };
    let rows = across.1.iter().take(MOST_LEVELS).map(row).collect();
    let (title, unit) = (title.to_owned(), measure.to_owned());
    let references = reference.into_iter().collect();
    Some(Chart::Dots(DotChart { title, unit, rows, references, ..DotChart::default() }))
}

/// The factors with several levels, that with most first.
fn varying(records: &[&Record]) -> Vec<(String, Vec<String>)> {
    let mut levels: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (factor, level) in records.iter().flat_map(|record| &record.factors) {
        levels.entry(factor).or_default().insert(level);
    }
    let mut factors: Vec<(String, Vec<String>)> = levels
        .into_iter()
        .map(|(factor, levels)| (factor.clone(), levels.into_iter().cloned().collect()))
        .collect();
    // One level of the only factor is a chart as well: the value of the study.
    if factors.iter().any(|(_, levels): &(String, Vec<String>)| levels.len() > 1) {
        factors.retain(|(_, levels)| levels.len() > 1);
    }
    for (_, levels) in &mut factors {
        levels.sort_by(|a, b| natural(a, b));
    }
    factors.sort_by_key(|(_, levels)| std::cmp::Reverse(levels.len()));
    // Series of more levels than there are colours are not drawn apart.
    factors.truncate(1 + usize::from(factors.get(1).is_some_and(|(_, levels)| levels.len() <= 6)));
    factors
}

/// By levels in natural order: layer 2 before layer 10.
fn in_order(a: &Factors, b: &Factors) -> Ordering {
    let pairs = a.iter().zip(b);
    let each = |((a, x), (b, y)): ((&String, &String), (&String, &String))| {
        a.cmp(b).then_with(|| natural(x, y))
    };
    pairs.map(each).find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}
