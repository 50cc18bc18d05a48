//! The claims of the papers and their verdicts: rules over numbers, never an opinion.
//!
//! A claim names one quantity and a criterion: the side of a bound on which the paper's finding puts it. It has a line for
//! each task or pair of languages that the paper speaks of. A two-sided t test over seeds decides whether the quantity is
//! on a side at all, and its sign on which: a line *holds* on the paper's, *fails* on the other, and is *inconclusive* where
//! neither is significant. All lines of a setting are one family (Benjamini & Hochberg 1995), at 5 % false discoveries, of which
//! a wrong direction is one (Benjamini & Yekutieli 2005). A family for each direction would decide the same t differently by its
//! side: what holds makes it easier to hold, and fills the other family with p near 1.
//!
//! - A quantity that an untrained encoder has as well does not measure what was learned: where the interval of the
//!   difference to the untrained encoder ([`Control`]) includes 0, the verdict is *not measured*. A quantity that is worse than
//!   the untrained encoder's can fail, and cannot hold.
//! - Fewer than three seeds give no verdict, and there is *no test* of numbers that are the same in every seed.
//! - Where a finding is about encoders, languages or pairs of real languages, they are what is permuted: seeds that repeat
//!   the same ones are one sample of them, and their agreement is no evidence about others. Of three or four no permutation
//!   reaches 5 %: there is *no test*.
//! - Where the quantity is that of the best layer, weight or system, the other seeds select it (leave-one-out,
//!   `observations::chosen_by_others`): the maximum of several would exceed any bound by selection alone.

use super::data::SettingView;
use super::observations::{Observations, SeedSample};
use crate::statistics::{RankTest, benjamini_hochberg, t_test_above, varies};
use terms::Estimate;

/// The rate of false discoveries and of wrong directions together.
const RATE: f64 = 0.05;

/// The fewest seeds that a verdict rests on.
const FEWEST_SEEDS: usize = 3;

/// A finding of a paper, with the criterion that tests it.
pub(super) struct PaperClaim {
    pub(super) finding: &'static str,
    pub(super) place: &'static str,
    pub(super) paper: &'static (dyn Fn() -> String + Send + Sync),
    pub(super) quantity: &'static str,
    pub(super) criterion: Criterion,
    /// The quantity in our results: a line for each task, pair or model that it is about.
    pub(super) measure: &'static (dyn Fn(&SettingView<'_>) -> Vec<ClaimLine> + Send + Sync),
}

/// Where a finding puts its quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Criterion {
    Above(f64),
    Below(f64),
    Within(f64, f64),
    /// A significant rank correlation, or a difference of two, by permutations of what is ranked.
    Ranks,
}

/// One quantity of a claim in our results.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClaimLine {
    /// The task, pair or model that it is about; empty where a claim has one line.
    pub(super) of: String,
    pub(super) evidence: Evidence,
    /// What it must differ from to mean anything.
    pub(super) controls: Vec<Control>,
    /// The paper's number of this very line.
    pub(super) paper: Option<String>,
}

/// A system that learned nothing, or chance, beside a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Control {
    /// What it is, such as `untrained`.
    name: &'static str,
    /// Its own score, in the quantity of the line or in what that rests on.
    value: SeedSample,
    /// By how much the trained system is better.
    advantage: SeedSample,
    /// Whether a verdict needs it: an absolute bound says nothing without it, a difference of two systems does.
    required: bool,
}

impl Control {
    /// A trained system beside a control system, both scored alike, better above. Without results of the control there is
    /// no verdict.
    pub(super) fn of(name: &'static str, trained: &Observations, control: &Observations) -> Self {
        let paired = trained.minus(control);
        let advantage = match paired.is_empty() {
            // The two have different factors, so that only seeds can be paired.
            true => trained.sample().minus(&control.sample()),
            false => paired.sample(),
        };
        Self { name, value: control.sample(), advantage, required: true }
    }

    /// The same where seeds are already summed up.
    pub(super) fn of_samples(
        name: &'static str,
        trained: &SeedSample,
        control: SeedSample,
        better: fn(f64, f64) -> f64,
    ) -> Self {
        Self { name, advantage: trained.with(&control, better), value: control, required: true }
    }

    /// The same shown by how much the trained system is better, where both are scored in another quantity than the line.
    pub(super) fn by_advantage(self) -> Self {
        Self { value: self.advantage.clone(), ..self }
    }

