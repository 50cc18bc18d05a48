//! The store under concurrent writers, kills, damage, and files that are no store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::slice::from_ref;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use lab::record::{Factors, Origin, Record, TextRecord};
use lab::store::{Error, RecordFilter, SettingsScope, StepFiling, Store};

/// The environment variable of [`child_writes`]: the store, its seed, and how many batches.
const JOB: &str = "ISOGLOSS_STORE_JOB";
/// Records of one transaction.
const BATCH: usize = 40;

fn origin(study: &str, seed: u64) -> Origin {
    Origin {
        study: study.into(),
        scale: "tiny".into(),
        seed,
        step: "abc".into(),
        command: "isogloss pretrain --preset no-anchors".into(),
        build: "0.1.0".into(),
        finished_at: 1_794_000_000,
    }
}

fn factors<const N: usize>(pairs: [(&str, &str); N]) -> Factors {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn record(study: &str, seed: u64, measure: &str, of: Factors, value: f64) -> Record {
    Record {
        origin: origin(study, seed),
        measure: measure.into(),
        factors: of,
        value,
        signature: "retrieval|cosine".into(),
        files: vec!["steps/abc/found.json".into()],
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lab").join("results.sqlite");
    (folder, path)
}

#[test]
fn what_was_added_comes_back_and_is_replaced_not_doubled() {
    let (_folder, path) = place();
    let first = record("anchors", u64::MAX, "f1", factors([("condition", "no-anchors")]), 0.5);
    let second = record("anchors", 1, "f1", factors([("condition", "no-anchors")]), 0.25);
    let note = TextRecord {
        origin: origin("language-shift", 1),
        name: "translation".into(),
        factors: factors([("line", "1")]),
        text: "la zizop 'sagowi' \u{1F600}".into(),
    };
    Store::open(&path).unwrap().add(&[first.clone(), second.clone()], from_ref(&note)).unwrap();

    let store = Store::existing(&path).unwrap();
    assert_eq!(store.records(&RecordFilter::default()).unwrap(), [second.clone(), first.clone()]);
    assert_eq!(store.texts(&RecordFilter::default()).unwrap(), from_ref(&note));

    let newer = Record { value: 0.75, signature: "again".into(), ..first.clone() };
    let again = TextRecord { text: "other".into(), ..note };
    store.add(from_ref(&newer), from_ref(&again)).unwrap();
    assert_eq!(store.records(&RecordFilter::default()).unwrap(), [second, newer]);
    assert_eq!(store.texts(&RecordFilter::default()).unwrap(), [again]);
}

/// An encoder of four layers and then one of two: layers 3 and 4 of the first must not stand beside those of the second.
#[test]
fn results_of_other_settings_are_refused_or_dropped() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    let real = |factors: &Factors| factors["pair"] == "en-fr";
    let scope = SettingsScope { study: "anchors", scale: "tiny", languages: "real", owns: &real };
    let settings = |layers: &str| BTreeMap::from([("--pretrain".to_owned(), layers.to_owned())]);
    let enter = |layers, force| store.enter_settings(&scope, &settings(layers), force).unwrap();
    let row = |study, pair, layer| {
        record(study, 1, "retrieval", factors([("pair", pair), ("layer", layer)]), 0.5)
    };
    assert!(enter("--layers 4", false).is_empty());
    // Nothing was measured with them yet, so that others take their place.
    assert!(enter("--layers 3", false).is_empty());
    store.add(&[row("anchors", "en-fr", "3"), row("anchors", "qaa-qab", "3")], &[]).unwrap();
    store.add(&[row("sharing", "en-fr", "3")], &[]).unwrap();
    assert!(enter("--layers 3", false).is_empty());
    assert_eq!(enter("--layers 2", false), settings("--layers 3"));
    assert_eq!(store.records(&RecordFilter::default()).unwrap().len(), 3);
    assert!(enter("--layers 2", true).is_empty());
    let left = store.records(&RecordFilter::default()).unwrap();
    let pairs: Vec<&str> = left.iter().map(|record| &*record.factors["pair"]).collect();
    assert_eq!(pairs, ["qaa-qab", "en-fr"], "invented languages and other studies stay");
    assert!(enter("--layers 2", false).is_empty());
}

#[test]
fn what_a_step_no_longer_gives_is_gone() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    let layer = |seed, layer, step: &str| {
        let mut record = record("anchors", seed, "retrieval", factors([("layer", layer)]), 0.5);
        record.origin.step = step.into();
        record
    };
    let said = |line, step: &str| TextRecord {
        origin: Origin { step: step.into(), ..origin("anchors", 1) },
        name: "translation".into(),
        factors: factors([("line", line)]),
        text: String::new(),
    };
    let filed = |step: &str, records: &[Record], texts: &[TextRecord]| StepFiling {
        origin: Origin { step: step.into(), ..origin("anchors", 1) },
        slot: Some("retrieval".into()),
        records: records.to_vec(),
        texts: texts.to_vec(),
    };
    let first = [layer(1, "0", "a"), layer(1, "1", "a")];
    store.replace(&[filed("a", &first, &[said("1", "a"), said("2", "a")])]).unwrap();
    // Of another step, of another seed, of another study.
    let mut others = vec![layer(1, "7", "b"), layer(2, "1", "a"), layer(1, "1", "a")];
    others[2].origin.study = "sharing".into();
    store.add(&others, &[]).unwrap();

    let now = [layer(1, "0", "a"), layer(1, "best", "a")];
    store.replace(&[filed("a", &now, &[said("2", "a")])]).unwrap();
    let records = store.records(&RecordFilter::default()).unwrap();
    let known: Vec<(&str, u64, &str)> = records
        .iter()
        .map(|one| (&*one.origin.study, one.origin.seed, &*one.factors["layer"]))
        .collect();
    let expected =
        [("anchors", 1, "0"), ("anchors", 2, "1"), ("anchors", 1, "7"), ("anchors", 1, "best")];
    assert_eq!(known[..4], expected);
    assert_eq!(known[4..], [("sharing", 1, "1")]);
    assert_eq!(store.texts(&RecordFilter::default()).unwrap(), [said("2", "a")]);

    // A refused write deletes nothing.
    let bad = Record { value: f64::NAN, ..layer(1, "0", "a") };
    assert!(store.replace(&[filed("a", &[bad], &[])]).is_err());
    assert_eq!(store.records(&RecordFilter::default()).unwrap(), records);
}

