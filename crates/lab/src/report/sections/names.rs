//! One name and one colour for a system, a condition and a language, in every figure and table; and what charts show, in
//! words.

use terms::{Preset, Task};

use crate::draw::figure::{RAW_COLOUR, language_letter};
use crate::draw::{Chart, DotChart, DotMark, LineChart, LineSeries, short};
use crate::report::data::StudyData;

/// The first colour of series that are no systems, such as pairs of languages and kinds of retrieval.
pub(in crate::report) const OTHERS: usize = 7;

impl StudyData<'_> {
    /// How a system or condition is named. The number of separate layers is that of the setting's encoders.
    pub(in crate::report) fn name(&self, system: &str) -> String {
        let separate = |preset: Preset, embeddings: &str| {
            let depth = self.depth.unwrap_or(8);
            match preset.separate_layers(depth) {
                Some(layers) => format!("separate: {embeddings}lower {layers} of {depth} layers"),
                None => system.to_owned(),
            }
        };
        let name = match system {
            "default" => "bilingual (default)",
            "default-equal" => "bilingual (equal text)",
            "wiki-cc" => "bilingual (other domain)",
            "default-anchors" => "default anchors",
            "no-anchors" => "no anchors",
            "extra-anchors" => "extra anchors",
            "sep-emb" => "separate: embeddings",
            "sep-emb-l1-3" => return separate(Preset::SepEmbL1To3, "embeddings + "),
            "sep-emb-l1-6" => return separate(Preset::SepEmbL1To6, "embeddings + "),
            "sep-l1-3" => return separate(Preset::SepL1To3, ""),
            "sep-l1-6" => return separate(Preset::SepL1To6, ""),
            "monolingual-raw" => "monolingual (raw)",
            "monolingual-aligned" => "monolingual (aligned)",
            "bilingual-raw" => "bilingual (raw)",
            "bilingual-aligned" => "bilingual (aligned)",
            "untrained-raw" => "untrained (raw)",
            "untrained-aligned" => "untrained (aligned)",
            "no-anchors-raw" => "no anchors (raw)",
            "no-anchors-aligned" => "no anchors (aligned)",
            "embeddings" => "embedding table",
            "fasttext" => "fastText",
            "word2vec" => "Word2Vec",
            "glove" => "GloVe",
            other => other,
        };
        name.to_owned()
    }
}

/// The colour of a system or condition, by its name in records: no two systems have the same, but for variants of one
/// ([`is_variant`]) and encoders that differ in their embeddings alone.
pub(in crate::report) fn system_colour(system: &str) -> Option<usize> {
    Some(match system {
        "default" | "bilingual" | "encoder" | "bilingual-raw" | "bilingual-aligned" => 0,
        "monolingual" | "monolingual-aligned" | "monolingual-raw" => 1,
        "no-anchors" | "no-anchors-raw" | "no-anchors-aligned" => 2,
        "glove" => 3,
        "word2vec" => 4,
        "default-anchors" => 5,
        "untrained" | "untrained-raw" | "untrained-aligned" => 6,
        "sep-emb-l1-6" | "sep-l1-6" => 7,
        "wiki-cc" => 8,
        "sep-emb-l1-3" | "sep-l1-3" => 9,
        "embeddings" => 10,
        "sep-emb" => 11,
        "fasttext" => 12,
        "extra-anchors" => 13,
        "default-equal" => 14,
        _ => return None,
    })
}

/// Whether a system is a variant of another of its colour, and drawn with dashes.
fn is_variant(system: &str) -> bool {
    ["monolingual-raw", "bilingual-aligned", "no-anchors-aligned", "untrained-raw"]
        .contains(&system)
}

/// Kinds of sentence retrieval have one colour each in every figure, those of the curves of training.
pub(super) fn kind_colour(kind: &str) -> Option<usize> {
    let place = ["raw", "centred", "aligned"].iter().position(|one| *one == kind_name(kind))?;
    Some(RAW_COLOUR + place)
}