    /// One that is shown and counts where it was measured, and is not asked for elsewhere.
    pub(super) fn if_measured(self) -> Self {
        Self { required: false, ..self }
    }
}

impl ClaimLine {
    pub(super) fn new(of: impl Into<String>, evidence: Evidence) -> Self {
        Self { of: of.into(), evidence, controls: Vec::new(), paper: None }
    }

    pub(super) fn against(mut self, control: Control) -> Self {
        self.controls.push(control);
        self
    }

    /// With the paper's number of this line.
    pub(super) fn paper(mut self, paper: Option<String>) -> Self {
        self.paper = paper;
        self
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Evidence {
    /// The quantity, seed by seed; may be empty.
    Seeds(SeedSample),
    /// A correlation, seed by seed: tested on Fisher's z, where it is nearly normal.
    Correlations(SeedSample),
    /// A rank correlation, or a difference of two, with its permutation test.
    Ranks {
        /// `ρ` or `Δρ`.
        symbol: &'static str,
        /// The correlation and its p-values.
        test: RankTest,
        n: usize,
        /// The number of seeds behind each of them.
        seeds: usize,
    },
    /// A quantity, seed by seed, that compares so few languages that no permutation of them could be significant.
    TooFew(SeedSample),
    /// The quantity is undefined: its reference shows no effect itself.
    Void(&'static str),
    /// There are no other seeds to select the layer, weight or system by.
    OneSeed,
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The quantity meets the criterion.
    Holds,
    /// It lies on the other side.
    Fails,
    /// Neither is significant.
    Inconclusive,
    /// A system that learned nothing does as well.
    NotMeasured,
    /// There is no spread, or there are too few units, to judge by.
    NoTest,
    TwoSeeds,
    OneSeed,
    NotTested,
}

impl Verdict {
    pub(super) const ALL: [Self; 8] = [
        Self::Holds,
        Self::Fails,
        Self::Inconclusive,
        Self::NotMeasured,
        Self::NoTest,
        Self::TwoSeeds,
        Self::OneSeed,
        Self::NotTested,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotMeasured => "not measured",
            Verdict::NoTest => "no test",
            Verdict::TwoSeeds => "two seeds",
            Verdict::OneSeed => "one seed",
            Verdict::NotTested => "not tested",
        }
    }

    /// A sign beside the colour, for readers who do not see it.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Verdict::Holds => "\u{2713}",
            Verdict::Fails => "\u{2717}",
            Verdict::Inconclusive => "?",
            Verdict::NotMeasured => "=",
            Verdict::NoTest => "\u{2205}",
            Verdict::TwoSeeds => "2",
            Verdict::OneSeed => "1",
            Verdict::NotTested => "\u{2013}",
        }
    }

