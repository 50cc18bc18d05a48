//! The report of known numbers.

#[path = "../examples/made_up_results/numbers.rs"]
mod numbers;

use std::collections::BTreeSet;

use lab::demo::DemoResult;
use lab::export::{colours, pdf, png};
use lab::papers::{ITEMS, PAPERS, coverage};
use lab::record::Record;
use lab::report::{FindingVerdict, ReportPage, verdicts};
use lab::study::Study;
use roxmltree::{Document, Node, ParsingOptions};

fn record(study: &str, seed: u64, measure: &str, factors: &str, value: f64) -> Record {
    Record::written(study, seed, measure, factors, value)
}

/// NER scores under conditions, a value for each seed.
fn entities(study: &str, conditions: &[(&str, &[f64])]) -> Vec<Record> {
    let mut records = Vec::new();
    for (condition, values) in conditions {
        for (seed, value) in values.iter().enumerate() {
            let factors = "pair=qaa-qab task=ner language=qab role=target";
            let mut record = record(study, seed as u64, "f1", factors, *value);
            record.factors.insert("condition".into(), (*condition).into());
            records.push(record);
        }
    }
    records
}

fn finding<'a>(report: &'a ReportPage, section: &str, start: &str) -> &'a FindingVerdict {
    among(&report.findings, section, start)
}

fn among<'a>(found: &'a [FindingVerdict], section: &str, start: &str) -> &'a FindingVerdict {
    let wanted = |one: &&FindingVerdict| one.section == section && one.finding.starts_with(start);
    found.iter().find(wanted).unwrap_or_else(|| panic!("{start} of {section}"))
}

/// The page, as strictly as XML is read.
fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap_or_else(|error| {
        let line = html.lines().nth(error.pos().row as usize - 1).unwrap_or_default();
        panic!("{error}: {line}")
    })
}

/// The first heading of a page.
fn headline(records: &[Record]) -> String {
    let html = ReportPage::of(records, &[]).html;
    let page = parsed(&html);
    let title = page.descendants().find(|node| node.has_tag_name("h1")).map(text_of);
    title.unwrap().replace('\u{a0}', " ")
}

/// Sentence retrieval of a system by layer.
fn retrieval(study: &str, system: &str, pair: &str, kind: &str, layers: &[f64]) -> Vec<Record> {
    let of = |(layer, value): (usize, &f64)| {
        let factors = format!("{system} pair={pair} kind={kind} layer={layer}");
        record(study, 1, "retrieval", &factors, *value)
    };
    layers.iter().enumerate().map(of).collect()
}

/// Pairs of languages are named and not averaged, and real languages have words in common whatever their vocabularies.
#[test]
fn a_headline_says_which_pairs_it_is_about() {
    let study = "table-1";
    let of = |pair: &str, best: f64| {
        [
            retrieval(study, "condition=no-anchors", pair, "raw", &[0.01, best]),
            // Better than at the trained encoder's layer, and none of its business.
            retrieval(study, "condition=untrained", pair, "raw", &[0.3, 0.012]),
        ]
        .concat()
    };
    let real = [of("en-fr", 0.35), of("en-ru", 0.1), of("en-zh", 0.02)].concat();
    assert_eq!(
        headline(&real),
        "Sentences that find their translation: en/fr 35 %, en/ru 10 %, en/zh 2.0 %; disjoint vocabularies; 1.2 % untrained"
    );
    assert_eq!(
        headline(&of("en-fr", 0.35)),
        "en/fr, disjoint vocabularies: 35 % of sentences find their translation; 1.2 % untrained"
    );
    assert_eq!(
        headline(&of("qaa-qab", 0.35)),
        "Two languages, no shared word: 35 % of sentences find their translation; 1.2 % untrained"
    );
}

/// That none holds after one seed is no failure.
#[test]
fn one_seed_gives_no_tally() {
    let title = |records: &[Record]| {
        let html = ReportPage::of(records, &[]).html;
        let page = parsed(&html);
        let section =
            page.descendants().find(|node| node.attribute("id") == Some("findings")).unwrap();
        section.descendants().find(|node| node.has_tag_name("h2")).map(text_of).unwrap()
    };
    let of = |values: &[f64]| {
        entities(
            "domain",
            &[
                ("default", values),
                ("wiki-cc", &values.iter().map(|x| x - 0.2).collect::<Vec<_>>()),
            ],
        )
    };
    assert!(title(&of(&[0.6])).starts_with("No verdicts yet"), "{}", title(&of(&[0.6])));
    let three = title(&of(&[0.6, 0.61, 0.62]));
    assert!(three.contains(" findings hold"), "{three}");
}

