//! Figures and tables of the page: number, address, title, caption, and the files that can be saved.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::draw::{Figure, escaped};
use crate::export;
use crate::report::exhibit::{CaptionedItem, ItemContent, ReportTable};
use crate::report::table::rows;
use crate::report::tokens;

/// Figures and tables are numbered through the page.
#[derive(Default)]
pub(super) struct ItemNumbers {
    figures: usize,
    tables: usize,
}

/// A figure, a table or sentences, with what they replicate.
pub(super) fn exhibit(html: &mut String, exhibit: &CaptionedItem, numbers: &mut ItemNumbers) {
    let CaptionedItem { place, caption, content, .. } = exhibit;
    match content {
        ItemContent::Figure(drawn) => figure(html, ("h4", drawn), &place.text, caption, numbers),
        ItemContent::Table(tabulated) => table(html, tabulated, &place.text, caption, numbers),
        ItemContent::Sentences(sentences) => {
            let (id, caption) = table_head(&place.text, caption, "", numbers);
            let _ = writeln!(
                html,
                "<figure class=\"tabular\" id=\"{id}\">{caption}{}</figure>",
                tokens::html(sentences)
            );
        }
    }
}

/// A figure: title above as a heading, panels at one scale, caption and downloads below.
pub(super) fn figure(
    html: &mut String,
    (heading, figure): (&str, &Figure),
    place: &str,
    caption: &str,
    numbers: &mut ItemNumbers,
) {
    numbers.figures += 1;
    let place = if place.is_empty() { String::new() } else { format!("{}. ", escaped(place)) };
    let _ = writeln!(
        html,
        "<figure id=\"{id}\"><{heading}>{}</{heading}>\n{}<figcaption><a class=\"number\" href=\"#{id}\">Figure {}</a> <b>{place}</b>{} {}</figcaption></figure>",
        escaped(&figure.title),
        figure.html(),
        numbers.figures,
        escaped(caption),
        downloads(figure),
        id = figure.id,
    );
}

/// A table with its caption; one that is wider than a page says so.
pub(super) fn table(
    html: &mut String,
    table: &ReportTable,
    place: &str,
    caption: &str,
    numbers: &mut ItemNumbers,
) {
    let csv = link(
        "CSV",
        &format!("table-{}.csv", numbers.tables + 1),
        "text/csv",
        table.csv().as_bytes(),
    );
    let files = format!("<span class=\"files\">{csv}</span>");
    let (id, head) = table_head(place, caption, &files, numbers);
    let wide = table.is_wide();
    let _ = writeln!(
        html,
        "<figure class=\"tabular\" id=\"{id}\">{head}<p class=\"cue{}\">Wider than this page: scroll the table sideways.</p>\
         <div class=\"scroll{}\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div></figure>",
        if wide { " wide" } else { "" },
        if wide { " wide" } else { "" },
        escaped(place),
        rows(table)
    );
}

/// The identifier and the caption of a table.
fn table_head(
    place: &str,
    caption: &str,
    files: &str,
    numbers: &mut ItemNumbers,
) -> (String, String) {
    numbers.tables += 1;
    // A section is named after the study `table-1`.
    let id = format!("shown-table-{}", numbers.tables);
    let head = format!(
        "<figcaption><a class=\"number\" href=\"#{id}\">Table {}</a> <b>{}.</b> {} {files}</figcaption>",
        numbers.tables,
        escaped(place),
        escaped(caption)
    );
    (id, head)
}

/// The figure as files, within the page.
fn downloads(figure: &Figure) -> String {
    let svg = figure.svg();
    let mut links = link("SVG", &format!("{}.svg", figure.id), "image/svg+xml", svg.as_bytes());
    // A drawing of ours can always be converted; were one not, the SVG is still there.
    if let Ok(pdf) = export::pdf(&svg) {
        links += &link("PDF", &format!("{}.pdf", figure.id), "application/pdf", &pdf);
    }
    links += &link("CSV", &format!("{}.csv", figure.id), "text/csv", figure.csv().as_bytes());
    format!("<span class=\"files\">{links}</span>")
}

fn link(name: &str, file: &str, kind: &str, content: &[u8]) -> String {
    format!(
        " <a download=\"{}\" aria-label=\"{name}, {}\" href=\"data:{kind};base64,{}\">{name}</a>",
        escaped(file),
        escaped(file),
        STANDARD.encode(content)
    )
}
