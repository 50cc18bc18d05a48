//! The claims of the papers and their verdicts: rules over numbers, never an opinion.
//!
//! A claim names one quantity and a criterion: the side of a bound on which the paper's finding puts it. It *holds* where
//! the whole 95 % interval over seeds lies on that side, it *fails* where the whole interval lies on the other, and is
//! *inconclusive* otherwise. One seed has no interval, and so is inconclusive. Where the quantity is that of the best
//! layer, weight or system, the other seeds select it (leave-one-out, `data::chosen_by_others`): the maximum
//! of several would exceed any bound by selection alone. A rank correlation holds where its one-sided permutation test has
//! p < 0.05, and fails where p > 0.95.

use super::data::SettingView;
use super::observations::SeedSample;

/// A finding of a paper, with the criterion that tests it.
pub(super) struct PaperClaim {
    /// The finding, as a sentence.
    pub(super) finding: &'static str,
    /// Where the paper states it.
    pub(super) place: &'static str,
    /// The paper's own numbers.
    pub(super) paper: fn() -> String,
    /// The quantity that tests it.
    pub(super) quantity: &'static str,
    /// The criterion.
    pub(super) criterion: Criterion,
    /// The quantity in our results.
    pub(super) measure: fn(&SettingView<'_>) -> Evidence,
}

/// Where a finding puts its quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Criterion {
    /// Greater than a bound.
    Above(f64),
    /// Less than a bound.
    Below(f64),
    /// A significant rank correlation.
    Ranks,
}

/// A quantity in our results.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Evidence {
    /// The quantity, seed by seed; may be empty.
    Seeds(SeedSample),
    /// A rank correlation with its permutation test.
    Ranks {
        /// Spearman's correlation.
        rho: f64,
        /// The share of all permutations that reach it.
        p: f64,
        /// The number of pairs.
        n: usize,
    },
    /// The quantity is undefined: its baseline shows no effect itself, or nothing can be selected.
    Void(&'static str),
    /// There are no results for it.
    Nothing,
}

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The whole interval meets the criterion.
    Holds,
    /// The whole interval lies on the other side.
    Fails,
    /// The interval contains the bound, or there is none.
    Inconclusive,
    /// There are no results.
    NotTested,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotTested => "not tested",
        }
    }

    /// For the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotTested => "not-tested",
        }
    }
}

/// A verdict with the numbers behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// The estimate with its interval, or the correlation with its p.
    pub(super) strength: String,
}

/// Applies a criterion.
pub(super) fn judge(criterion: Criterion, evidence: &Evidence) -> Judgement {
    let (verdict, strength) = match evidence {
        Evidence::Nothing => (Verdict::NotTested, String::new()),
        Evidence::Void(reason) => (Verdict::Inconclusive, (*reason).to_owned()),
        Evidence::Ranks { rho, p, n } => {
            let verdict = match p {
                p if *p < 0.05 => Verdict::Holds,
                p if *p > 0.95 => Verdict::Fails,
                _ => Verdict::Inconclusive,
            };
            (verdict, format!("ρ = {}, n = {n}, {}", signed(*rho, 2), p_value(*p)))
        }
        Evidence::Seeds(sample) => of_seeds(criterion, sample),
    };
    Judgement { verdict, strength }
}

fn of_seeds(criterion: Criterion, sample: &SeedSample) -> (Verdict, String) {
    let Some(mean) = sample.mean() else { return (Verdict::NotTested, String::new()) };
    let Some((low, high)) = mean.interval() else {
        return (Verdict::Inconclusive, format!("{}, one seed, no interval", signed(mean.mean, 3)));
    };
    let verdict = match criterion {
        Criterion::Above(bound) if low > bound => Verdict::Holds,
        Criterion::Above(bound) if high < bound => Verdict::Fails,
        Criterion::Below(bound) if high < bound => Verdict::Holds,
        Criterion::Below(bound) if low > bound => Verdict::Fails,
        _ => Verdict::Inconclusive,
    };
    let strength = format!(
        "{} [{}, {}], n = {}",
        signed(mean.mean, 3),
        signed(low, 3),
        signed(high, 3),
        mean.n
    );
    (verdict, strength)
}

/// The criterion as it is printed.
pub(super) fn printed(criterion: Criterion) -> String {
    match criterion {
        Criterion::Above(bound) => format!("> {}", plain(bound)),
        Criterion::Below(bound) => format!("< {}", plain(bound)),
        Criterion::Ranks => "ρ > 0 (permutation test, p < 0.05)".to_owned(),
    }
}

fn plain(bound: f64) -> String {
    format!("{bound}").replace('-', "\u{2212}")
}

/// A number with a minus sign (U+2212).
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Evidence {
        Evidence::Seeds(SeedSample(
            values.iter().enumerate().map(|(seed, value)| (seed as u64, *value)).collect(),
        ))
    }

    #[test]
    fn the_interval_decides() {
        let verdict = |criterion, values: &[f64]| judge(criterion, &seeds(values)).verdict;
        assert_eq!(verdict(Criterion::Above(0.0), &[0.10, 0.12, 0.11]), Verdict::Holds);
        assert_eq!(verdict(Criterion::Above(0.0), &[-0.10, -0.12, -0.11]), Verdict::Fails);
        assert_eq!(verdict(Criterion::Above(0.0), &[0.30, -0.10, 0.10]), Verdict::Inconclusive);
        assert_eq!(verdict(Criterion::Above(0.2), &[0.10, 0.12, 0.11]), Verdict::Fails);
        assert_eq!(verdict(Criterion::Below(0.2), &[0.10, 0.12, 0.11]), Verdict::Holds);
        assert_eq!(verdict(Criterion::Below(0.05), &[0.10, 0.12, 0.11]), Verdict::Fails);
        assert_eq!(verdict(Criterion::Above(0.0), &[]), Verdict::NotTested);
    }

    #[test]
    fn one_seed_is_said_to_be_one() {
        let one = judge(Criterion::Above(0.0), &seeds(&[0.9]));
        assert_eq!(one.verdict, Verdict::Inconclusive);
        assert!(one.strength.contains("one seed"), "{}", one.strength);
    }

    #[test]
    fn ranks_are_judged_by_chance() {
        let verdict = |p| judge(Criterion::Ranks, &Evidence::Ranks { rho: 0.5, p, n: 10 }).verdict;
        assert_eq!(
            [0.01, 0.5, 0.99].map(verdict),
            [Verdict::Holds, Verdict::Inconclusive, Verdict::Fails]
        );
        let words =
            judge(Criterion::Ranks, &Evidence::Ranks { rho: -0.5, p: 1e-6, n: 10 }).strength;
        assert_eq!(words, "ρ = \u{2212}0.50, n = 10, p < 0.001");
    }
}