/// Of a seed that is run again after its text changed and one of its test sets was removed, nothing of the former encoder stands
/// beside the new one's, though the step has another key.
#[test]
fn another_step_for_the_same_slot_takes_its_place() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    let filed = |step: &str, slot: &str, seed, kinds: &[&str]| {
        let origin = Origin { step: step.into(), ..origin("anchors", seed) };
        let number = |kind: &&str| Record {
            origin: origin.clone(),
            ..record("anchors", seed, slot, factors([("kind", kind)]), 0.5)
        };
        let records = kinds.iter().map(number).collect();
        StepFiling { origin: origin.clone(), slot: Some(slot.into()), records, texts: vec![] }
    };
    let all = ["raw", "centered", "aligned"];
    let first = [filed("a", "retrieval", 1, &all), filed("a", "cka", 1, &all[..1])];
    store.replace(&first).unwrap();
    store.replace(&[filed("a2", "retrieval", 2, &all)]).unwrap();
    store.replace(&[filed("b", "retrieval", 1, &all[..2])]).unwrap();
    let known = |store: &Store| -> Vec<(String, u64, String)> {
        let records = store.records(&RecordFilter::default()).unwrap().into_iter();
        let key = |one: Record| (one.origin.step, one.origin.seed, one.factors["kind"].clone());
        records.map(key).collect()
    };
    let expected = [
        ("a", 1, "raw"),
        ("a2", 2, "aligned"),
        ("b", 1, "centered"),
        ("a2", 2, "centered"),
        ("b", 1, "raw"),
        ("a2", 2, "raw"),
    ];
    assert_eq!(known(&store), expected.map(|(step, seed, kind)| (step.into(), seed, kind.into())));

    // Another laboratory's results of seed 1 are left out whole, its seed 3 is added.
    let (_other, path) = place();
    let other = Store::open(&path).unwrap();
    other.replace(&[filed("c", "retrieval", 1, &all), filed("d", "retrieval", 3, &all)]).unwrap();
    assert_eq!(store.merge(&other.filings().unwrap()).unwrap(), 3);
    let now = known(&store);
    assert_eq!(now.iter().filter(|one| one.0 == "d").count(), 3, "{now:?}");
    assert_eq!(now.len(), expected.len() + 3);
    assert_eq!(store.merge(&other.filings().unwrap()).unwrap(), 0);
    assert_eq!(store.filings().unwrap().len(), 4);
}