/// The demo's table, its headline and its figure are of one layer, and quote one number.
#[test]
fn the_demo_has_one_number_for_one_thing() {
    let (bilingual, untrained) = ("system=bilingual", "system=untrained");
    let of = |system, kind, layers: &[f64]| retrieval("demo", system, "qaa-qab", kind, layers);
    let mut records = [
        of(bilingual, "raw", &[0.79, 0.8704, 0.66]),
        of(bilingual, "centered", &[0.99, 0.94, 0.93]),
        of(untrained, "raw", &[0.016, 0.012, 0.018]),
        of(untrained, "centered", &[0.02, 0.011, 0.02]),
    ]
    .concat();
    for (system, layer, rate) in
        [("bilingual", "3", 0.9961), ("bilingual", "4", 1.0), ("untrained", "3", 0.02)]
    {
        let factors = format!("system={system} direction=qaa-qab kind=mean alpha=1 layer={layer}");
        records.push(record("demo", 1, "conversion_rate", &factors, rate));
    }
    records.push(record("demo", 1, "used", "system=bilingual pair=qaa-qab of=retrieval", 1000.0));
    let table = DemoResult::of(&records, &[]);
    let row = |start: &str| {
        let row = table.rows.iter().find(|row| row.measure.trim().starts_with(start)).unwrap();
        [row.chance, row.untrained, row.trained].map(|value| row.shown(value))
    };
    assert_eq!(row("sentence retrieval"), ["0.1 %", "1.2 %", "87 %"]);
    assert_eq!(row("mean-centred"), ["0.1 %", "1.1 %", "94 %"]);
    assert_eq!(row("token conversion"), ["–", "2.0 %", "99.6 %"]);
    assert_eq!(table.layer, "1");
    assert_eq!(
        headline(&records),
        "Two languages, no shared word: 87 % of sentences find their translation; 1.2 % untrained, 0.1 % chance"
    );
    let page = ReportPage::of(&records, &[]);
    let overview = page.figures.iter().find(|figure| figure.id.ends_with("overview")).unwrap();
    let title = overview.title.replace('\u{a0}', " ");
    assert!(title.ends_with("raw sentence retrieval 87 % and 1.2 %"), "{title}");
    for value in ["0.8704", "0.012", "0.94", "0.9961"] {
        assert!(overview.csv().contains(value), "{value}: {}", overview.csv());
    }
    assert!(
        !overview.csv().contains("0.99\n") && !overview.csv().contains("0.018"),
        "{}",
        overview.csv()
    );
}

/// What the program lists is what the report shows, and the other way round: captions are made from the list.
#[test]
fn every_table_and_figure_of_both_papers_is_there() {
    let (records, notes) = numbers::all();
    let report = ReportPage::of(&records, &notes);
    let page = parsed(&report.html);
    let captions: Vec<String> = page
        .descendants()
        .filter(|node| node.has_tag_name("figcaption"))
        .map(|node| text_of(node))
        .collect();
    for (item, covered) in ITEMS.iter().zip(coverage(&records)) {
        let shown = report.items.contains(&item);
        assert_eq!(shown, covered.not_made.is_none(), "{} of paper {}", item.name, item.paper);
        assert_eq!(covered.runs.is_empty(), covered.not_made.is_some(), "{}", item.name);
        let place = format!("{}, ", PAPERS[usize::from(item.paper) - 1].citation);
        let named = |caption: &&String| {
            // After its number on the page.
            let rest = caption.splitn(3, ' ').nth(2).unwrap_or_default();
            let items = rest.strip_prefix(&place).and_then(|rest| rest.split_once('.'));
            items.is_some_and(|(items, _)| items.split(", ").any(|name| name == item.name))
        };
        assert_eq!(captions.iter().any(|caption| named(&caption)), shown, "{}", item.name);
    }
    let section = |id: &str| page.descendants().find(|node| node.attribute("id") == Some(id));
    for item in ITEMS.iter().filter(|item| !item.section.is_empty()) {
        let text = section(item.section).map(text_of).unwrap_or_default();
        assert!(text.contains(item.name), "{} in {}", item.name, item.section);
    }
    assert_eq!(report.missing, Vec::<&str>::new());
    // A claim that selects by a name which no record has would never be tested.
    for finding in &report.findings {
        let same = |one: &&FindingVerdict| one.finding == finding.finding;
        let tested = report.findings.iter().filter(same).any(|one| one.verdict != "not tested");
        assert!(tested, "{}: {}", finding.section, finding.finding);
    }
}

