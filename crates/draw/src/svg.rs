//! SVG shapes that all charts share.

use std::fmt::Write as _;

/// Text with markup escaped and without characters that XML does not allow.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{0}'..='\u{8}'
            | '\u{b}'
            | '\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}

pub(super) fn text(out: &mut String, (x, y): (f64, f64), class: &str, text: &str) {
    let _ =
        writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text));
}

pub(super) fn line(out: &mut String, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

/// The label of a tick, moved where it would leave the panel.
pub(super) fn tick_label(out: &mut String, (x, y): (f64, f64), label: &str) {
    // Figures of equal width in the widest of the usual fonts.
    let half = 3.6 * label.chars().count() as f64 + 1.0;
    let x = x.clamp(half, super::PANEL_WIDTH - half);
    text(out, (x, y), "small middle", label);
}

/// The dots of seeds, as one path: a stroke without length has the shape of its cap.
pub(super) fn seeds(places: impl Iterator<Item = (f64, f64)>, class: &str) -> String {
    let path: String = places.map(|(x, y)| format!("M{x:.1} {y:.1}h.01")).collect();
    if path.is_empty() { path } else { format!("<path class=\"{class}\" d=\"{path}\"/>") }
}

/// The hollow diamond of a paper's numbers.
pub(super) fn diamond(x: f64, y: f64) -> String {
    format!("<path class=\"paper\" d=\"M{x:.1} {:.1}l4.5 4.5l-4.5 4.5l-4.5 -4.5z\"/>", y - 4.5)
}

/// A point of a series; its shape differs by colour, so that series can be told apart without colour.
pub(super) fn marker(series: usize, x: f64, y: f64) -> String {
    let path = |d: &str| format!("<path class=\"marker\" d=\"M{x:.1} {y:.1}{d}\"/>");
    match series % 5 {
        0 => format!("<circle class=\"marker\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"),
        1 => path("m-3.4 -3.4h6.8v6.8h-6.8z"),
        2 => path("m0 -4.4l4.2 7.4h-8.4z"),
        3 => path("m0 -4.6l4.6 4.6l-4.6 4.6l-4.6 -4.6z"),
        _ => path("m0 4.4l4.2 -7.4h-8.4z"),
    }
}

/// The approximate width of a label at 12 pixels.
pub(super) fn width(text: &str) -> f64 {
    let wide = |c: char| if c as u32 > 0x2e80 { 12.0 } else { 6.5 };
    text.chars().map(wide).sum()
}

/// The title of a panel in lines that are no wider than it: bolder type than `wrapped` is for.
pub(super) fn title_lines(text: &str) -> Vec<String> {
    wrapped(text, 0.76 * (super::PANEL_WIDTH - 12.0))
}

/// Text in lines of small type that are no wider than this.
pub(super) fn wrapped(text: &str, available: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            // Small type is narrower than the 12 pixels that `width` is for.
            Some(line) if 0.87 * (width(line) + width(word)) + 3.0 < available => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A name truncated to a width; the tooltip has all of it.
pub(super) fn fitting(name: &str, available: f64) -> String {
    if width(name) <= available {
        return name.to_owned();
    }
    let mut short = String::new();
    for c in name.chars() {
        if width(&short) + 20.0 > available {
            break;
        }
        short.push(c);
    }
    short + "…"
}