/// How a level of a factor is named in figures and tables.
pub(in crate::report) fn level_name(data: &StudyData<'_>, factor: &str, level: &str) -> String {
    match (factor, level) {
        ("pair", pair) => pair_name(pair),
        ("condition" | "system", system) => data.name(system),
        ("task", task) => task.parse::<Task>().map_or(task, |task| task.title()).to_owned(),
        ("distance", distance) => format!("distance {distance}"),
        ("treatment", "centered") => "centred".to_owned(),
        ("treatment", "lsar") => "LSAR".to_owned(),
        ("treatment", "without-1") => "without leading direction".to_owned(),
        (_, level) => level.to_owned(),
    }
}

/// How kinds of retrieval are named in every figure and table.
pub(super) fn kind_name(kind: &str) -> &str {
    if kind == "centered" { "centred" } else { kind }
}

/// The colour of a series and whether it is dashed: a system's, or a kind's of retrieval (`untrained (raw)` is a variant of
/// `raw`), or that of its place among others.
pub(super) fn series_style(name: &str, place: usize) -> (usize, bool) {
    let untrained = name.strip_prefix("untrained (").and_then(|rest| rest.strip_suffix(')'));
    match untrained.and_then(kind_colour) {
        Some(colour) => (colour, true),
        None => {
            let own = system_colour(name).or_else(|| kind_colour(name));
            (own.unwrap_or(OTHERS + place), is_variant(name))
        }
    }
}

/// A language: invented ones by a letter, since ISO 639 reserves their codes, `qaa` to `qtz`, for local use.
pub(in crate::report) fn language_name(code: &str) -> String {
    let (base, copy) = match code.strip_suffix('\'') {
        Some(base) => (base, "\u{2032}"),
        None => (code, ""),
    };
    match language_letter(base) {
        Some(letter) => format!("Language {letter}{copy}"),
        None => format!("{base}{copy}"),
    }
}

/// A pair of languages: `Language A/B`, `en/fr`.
pub(in crate::report) fn pair_name(pair: &str) -> String {
    joined(pair, "/")
}

/// A direction: `Language A \u{2192} B`, `en \u{2192} fr`.
pub(in crate::report) fn direction_name(direction: &str) -> String {
    joined(direction, " \u{2192} ")
}

fn joined(codes: &str, between: &str) -> String {
    let Some((a, b)) = codes.split_once('-') else { return language_name(codes) };
    let (a, b) = (language_name(a), language_name(b));
    format!("{a}{between}{}", b.trim_start_matches("Language "))
}

/// The characters of a title's numbers beyond which panels are left out.
const LONGEST: usize = 150;

/// What charts show, in words: the ends of each panel of dots, the highest points of lines.
pub(super) fn shown_by(charts: &[Chart]) -> String {
    let mut parts = Vec::new();
    for chart in charts {
        match chart {
            Chart::Dots(chart) => parts.extend(ends(chart, charts.len() > 1)),
            Chart::Lines(_) | Chart::Heat(_) => {}
        }
    }
    let lines: Vec<&LineChart> = charts
        .iter()
        .filter_map(|chart| match chart {
            Chart::Lines(chart) => Some(chart),
            _ => None,
        })
        .collect();
    parts.extend(peaks(&lines));
    parts.truncate(3);
    while parts.len() > 1 && parts.iter().map(|part| part.chars().count()).sum::<usize>() > LONGEST
    {
        parts.pop();
    }
    parts.join("; ")
}

/// The name of the row that has the means of all others.
pub(in crate::report::sections) const MEAN_ROW: &str = "mean of targets";