/// The text of an element.
fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

#[test]
fn a_given_model_is_named_and_judged_apart() {
    let (records, notes) = numbers::all();
    let report = ReportPage::of(&records, &notes);
    let of = |start: &str| {
        let lines = report.findings.iter().filter(|one| one.section == "language-shift");
        lines
            .filter(|one| one.setting.starts_with("small") && one.finding.starts_with(start))
            .map(|one| (one.of.clone(), one.verdict))
            .collect::<Vec<_>>()
    };
    let expected = [("default".to_owned(), "holds"), ("mbert".to_owned(), "one seed")];
    assert_eq!(of("Adding one vector"), expected);
    assert!(report.html.contains("en → fr, mbert"));
}

/// A comparison of encoders that left out different sentences is none of encoders alone.
#[test]
fn systems_that_read_different_sentences_are_named() {
    let mut records = numbers::all().0;
    let remark = "Not on the same sentences";
    assert!(!ReportPage::of(&records, &[]).html.contains(remark));
    let counted = records.iter().find(|one| one.measure == "too_long").unwrap();
    let mut other = counted.clone();
    other.factors.insert("system".to_owned(), "monolingual".to_owned());
    records.push(other.clone());
    assert!(!ReportPage::of(&records, &[]).html.contains(remark), "as many");
    records.last_mut().unwrap().value += 8.0;
    assert!(ReportPage::of(&records, &[]).html.contains(remark));
}

/// Sentences that were left out are counted on the page.
#[test]
fn what_was_left_out_is_said() {
    let html = ReportPage::of(&numbers::all().0, &[]).html;
    for shown in ["What was left out", "10,000", "9,987"] {
        assert!(html.contains(shown), "{shown}");
    }
}

/// Where every system has a score without the items that training has too, verdicts, titles and tables are of it; where one lacks
/// it, they are of all items for every system.
#[test]
fn scores_without_shared_items_count() {
    let conditions = |default: [f64; 3], none: [f64; 3], untrained: [f64; 3]| {
        let conditions = [
            ("default-anchors", &default[..]),
            ("no-anchors", &none[..]),
            ("untrained", &untrained[..]),
        ];
        entities("anchors", &conditions)
    };
    let start = "Transfer does not need anchors";
    let all = conditions([0.81, 0.80, 0.79], [0.80, 0.81, 0.80], [0.05, 0.04, 0.06]);
    let mut others = conditions([0.71, 0.70, 0.69], [0.30, 0.31, 0.29], [0.15, 0.14, 0.16]);
    others.iter_mut().for_each(|one| one.measure += "_without_overlap");
    let counts = others.iter().map(|one| Record {
        measure: "overlap".into(),
        value: 280.0 + one.origin.seed as f64,
        ..one.clone()
    });
    let report = |others: &[Record], counts: &[Record]| {
        ReportPage::of(&[&all[..], others, counts].concat(), &[])
    };
    let counts: Vec<Record> = counts.collect();
    let none = report(&[], &[]);
    assert_eq!(finding(&none, "anchors", start).verdict, "holds");
    assert!(!none.html.contains("What was seen before"));

    let every = report(&others, &counts);
    let tested = finding(&every, "anchors", start);
    assert_eq!(tested.verdict, "fails");
    assert!(tested.strength.ends_with("untrained 0.150"), "{}", tested.strength);
    for shown in [
        "transfer above chance .70 with them, .30 without",
        "(280 to 282 items of a set)",
        "What was seen before",
        ">.551<",
        ">.383<",
        "without them",
    ] {
        assert!(every.html.contains(shown), "{shown}");
    }

    // One system of one seed has none.
    let lacking: Vec<Record> = others[1..].to_vec();
    let some = report(&lacking, &counts);
    assert_eq!(finding(&some, "anchors", start), finding(&none, "anchors", start));
    assert!(some.html.contains("In anchors (NER) not every score was measured without them"));
}

