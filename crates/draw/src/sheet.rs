//! The style sheet of a file of its own. In a page, colours are variables that follow the reader's scheme; renderers other than
//! browsers know no variables (`rsvg-convert`, CairoSVG, `usvg`, Illustrator), and would paint black. A file has literal colours.

use super::{COLOURS, STYLE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourScheme {
    Light,
    Dark,
}

/// The rules of the style sheet that a drawing uses, without variables and without media queries.
pub(super) fn literal_sheet(drawn: &str, scheme: ColourScheme) -> String {
    let uses = |class: &str| {
        let class = class.trim_start_matches('.');
        drawn.split("class=\"").skip(1).any(|rest| {
            rest.split('"').next().unwrap_or_default().split(' ').any(|own| own == class)
        })
    };
    let colours: Vec<usize> = (0..COLOURS).filter(|colour| uses(&format!("c{colour}"))).collect();
    let mut sheet = String::new();
    for (selector, body) in rules() {
        let declarations = body.split(';').map(str::trim).filter(|one| !one.is_empty());
        let kept: Vec<&str> = declarations.filter(|one| !one.starts_with("--")).collect();
        let class = selector.trim_start_matches(".isogloss ");
        if kept.is_empty() || (class.starts_with('.') && class != ".isogloss" && !uses(class)) {
            continue;
        }
        let body = kept.join("; ");
        if body.contains("var(--c)") {
            // The colour of a series: inherited in a page, a rule for each colour in a file.
            for &colour in &colours {
                let own = body.replace("var(--c)", &format!("var(--c{colour})"));
                sheet.push_str(&format!(".c{colour}{class}, .c{colour} {class} {{ {own} }}\n"));
            }
        } else {
            sheet.push_str(&format!("{selector} {{ {body} }}\n"));
        }
    }
    literal(&sheet, scheme)
}

/// A text with the value of every variable in its place.
pub(super) fn literal(text: &str, scheme: ColourScheme) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("var(--") {
        out.push_str(before);
        let (name, after) = after.split_once(')').unwrap_or((after, ""));
        out.push_str(value(name, scheme));
        rest = after;
    }
    out + rest
}

fn value(name: &str, scheme: ColourScheme) -> &'static str {
    let block = match scheme {
        ColourScheme::Light => STYLE.split("@media").next(),
        ColourScheme::Dark => STYLE.split("@media").nth(1),
    };
    let start = format!("--{name}:");
    let declared = block.unwrap_or_default().split([';', '{']).map(str::trim);
    let own = declared.filter_map(|one| one.strip_prefix(&*start)).next();
    own.unwrap_or_else(|| panic!("--{name} is a variable of draw/style.css")).trim()
}

/// Selectors and bodies, those within media queries left out.
fn rules() -> Vec<(&'static str, &'static str)> {
    let (before, media) = STYLE.split_once("@media").expect("the sheet has a dark scheme");
    // The query ends with a brace of its own on a line.
    let (_, after) = media.split_once("\n}\n").expect("a media query ends on a line of its own");
    let parsed = |text: &'static str| {
        text.split('}').filter_map(|rule| rule.split_once('{')).map(|(a, b)| (a.trim(), b.trim()))
    };
    parsed(before).chain(parsed(after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_literal_colours_in_both_schemes() {
        let drawn = "<g class=\"c3\"><path class=\"line strong\"/></g><rect class=\"ground\"/>";
        let sheet = |scheme| literal_sheet(drawn, scheme);
        let (light, dark) = (sheet(ColourScheme::Light), sheet(ColourScheme::Dark));
        for sheet in [&light, &dark] {
            assert!(
                !sheet.contains("var(") && !sheet.contains("--") && !sheet.contains('@'),
                "{sheet}"
            );
            assert_eq!(sheet.matches('{').count(), sheet.matches('}').count());
        }
        assert!(light.contains(".c3.line, .c3 .line { stroke: #b8578f") && !light.contains(".c4"));
        assert!(!light.contains(".band") && light.contains(".strong"), "{light}");
        assert!(light.contains(".isogloss .ground { fill: #fff }"), "{light}");
        assert!(dark.contains(".isogloss .ground { fill: #14171b }"), "{dark}");
        assert_eq!(literal("fill:var(--ink)", ColourScheme::Light), "fill:#1d2126");
    }
}