/// A panel in words: the series of its mean row, or of its first; of one series the lowest and the highest row and the untrained
/// encoder.
fn ends(chart: &DotChart, beside_others: bool) -> Option<String> {
    let title = chart.title.as_str();
    let marks = || chart.rows.iter().flat_map(|row| &row.marks);
    if chart.rows.iter().any(|row| row.marks.len() > 1) {
        let means = chart.rows.iter().find(|row| row.name == MEAN_ROW);
        let row = means.or_else(|| chart.rows.first())?;
        let of = |mark: &DotMark| Some(valued(&mark.series, mark.value?));
        let parts: Vec<String> = row.marks.iter().filter_map(of).collect();
        // A single panel is named by its figure.
        let named = [(beside_others, title), (chart.rows.len() > 1, row.name.as_str())];
        let named: Vec<&str> = named.into_iter().filter(|(is, _)| *is).map(|(_, n)| n).collect();
        let start = if named.is_empty() { String::new() } else { named.join(", ") + ": " };
        return Some(format!("{start}{}", parts.join(", ")));
    }
    let mut means: Vec<f64> = marks().filter_map(|mark| mark.value).collect();
    means.sort_by(f64::total_cmp);
    let (low, high) = (means.first()?, means.last()?);
    let untrained = chart.rows.iter().find(|row| row.name == "untrained");
    let untrained = untrained.and_then(|row| row.marks.first()?.value);
    let beside =
        untrained.map_or(String::new(), |value| format!(" (untrained\u{a0}{})", short(value)));
    match means.len() {
        1 => Some(valued(title, *high)),
        _ => Some(format!("{} to\u{a0}{}{beside}", valued(title, *low), short(*high))),
    }
}

/// The highest point of each series: its mean over panels, and its place where there is one panel.
fn peaks(charts: &[&LineChart]) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    for line in charts.iter().flat_map(|chart| &chart.lines) {
        if !names.contains(&&*line.name) {
            names.push(&line.name);
        }
    }
    let of = |name: &&str| {
        let lines =
            charts.iter().flat_map(|chart| chart.lines.iter().map(move |line| (chart, line)));
        let own: Vec<_> = lines.filter(|(_, line)| line.name == **name).collect();
        let peaks: Vec<_> =
            own.iter().filter_map(|(chart, line)| Some((chart, line.highest_point()?))).collect();
        let mean = peaks.iter().map(|(_, point)| point.y).sum::<f64>() / peaks.len().max(1) as f64;
        let text = match &peaks[..] {
            [] => return None,
            [(chart, point)] if charts.len() == 1 && own[0].1.points.len() > 1 => {
                format!("{} at {}\u{a0}{}", valued(name, mean), chart.across, point.x)
            }
            _ => valued(name, mean),
        };
        Some((mean, text))
    };
    let mut peaks: Vec<(f64, String)> = names.iter().filter_map(of).collect();
    if charts.iter().any(|chart| chart.highest_only) {
        let points = charts.iter().flat_map(|chart| {
            let named = |line: &LineSeries| {
                Some((chart.title.clone(), line.name.clone(), line.highest_point()?.y))
            };
            chart.lines.iter().filter_map(named).collect::<Vec<_>>()
        });
        let best = points.max_by(|a, b| a.2.total_cmp(&b.2));
        let text = |(title, name, y): (String, String, f64)| {
            (y, format!("{} at {name} ({title})", short(y)))
        };
        peaks = best.map(text).into_iter().collect();
    }
    let joined: Vec<String> = peaks.into_iter().map(|(_, text)| text).collect();
    if joined.is_empty() { vec![] } else { vec![joined.join(", ")] }
}

/// A name and its value, which are not broken over two lines.
fn valued(name: &str, value: f64) -> String {
    format!("{name}\u{a0}{}", short(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_for_readers() {
        assert_eq!(pair_name("qaa-qab"), "Language A/B");
        assert_eq!(pair_name("qaa-qaa'"), "Language A/A\u{2032}");
        assert_eq!(direction_name("qab-qaa"), "Language B \u{2192} A");
        assert_eq!([pair_name("en-fr"), language_name("qab")], ["en/fr", "Language B"]);
        let data = StudyData { records: vec![], texts: vec![], depth: Some(8) };
        assert_eq!(data.name("sep-emb-l1-3"), "separate: embeddings + lower 3 of 8 layers");
        assert_eq!(data.name("sep-l1-6"), "separate: lower 6 of 8 layers");
    }
}