#[test]
fn a_page_needs_nothing_from_elsewhere_and_its_names_are_its_own() {
    let (records, notes) = numbers::all();
    let html = ReportPage::of(&records, &notes).html;
    let page = parsed(&html);
    let mut ids = BTreeSet::new();
    for node in page.descendants().filter(|node| node.is_element()) {
        assert!(!["link", "img", "iframe"].contains(&node.tag_name().name()), "{node:?}");
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id.to_owned()), "{id} twice");
        }
    }
    let links = page.descendants().filter_map(|node| node.attribute("href"));
    for link in links {
        let within = link.strip_prefix('#').is_some_and(|id| ids.contains(id));
        // Links to the papers are followed by readers, and fetched by nothing.
        assert!(within || PAPERS.iter().any(|paper| paper.url == link), "{link}");
    }
    let parts =
        html.split("data-file=\"").map(|part| part.split_once('"').map_or(part, |(_, rest)| rest));
    let html: String = parts.collect();
    for fetching in ["url(", "@import", "fetch(", "XMLHttp", "src=", "NaN"] {
        assert!(!html.contains(fetching), "{fetching}");
    }
}

/// Every exported figure: unique, well-formed, with literal colours that a strict renderer paints, a PDF, and its numbers.
#[test]
fn figures_are_files_of_their_own() {
    let (records, notes) = numbers::all();
    let figures = ReportPage::of(&records, &notes).figures;
    let names: BTreeSet<&String> = figures.iter().map(|figure| &figure.id).collect();
    assert_eq!(names.len(), figures.len());
    assert!(figures.len() >= 30, "{names:?}");
    for figure in &figures {
        let (name, svg) = (&figure.id, figure.svg());
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{name}");
        let document = Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(document.descendants().any(|node| node.has_tag_name("desc")), "{name}");
        assert!(!svg.contains("var(") && !svg.contains("NaN"), "{name}");
        assert!(colours(&png(&svg, 1.0).unwrap()) > 1, "{name} has no colours");
        assert!(pdf(&svg).unwrap().starts_with(b"%PDF-"), "{name}");
        assert!(figure.csv().lines().count() > 1, "{name} has no values");
    }
}

#[test]
fn numbers_decide_what_is_said() {
    let verdict = |none: &[f64], extra: &[f64]| {
        let steady: &[f64] = &[0.80, 0.81, 0.79];
        let records = entities(
            "anchors",
            &[
                ("default-anchors", steady),
                ("no-anchors", none),
                ("extra-anchors", extra),
                ("untrained", &[0.05, 0.04, 0.06]),
            ],
        );
        let report = ReportPage::of(&records, &[]);
        ["Transfer does", "More anchors"].map(|start| finding(&report, "anchors", start).verdict)
    };
    assert_eq!(verdict(&[0.79, 0.80, 0.78], &[0.85, 0.87, 0.84]), ["holds", "holds"]);
    assert_eq!(verdict(&[0.30, 0.31, 0.29], &[0.20, 0.22, 0.19]), ["fails", "fails"]);
    assert_eq!(verdict(&[0.80, 0.40, 0.90], &[0.70, 0.60, 0.80]), ["inconclusive", "inconclusive"]);
    assert_eq!(verdict(&[], &[0.85, 0.86, 0.84]), ["not tested", "not tested"]);
}

/// Default has all text that there is; text of another domain is less, and so is compared with as much of one domain.
#[test]
fn amounts_of_real_text_are_not_taken_for_domains() {
    let kept = |pair: &str, conditions: &[(&str, &[f64])]| {
        let mut records = entities("table-1", conditions);
        for record in &mut records {
            record.factors.insert("pair".into(), pair.into());
            record.factors.insert("language".into(), pair.split('-').next_back().unwrap().into());
        }
        let report = ReportPage::of(&records, &[]);
        let found = finding(&report, "domain", "A difference in domain costs little");
        (found.verdict, found.strength.clone())
    };
    let steady: &[f64] = &[0.80, 0.81, 0.79];
    let less: &[f64] = &[0.60, 0.61, 0.59];
    let untrained: &[f64] = &[0.05, 0.04, 0.06];
    let all = [("default", steady), ("wiki-cc", less), ("untrained", untrained)];
    assert_eq!(kept("qaa-qab", &all).0, "fails", "invented text is of one amount");
    let (verdict, reason) = kept("en-fr", &all);
    assert_eq!(verdict, "not measured");
    assert!(reason.contains("default-equal"), "{reason}");
    let equal: &[f64] = &[0.61, 0.60, 0.60];
    let equal = [&all[..], &[("default-equal", equal)]].concat();
    assert_eq!(kept("en-fr", &equal).0, "holds");
}

