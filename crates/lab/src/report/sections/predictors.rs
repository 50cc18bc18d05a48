//! Which measure of similarity ranks encoders as zero-shot transfer does: over conditions, layers and training steps.

use std::collections::{BTreeMap, BTreeSet};

use geometry::similarity::SimilarityMeasure;
use terms::Task;

use super::parts::{OTHERS, figure, measured_tasks, named, pair_name, point};
use crate::draw::{Chart, LineChart, LineSeries, short};
use crate::record::Factors;
use crate::report::claims::{SectionCode, Value};
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::finding::Evidence;
use crate::report::observations::{Observations, SeedSample};
use crate::statistics::{RankTest, rank_difference_test, rank_test, spearman};

pub(super) const CODE: SectionCode = SectionCode {
    rules: &[("Alignment of", predicts), ("Neuron-wise", predicts_better)],
    show: Some(&show),
    numbers: Some(|view| {
        let shown = |(measure, mean): &(SimilarityMeasure, f64)| {
            format!("{} {}", measure.name(), short(*mean))
        };
        match ranked(&view.study("predictors")).as_slice() {
            [] => String::new(),
            [best] => format!("\u{3c1} {}", shown(best)),
            [best, .., last] => format!("\u{3c1} {} to {}", shown(best), shown(last)),
        }
    }),
};

/// Whether a measure of encoders, as the mean over its layers, predicts their transfer in the one task of these records.
fn predicts(measure: &Value, data: &StudyData<'_>) -> Evidence {
    let similar = mean_over(measure.observations(data), "layer");
    evidence("\u{3c1}", [&similar, &scores(data)], rank_test)
}

/// Whether the first of two measures predicts it better than the second.
fn predicts_better(measures: &Value, data: &StudyData<'_>) -> Evidence {
    let [first, second] = measures.operands().map(|one| mean_over(one.observations(data), "layer"));
    evidence("\u{394}\u{3c1}", [&first, &second, &scores(data)], rank_difference_test)
}

fn scores(data: &StudyData<'_>) -> Observations {
    measured_tasks(data).first().map_or_else(Observations::default, |task| transfer(data, *task))
}

/// Variables of the same encoders, in the same order, in a seed and a pair of languages.
type EncoderBlock<const N: usize> = ((u64, Option<String>), [Vec<f64>; N]);

/// Some variables of the trained encoders that all seeds and pairs of languages have. The untrained one is left out: it transfers least
/// whatever is measured, so that where a measure puts that one encoder would decide its correlation. A seed that lacks what others have is left out, as
/// everywhere.
fn blocks<const N: usize>(variables: [&Observations; N]) -> Vec<EncoderBlock<N>> {
    let all = |key: &(u64, Factors)| variables.map(|one| one.0.get(key).copied());
    let complete = variables[0].0.keys().filter(|key| all(key).iter().all(Option::is_some));
    let complete =
        complete.filter(|(_, factors)| !factors.values().any(|level| level == UNTRAINED));
    let mut of_seeds: BTreeMap<u64, Vec<&Factors>> = BTreeMap::new();
    complete.for_each(|(seed, factors)| of_seeds.entry(*seed).or_default().push(factors));
    let distinct: BTreeSet<&Factors> = of_seeds.values().flatten().copied().collect();
    of_seeds.retain(|_, factors| factors.len() == distinct.len());
    let mut encoders: BTreeMap<(u64, Option<String>), BTreeMap<Factors, [f64; N]>> =
        BTreeMap::new();
    for (seed, factors) in of_seeds.iter().flat_map(|(seed, of)| of.iter().map(|one| (*seed, *one)))
    {
        let mut encoder = factors.clone();
        let pair = encoder.remove("pair");
        let values = all(&(seed, factors.clone())).map(Option::unwrap_or_default);
        encoders.entry((seed, pair)).or_default().insert(encoder, values);
    }
    let sets: Vec<BTreeSet<Factors>> =
        encoders.values().map(|of| of.keys().cloned().collect()).collect();
    let everywhere = |encoder: &Factors| sets.iter().all(|set| set.contains(encoder));
    let block = |(place, of): (_, BTreeMap<Factors, [f64; N]>)| {
        let rows = of.into_iter().filter(|(encoder, _)| everywhere(encoder));
        let rows: Vec<[f64; N]> = rows.map(|(_, values)| values).collect();
        (place, std::array::from_fn(|at| rows.iter().map(|row| row[at]).collect()))
    };
    encoders.into_iter().map(block).collect()
}

