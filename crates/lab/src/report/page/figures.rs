//! Figures and tables of the page: number, address, title, caption, and the files that can be saved.
//!
//! A file is within the page, compressed, since a PDF carries its fonts; `page.js` unpacks it when it is asked for.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;

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
    let name = format!("table-{}.csv", numbers.tables + 1);
    let files = files(&[("CSV", &*name, "text/csv", table.csv().as_bytes())]);
    let (id, head) = table_head(place, caption, &files, numbers);
    let (open, close) = match table.is_long() {
        true => {
            let summary = format!("All {} rows", table.rows.len());
            (format!("<details class=\"long\"><summary>{summary}</summary>"), "</details>")
        }
        false => (String::new(), ""),
    };
    let _ = writeln!(
        html,
        "<figure class=\"tabular\" id=\"{id}\">{head}{open}<p class=\"cue\">Wider than this page: scroll the table sideways.</p>\
         <div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>{close}</figure>",
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
    let (svg, csv) = (figure.svg(), figure.csv());
    // A drawing of ours can always be converted; were one not, the SVG is still there.
    let pdf = export::pdf(&svg).ok();
    let named = |ending: &str| format!("{}.{ending}", figure.id);
    let names = ["svg", "pdf", "csv"].map(named);
    let mut all = vec![("SVG", &*names[0], "image/svg+xml", svg.as_bytes())];
    all.extend(pdf.iter().map(|pdf| ("PDF", &*names[1], "application/pdf", &pdf[..])));
    all.push(("CSV", &names[2], "text/csv", csv.as_bytes()));
    files(&all)
}

/// Buttons that save files: kind, name, media type, content.
pub(super) fn files(all: &[(&str, &str, &str, &[u8])]) -> String {
    let link = |(kind, name, media, content): &(&str, &str, &str, &[u8])| {
        let name = escaped(name);
        format!(
            " <button type=\"button\" aria-label=\"{kind}: save {name}\" data-name=\"{name}\" data-media=\"{media}\" data-file=\"{}\">{kind}</button>",
            STANDARD.encode(deflated(content))
        )
    };
    format!("<span class=\"files\">{}</span>", all.iter().map(link).collect::<String>())
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(content).and_then(|()| packed.finish()).expect("memory can be written to")
}
