//! The sentences above the pictures, computed from the numbers.

use train::pretrain::ProbePoint;

use super::{layer_name, percent, thousands};

/// Standard errors by which one accuracy must exceed another to be called higher.
const CLEARLY: f64 = 3.0;
/// The difference of two shares of variance from which on it is spoken of.
const NOTABLE: f64 = 0.1;

/// Whether an accuracy is clearly above another, each of so many sentences.
pub(super) fn is_clearly_above(accuracy: f64, other: f64, sentences: usize) -> bool {
    let variance = |p: f64| p * (1.0 - p) / sentences.max(1) as f64;
    accuracy - other > CLEARLY * (variance(accuracy) + variance(other)).sqrt()
}

pub(super) fn best_layer(raw: &[f64]) -> usize {
    // The first of equals.
    (0..raw.len()).rev().max_by(|&a, &b| raw[a].total_cmp(&raw[b])).unwrap_or(0)
}

/// What training did to a layer.
pub(super) fn of_training(
    points: &[ProbePoint],
    layer: usize,
    candidates: usize,
    from_random: bool,
) -> String {
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let before = if from_random { "untrained" } else { "before" };
    if points.len() == 1 {
        let chance = percent(1.0 / candidates.max(1) as f64);
        let raw = percent(first.raw[layer]);
        let who = if from_random { "An untrained encoder" } else { "The encoder before training" };
        return format!("{who} finds {raw} of translations (chance {chance})");
    }
    let numbers =
        |a: f64, b: f64| format!("P@1 is {} {before}, {} trained", percent(a), percent(b));
    let raw = numbers(first.raw[layer], last.raw[layer]);
    let rises = |of: fn(&ProbePoint) -> &Vec<f64>| {
        is_clearly_above(of(last)[layer], of(first)[layer], candidates)
    };
    let share = |point: &ProbePoint| point.language_share[layer];
    let peak = points.iter().map(share).fold(0.0, f64::max);
    let parts = peak > share(first) + NOTABLE && peak > share(last) + NOTABLE;
    match (rises(|point| &point.raw), rises(|point| &point.centered)) {
        (true, _) if parts && last.raw[layer] >= 0.5 => {
            format!("First the encoder tells the languages apart, then both share one space: {raw}")
        }
        (true, _) if parts => {
            format!(
                "First the encoder tells the languages apart, then translations draw near: {raw}"
            )
        }
        (true, _) => format!("Training brings translations together: {raw}"),
        (false, true) => {
            let centred = numbers(first.centered[layer], last.centered[layer]);
            format!("The languages take one shape in different places: centred {centred}")
        }
        (false, false) => {
            let steps = thousands(last.step);
            format!("No shared space after {steps} steps: {raw}")
        }
    }
}

/// What the layers of one encoder do. `untrained` has the raw retrieval of the same layers before training.
pub(super) fn of_layers(
    numbers: &[usize],
    raw: &[f64],
    share: &[f64],
    candidates: usize,
    untrained: Option<&[f64]>,
) -> String {
    let best = best_layer(raw);
    let chance = 1.0 / candidates.max(1) as f64;
    let baseline = untrained.map_or(chance, |untrained| untrained[best].max(chance));
    let found = percent(raw[best]);
    if !is_clearly_above(raw[best], baseline, candidates) {
        let beside = match untrained {
            Some(_) => format!("{} untrained", percent(baseline)),
            None => format!("chance {}", percent(chance)),
        };
        return format!("No layer brings translations together: P@1 is at most {found} ({beside})");
    }
    let last = share.len() - 1;
    // The layer in which the language explains least, the first of equals.
    let least = best_layer(&share.iter().map(|share| -share).collect::<Vec<_>>());
    let name = place(numbers[least]);
    let path = [0, least, last].map(|layer| percent(share[layer])).join(" → ");
    let falls = share[0] > share[least] + NOTABLE;
    let rises = share[last] > share[least] + NOTABLE;
    match (falls, rises) {
        (true, true) if share[least] < NOTABLE && raw[least] >= 0.5 => {
            format!(
                "The languages meet in {name} and part again above it: language {path} of variance"
            )
        }
        (true, true) => {
            format!(
                "The languages come closest in {name} and part again above it: language {path} of variance"
            )
        }
        (true, false) => {
            format!("The languages draw together up to {name}: language {path} of variance")
        }
        (false, true) => format!(
            "The languages part towards the top: language {} → {} of variance",
            percent(share[0]),
            percent(share[last])
        ),
        (false, false) => {
            let (name, share) = (place(numbers[best]), percent(share[best]));
            format!(
                "Translations are nearest in {name}: P@1 is {found}, language {share} of variance"
            )
        }
    }
}