/// Titles are answers: they change with the numbers.
#[test]
fn titles_state_what_was_found() {
    let title = |none: &[f64]| {
        let steady: &[f64] = &[0.80, 0.81, 0.79];
        let conditions =
            [("default-anchors", steady), ("no-anchors", none), ("untrained", &[0.05, 0.04, 0.06])];
        let html = ReportPage::of(&entities("anchors", &conditions), &[]).html;
        let page = parsed(&html);
        let section = page.descendants().find(|node| node.attribute("id") == Some("anchors"));
        let title = section.unwrap().descendants().find(|node| node.has_tag_name("h2")).unwrap();
        text_of(title)
    };
    let start =
        "Transfer does not need anchors: transfer above chance .80 with them, .79 without, .05";
    assert!(title(&[0.79, 0.80, 0.78]).starts_with(start), "{}", title(&[0.79, 0.80, 0.78]));
    assert!(
        title(&[0.30, 0.31, 0.29])
            .starts_with("Transfer needs anchors: transfer above chance .80 with")
    );
    assert!(title(&[0.80, 0.40, 0.90]).starts_with("Transfer does not need anchors? Inconclusive"));
    assert!(title(&[0.80]).contains("Too few seeds"));
}

/// Every finding and setting is in one matrix, and each sign leads to its numbers.
#[test]
fn verdicts_are_on_one_screen() {
    let (records, notes) = numbers::all();
    let report = ReportPage::of(&records, &notes);
    let page = parsed(&report.html);
    let matrix = page.descendants().find(|node| node.attribute("class") == Some("matrix")).unwrap();
    let sign = |node: &Node<'_, '_>| {
        node.has_tag_name("a")
            && node.attribute("class").is_some_and(|one| one.starts_with("sign "))
    };
    assert_eq!(matrix.descendants().filter(sign).count(), report.findings.len());
}

/// Tasks that no paper has are shown without a paper's numbers, and decide nothing about its findings.
#[test]
fn other_tasks_are_shown_and_change_no_verdict() {
    let steady: &[f64] = &[0.80, 0.81, 0.79];
    let conditions = [
        ("default-anchors", steady),
        ("no-anchors", steady),
        ("extra-anchors", steady),
        ("untrained", &[0.05, 0.04, 0.06]),
    ];
    let mut records = entities("anchors", &conditions);
    let before = ReportPage::of(&records, &[]);
    assert!(!before.html.contains("POS tagging"));
    for (seed, condition) in (0..3).zip(["default-anchors", "no-anchors", "extra-anchors"]) {
        for task in ["pos", "classify"] {
            let factors =
                format!("condition={condition} pair=qaa-qab task={task} language=qab role=target");
            records.push(record("anchors", seed, "accuracy", &factors, 0.1));
        }
    }
    let after = ReportPage::of(&records, &[]);
    assert!(after.html.contains("POS tagging") && after.html.contains("Classification"));
    parsed(&after.html);
    let verdicts = |page: &ReportPage| -> Vec<(String, String)> {
        page.findings.iter().map(|one| (one.finding.to_string(), one.verdict.to_string())).collect()
    };
    assert_eq!(verdicts(&after), verdicts(&before));
}

#[test]
fn the_order_of_conditions_is_compared_with_the_papers() {
    let order = [
        "sep-emb-l1-6",
        "sep-l1-6",
        "sep-emb-l1-3",
        "sep-l1-3",
        "sep-emb",
        "no-anchors",
        "extra-anchors",
    ];
    let report = |conditions: Vec<&str>| {
        let seeds = |place: usize| [0.0, 0.01, -0.01].map(|noise| 0.1 * (place + 1) as f64 + noise);
        let values: Vec<[f64; 3]> = (0..conditions.len()).map(seeds).collect();
        let pairs: Vec<(&str, &[f64])> =
            conditions.iter().zip(&values).map(|(name, value)| (*name, &value[..])).collect();
        ReportPage::of(&entities("sharing", &pairs), &[])
    };
    // Only NER is measured, and so tasks weigh otherwise than in the paper: only the order counts.
    let same = report(order.to_vec());
    let found = finding(&same, "table-1", "Conditions rank");
    assert_eq!(found.verdict, "holds");
    assert!(found.strength.contains("n = 7"), "{}", found.strength);
    let turned = report(order.into_iter().rev().collect());
    assert_eq!(finding(&turned, "table-1", "Conditions rank").verdict, "fails");
    assert!(finding(&turned, "table-1", "Conditions rank").strength.contains('\u{2212}'));
}

