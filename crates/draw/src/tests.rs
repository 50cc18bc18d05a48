//! Figures are well-formed, escape every name, and have every value in their text alternative.

use roxmltree::Document;

use super::*;

fn figure() -> Figure {
    let mark = |value: Option<f64>, paper| DotMark {
        series: "ours".into(),
        seeds: value.into_iter().flat_map(|v| [v - 0.1, v + 0.1]).collect(),
        value,
        paper,
        interval: value.map(|v: f64| (v - 0.1, v + 0.1)),
        colour: 9,
        dashed: false,
    };
    let dots = DotChart {
        title: "a <b> & \"c\"".into(),
        unit: "F1\u{0}".into(),
        rows: vec![
            DotRow { name: "no-anchors".into(), marks: vec![mark(Some(0.5), Some(0.7))] },
            DotRow {
                name: "a name that is far too long for the width of a panel of a page".into(),
                marks: vec![mark(None, None)],
            },
        ],
        reach: Some(1.0),
        references: vec![ReferenceLine { name: "chance".into(), value: 0.25 }],
    };
    let points = |values: &[f64]| {
        let point = |(x, &y): (usize, &f64)| ChartPoint {
            x: x as f64,
            y,
            interval: Some((y - 0.05, y + 0.05)),
            seeds: vec![y - 0.03, y + 0.03],
        };
        values.iter().enumerate().map(point).collect()
    };
    let line = |name: &str, colour: usize, values: &[f64]| LineSeries {
        name: name.into(),
        colour,
        dashed: name == "fasttext",
        points: points(values),
    };
    let lines = LineChart {
        title: "layers".into(),
        across: "layer".into(),
        unit: "P@1".into(),
        lines: vec![
            line("bilingual", 0, &[0.1, 0.4, 0.2]),
            line("fasttext", 1, &[0.3]),
            line("nothing", 2, &[]),
        ],
        from_zero: true,
        ..LineChart::default()
    };
    let heat = Heatmap {
        title: "map".into(),
        down: ("layer".into(), vec!["0".into(), "<1>".into()]),
        across: ("weight".into(), vec!["1".into(), "2".into()]),
        values: vec![vec![Some(1.0), Some(0.0)], vec![None, Some(-0.034)]],
        range: (0.0, 1.0),
    };
    let charts = [
        Chart::Dots(dots),
        Chart::Lines(lines.clone()),
        Chart::Lines(LineChart { highest_only: true, ..lines }),
        Chart::Heat(heat),
        Chart::Dots(DotChart::default()),
    ];
    Figure::of("test".into(), "One & all".into(), &charts)
}

/// What is not drawn is not in the legend.
#[test]
fn legends_name_the_marks_that_are_drawn() {
    let names: Vec<String> = figure().legend.into_iter().map(|entry| entry.name).collect();
    let expected =
        ["ours", "bilingual", "fasttext", "one seed", "mean", "95 % interval", "the paper"];
    assert_eq!(names, expected);
}

/// Of many lines the highest is in colour, and every line is named at its end.
#[test]
fn the_highest_of_many_lines_stands_out() {
    let body = &figure().panels[2].body;
    assert_eq!(body.matches("class=\"muted\"").count(), 2, "{body}");
    assert!(
        body.contains("class=\"small strong word c0\"") && body.contains(">fasttext<"),
        "{body}"
    );
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

/// In a narrow place panels stand below one another, and none is cut off.
#[test]
fn a_narrow_figure_has_all_panels_below_one_another() {
    let figure = Figure { title: "A title of many words ".repeat(6), ..figure() };
    let widest = figure.panels.iter().map(|panel| panel.width).fold(0.0, f64::max);
    let svg = figure.svg_within(ColourScheme::Light, widest + 2.0 * GAP);
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    assert!(size("width") <= widest + 2.0 * GAP + 40.0, "{}", size("width"));
    let tall: f64 = figure.panels.iter().map(|panel| panel.height).sum();
    assert!(size("height") > tall && figure.svg_within(ColourScheme::Light, 1e9) == figure.svg());
}

/// What has no rule is painted black.
pub(crate) fn classes_have_rules(svg: &str) {
    for class in svg.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        for one in class.split(' ') {
            assert!(STYLE.contains(&format!(".{one} {{")), "`{one}` of {class}");
        }
    }
}

#[test]
fn every_class_has_a_rule() {
    classes_have_rules(&figure().svg());
}

/// Every value is in the CSV, under names that a notebook can read.
#[test]
fn numbers_are_beside_the_drawing() {
    let csv = figure().csv();
    assert!(
        csv.starts_with("panel,unit,row,series,value,low,high,seeds,paper,across,x,down\n"),
        "{csv}"
    );
    assert!(csv.contains("layers,P@1,,bilingual,0.4,0.35,0.45,0.37 0.43,,layer,1,\n"), "{csv}");
    assert!(csv.contains("map,,,,-0.034,,,,,2,,<1>\n"), "{csv}");
}

/// A strict renderer paints more than black on white.
#[test]
fn files_have_colours_in_a_strict_renderer() {
    let whole = figure();
    for panel in &whole.panels {
        let one = Figure { panels: vec![panel.clone()], legend: vec![], ..whole.clone() };
        let shades = crate::colours(&crate::png(&one.svg(), 1.0).unwrap());
        assert!(
            shades > 1 || panel.data.is_empty(),
            "{shades}: {}, {:?}",
            panel.description,
            panel.data
        );
        assert!(crate::pdf(&one.svg()).unwrap().starts_with(b"%PDF-"));
    }
}

#[test]
fn a_page_gets_panels_that_are_named() {
    let html = format!("<div>{}</div>", figure().html());
    let document = Document::parse(&html).unwrap();
    let panels: Vec<_> =
        document.descendants().filter(|node| node.attribute("role") == Some("img")).collect();
    assert_eq!(panels.len(), 5);
    for panel in panels {
        let name = panel.attribute("aria-labelledby").unwrap();
        assert!(document.descendants().any(|node| node.attribute("id") == Some(name)));
    }
}

#[test]
fn dots_are_where_their_values_are() {
    let mark = |value| DotMark { seeds: vec![value], ..DotMark::default() };
    let row = |value| DotRow { name: "x".into(), marks: vec![mark(value)] };
    let chart = DotChart { rows: vec![row(1.0), row(0.5), row(-0.5)], ..DotChart::default() };
    let svg = format!("<svg>{}</svg>", chart.panel().body);
    let document = Document::parse(&svg).unwrap();
    let dots = document.descendants().filter(|node| node.attribute("class") == Some("seed"));
    let place = |path: &str| path[1..].split(' ').next().unwrap().parse().unwrap();
    let x: Vec<f64> = dots.map(|node| place(node.attribute("d").unwrap())).collect();
    let [whole, half, below] = x[..] else { panic!("{x:?}") };
    assert!((whole - half - (half - below) / 2.0).abs() < 0.21, "{x:?}");
}