    /// For the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "fails",
            Verdict::Inconclusive => "inconclusive",
            Verdict::NotMeasured => "not-measured",
            Verdict::NoTest | Verdict::TwoSeeds | Verdict::OneSeed | Verdict::NotTested => {
                "not-tested"
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// The task, pair or model that it is about.
    pub(super) of: String,
    /// The estimate with its interval, or the correlation with its p; then the controls.
    pub(super) strength: String,
    /// The paper's number of this very line.
    pub(super) paper: Option<String>,
    /// The two-sided p-value, adjusted for all lines of the setting.
    pub(super) q: Option<f64>,
    /// The quantity, seed by seed; empty of rank correlations.
    pub(super) sample: SeedSample,
}

/// A line before all lines of its setting are known.
pub(super) struct Assessment {
    judgement: Judgement,
    /// The one-sided p-values of holding and of failing; of what is not measured 1, since it was looked at all the same.
    p: Option<[f64; 2]>,
    /// Whether they decide anything.
    open: bool,
}

/// Computes what a line shows, and its p-values.
pub(super) fn assess(criterion: Criterion, line: ClaimLine) -> Assessment {
    let ClaimLine { of, evidence, controls, paper } = line;
    let (mut verdict, mut strength, mut p) = of_evidence(criterion, &evidence);
    let shown = controls.iter().filter_map(Control::shown);
    let parts = [strength].into_iter().chain(shown).filter(|part| !part.is_empty());
    strength = parts.collect::<Vec<_>>().join("; ");
    if verdict.is_none() {
        verdict = controls.iter().find_map(Control::objection);
        // A finding holds, or fails, where this and every control are significant (intersection-union test).
        for control in controls.iter().filter_map(Control::p) {
            p = p.map(|[holds, fails]| {
                let worse = if control > 0.5 { 1.0 - control } else { control };
                [holds.max(control), fails.max(worse)]
            });
        }
    }
    // What is worse than an untrained encoder may still fail; what is as good is not tested.
    let open = p.is_some() && (verdict.is_none() || controls.iter().any(Control::is_worse));
    let verdict = verdict.unwrap_or(Verdict::Inconclusive);
    let sample = match evidence {
        Evidence::Seeds(sample) | Evidence::Correlations(sample) | Evidence::TooFew(sample) => {
            sample
        }
        _ => SeedSample::default(),
    };
    let p = match verdict {
        Verdict::Inconclusive => p,
        Verdict::NotMeasured => Some(p.filter(|_| open).unwrap_or([1.0, 1.0])),
        _ => None,
    };
    Assessment { judgement: Judgement { verdict, of, strength, paper, q: None, sample }, p, open }
}

/// Judges all lines of one setting together.
pub(super) fn judge(mut lines: Vec<Assessment>) -> Vec<Judgement> {
    let tested: Vec<(&mut Assessment, [f64; 2])> =
        lines.iter_mut().filter_map(|line| line.p.map(|p| (line, p))).collect();
    let two_sided = |[holds, fails]: [f64; 2]| (2.0 * holds.min(fails)).min(1.0);
    let p: Vec<f64> = tested.iter().map(|(_, p)| two_sided(*p)).collect();
    for ((line, [holds, fails]), q) in tested.into_iter().zip(benjamini_hochberg(&p)) {
        if line.open {
            line.judgement.q = Some(q);
            if q <= RATE {
                let holds = holds < fails;
                line.judgement.verdict = if holds { Verdict::Holds } else { Verdict::Fails };
            }
        }
    }
    lines.into_iter().map(|line| line.judgement.with_q()).collect()
}

impl Judgement {
    /// The adjusted p-value after the estimate, before the controls.
    fn with_q(mut self) -> Self {
        if let Some(q) = self.q {
            let at = self.strength.find(';').unwrap_or(self.strength.len());
            self.strength.insert_str(at, &format!(", {}", probability("q", q)));
        }
        self
    }
}

impl Control {
    /// Its score, in words.
    fn shown(&self) -> Option<String> {
        match self.value.mean() {
            Some(mean) => {
                let unspread = self.objection() == Some(Verdict::NoTest);
                let reason =
                    if unspread { ", the same distance in every seed: no test" } else { "" };
                Some(format!("{} {}{reason}", self.name, signed(mean.mean, 3)))
            }
            None => self.required.then(|| format!("no {} results", self.name)),
        }
    }

    /// The verdict where it does as well, or where it is missing.
    fn objection(&self) -> Option<Verdict> {
        let Some(advantage) = self.advantage.mean() else {
            return self.required.then_some(Verdict::NotMeasured);
        };
        match advantage.interval() {
            None => Some(Verdict::OneSeed),
            Some((low, _)) if low > 1e-9 => self.p().is_none().then_some(Verdict::NoTest),
            Some(_) => Some(Verdict::NotMeasured),
        }
    }

    /// Whether the trained system is significantly worse than this one.
    fn is_worse(&self) -> bool {
        let interval = self.advantage.mean().and_then(|mean| mean.interval());
        self.p().is_some() && interval.is_some_and(|(_, high)| high < -1e-9)
    }

