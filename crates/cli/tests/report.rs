//! `results` and `report` as people and scripts meet them: the real binary over a small store.

mod common;

use std::fs;
use std::path::Path;

use lab::record::{Origin, Record};
use lab::store::{FILE, Store};
use serde_json::Value;

use crate::common::{Folder, done, ran, refused};

fn printed(folder: &Path, line: &str) -> String {
    ran(folder, line)[0].clone()
}

/// A laboratory with a few numbers: two conditions, three seeds.
fn laboratory() -> Folder {
    let folder = Folder::new();
    let record = |condition: &str, seed: u64, value: f64| Record {
        origin: Origin {
            study: "anchors".into(),
            scale: "tiny".into(),
            seed,
            step: "0123".into(),
            command: "isogloss transfer --task ner".into(),
            build: "0.1.0".into(),
            finished_at: 1_794_700_800,
        },
        measure: "f1".into(),
        factors: [
            ("condition", condition),
            ("pair", "qaa-qab"),
            ("role", "target"),
            ("task", "ner"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        value,
        signature: "ner-f1|conventional".into(),
        files: vec!["steps/0123/results.json".into()],
    };
    let mut records = Vec::new();
    for seed in 1..=3 {
        let wobble = 0.01 * seed as f64;
        records.push(record("no-anchors", seed, 0.70 + wobble));
        // The difference has a spread: without one there is no test.
        records.push(record("extra-anchors", seed, 0.80 + 1.1 * wobble));
    }
    Store::open(&folder.join("lab").join(FILE)).unwrap().add(&records, &[]).unwrap();
    folder
}

#[test]
fn results_are_shown_chosen_and_averaged() {
    let folder: &Path = &laboratory();
    assert_eq!(printed(folder, "results").lines().count(), 7);
    let some = printed(
        folder,
        "results --where condition=no-anchors --seed 2 --study anchors --measure f1",
    );
    assert_eq!(some.lines().count(), 2, "{some}");
    assert!(some.contains("0.7200"), "{some}");

    let means = done(folder, "results --mean --scale tiny");
    let means = means["means"].as_array().unwrap();
    assert_eq!(means.len(), 2);
    let of = |condition: &str, name: &str| {
        means.iter().find(|row| row["condition"] == condition).unwrap()[name].as_f64().unwrap()
    };
    assert!((of("no-anchors", "mean") - 0.72).abs() < 1e-9 && of("no-anchors", "n") == 3.0);
    // Student's t for two degrees of freedom, times the standard error of 0.01 / sqrt(3).
    assert!((of("no-anchors", "high") - 0.72 - 4.302_653 * 0.01 / 3_f64.sqrt()).abs() < 1e-6);

    let message = refused(folder, "results --where lyer=2", 2, "no result has a factor `lyer`");
    assert!(message.contains("there are condition, pair, role, task"), "{message}");
    let nothing = printed(folder, "results --study nowhere");
    assert!(nothing.contains("no results match"), "{nothing}");
    let whole = done(folder, "results");
    assert_eq!(whole["records"][0]["signature"], "ner-f1|conventional");
}

#[test]
fn results_go_to_files_of_four_kinds() {
    let folder: &Path = &laboratory();
    for (format, start) in [
        ("csv", &b"study,scale"[..]),
        ("json", b"[{\""),
        ("markdown", b"| study"),
        ("parquet", b"PAR1"),
    ] {
        let made = done(folder, &format!("results --format {format} --out numbers.{format}"));
        assert_eq!(made["rows"], 6);
        let bytes = fs::read(folder.join(format!("numbers.{format}"))).unwrap();
        assert!(bytes.starts_with(start), "{format}");
    }
    refused(folder, "results --format parquet", 2, "--out");
    refused(folder, "results --where condition", 2, "FACTOR=LEVEL");
}

#[test]
fn a_report_is_one_page_and_its_figures() {
    let folder: &Path = &laboratory();
    let made = done(folder, "report --out page.html --figures figures");
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("More anchors improve transfer"));
    let anchors = |finding: &&Value| finding["finding"] == "More anchors improve transfer";
    let found = made["findings"].as_array().unwrap().iter().find(anchors).unwrap().clone();
    assert_eq!(
        (&found["verdict"], &found["setting"]),
        (&"holds".into(), &"tiny, invented languages".into())
    );
    let figures = made["figures"].as_array().unwrap();
    assert!(!figures.is_empty());
    for figure in figures {
        let path = folder.join(figure.as_str().unwrap());
        let bytes = fs::read(&path).unwrap();
        let start: &[u8] = match path.extension().unwrap().to_str().unwrap() {
            "svg" => b"<svg",
            "pdf" => b"%PDF-",
            _ => b"panel,",
        };
        assert!(bytes.starts_with(start), "{}", path.display());
    }
    assert_eq!(figures.len() % 3, 0);
    assert!(made["missing"].as_array().unwrap().contains(&"window".into()));
}

/// The study of the book's page about results: its claims are tested in numbers of its own, and in no others.
#[test]
fn claims_of_a_study_get_a_verdict_and_a_figure() {
    let folder: &Path = &laboratory();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/how-to/results.md");
    let page = fs::read_to_string(page).unwrap();
    let file = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    fs::write(folder.join("embeddings.toml"), file).unwrap();
    refused(folder, "report embeddings.toml", 2, "no results of a study called `embeddings`");

    let before = done(folder, "report --out before.html")["findings"].clone();
    // The differences have a spread: without one there is no test.
    for (condition, score, spread) in
        [("default", 0.8, 0.3), ("sep-emb", 0.6, 1.0), ("untrained", 0.1, 2.0)]
    {
        for (seed, wobble) in [(1, 0.0), (2, 0.01), (3, -0.013)] {
            let value = score + spread * wobble;
            let factors = format!(
                "--factor condition={condition} --factor task=ner --factor role=target --factor language=qab"
            );
            printed(
                folder,
                &format!(
                    "results add --study embeddings --measure f1 --value {value} --seed {seed} --scale tiny \
                     --command eval.py {factors}"
                ),
            );
        }
    }
    let result = done(folder, "report embeddings.toml --out page.html --figures figures");
    let (own, papers): (Vec<&Value>, Vec<&Value>) = result["findings"]
        .as_array()
        .unwrap()
        .iter()
        .partition(|one| one["section"] == "embeddings");
    let verdicts: Vec<_> = own.iter().map(|one| (&one["verdict"], &one["criterion"])).collect();
    assert_eq!(verdicts, [(&"holds".into(), &"> 0".into()), (&"holds".into(), &"> 0.5".into())]);
    assert_eq!(own[0]["quantity"], "value of f1[condition=default] - f1[condition=sep-emb]");
    let strength = own[1]["strength"].as_str().unwrap();
    assert!(strength.starts_with("0.74") && strength.ends_with("untrained 0.098"), "{strength}");
    assert_eq!(papers, before.as_array().unwrap().iter().collect::<Vec<_>>());
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains("Separate embeddings transfer less"));
    assert!(folder.join("figures/own-0-tiny-invented-tested.svg").exists());

    for (from, to, wanted) in [
        (
            "condition=sep-emb]\"",
            "condition=sep]\"",
            "no result has condition=sep; there are default",
        ),
        ("value = \"f1", "value = \"f2", "no result is of the measure `f2`; there are f1"),
        ("value = \"f1", "value = \"top(f1", "there is no function `top`"),
        ("> 0.5", "more than .5", "is no criterion"),
    ] {
        fs::write(folder.join("embeddings.toml"), file.replacen(from, to, 1)).unwrap();
        refused(folder, "report embeddings.toml --out other.html", 2, wanted);
    }
}

