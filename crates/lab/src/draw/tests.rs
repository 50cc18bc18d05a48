//! Figures are well-formed, escape every name, and have every value in their text alternative.

use roxmltree::Document;

use super::*;

fn figure() -> Figure {
    let bar = |value, paper| Bar {
        value,
        paper,
        interval: value.map(|v: f64| (v - 0.1, v + 0.1)),
        colour: 9,
    };
    let bars = BarChart {
        title: "a <b> & \"c\"".into(),
        unit: "F1\u{0}".into(),
        groups: vec![
            BarGroup { name: "no-anchors".into(), bars: vec![bar(Some(0.5), Some(0.7))] },
            BarGroup {
                name: "a name that is far too long for the width".into(),
                bars: vec![bar(None, None)],
            },
        ],
        reach: Some(1.0),
    };
    let points = |values: &[f64]| {
        let point = |(x, &y): (usize, &f64)| ChartPoint {
            x: x as f64,
            y,
            interval: Some((y - 0.05, y + 0.05)),
        };
        values.iter().enumerate().map(point).collect()
    };
    let lines = LineChart {
        title: "layers".into(),
        across: "layer".into(),
        unit: "P@1".into(),
        lines: vec![
            LineSeries { name: "bilingual".into(), colour: 0, points: points(&[0.1, 0.4, 0.2]) },
            LineSeries { name: "fasttext".into(), colour: 1, points: points(&[0.3]) },
            LineSeries { name: "nothing".into(), colour: 2, points: vec![] },
        ],
        from_zero: true,
    };
    let heat = Heatmap {
        title: "map".into(),
        down: ("layer".into(), vec!["0".into(), "<1>".into()]),
        across: ("weight".into(), vec!["1".into(), "2".into()]),
        values: vec![vec![Some(1.0), Some(0.0)], vec![None, Some(-0.034)]],
        range: (0.0, 1.0),
    };
    Figure {
        id: "test".into(),
        title: "One & all".into(),
        legend: vec![
            LegendEntry { name: "ours".into(), mark: SeriesMark::Bar(0) },
            LegendEntry { name: "line".into(), mark: SeriesMark::Line(8) },
            LegendEntry { name: "paper".into(), mark: SeriesMark::Paper },
        ],
        panels: vec![bars.panel(), lines.panel(), heat.panel(), BarChart::default().panel()],
    }
}

#[test]
fn a_file_is_whole_and_says_what_it_shows() {
    let svg = figure().svg();
    let document = Document::parse(&svg).unwrap();
    let desc = document.descendants().find(|node| node.has_tag_name("desc")).unwrap();
    let words = desc.text().unwrap();
    for part in ["no-anchors 0.50", "bilingual 0.10, 0.40, 0.20", "<1>: none, \u{2212}0.03"] {
        assert!(words.contains(part), "{part} in {words}");
    }
    assert!(!svg.contains("var(") && svg.contains(">\u{2212}.03<"), "{svg}");
    let dark = figure().svg_in(ColourScheme::Dark);
    assert!(dark.contains("#14171b") && !svg.contains("#14171b }"), "{dark}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

/// Every value is in the CSV, under names that a notebook can read.
#[test]
fn numbers_are_beside_the_drawing() {
    let csv = figure().csv();
    assert!(
        csv.starts_with("panel,unit,group,series,value,low,high,paper,across,x,down\n"),
        "{csv}"
    );
    assert!(csv.contains("layers,P@1,,bilingual,0.4,0.35,0.45,,layer,1,\n"), "{csv}");
    assert!(csv.contains("map,,,,-0.034,,,,2,,<1>\n"), "{csv}");
}

/// A strict renderer paints more than black on white.
#[test]
fn files_have_colours_in_a_strict_renderer() {
    let whole = figure();
    for panel in &whole.panels {
        let one = Figure { panels: vec![panel.clone()], legend: vec![], ..whole.clone() };
        assert!(colours(&one.svg()) > usize::from(!panel.data.is_empty()), "{}", panel.description);
        assert!(crate::export::pdf(&one.svg()).unwrap().starts_with(b"%PDF-"));
    }
}

/// How many colours, that is pixels that are no shade of grey, a drawing has.
fn colours(svg: &str) -> usize {
    let png = crate::export::png(svg, 1.0).unwrap();
    let picture = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
    let grey = |a: u8, b: u8| a.abs_diff(b) < 24;
    let coloured = picture.pixels().iter().map(|pixel| pixel.demultiply());
    let coloured = coloured.filter(|p| !(grey(p.red(), p.green()) && grey(p.green(), p.blue())));
    coloured.map(|p| (p.red(), p.green(), p.blue())).collect::<std::collections::HashSet<_>>().len()
}

#[test]
fn a_page_gets_panels_that_are_named() {
    let html = format!("<div>{}</div>", figure().html());
    let document = Document::parse(&html).unwrap();
    let panels: Vec<_> =
        document.descendants().filter(|node| node.attribute("role") == Some("img")).collect();
    assert_eq!(panels.len(), 4);
    for panel in panels {
        let name = panel.attribute("aria-labelledby").unwrap();
        assert!(document.descendants().any(|node| node.attribute("id") == Some(name)));
    }
}

#[test]
fn bars_end_where_their_values_are() {
    let bar = |value| Bar { value: Some(value), ..Bar::default() };
    let group = |value| BarGroup { name: "x".into(), bars: vec![bar(value)] };
    let panel =
        BarChart { groups: vec![group(1.0), group(0.5), group(-0.5)], ..BarChart::default() }
            .panel();
    let svg = format!("<svg>{}</svg>", panel.body);
    let document = Document::parse(&svg).unwrap();
    let rects = document.descendants().filter(|node| node.has_tag_name("rect"));
    let read =
        |node: roxmltree::Node<'_, '_>, name| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let bars: Vec<(f64, f64)> = rects.map(|node| (read(node, "x"), read(node, "width"))).collect();
    let [whole, half, below] = bars[..] else { panic!("{bars:?}") };
    assert!((whole.1 - 2.0 * half.1).abs() < 0.21 && (below.1 - half.1).abs() < 0.21, "{bars:?}");
    assert!(
        (whole.0 - half.0).abs() < 0.11 && (below.0 + below.1 - whole.0).abs() < 0.21,
        "{bars:?}"
    );
}