/// The evidence of a test over the encoders of full training, one for each condition: checkpoints of one condition resemble each other, so
/// that they could not be permuted with those of another. Seeds in which a variable does not vary have no ranks.
fn evidence<const N: usize>(
    symbol: &'static str,
    variables: [&Observations; N],
    test: fn(&[[Vec<f64>; N]]) -> Option<RankTest>,
) -> Evidence {
    let trained = variables.map(|one| one.clone().without("steps"));
    let mut blocks = blocks(trained.each_ref());
    let varies = |values: &Vec<f64>| values.iter().any(|value| *value != values[0]);
    let measured = !blocks.is_empty();
    blocks.retain(|(_, values)| values.iter().all(varies));
    if measured && blocks.is_empty() {
        return Evidence::Void("the encoders do not differ");
    }
    let seeds: BTreeSet<u64> = blocks.iter().map(|((seed, _), _)| *seed).collect();
    let values: Vec<[Vec<f64>; N]> = blocks.iter().map(|(_, values)| values.clone()).collect();
    let Some(n) = values.first().map(|block| block[0].len()) else { return Evidence::Nothing };
    match test(&values) {
        Some(test) => Evidence::Ranks { symbol, test, n, seeds: seeds.len() },
        None => Evidence::Void("the encoders do not differ"),
    }
}

/// A measure of similarity of each encoder, at a layer or as the mean over all.
fn similar(data: &StudyData<'_>, measure: &str, layer: Option<&str>) -> Observations {
    match layer {
        Some(layer) => data.observations("similarity", &[("measure", measure), ("layer", layer)]),
        None => mean_over(data.observations("similarity", &[("measure", measure)]), "layer"),
    }
}

fn transfer(data: &StudyData<'_>, task: Task) -> Observations {
    let scores = [("task", task.name()), ("role", "target")];
    data.observations(task.measure(), &scores).dropped("language")
}

/// The rank correlation over encoders of a measure with transfer, of each seed: the mean over pairs of languages, and over tasks
/// where none is named. Of a measure at all layers the mean is taken.
fn of(data: &StudyData<'_>, measure: &str, layer: Option<&str>, task: Option<Task>) -> SeedSample {
    let similar = similar(data, measure, layer);
    let tasks = task.map_or_else(|| measured_tasks(data), |task| vec![task]);
    let mut of_seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for task in tasks {
        for ((seed, _), [values, scores]) in blocks([&similar, &transfer(data, task)]) {
            of_seeds.entry(seed).or_default().extend(spearman(&values, &scores));
        }
    }
    of_seeds.retain(|_, values| !values.is_empty());
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    SeedSample(of_seeds.into_iter().map(|(seed, values)| (seed, mean(values))).collect())
}

fn mean_over(observations: Observations, factor: &str) -> Observations {
    let mut sums: BTreeMap<(u64, Factors), (f64, f64)> = BTreeMap::new();
    for ((seed, mut factors), value) in observations.0 {
        factors.remove(factor);
        let (sum, count) = sums.entry((seed, factors)).or_default();
        *sum += value;
        *count += 1.0;
    }
    Observations(sums.into_iter().map(|(key, (sum, count))| (key, sum / count)).collect())
}

/// The measures by their mean correlation with the transfer of all tasks, best first.
fn ranked(data: &StudyData<'_>) -> Vec<(SimilarityMeasure, f64)> {
    let mean = |measure: SimilarityMeasure| {
        Some((measure, of(data, measure.name(), None, None).mean_correlation()?.mean))
    };
    let mut ranked: Vec<_> = SimilarityMeasure::ALL.into_iter().filter_map(mean).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("predictors");
    let tasks = measured_tasks(&data);
    let ranked: Vec<SimilarityMeasure> = ranked(&data).into_iter().map(|(one, _)| one).collect();
    vec![
        CaptionedItem::table(
            BEYOND,
            "Spearman's correlation over encoders of each measure (its mean over layers) with zero-shot transfer, within seeds \
             and pairs of languages; means over seeds on Fisher's scale, with intervals over seeds of the same encoders.",
            correlations(&data, &tasks, &ranked),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The same by layer, over all tasks.",
            figure(
                named(id, "layers"),
                "Correlation with transfer at best",
                &by_layer(&data, &ranked),
            ),
        ),
        CaptionedItem::table(
            BEYOND,
            "What is ranked: zero-shot transfer, and each measure as its mean over layers; beside it the untrained encoder, which is \
             not ranked. The last row has the measures of shuffled pairs.",
            encoders(&data, &tasks, &ranked),
        ),
    ]
}

fn correlations(data: &StudyData<'_>, tasks: &[Task], ranked: &[SimilarityMeasure]) -> ReportTable {
    let mut table = ReportTable::new(&["measure"]);
    table.heads.extend(tasks.iter().map(|task| task.title().to_owned()));
    table.heads.push("all tasks".to_owned());
    for measure in ranked {
        let cell = |task: Option<Task>| {
            TableCell::Ours(of(data, measure.name(), None, task).mean_correlation())
        };
        let cells = tasks.iter().map(|task| cell(Some(*task))).chain([cell(None)]);
        let name = TableCell::Name(measure.title().to_owned());
        table.rows.push(std::iter::once(name).chain(cells).collect());
    }
    table
}