#[test]
fn one_seed_is_said_to_be_one() {
    let records = entities(
        "anchors",
        &[("default-anchors", &[0.8]), ("no-anchors", &[0.79]), ("extra-anchors", &[0.9])],
    );
    let report = ReportPage::of(&records, &[]);
    assert!(report.html.contains("one seed, no intervals"));
    let found = finding(&report, "anchors", "More anchors");
    assert_eq!((found.verdict, &*found.strength), ("one seed", "0.110"));
    assert!(!report.html.contains("<span>±"));
}

/// Pure noise: the same mean everywhere.
struct Noise(u64);

impl Noise {
    /// Approximately normal: the sum of twelve uniform numbers.
    fn next(&mut self) -> f64 {
        let mut uniform = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    /// Records of all studies whose findings select a layer, a weight or a system.
    fn records(&mut self, seeds: u64) -> Vec<Record> {
        let mut records = Vec::new();
        let mut put = |study, seed, measure, factors: String| {
            // Where another comparison decides, the untrained encoder is far below.
            let far = factors.contains("=untrained")
                && !["align-words", "align-sentences"].contains(&study)
                || measure == "bleu1_frequent";
            let value = if far { 0.1 } else { 0.5 } + 0.01 * self.next();
            records.push(record(study, seed, measure, &factors, value));
        };
        for seed in 1..=seeds {
            for layer in 0..=8 {
                for system in
                    ["monolingual-aligned", "monolingual-raw", "bilingual", "untrained-aligned"]
                {
                    let of = format!("system={system} task=ner role=target layer={layer}");
                    put("align-contexts", seed, "f1", of);
                }
                for system in ["monolingual", "untrained"] {
                    let of = format!("system={system} layer={layer}");
                    put("align-words", seed, "p_at_1", of.clone());
                    put("align-sentences", seed, "retrieval", of + " kind=aligned");
                }
                for alpha in ["-1", "-2", "0", "1", "2", "3"] {
                    for condition in ["default", "untrained"] {
                        // Real unshifted layers are equal; here they are noise too.
                        for measure in ["bleu1", "bleu1_permuted", "conversion_rate"] {
                            let of = format!(
                                "condition={condition} kind=mean alpha={alpha} layer={layer}"
                            );
                            put("language-shift", seed, measure, of);
                        }
                    }
                }
            }
            put("language-shift", seed, "bleu1_frequent", "condition=default kind=mean".into());
            for system in ["encoder", "word2vec", "glove", "untrained"] {
                put("data-size", seed, "mrr", format!("system={system} size=small"));
            }
        }
        records
    }
}

/// The findings that select among layers, weights or systems. Their bound is the mean of [`Noise`].
const CHOOSING: [(&str, &str); 9] = [
    ("align-words", "Word vectors"),
    ("align-contexts", "An orthogonal map"),
    ("align-contexts", "A bilingual encoder"),
    ("align-contexts", "Middle layers"),
    ("align-sentences", "Sentence vectors"),
    ("data-size", "With little text"),
    ("language-shift", "Adding one vector"),
    ("language-shift", "Many converted"),
    ("language-shift", "The shift works best"),
];

/// A test finds something by chance in 2.5 %, less where it is one of many. Leave-one-out selection makes seeds slightly
/// dependent, which makes it up to 5 %; the maximum of eight layers would hold in 64 %.
#[test]
fn chance_alone_seldom_makes_a_finding_hold() {
    const RUNS: usize = 300;
    let mut chance = Noise(7);
    let mut held = [0; CHOOSING.len()];
    for _ in 0..RUNS {
        let found = verdicts(&chance.records(4), &[]);
        for ((section, start), held) in CHOOSING.iter().zip(&mut held) {
            *held += usize::from(among(&found, section, start).verdict == "holds");
        }
    }
    for ((_, start), held) in CHOOSING.iter().zip(held) {
        assert!(held <= RUNS * 8 / 100, "{start}: {held} of {RUNS}");
    }
}

#[test]
fn one_seed_has_no_others_to_select_by() {
    let report = ReportPage::of(&Noise(1).records(1), &[]);
    for (section, start) in CHOOSING {
        let found = finding(&report, section, start);
        assert_eq!(found.verdict, "one seed", "{start}");
    }
}

/// The middle is neither the embeddings nor the last layer.
#[test]
fn middle_layers_are_those_in_the_middle() {
    let verdict = |score: fn(usize) -> f64| {
        let mut records = Vec::new();
        for seed in 0..3 {
            for layer in 0..=8_usize {
                let noise = 0.001 * (seed * layer as u64 % 3) as f64;
                for (system, value) in
                    [("monolingual-aligned", score(layer)), ("untrained-aligned", 0.1 + noise)]
                {
                    let factors = format!("system={system} task=ner role=target layer={layer}");
                    records.push(record("align-contexts", seed, "f1", &factors, value + noise));
                }
            }
        }
        finding(&ReportPage::of(&records, &[]), "align-contexts", "Middle").verdict
    };
    assert_eq!(verdict(|layer| if (2..=6).contains(&layer) { 0.6 } else { 0.5 }), "holds");
    assert_eq!(verdict(|layer| if layer < 2 { 0.9 } else { 0.1 * layer as f64 }), "fails");
}

/// Encoders with and without a shared vocabulary are different systems.
#[test]
fn conditions_of_a_shift_are_not_averaged() {
    let mut records = Vec::new();
    for (condition, rate) in [("default", 0.2), ("no-anchors", 1.0), ("untrained", 0.05)] {
        for seed in 1..=3 {
            let factors =
                format!("condition={condition} direction=qaa-qab kind=mean layer=1 alpha=1");
            let rate = rate * (0.9 + 0.05 * seed as f64);
            records.push(record("language-shift", seed, "conversion_rate", &factors, rate));
            records.push(record("language-shift", seed, "bleu1", &factors, rate / 2.0));
        }
    }
    let report = ReportPage::of(&records, &[]);
    let said = finding(&report, "language-shift", "Adding one vector");
    assert_eq!((said.verdict, &said.strength[..5]), ("fails", "0.200"), "{said:?}");
    for shown in [".200", "1.000", ".100", ".500"] {
        assert!(report.html.contains(&format!("<b>{shown}</b>")), "{shown}");
    }
    assert!(!report.html.contains("<b>.600</b>"), "the mean of both");
}

#[test]
fn a_study_of_ones_own_is_shown() {
    let value = |seed, layer| record("mine", seed, "f1", &format!("layer={layer}"), 0.25);
    let report = ReportPage::of(&[value(1, "2"), value(2, "2"), value(1, "10")], &[]);
    let page = parsed(&report.html);
    let own = page.descendants().find(|node| node.attribute("id") == Some("own-0")).unwrap();
    let text: String = own.descendants().filter_map(|node| node.text()).collect();
    let (first, then) = (text.find("layer 2").unwrap(), text.find("layer 10").unwrap());
    assert!(text.contains("mine") && first < then, "{text}");
    // Its measures are drawn, with the files of any figure.
    let [figure] = &report.figures[..] else { panic!("{:?}", report.figures) };
    assert!(figure.id == "own-0-measures" && figure.csv().contains("layer 10"), "{}", figure.csv());
}

#[test]
fn strange_names_stay_names() {
    let odd = "<script>alert(\"1\")</script> & 'x'\u{1}";
    let records = entities("anchors", &[(odd, &[0.8, 0.7]), ("no-anchors", &[0.79, 0.78])]);
    let mut records: Vec<Record> = records;
    for record in &mut records {
        record.origin.scale = "a b/<c>".into();
        record.origin.command = odd.into();
    }
    let report = ReportPage::of(&records, &[]);
    assert_eq!(report.html.matches("<script>").count(), 1, "the page's own");
    parsed(&report.html);
    for figure in &report.figures {
        let name = &figure.id;
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{name}");
        Document::parse(&figure.svg()).unwrap();
    }
}

#[test]
fn an_empty_store_says_what_there_is_to_run() {
    let report = ReportPage::of(&[], &[]);
    parsed(&report.html);
    for study in Study::names().filter(|name| *name != "demo") {
        assert!(report.missing.contains(&study), "{study}");
    }
    for study in &report.missing {
        let command = format!("isogloss study run {study} --scale tiny");
        assert!(report.html.contains(&command), "{command}");
    }
    assert!(report.findings.is_empty() && report.figures.is_empty());
    assert!(report.html.contains("No finding has been tested yet"));
}