/// A layer within a sentence.
fn place(layer: usize) -> String {
    if layer == 0 { "the embeddings".to_owned() } else { layer_name(layer) }
}

/// What a shift does, by the token conversion rate without and with all of it and, where there are references, by the
/// share of predicted words that stand in them.
pub(super) fn of_shift(
    target: &str,
    conversion: [f64; 2],
    in_reference: Option<[f64; 2]>,
) -> String {
    let [before, after] = conversion.map(percent);
    let tokens = format!("{after} of predicted tokens are {target}'s at α = 1, {before} at 0");
    if conversion[1] < 0.5 || conversion[1] - conversion[0] < 0.25 {
        return format!("One vector does not change the language: {tokens}");
    }
    match in_reference {
        Some([without, with]) if with >= 0.5 && with - without > 0.25 => {
            format!(
                "One vector translates: {tokens}; {} of the words stand in the reference",
                percent(with)
            )
        }
        Some([_, with]) => {
            format!(
                "One vector changes the language: {tokens}; {} of the words stand in the reference",
                percent(with)
            )
        }
        None => format!("One vector changes the language: {tokens}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[(u64, f64, f64, f64)]) -> Vec<ProbePoint> {
        let point = |&(step, raw, centered, share): &(u64, f64, f64, f64)| ProbePoint {
            step,
            raw: vec![raw],
            centered: vec![centered],
            language_share: vec![share],
        };
        rows.iter().map(point).collect()
    }

    #[test]
    fn titles_say_what_the_numbers_show_and_no_more() {
        let title = |rows: &[(u64, f64, f64, f64)]| of_training(&points(rows), 0, 1000, true);
        let demo = [(0, 0.013, 0.01, 0.01), (250, 0.005, 0.04, 0.7), (6000, 0.87, 0.95, 0.05)];
        assert_eq!(
            title(&demo),
            "First the encoder tells the languages apart, then both share one space: P@1 is 1.3\u{a0}% \
             untrained, 87\u{a0}% trained"
        );
        // The languages never part, or never meet again.
        let steady = [(0, 0.01, 0.01, 0.1), (250, 0.2, 0.2, 0.1), (6000, 0.87, 0.95, 0.05)];
        assert!(title(&steady).starts_with("Training brings translations together"));
        let apart = [(0, 0.01, 0.01, 0.1), (250, 0.0, 0.2, 0.7), (6000, 0.01, 0.4, 0.8)];
        assert!(title(&apart).starts_with("The languages take one shape in different places"));
        // Nothing that noise could not do: 1.3 % and 2 % of a thousand.
        let nothing = [(0, 0.013, 0.01, 0.01), (6000, 0.02, 0.02, 0.7)];
        assert!(
            title(&nothing).starts_with("No shared space after 6,000 steps"),
            "{}",
            title(&nothing)
        );
        assert_eq!(
            title(&demo[..1]),
            "An untrained encoder finds 1.3\u{a0}% of translations (chance 0.1\u{a0}%)"
        );
    }

    #[test]
    fn titles_of_layers() {
        let title = |raw: &[f64], share: &[f64], untrained: Option<&[f64]>| {
            of_layers(&[0, 1, 2], raw, share, 1000, untrained)
        };
        let trained = title(&[0.78, 0.87, 0.05], &[0.34, 0.05, 0.61], Some(&[0.01; 3]));
        assert!(
            trained.starts_with("The languages meet in layer 1 and part again above it"),
            "{trained}"
        );
        let none = title(&[0.013, 0.01, 0.01], &[0.01; 3], Some(&[0.013, 0.01, 0.01]));
        assert!(none.starts_with("No layer brings translations together"), "{none}");
        // Raw retrieval is best where the languages are not closest: the claim is about the languages.
        let other = title(&[0.23, 0.19, 0.02], &[0.48, 0.24, 0.61], None);
        assert!(other.starts_with("The languages come closest in layer 1"), "{other}");
        let flat = title(&[0.78, 0.80, 0.7], &[0.05; 3], None);
        assert!(flat.starts_with("Translations are nearest in layer 1"), "{flat}");
    }

    #[test]
    fn titles_of_shifts() {
        assert!(of_shift("B", [0.0, 1.0], Some([0.0, 0.7])).starts_with("One vector translates"));
        assert!(of_shift("B", [0.0, 1.0], Some([0.0, 0.1])).starts_with("One vector changes"));
        assert!(of_shift("B", [0.24, 0.24], None).starts_with("One vector does not change"));
        // Half of the tokens are the other language's anyway.
        assert!(of_shift("B", [0.45, 0.55], None).starts_with("One vector does not change"));
    }
}