#[test]
fn filters_keep_what_was_asked_for_in_the_order_of_numbers() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    let mut records = Vec::new();
    for layer in ["10", "2", "best"] {
        for seed in [2, 1] {
            let of = factors([("layer", layer), ("kind", "raw")]);
            records.push(record("similarity", seed, "cka", of, 0.5));
        }
    }
    records.push(record("similarity", 1, "correlation", factors([("system", "untrained")]), -0.5));
    store.add(&records, &[]).unwrap();

    let cka = RecordFilter { measures: vec!["cka".into()], ..RecordFilter::study("similarity") };
    let found = store.records(&cka).unwrap();
    let order: Vec<_> = found.iter().map(|r| (&*r.factors["layer"], r.origin.seed)).collect();
    assert_eq!(order, [("2", 1), ("2", 2), ("10", 1), ("10", 2), ("best", 1), ("best", 2)]);

    let wanted = BTreeMap::from([("layer".to_owned(), vec!["2".to_owned(), "10".to_owned()])]);
    let some = RecordFilter { seeds: vec![2], factors: wanted, ..cka };
    assert_eq!(store.records(&some).unwrap().len(), 2);
    assert_eq!(store.records(&RecordFilter::study("anchors")).unwrap(), []);
}

#[test]
fn a_value_that_is_no_number_is_refused_and_nothing_with_it_is_kept() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    let good = record("anchors", 1, "f1", Factors::new(), 0.5);
    for value in [f64::NAN, f64::INFINITY] {
        let bad = record("anchors", 2, "f1", factors([("task", "ner")]), value);
        let error = store.add(&[good.clone(), bad], &[]).unwrap_err().to_string();
        assert!(error.contains("task=ner") && error.contains("anchors"), "{error}");
    }
    assert_eq!(store.records(&RecordFilter::default()).unwrap(), []);
}

#[test]
fn what_is_no_store_is_said_to_be_none() {
    let (folder, path) = place();
    assert!(matches!(Store::existing(&path), Err(Error::Missing(_))));
    assert!(!path.exists(), "looking makes nothing");

    let text = folder.path().join("notes.txt");
    fs::write(&text, "no database at all ".repeat(100)).unwrap();
    assert!(matches!(Store::open(&text), Err(Error::Foreign(_))));

    let other = folder.path().join("other.sqlite");
    let foreign = rusqlite::Connection::open(&other).unwrap();
    foreign.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    assert!(matches!(Store::open(&other), Err(Error::Foreign(_))));
    let kept: i64 = foreign.query_row("SELECT x FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1, "another's database is left as it was");

    drop(Store::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(&path), Err(Error::Version { found: 99, .. })));
}

/// SQLite would give the altered number as the result.
#[test]
fn an_altered_row_is_noticed_and_rows_of_older_releases_are_read() {
    let (_folder, path) = place();
    let text = TextRecord {
        origin: origin("a", 1),
        name: "translation".into(),
        factors: factors([]),
        text: "a cat".into(),
    };
    let all = RecordFilter::default();
    let alter = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let store = || Store::existing(&path).unwrap();
    for sql in ["UPDATE records SET value = value + 1", "UPDATE texts SET text = 'a bat'"] {
        Store::open(&path).unwrap().add(&batch(1, 0), from_ref(&text)).unwrap();
        assert_eq!(store().records(&all).unwrap(), batch(1, 0));
        assert_eq!(store().texts(&all).unwrap(), from_ref(&text));
        alter(sql);
        let altered = store().records(&all).err().or(store().texts(&all).err()).unwrap();
        assert!(matches!(&altered, Error::Damaged { .. }), "{altered}");
        assert!(altered.to_string().contains("was altered"), "{altered}");
    }
    // A store without digests, as older releases made them.
    alter(
        "ALTER TABLE records DROP COLUMN blake3; ALTER TABLE texts DROP COLUMN blake3;
           ALTER TABLE records DROP COLUMN slot; ALTER TABLE texts DROP COLUMN slot;",
    );
    let count = store().records(&all).unwrap().len();
    store().add(&batch(1, 0), &[]).unwrap();
    assert_eq!(store().records(&all).unwrap().len(), count);
}

