//! The few shapes that all drawings are made of.

use std::fmt::Write as _;

/// Text in which nothing is taken for markup, and nothing is that XML cannot hold.
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

/// The hollow diamond of numbers that are not ours.
pub(super) fn diamond(x: f64, y: f64) -> String {
    format!("<path class=\"paper\" d=\"M{x:.1} {:.1}l4.5 4.5l-4.5 4.5l-4.5 -4.5z\"/>", y - 4.5)
}

/// A point of a series, of another shape for each colour, so that colour is not all there is.
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

/// About how wide a label is at 12 pixels.
pub(super) fn width(text: &str) -> f64 {
    let wide = |c: char| if c as u32 > 0x2e80 { 12.0 } else { 6.5 };
    text.chars().map(wide).sum()
}

/// A name cut to the room that there is; the whole one stays in what a pointer shows.
pub(super) fn fitting(name: &str, room: f64) -> String {
    if width(name) <= room {
        return name.to_owned();
    }
    let mut short = String::new();
    for c in name.chars() {
        if width(&short) + 20.0 > room {
            break;
        }
        short.push(c);
    }
    short + "…"
}