    fn p(&self) -> Option<f64> {
        t_test_above(&self.advantage.values(), 0.0)
    }
}

/// A verdict that needs no test, what is shown, and the p-values of holding and failing.
type Tested = (Option<Verdict>, String, Option<[f64; 2]>);

fn of_evidence(criterion: Criterion, evidence: &Evidence) -> Tested {
    match evidence {
        Evidence::Nothing => (Some(Verdict::NotTested), String::new(), None),
        Evidence::OneSeed => {
            let reason = "no other seeds to select the layer, weight or system by";
            (Some(Verdict::OneSeed), reason.to_owned(), None)
        }
        Evidence::Void(reason) => (Some(Verdict::NotMeasured), (*reason).to_owned(), None),
        Evidence::Ranks { symbol, test: RankTest { rho, p, p_reverse, least }, n, seeds } => {
            let two_sided = (2.0 * p.min(*p_reverse)).min(1.0);
            let strength =
                format!("{symbol} = {}, n = {n}, {}", signed(*rho, 2), probability("p", two_sided));
            match few(*seeds) {
                None if 2.0 * least > RATE => {
                    let strength =
                        format!("{strength}, no test: no permutation of {n} reaches 5 %");
                    (Some(Verdict::NoTest), strength, None)
                }
                few => (few, strength, Some([*p, *p_reverse])),
            }
        }
        Evidence::TooFew(sample) => {
            let (verdict, strength, _) = of_seeds(criterion, sample, |value| value, |value| value);
            match few(sample.0.len()) {
                None => {
                    let reason =
                        "no test: seeds repeat the same languages, which are too few to permute";
                    (Some(Verdict::NoTest), format!("{strength}, {reason}"), None)
                }
                _ => (verdict, strength, None),
            }
        }
        Evidence::Seeds(sample) => of_seeds(criterion, sample, |value| value, |value| value),
        Evidence::Correlations(sample) => {
            let z = |r: f64| r.clamp(-0.999_999, 0.999_999).atanh();
            of_seeds(criterion, sample, z, f64::tanh)
        }
    }
}

fn few(seeds: usize) -> Option<Verdict> {
    match seeds {
        0 => Some(Verdict::NotTested),
        1 => Some(Verdict::OneSeed),
        n if n < FEWEST_SEEDS => Some(Verdict::TwoSeeds),
        _ => None,
    }
}

/// Tests values on a scale on which they are normal; `back` returns from it.
fn of_seeds(
    criterion: Criterion,
    sample: &SeedSample,
    scale: fn(f64) -> f64,
    back: fn(f64) -> f64,
) -> Tested {
    let values: Vec<f64> = sample.values().into_iter().map(scale).collect();
    let Some(mean) = Estimate::of(&values) else {
        return (Some(Verdict::NotTested), String::new(), None);
    };
    let value = signed(back(mean.mean), 3);
    let strength = match mean.interval() {
        None => value,
        Some((low, high)) => {
            format!("{value} [{}, {}], n = {}", signed(back(low), 3), signed(back(high), 3), mean.n)
        }
    };
    if let Some(few) = few(values.len()) {
        return (Some(few), strength, None);
    }
    if !varies(&values) {
        return (Some(Verdict::NoTest), format!("{strength}, no test: no spread"), None);
    }
    let above = |bound: f64| t_test_above(&values, scale(bound)).unwrap_or(1.0);
    let below = |bound: f64| 1.0 - above(bound);
    let p = match criterion {
        Criterion::Above(bound) => [above(bound), below(bound)],
        Criterion::Below(bound) => [below(bound), above(bound)],
        // Between two bounds: beyond neither (two one-sided tests). At the lower bound both "within" and "above" are on
        // its upper side, so that the three outcomes have the rate of a two-sided test.
        Criterion::Within(low, high) => [above(low).max(below(high)), below(low).min(above(high))],
        Criterion::Ranks => return (Some(Verdict::NotTested), String::new(), None),
    };
    (None, strength, Some(p))
}

pub(super) fn bounds(criterion: Criterion) -> Vec<f64> {
    match criterion {
        Criterion::Above(bound) | Criterion::Below(bound) => vec![bound],
        Criterion::Within(low, high) => vec![low, high],
        Criterion::Ranks => vec![0.0],
    }
}

pub(super) fn printed(criterion: Criterion) -> String {
    match criterion {
        Criterion::Above(bound) => format!("> {}", plain(bound)),
        Criterion::Below(bound) => format!("< {}", plain(bound)),
        Criterion::Within(low, high) => format!("between {} and {}", plain(low), plain(high)),
        Criterion::Ranks => "> 0 (permutation test)".to_owned(),
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

fn probability(name: &str, p: f64) -> String {
    if p < 0.001 { format!("{name} < 0.001") } else { format!("{name} = {p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> SeedSample {
        SeedSample(values.iter().enumerate().map(|(seed, value)| (seed as u64, *value)).collect())
    }

    fn line(values: &[f64]) -> ClaimLine {
        ClaimLine::new("", Evidence::Seeds(sample(values)))
    }

    fn alone(criterion: Criterion, line: ClaimLine) -> Judgement {
        judge(vec![assess(criterion, line)]).remove(0)
    }

    #[test]
    fn the_test_decides() {
        let verdict = |criterion, values: &[f64]| alone(criterion, line(values)).verdict;
        let near = [0.10, 0.12, 0.11];
        assert_eq!(verdict(Criterion::Above(0.0), &near), Verdict::Holds);
        assert_eq!(verdict(Criterion::Above(0.0), &[-0.10, -0.12, -0.11]), Verdict::Fails);
        assert_eq!(verdict(Criterion::Above(0.0), &[0.30, -0.10, 0.10]), Verdict::Inconclusive);
        assert_eq!(verdict(Criterion::Above(0.2), &near), Verdict::Fails);
        assert_eq!(verdict(Criterion::Below(0.2), &near), Verdict::Holds);
        assert_eq!(verdict(Criterion::Below(0.05), &near), Verdict::Fails);
        assert_eq!(verdict(Criterion::Within(0.05, 0.2), &near), Verdict::Holds);
        assert_eq!(verdict(Criterion::Within(0.2, 0.3), &near), Verdict::Fails);
        assert_eq!(verdict(Criterion::Above(0.0), &[]), Verdict::NotTested);
    }

    /// Seeds that agree to the last digit are no certainty: a score at its ceiling says nothing about how sure its mean is.
    #[test]
    fn what_has_no_spread_is_not_tested() {
        let judged = alone(Criterion::Above(0.0), line(&[0.3, 0.3, 0.1 + 0.2, 0.3]));
        assert_eq!(judged.verdict, Verdict::NoTest);
        assert_eq!(judged.strength, "0.300 [0.300, 0.300], n = 4, no test: no spread");
        let own = [0.85, 0.86, 0.84];
        let control =
            Control::of_samples("chance", &sample(&own), sample(&own.map(|x| x - 0.5)), |a, b| {
                a - b
            });
        let judged = alone(Criterion::Above(0.5), line(&own).against(control));
        assert_eq!((judged.verdict, judged.q), (Verdict::NoTest, None));
    }

    #[test]
    fn few_units_are_not_tested() {
        let ranked = |n: usize| {
            let items: Vec<f64> = (0..n).map(|item| item as f64).collect();
            let test = crate::statistics::rank_test(&[[items.clone(), items]]).unwrap();
            let evidence = Evidence::Ranks { symbol: "ρ", test, n, seeds: 4 };
            alone(Criterion::Ranks, ClaimLine::new("", evidence))
        };
        // Of 4! orders one is best: p = 2/24.
        let verdicts = [3, 4, 5].map(|n| ranked(n).verdict);
        assert_eq!(verdicts, [Verdict::NoTest, Verdict::NoTest, Verdict::Holds]);
        assert!(ranked(4).strength.ends_with("no permutation of 4 reaches 5 %"));
        let pairs = Evidence::TooFew(sample(&[0.30, 0.31, 0.29, 0.30]));
        let pairs = alone(Criterion::Above(0.0), ClaimLine::new("", pairs));
        assert_eq!(pairs.verdict, Verdict::NoTest);
        assert!(
            pairs.strength.starts_with("0.300 [0.287, 0.313], n = 4, no test"),
            "{}",
            pairs.strength
        );
    }

    #[test]
    fn two_seeds_give_no_verdict() {
        let one = alone(Criterion::Above(0.0), line(&[0.9]));
        assert_eq!((one.verdict, &*one.strength), (Verdict::OneSeed, "0.900"));
        assert_eq!(alone(Criterion::Above(0.0), line(&[0.9, 0.9])).verdict, Verdict::TwoSeeds);
    }

    /// t = 5.10 with two degrees of freedom: p = .018, a discovery alone and not among forty.
    #[test]
    fn one_of_many_lines_needs_more() {
        let lines = |noise: usize| {
            let noise = (0..noise).map(|_| line(&[0.1, -0.1, 0.02]));
            let lines = [line(&[0.10, 0.07, 0.14])].into_iter().chain(noise);
            let lines = lines.map(|line| assess(Criterion::Above(0.0), line)).collect();
            judge(lines).remove(0)
        };
        assert_eq!(lines(0).verdict, Verdict::Holds);
        assert_eq!(lines(40).verdict, Verdict::Inconclusive);
        assert!(lines(40).strength.contains("n = 3, q = "), "{}", lines(40).strength);
    }

    /// The same t decides alike on either side of its bound, beside whatever else: p = .003 among thirty-nine lines that hold.
    #[test]
    fn a_side_decides_nothing() {
        let judged = |side: f64| {
            let hold = (0..39).map(|_| line(&[0.10, 0.12, 0.11]));
            let one = line(&[0.30, 0.26, 0.36].map(|value| side * value));
            let lines = std::iter::once(one).chain(hold);
            judge(lines.map(|line| assess(Criterion::Above(0.0), line)).collect()).remove(0)
        };
        let (above, below) = (judged(1.0), judged(-1.0));
        assert_eq!((above.verdict, below.verdict), (Verdict::Holds, Verdict::Fails));
        assert_eq!(above.q, below.q);
        // One line of an only family needs p <= .05 in both directions together.
        let alone = |values: &[f64]| alone(Criterion::Above(0.0), line(values)).verdict;
        assert_eq!(alone(&[0.10, 0.06, 0.14]), Verdict::Holds);
        assert_eq!(alone(&[0.10, 0.04, 0.16]), Verdict::Inconclusive);
    }

    #[test]
    fn what_an_untrained_encoder_does_as_well_is_not_measured() {
        let judged = |untrained: &[f64]| {
            let trained = sample(&[0.85, 0.86, 0.84]);
            let control =
                Control::of_samples("untrained", &trained, sample(untrained), |a, b| a - b);
            alone(Criterion::Above(0.5), line(&[0.85, 0.86, 0.84]).against(control))
        };
        let as_well = judged(&[0.84, 0.87, 0.85]);
        assert_eq!(as_well.verdict, Verdict::NotMeasured);
        assert!(as_well.strength.ends_with("; untrained 0.853"), "{}", as_well.strength);
        assert_eq!(judged(&[0.1, 0.12, 0.11]).verdict, Verdict::Holds);
        // Better untrained: nothing that holds was learned.
        assert_eq!(judged(&[0.95, 0.96, 0.94]).verdict, Verdict::NotMeasured);
        let missing = judged(&[]);
        assert_eq!(missing.verdict, Verdict::NotMeasured);
        assert!(missing.strength.ends_with("; no untrained results"), "{}", missing.strength);
    }

    /// Trained layers fall where untrained ones are level: they do not rise.
    #[test]
    fn what_is_worse_than_untrained_can_fail() {
        let own = [-0.20, -0.21, -0.19];
        let control =
            Control::of_samples("untrained", &sample(&own), sample(&[0.0, 0.01, -0.01]), |a, b| {
                a - b
            });
        let judged = alone(Criterion::Above(0.0), line(&own).against(control));
        assert_eq!(judged.verdict, Verdict::Fails);
    }

    #[test]
    fn ranks_are_judged_by_chance() {
        let ranks = |rho, p, seeds| {
            let test = RankTest { rho, p, p_reverse: 1.0 - p, least: 0.001 };
            let evidence = Evidence::Ranks { symbol: "ρ", test, n: 10, seeds };
            alone(Criterion::Ranks, ClaimLine::new("", evidence))
        };
        assert_eq!(
            [0.01, 0.5, 0.99].map(|p| ranks(0.5, p, 3).verdict),
            [Verdict::Holds, Verdict::Inconclusive, Verdict::Fails]
        );
        assert_eq!(ranks(0.9, 0.001, 2).verdict, Verdict::TwoSeeds);
        let words = ranks(-0.5, 1e-6, 3).strength;
        assert!(words.starts_with("ρ = \u{2212}0.50, n = 10, p < 0.001"), "{words}");
    }

    /// Correlations are bounded, and so skewed: their mean is that of Fisher's z.
    #[test]
    fn correlations_are_tested_on_fishers_scale() {
        let line = |r: &[f64]| ClaimLine::new("", Evidence::Correlations(sample(r)));
        let high = alone(Criterion::Above(0.9), line(&[0.98, 0.97, 0.99]));
        assert_eq!(high.verdict, Verdict::Holds);
        // (atanh .98 + atanh .97 + atanh .99) / 3 = 2.3455, whose tanh is .98181.
        assert!(high.strength.starts_with("0.982 ["), "{}", high.strength);
        assert_eq!(alone(Criterion::Above(0.9), line(&[0.5, 0.6, 0.55])).verdict, Verdict::Fails);
    }
}