/// A colleague's laboratory, for example.
#[test]
#[cfg(unix)]
fn a_store_is_read_where_nothing_may_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("100% theirs #1?");
    let path = inner.join("results.sqlite");
    Store::open(&path).unwrap().add(&batch(1, 0), &[]).unwrap();
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(&path, 0o444);
    allow(&inner, 0o555);
    let protected = fs::write(inner.join("try"), "").is_err();
    let found =
        Store::existing(&path).map(|store| store.records(&RecordFilter::default()).unwrap());
    allow(&inner, 0o755);
    assert_eq!(found.unwrap().len(), batch(1, 0).len());
    if !protected {
        terms::tests::left_out("this user may write everywhere");
    }
}

#[test]
fn a_damaged_store_is_not_read() {
    let (_folder, path) = place();
    let store = Store::open(&path).unwrap();
    store.add(&batch(1, 0), &[]).unwrap();
    store.add(&batch(1, 1), &[]).unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() > 8192, "{}", whole.len());

    let mut bytes = whole.clone();
    bytes[4096..].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let overwritten = Store::open(&path).and_then(|store| store.records(&RecordFilter::default()));
    assert!(matches!(overwritten, Err(Error::Damaged { .. })), "{overwritten:?}");

    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let cut = Store::open(&path).and_then(|store| store.records(&RecordFilter::default()));
    assert!(matches!(cut, Err(Error::Damaged { .. })), "{cut:?}");
}

#[test]
fn threads_and_processes_write_at_once() {
    let (_folder, path) = place();
    let children = [1, 2].map(|seed| child(&path, seed, 20));
    thread::scope(|scope| {
        for seed in [3, 4] {
            let path = &path;
            scope.spawn(move || write_batches(path, seed, 20));
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let store = Store::existing(&path).unwrap();
    let records = store.records(&RecordFilter::default()).unwrap();
    assert_eq!(records.len(), 4 * 20 * BATCH);
}

#[test]
fn a_kill_leaves_whole_batches() {
    let (_folder, path) = place();
    let mut writer = child(&path, 7, 1_000_000);
    let begun = Instant::now();
    let written = || {
        let store = Store::existing(&path).ok()?;
        Some(store.records(&RecordFilter::default()).ok()?.len())
    };
    while written().unwrap_or(0) < 20 * BATCH {
        assert!(begun.elapsed() < Duration::from_secs(60), "the child writes nothing");
        thread::sleep(Duration::from_millis(5));
    }
    writer.kill().unwrap();
    writer.wait().unwrap();

    let store = Store::existing(&path).unwrap();
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for record in store.records(&RecordFilter::default()).unwrap() {
        *sizes.entry(record.factors["batch"].clone()).or_default() += 1;
    }
    assert!(sizes.len() >= 20);
    assert!(sizes.values().all(|&size| size == BATCH), "{sizes:?}");
    store.add(&batch(8, 0), &[]).unwrap();
}

/// Does nothing by itself: the tests above run it in processes of its own.
#[test]
fn child_writes() {
    let Ok(job) = env::var(JOB) else { return };
    let [path, seed, batches] = job.split('|').collect::<Vec<_>>()[..] else { panic!("{job}") };
    write_batches(Path::new(path), seed.parse().unwrap(), batches.parse().unwrap());
}

fn child(path: &Path, seed: u64, batches: usize) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "child_writes"])
        .env(JOB, format!("{}|{seed}|{batches}", path.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn write_batches(path: &Path, seed: u64, batches: usize) {
    let store = Store::open(path).unwrap();
    for number in 0..batches {
        store.add(&batch(seed, number), &[]).unwrap();
    }
}

fn batch(seed: u64, number: usize) -> Vec<Record> {
    let one = |index: usize| {
        let of = factors([("batch", &number.to_string()), ("index", &index.to_string())]);
        record("anchors", seed, "f1", of, 0.5)
    };
    (0..BATCH).map(one).collect()
}

/// A file that bears our marks, and under the names of our tables something that never ends or computes.
#[test]
fn a_store_of_somebody_elses_making_is_refused_at_once() {
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n";
    for schema in [
        format!("CREATE VIEW records AS {endless}; CREATE TABLE texts (study TEXT)"),
        "CREATE TABLE records (a, b AS (zeroblob(1000000000)))".to_owned(),
        "CREATE TABLE records (a); CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END".to_owned(),
        "CREATE TABLE records (a); CREATE TABLE others (a)".to_owned(),
    ] {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("results.sqlite");
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(&schema).unwrap();
        connection.pragma_update(None, "application_id", 0x4973_6f67).unwrap();
        connection.pragma_update(None, "user_version", 2).unwrap();
        drop(connection);
        let began = Instant::now();
        assert!(matches!(Store::existing(&path), Err(Error::Foreign(_))), "{schema}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
