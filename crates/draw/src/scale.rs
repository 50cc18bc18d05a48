//! Axis scales: round ends and ticks.

/// A range of values mapped to a range of coordinates.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl AxisScale {
    /// A scale whose ends are round.
    pub(super) fn new((low, high): (f64, f64), from: f64, to: f64) -> Self {
        Self { low, high, from, to }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// About so many round values across the scale, with their labels.
    pub(super) fn ticks(&self, about: usize) -> Vec<(f64, String)> {
        let step = step(self.high - self.low, about);
        let digits = (-step.log10().floor()).max(0.0) as usize;
        // A step such as 0.25 needs one digit more than its order of magnitude.
        let odd = (step * 10_f64.powi(digits as i32)).fract().abs() > 1e-6;
        let digits = digits + usize::from(odd);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last)
            .map(|number| number as f64 * step)
            .map(|value| (value, label(value, digits)))
            .collect()
    }
}

/// A range limited to 0 to 1 where all values are shares: intervals of few seeds reach beyond, and would compress the
/// axis.
pub(super) fn of_shares(
    (low, high): (f64, f64),
    mut values: impl Iterator<Item = f64>,
) -> (f64, f64) {
    match values.all(|value| (0.0..=1.0).contains(&value)) {
        true => (low.max(0.0), high.min(1.0)),
        false => (low, high),
    }
}

/// The range of these values, widened to round ends; always some range, and 0 in it where asked for.
pub(super) fn range(values: impl Iterator<Item = f64>, zero: bool) -> (f64, f64) {
    let start = if zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
    let (low, high) =
        values.fold(start, |(low, high), one| (f64::min(low, one), f64::max(high, one)));
    if !low.is_finite() || !high.is_finite() {
        return (0.0, 1.0);
    }
    let wide = if high - low < 1e-9 { (0.1 * high.abs()).max(0.1) } else { high - low };
    let step = step(wide, 5);
    let high = if high - low < 1e-9 { high + wide } else { high };
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}

/// A round step that cuts a width into about so many.
fn step(width: f64, about: usize) -> f64 {
    let raw = width / about.max(1) as f64;
    let size = 10_f64.powf(raw.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|nice| nice * size >= raw * 0.999);
    nice.unwrap_or(10.0) * size
}

fn label(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// A value as a label: two digits, and a minus sign (U+2212).
pub(super) fn shown(value: f64) -> String {
    label(value, 2)
}

/// The label of a level such as chance: three digits where two would hide it.
pub(super) fn level_label(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        small if small.abs() < 0.0095 => label(small, 3).replacen("0.", ".", 1),
        value => short(value),
    }
}

/// Two digits, without the leading zero of a share: `.79`.
pub fn short(value: f64) -> String {
    let text = shown(value);
    match value.abs() < 0.995 {
        true => text.replacen("0.", ".", 1),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let labels = |low, high| {
            let scale = AxisScale::new(range([low, high].into_iter(), false), 0.0, 100.0);
            scale.ticks(6).into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(
            labels(-0.11, 0.12),
            ["\u{2212}0.15", "\u{2212}0.10", "\u{2212}0.05", "0.00", "0.05", "0.10", "0.15"]
        );
        assert_eq!(labels(3.0, 3.0).first().unwrap(), "3.00");
        assert_eq!(range(std::iter::empty(), false), (0.0, 1.0));
    }
}
