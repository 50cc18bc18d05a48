//! What a paper found, and whether it holds here: rules over numbers, never an opinion.
//!
//! A claim names one quantity and the side of a bound on which the finding puts it. It *holds* where the
//! whole interval of 95 % over seeds lies on that side, it *does not hold* where the whole interval lies on
//! the other, and else the seeds are *too noisy* to say. One seed has no interval, and so is too noisy.
//! Where the quantity is of the best among several (layers, weights), the other seeds choose which
//! (`data::chosen_by_others`): the highest would lie above any fixed number by selection alone.
//! A rank correlation holds where fewer than 5 % of all orders would give as much, and does not where more
//! than 95 % would give more.

use super::data::{Sample, View};

/// Something that a paper found.
pub(super) struct Claim {
    /// The finding, as a sentence.
    pub(super) finding: &'static str,
    /// Where the paper says so.
    pub(super) place: &'static str,
    /// What the paper's own numbers are.
    pub(super) paper: fn() -> String,
    /// What is measured for it.
    pub(super) quantity: &'static str,
    /// On which side of which bound the finding puts it.
    pub(super) rule: Rule,
    /// The quantity, from our numbers.
    pub(super) measure: fn(&View<'_>) -> Evidence,
}

/// The side of a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// More than this.
    Above(f64),
    /// Less than this.
    Below(f64),
    /// A rank correlation above chance.
    Ranks,
}

/// What our numbers say of a quantity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Evidence {
    /// The quantity, seed by seed; may be empty.
    Seeds(Sample),
    /// A rank correlation over `n` things, and the share of orders that give as much.
    Ranks {
        /// Spearman's correlation.
        rho: f64,
        /// The share of all orders that give at least as much.
        p: f64,
        /// Over how many things.
        n: usize,
    },
    /// It cannot be asked: the condition that it is measured against shows nothing itself.
    Void(&'static str),
    /// There are no numbers for it.
    Nothing,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The whole interval lies where the finding says.
    Holds,
    /// The whole interval lies on the other side.
    Fails,
    /// The interval lies on both sides, or there is none.
    Noisy,
    /// There are no numbers.
    Unmeasured,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "does not hold",
            Verdict::Noisy => "too noisy",
            Verdict::Unmeasured => "not measured",
        }
    }

    /// For the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Noisy => "noisy",
            Verdict::Unmeasured => "unmeasured",
        }
    }
}

/// A verdict with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// How strongly, in numbers.
    pub(super) strength: String,
}

/// Applies a rule.
pub(super) fn judge(rule: Rule, evidence: &Evidence) -> Judgement {
    let (verdict, strength) = match evidence {
        Evidence::Nothing => (Verdict::Unmeasured, String::new()),
        Evidence::Void(reason) => (Verdict::Noisy, (*reason).to_owned()),
        Evidence::Ranks { rho, p, n } => {
            let verdict = match p {
                p if *p < 0.05 => Verdict::Holds,
                p if *p > 0.95 => Verdict::Fails,
                _ => Verdict::Noisy,
            };
            (verdict, format!("ρ = {}, n = {n}, {}", signed(*rho, 2), share(*p)))
        }
        Evidence::Seeds(sample) => of_seeds(rule, sample),
    };
    Judgement { verdict, strength }
}

fn of_seeds(rule: Rule, sample: &Sample) -> (Verdict, String) {
    let Some(mean) = sample.mean() else { return (Verdict::Unmeasured, String::new()) };
    let Some((low, high)) = mean.interval() else {
        return (
            Verdict::Noisy,
            format!("{} from one seed, which gives no interval", signed(mean.value, 3)),
        );
    };
    let verdict = match rule {
        Rule::Above(bound) if low > bound => Verdict::Holds,
        Rule::Above(bound) if high < bound => Verdict::Fails,
        Rule::Below(bound) if high < bound => Verdict::Holds,
        Rule::Below(bound) if low > bound => Verdict::Fails,
        _ => Verdict::Noisy,
    };
    let strength = format!(
        "{} [{}, {}], n = {}",
        signed(mean.value, 3),
        signed(low, 3),
        signed(high, 3),
        mean.n
    );
    (verdict, strength)
}

/// The rule in words.
pub(super) fn in_words(rule: Rule) -> String {
    match rule {
        Rule::Above(bound) => format!("above {}", plain(bound)),
        Rule::Below(bound) => format!("below {}", plain(bound)),
        Rule::Ranks => "in the paper's order more than chance gives (p < 0.05)".to_owned(),
    }
}

fn plain(bound: f64) -> String {
    format!("{bound}").replace('-', "\u{2212}")
}

/// A number with a true minus.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| b == b'0' || b == b'.') => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

fn share(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Evidence {
        Evidence::Seeds(Sample(
            values.iter().enumerate().map(|(seed, value)| (seed as u64, *value)).collect(),
        ))
    }

    #[test]
    fn the_interval_decides() {
        let verdict = |rule, values: &[f64]| judge(rule, &seeds(values)).verdict;
        assert_eq!(verdict(Rule::Above(0.0), &[0.10, 0.12, 0.11]), Verdict::Holds);
        assert_eq!(verdict(Rule::Above(0.0), &[-0.10, -0.12, -0.11]), Verdict::Fails);
        assert_eq!(verdict(Rule::Above(0.0), &[0.30, -0.10, 0.10]), Verdict::Noisy);
        assert_eq!(verdict(Rule::Above(0.2), &[0.10, 0.12, 0.11]), Verdict::Fails);
        assert_eq!(verdict(Rule::Below(0.2), &[0.10, 0.12, 0.11]), Verdict::Holds);
        assert_eq!(verdict(Rule::Below(0.05), &[0.10, 0.12, 0.11]), Verdict::Fails);
        assert_eq!(verdict(Rule::Above(0.0), &[]), Verdict::Unmeasured);
    }

    #[test]
    fn one_seed_is_said_to_be_one() {
        let one = judge(Rule::Above(0.0), &seeds(&[0.9]));
        assert_eq!(one.verdict, Verdict::Noisy);
        assert!(one.strength.contains("one seed"), "{}", one.strength);
    }

    #[test]
    fn ranks_are_judged_by_chance() {
        let verdict = |p| judge(Rule::Ranks, &Evidence::Ranks { rho: 0.5, p, n: 10 }).verdict;
        assert_eq!(
            [0.01, 0.5, 0.99].map(verdict),
            [Verdict::Holds, Verdict::Noisy, Verdict::Fails]
        );
        let words = judge(Rule::Ranks, &Evidence::Ranks { rho: -0.5, p: 1e-6, n: 10 }).strength;
        assert_eq!(words, "ρ = \u{2212}0.50, n = 10, p < 0.001");
    }
}