#[test]
fn every_table_and_figure_is_listed_with_what_it_was_run_on() {
    let lab = laboratory();
    let folder = &lab;
    let all = done(folder, "study list --papers --lab lab");
    let items = all["items"].as_array().unwrap();
    let of = |paper: &str, name: &str| {
        let own = |item: &&Value| {
            item["item"] == name && item["paper"].as_str().unwrap().starts_with(paper)
        };
        items.iter().find(own).unwrap().clone()
    };
    let table = of("Conneau", "Table 1");
    assert!(table["commands"].as_array().unwrap().contains(&"isogloss study run anchors".into()));
    let run = &table["runs"][0];
    assert_eq!((&run["study"], &run["pairs"][0]), (&"anchors".into(), &"qaa-qab".into()));
    assert_eq!(run["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(of("Liu", "Figure 7")["runs"], serde_json::json!([]));
    assert!(of("Conneau", "Figure 1")["not_made"].as_str().unwrap().contains("diagram"));

    let text = printed(folder, "study list --papers --lab lab");
    assert!(text.contains("anchors: tiny, invented languages, qaa-qab; seeds 1, 2, 3"), "{text}");
    assert!(text.contains("nothing yet"), "{text}");
    assert!(!printed(folder, "study list --papers").contains("nothing yet"));
    assert!(printed(folder, "study list").contains("anchors"));
    refused(folder, "study list --lab lab", 2, "--papers");
}

#[test]
fn a_laboratory_that_is_none_is_said_to_be_none() {
    let folder = Folder::new();
    for command in ["results", "report"] {
        refused(&folder, command, 1, "study list");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is made");
    fs::create_dir(folder.join("lab")).unwrap();
    fs::write(folder.join("lab").join(FILE), "this is no database").unwrap();
    refused(&folder, "report", 1, "not a store of results");
}