fn by_layer(data: &StudyData<'_>, ranked: &[SimilarityMeasure]) -> Vec<Chart> {
    let layers = data.layers("similarity");
    let line = |(place, measure): (usize, &SimilarityMeasure)| {
        let at = |layer: &String| {
            let sample = of(data, measure.name(), Some(layer), None);
            point(layer.parse().ok()?, &sample)
        };
        LineSeries {
            name: measure.name().to_owned(),
            colour: OTHERS + place,
            dashed: false,
            points: layers.iter().filter_map(at).collect(),
        }
    };
    let lines: Vec<LineSeries> =
        ranked.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
    let chart = LineChart {
        title: "all tasks".to_owned(),
        across: "layer".to_owned(),
        unit: "\u{3c1}".to_owned(),
        lines,
        highest_only: true,
        ..LineChart::default()
    };
    if chart.lines.is_empty() { vec![] } else { vec![Chart::Lines(chart)] }
}

fn encoders(data: &StudyData<'_>, tasks: &[Task], ranked: &[SimilarityMeasure]) -> ReportTable {
    let mut table = ReportTable::new(&["pair", "encoder"]);
    table.heads.extend(tasks.iter().map(|task| task.title().to_owned()));
    table.heads.extend(ranked.iter().map(|measure| measure.name().to_owned()));
    let scores: Vec<Observations> = tasks
        .iter()
        .map(|task| transfer(data, *task))
        .chain(ranked.iter().map(|measure| similar(data, measure.name(), None)))
        .collect();
    let chance = |measure: &SimilarityMeasure| {
        mean_over(data.observations("similarity_chance", &[("measure", measure.name())]), "layer")
    };
    let mut systems: Vec<&Factors> =
        scores.iter().flat_map(|of| of.0.keys().map(|(_, factors)| factors)).collect();
    systems.sort();
    systems.dedup();
    let mean = |of: &Observations, wanted: &dyn Fn(&Factors) -> bool| {
        let own = of.0.iter().filter(|((_, factors), _)| wanted(factors));
        let own = own.map(|(key, value)| (key.clone(), *value)).collect();
        TableCell::Ours(Observations(own).sample().mean())
    };
    for system in systems {
        let name = system.get("condition").or_else(|| system.get("system"));
        let name = data.name(name.map_or("", String::as_str));
        let steps = system.get("steps").map_or(String::new(), |steps| format!(", {steps} steps"));
        let pair = system.get("pair").map_or(String::new(), |pair| pair_name(pair));
        let mut row = vec![TableCell::Name(pair), TableCell::Text(format!("{name}{steps}"))];
        row.extend(scores.iter().map(|of| mean(of, &|factors| factors == system)));
        table.rows.push(row);
    }
    if !table.rows.is_empty() {
        let mut row = vec![TableCell::Name(String::new()), TableCell::Text("chance".to_owned())];
        row.extend(tasks.iter().map(|_| TableCell::Ours(None)));
        row.extend(ranked.iter().map(|one| mean(&chance(one), &|_| true)));
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::tests::record;
    use crate::report::data::views;

    /// Three encoders whose transfer rises with one measure, falls with another, and has no relation to chance; an untrained one that
    /// would reverse both.
    #[test]
    fn encoders_are_ranked_within_seeds() {
        let mut records = Vec::new();
        for seed in [1, 2] {
            for (at, condition) in ["a", "b", "c", "untrained"].into_iter().enumerate() {
                // Seeds differ more than conditions do.
                let level = at as f64 / 10.0 + seed as f64;
                let sign = if condition == "untrained" { -100.0 } else { 1.0 };
                let of = format!("condition={condition} pair=qaa-qab");
                let scored = format!("{of} task=ner role=target language=qab");
                records.push(record("predictors", seed, "f1", &scored, level));
                for (measure, value) in [("mexa", sign * level), ("anc", -sign * level)] {
                    for layer in 0..2 {
                        let of = format!("{of} measure={measure} layer={layer}");
                        records.push(record("predictors", seed, "similarity", &of, value));
                    }
                }
            }
        }
        let views = views(&records, &[]);
        let data = views[0].study("predictors");
        let rho = |measure, layer| {
            let values = of(&data, measure, layer, Some(Task::Ner)).values();
            // Up to rounding.
            values.into_iter().map(|rho| (1e9 * rho).round() / 1e9).collect::<Vec<_>>()
        };
        assert_eq!(rho("mexa", None), [1.0, 1.0]);
        assert_eq!(rho("mexa", Some("1")), [1.0, 1.0]);
        assert_eq!(rho("anc", None), [-1.0, -1.0]);
        assert!(rho("cka", None).is_empty());
        let best: Vec<_> = ranked(&data).into_iter().map(|(measure, _)| measure).collect();
        assert_eq!(best, [SimilarityMeasure::Mexa, SimilarityMeasure::Anc]);
        let table = encoders(&data, &[Task::Ner], &best);
        assert_eq!(table.rows.len(), 3 + 2, "and the untrained encoder and chance");
    }
}
