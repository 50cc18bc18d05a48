//! Figures of made-up spaces: strict XML, colours, texts, and no claim that the numbers do not bear.

use ::shift::shifter::ShiftKind;
use ::shift::translate::{OutputSubword, TokenTranslation, TranslatedSentence, TranslationResult};
use arrays::Matrix;

use super::*;

/// Numbers that look random.
fn noise(rows: usize, dim: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..rows * dim).map(|_| next()).collect()
}

/// Two languages whose pairs differ by noise, a distance apart along the first axis.
fn space(distance: f32, difference: f32) -> [Matrix; 2] {
    let shared = noise(60, 5, 1);
    [0.0, distance].map(|offset| {
        let own = noise(60, 5, 2 + offset.to_bits() as u64);
        let values = shared.iter().zip(own).enumerate();
        let value = |(at, (&shared, own)): (usize, (&f32, f32))| {
            shared + difference * own + if at % 5 == 0 { offset } else { 0.0 }
        };
        Matrix::new(60, 5, values.map(value).collect())
    })
}

fn layered(raw: Vec<f64>, distances: &[f32]) -> LayeredSpace {
    let each = distances.iter().map(|&distance| space(distance, 0.1));
    let (a, b): (Vec<Matrix>, Vec<Matrix>) = each.map(|[a, b]| (a, b)).unzip();
    let share = a.iter().zip(&b).map(|(a, b)| geometry::projection::variance_between(&[a, b]));
    LayeredSpace {
        model: "a model".to_owned(),
        languages: ["qaa".to_owned(), "qab".to_owned()],
        numbers: (0..distances.len()).collect(),
        language_share: share.collect(),
        states: [a, b],
        lengths: [vec![5; 60], vec![6; 60]],
        candidates: 60,
        raw,
        untrained: None,
    }
}

fn is_a_picture(figure: &SpaceFigure) {
    for scheme in [ColourScheme::Light, ColourScheme::Dark] {
        let svg = figure.svg_in(scheme);
        let document =
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
        assert!(!svg.contains("var(") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let text: String = document.descendants().filter_map(|node| node.text()).collect();
        assert!(text.contains(&figure.figure.title));
        crate::tests::classes_have_rules(&svg);
        let colours = crate::colours(&crate::png(&svg, 1.0).unwrap());
        assert!(colours > 1, "{}", figure.figure.id);
    }
    let page = format!("<div>{}</div>", figure.figure.html());
    roxmltree::Document::parse(&page).unwrap_or_else(|error| panic!("{error}\n{page}"));
}

#[test]
fn layers_share_one_scale_and_state_what_is_there() {
    let figure = layers(&layered(vec![0.7, 0.9, 0.1], &[1.0, 0.0, 3.0]));
    is_a_picture(&figure);
    assert!(
        figure.figure.title.starts_with("The languages meet in layer 1"),
        "{}",
        figure.figure.title
    );
    assert!(figure.caption.contains("supervised"));
    assert_eq!(figure.figure.panels.len(), 3);
    let nothing = layers(&layered(vec![0.0, 0.02, 0.0], &[0.1; 3]));
    assert!(nothing.figure.title.starts_with("No layer"), "{}", nothing.figure.title);
}

#[test]
fn a_map_draws_points_labels_and_their_texts() {
    let [a, b] = space(2.0, 0.1);
    let words = |language: &str| (0..60).map(|i| format!("{language}{i}, \"<")).collect::<Vec<_>>();
    let map = map(&SpaceMap {
        languages: vec!["en".to_owned(), "fr".to_owned()],
        panels: vec![MapPanel { name: "layer 3".to_owned(), groups: vec![a, b] }],
        items: "words",
        mode: "raw vectors".to_owned(),
        joined: vec![0, 5],
        labels: vec![MapLabel { language: 1, row: 5, text: "eau & <vin>".to_owned() }],
        texts: vec![words("e"), words("f")],
    });
    is_a_picture(&map);
    assert!(map.svg_in(ColourScheme::Light).contains("eau &amp; &lt;vin&gt;"));
    let csv = map.figure.csv();
    assert_eq!(csv.lines().count(), 121);
    assert!(csv.lines().nth(61).unwrap().ends_with("\"f0, \"\"<\""), "{csv}");
}

#[test]
fn a_shift_shows_the_first_sentences_with_their_meaning() {
    let output = |alpha: f32| {
        let target = alpha > 0.5;
        let subwords: Vec<OutputSubword> = ["uno", "due", "tre", "sei"]
            .iter()
            .map(|word| OutputSubword { text: (*word).to_owned(), source: !target, target })
            .collect();
        let text = if target { "a b c d" } else { "uno due tre sei" };
        let conversion_rate = Some(f64::from(u8::from(target)));
        TokenTranslation { alpha, subwords, text: text.to_owned(), conversion_rate }
    };
    let sentence = TranslatedSentence {
        sentence: "uno due tre sei".to_owned(),
        outputs: (0..=10).map(|tenth| output(tenth as f32 / 10.0)).collect(),
        reference: Some("a b c e".to_owned()),
    };
    let result = TranslationResult {
        from: "qaa".to_owned(),
        to: "qab".to_owned(),
        layer: 3,
        kind: ShiftKind::parse("mean").unwrap(),
        sentences: vec![sentence; 5],
    };
    let figure = shift(&result, &[Some("cat sees the dog".to_owned())]);
    is_a_picture(&figure);
    assert_eq!(figure.figure.panels.len(), 4);
    let title = &figure.figure.title;
    assert!(title.starts_with("One vector translates: 100\u{a0}% of predicted tokens"), "{title}");
    assert!(title.contains("75\u{a0}% of the words"), "{title}");
    assert!(figure.svg_in(ColourScheme::Light).contains("sees"));
}

#[test]
fn names_and_numbers_as_people_read_them() {
    assert_eq!(language_name("qab"), "language B");
    assert_eq!(language_name("en"), "en");
    assert_eq!(language_name("qaa-b"), "language A, second copy");
    assert_eq!(
        [0.0, 0.0132, 0.0996, 0.876].map(percent),
        ["0\u{a0}%", "1.3\u{a0}%", "10\u{a0}%", "88\u{a0}%"]
    );
    assert_eq!([5, 417_000, 1_000].map(thousands), ["5", "417,000", "1,000"]);
    assert_eq!(joined_rows(200)[15], 187);
    assert_eq!(joined_rows(3), [0, 1, 2]);
}
