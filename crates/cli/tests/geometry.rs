//! `encode`, `words`, `align`, `retrieve` and `cka` as people and scripts meet them: the real binary.

mod common;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use arrays::npy::{self, Precision};
use serde_json::Value;

use crate::common::{Folder, Shared, done, ran, refused};

/// A world, and an encoder that has learned for a moment.
static TRAINED: LazyLock<Shared> = LazyLock::new(|| {
    let folder = Shared::new("geometry");
    let generate = "world generate --out world --sentences 3000 --set nli={train=3,dev=3,test=3} \
                    --set ner.train=9 --set treebank.train=9 --set parallel.train=200 --set tatoeba=60";
    let train =
        "pretrain --preset no-anchors --world world --out run --steps 30 --evaluate-every 30";
    for arguments in [generate, train] {
        done(folder.path(), arguments);
    }
    folder
});

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut stream = text::RandomStreams::new(seed, "test").stream(0);
    (0..count).map(|_| stream.unit() as f32 - 0.5).collect()
}

const SIDE: &str = "world/tatoeba/tatoeba.qab-qaa";

#[test]
fn sentences_become_arrays_in_their_order() {
    let folder = TRAINED.path();
    let run = format!("encode --model run --text qab={SIDE}.qab");
    let all = done(folder, &format!("{run} --out all.npy"));
    assert_eq!(all["shape"], serde_json::json!([5, 60, 48]));
    let all = npy::read::<f32>(&folder.join("all.npy")).unwrap();
    done(folder, &format!("{run} --out one.npy --layers 3 --threads 1"));
    let one = npy::read::<f32>(&folder.join("one.npy")).unwrap();
    assert_eq!(one.shape, [60, 48]);
    assert_eq!(one.values, all.values[3 * 60 * 48..4 * 60 * 48], "the same bits on one thread");

    // The mean of a sentence's tokens is what `mean` says it is.
    let tokens = done(folder, &format!("{run} --out t.npy --layers 3 --pool none --lengths t.len"));
    let lengths: Vec<usize> = fs::read_to_string(folder.join("t.len"))
        .unwrap()
        .lines()
        .map(|n| n.parse().unwrap())
        .collect();
    let rows = npy::read::<f32>(&folder.join("t.npy")).unwrap();
    assert_eq!(tokens["shape"], serde_json::json!([lengths.iter().sum::<usize>(), 48]));
    let second = &rows.values[lengths[0] * 48..(lengths[0] + lengths[1]) * 48];
    for (col, mean) in one.values[48..96].iter().enumerate() {
        let sum: f32 = second.iter().skip(col).step_by(48).sum();
        assert!((sum / lengths[1] as f32 - mean).abs() < 1e-5);
    }
    refused(folder, &format!("{run} --out t.npy --layers 3"), 2, "t.npy");
    done(folder, &format!("{run} --out t.npy --layers 3 --force"));
    refused(folder, &format!("{run} --out u.npy --pool none"), 2, "--lengths");
    refused(folder, &format!("{run} --out u.npy --layers 5"), 2, "layers 0 to 4");
    refused(folder, &format!("{run} --out u.csv"), 2, "written as .npy");
}

#[test]
fn a_line_without_text_is_named_and_nothing_is_written() {
    let folder = TRAINED.path();
    fs::write(folder.join("gap.txt"), "so\n\nti\n").unwrap();
    let encode = "encode --model run --out gap.npy --text";
    refused(folder, &format!("{encode} qaa=gap.txt"), 1, "gap.txt:2: a line without text");
    assert!(!folder.join("gap.npy").exists() && !folder.join("gap.npy.partial").exists());
    refused(folder, &format!("{encode} xx=gap.txt"), 2, "no language `xx`");
}

#[test]
fn a_remedy_names_only_what_the_command_has() {
    let folder = TRAINED.path();
    fs::write(folder.join("latin1.txt"), b"so ti\nt\xe9\n").unwrap();
    for command in [
        "encode --model run --text qaa=latin1.txt --out l.npy",
        "words --model run --text qaa=latin1.txt --out l",
        "align words --source l.vec --target l.vec --dictionary latin1.txt --tolerant --save-map l-map.npy",
    ] {
        fs::write(folder.join("l.vec"), "2 2\nso 1 2\nti 2 1\n").unwrap();
        let printed = refused(folder, command, 1, "latin1.txt:2: not UTF-8");
        assert!(!printed.contains("--tolerant"), "{printed}");
    }
    fs::write(folder.join("rare.txt"), "zzz\n").unwrap();
    let words = "words --model run --text qaa=world/text/qaa.base.txt --lines --out w";
    let rare = format!("{words} --words rare.txt");
    refused(folder, &rare, 1, "the text: none of the words occurs in it");
    refused(folder, "retrieve", 2, "--source and --target");
    refused(folder, "hub import run --out again", 2, "run is a run already");
}

#[test]
fn translations_are_looked_for_from_texts_and_from_arrays() {
    let folder = TRAINED.path();
    for side in ["qaa", "qab"] {
        done(folder, &format!("encode --model run --text {side}={SIDE}.{side} --out r-{side}.npy"));
    }
    let texts = format!("retrieve --model run --parallel qab={SIDE}.qab --parallel qaa={SIDE}.qaa");
    let arrays = "retrieve --source r-qab.npy --target r-qaa.npy";
    let (of_texts, of_arrays) = (done(folder, &texts), done(folder, arrays));
    assert_eq!(of_texts["layers"], of_arrays["layers"]);
    assert!(of_texts["signature"].as_str().unwrap().contains("|map:none|"), "{of_texts}");
    assert_eq!(of_texts["layers"].as_array().unwrap().len(), 5);

    let train = "--train qab=world/parallel/train.qab.txt --train qaa=world/parallel/train.qaa.txt";
    let found = done(folder, &format!("{texts} {train} --save-maps maps --retrieval csls"));
    assert!(found["layers"][0]["aligned"]["forward"].as_f64().unwrap() > 0.3, "{found}");
    assert!(found["signature"].as_str().unwrap().contains("|map:procrustes,norm:"), "{found}");
    assert_eq!(npy::read::<f64>(&folder.join("maps/layer-4.npy")).unwrap().shape, [48, 48]);

    assert_eq!(found["train_overlap"], 0, "{found}");

    // Pairs that the maps were learned from are no test, whether text or vectors say so, at any layer.
    let seen = format!("{texts} --train qab={SIDE}.qab --train qaa={SIDE}.qaa --layers 2");
    let [printed, said] = ran(folder, &seen);
    let used = of_texts["used"].as_u64().unwrap();
    assert!(said.contains(&format!("learned from {used} of the {used} test pairs")), "{said}");
    assert!(printed.contains(&format!("{used} of these are test pairs")), "{printed}");
    for side in ["qaa", "qab"] {
        let lines = fs::read_to_string(folder.join(format!("{SIDE}.{side}"))).unwrap();
        let other: Vec<&str> = lines.lines().rev().take(25).collect();
        fs::write(folder.join(format!("o.{side}")), other.join("\n")).unwrap();
        let encode = format!("encode --model run --text {side}=o.{side} --layers 2");
        done(folder, &format!("{encode} --out o-{side}.npy"));
        done(
            folder,
            &format!(
                "encode --model run --text {side}={SIDE}.{side} --layers 2 --out p-{side}.npy"
            ),
        );
    }
    let arrays = "retrieve --source p-qab.npy --target p-qaa.npy \
                  --train-source o-qab.npy --train-target o-qaa.npy";
    let found = done(folder, arrays);
    assert_eq!(found["train_overlap"], found["train"]["used"], "{found}");

    // Some layers keep their own numbers, in what is printed and in what is saved.
    let some = done(folder, &format!("{texts} {train} --layers 2,4 --save-maps some"));
    let numbers = |found: &Value| -> Vec<u64> {
        let layers = found["layers"].as_array().unwrap().iter();
        layers.map(|layer| layer["layer"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&some), [2, 4]);
    // Both directions are reported, and the mean is named.
    let raw = &some["layers"][0]["raw"];
    let [forward, backward, mean] =
        ["forward", "backward", "mean"].map(|key| raw[key].as_f64().unwrap());
    assert_eq!(mean, (forward + backward) / 2.0);
    assert_eq!(some["layers"][0]["raw"], of_texts["layers"][2]["raw"]);
    assert!(folder.join("some/layer-4.npy").is_file() && !folder.join("some/layer-0.npy").exists());

    fs::write(folder.join("short.qaa"), "so\nti\n").unwrap();
    let short = format!("retrieve --model run --parallel qab={SIDE}.qab --parallel qaa=short.qaa");
    let printed = refused(folder, &short, 1, "short.qaa: has 2 lines, ");
    assert!(printed.contains("has 60"), "{printed}");
}

#[test]
fn words_have_vectors_in_and_out_of_context() {
    let folder = TRAINED.path();
    for side in ["qaa", "qab"] {
        let table =
            done(folder, &format!("words --model run --lang {side} --embeddings --out {side}.vec"));
        assert!(table["words"].as_u64().unwrap() > 150, "{table}");
        let means = format!("words --model run --text {side}=world/text/{side}.base.txt --lines");
        let means = done(folder, &format!("{means} --limit 500 --layers 0,4 --out w-{side}"));
        assert_eq!(means["sentences"], 500);
    }
    let files: Vec<_> = fs::read_dir(folder.join("w-qaa")).unwrap().collect();
    assert_eq!(files.len(), 2 + 1, "of two layers, and their record");

    let align = "align words --source w-qab/layer-0.vec --target w-qaa/layer-0.vec --cutoff 500";
    let dictionaries = "--dictionary world/muse/qab-qaa.0-5000.txt --test-dictionary world/muse/qab-qaa.5000-6500.txt";
    let found = done(folder, &format!("{align} {dictionaries} --save-map w.npy --refine 2"));
    for key in ["p_at_1", "p_at_5", "p_at_10", "mrr", "coverage"] {
        assert!((0.0..=1.0).contains(&found[key].as_f64().unwrap()), "{key} in {found}");
    }
    let signature = found["signature"].as_str().unwrap();
    assert!(signature.contains("norm:iterative|refine:2,mutual-csls,k=10"), "{signature}");

    // A kept map does again what it did.
    let test = "--test-dictionary world/muse/qab-qaa.5000-6500.txt";
    let again = done(folder, &format!("{align} {test} --map w.npy"));
    assert_eq!((&again["mrr"], &again["p_at_1"]), (&found["mrr"], &found["p_at_1"]));
    done(folder, "align words --source w-qab/layer-0.vec --map w.npy --out mapped.vec");
    let common = "align words --source mapped.vec --target w-qaa/layer-0.vec --retrieval nn";
    let mapped = done(folder, &format!("{common} {test} --normalize none"));
    assert_eq!(mapped["init"], "none");
    assert!(mapped["candidates"]["mrr"].as_f64().unwrap() > 0.0);
}

/// The lines of a table, without its header, as cells.
fn cells(folder: &Path, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The cosine of two vectors, in double precision.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn what_was_found_can_be_seen() {
    let folder = TRAINED.path();
    let retrieve = format!(
        "retrieve --model run --parallel qab={SIDE}.qab --parallel qaa={SIDE}.qaa --layers 3 --top 4"
    );
    let found = done(folder, &format!("{retrieve} --predictions found.tsv"));
    let rows = cells(folder, "found.tsv");
    // Sentences are different here: as many queries as rows, raw and centred, both ways, four of each.
    assert_eq!(rows.len(), 60 * 2 * 2 * 4);
    for (space, direction) in [("raw", "forward"), ("raw", "backward"), ("centered", "backward")] {
        let first = |row: &&Vec<String>| row[..3] == ["3", space, direction] && row[5] == "1";
        let right = rows.iter().filter(first).filter(|row| row[8] == "1").count();
        let accuracy = found["layers"][0][space][direction].as_f64().unwrap();
        assert!((right as f64 / 60.0 - accuracy).abs() < 1e-9, "{space} {direction}: {right}");
    }
    // The neighbours and scores of the first sentence, computed here from its vectors.
    for side in ["qaa", "qab"] {
        let encode = format!("encode --model run --text {side}={SIDE}.{side} --layers 3 --force");
        done(folder, &format!("{encode} --out seen-{side}.npy"));
    }
    let vectors = |side: &str| npy::read::<f32>(&folder.join(format!("seen-{side}.npy"))).unwrap();
    let (source, target) = (vectors("qab").values, vectors("qaa").values);
    let lines = |side: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(format!("{SIDE}.{side}"))).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let (queries, candidates) = (lines("qab"), lines("qaa"));
    let mut expected: Vec<(f64, &str)> = target
        .chunks_exact(48)
        .zip(&candidates)
        .map(|(row, text)| (cosine(&source[..48], row), text.as_str()))
        .collect();
    expected.sort_by(|a, b| b.0.total_cmp(&a.0));
    let asked = |row: &&Vec<String>| row[1] == "raw" && row[2] == "forward" && row[3] == queries[0];
    let listed: Vec<_> = rows.iter().filter(asked).collect();
    for (row, (score, text)) in listed.iter().zip(&expected) {
        assert!((row[7].parse::<f64>().unwrap() - score).abs() < 2e-6, "{row:?}: {score}");
        assert_eq!((row[4].as_str(), row[6].as_str()), (candidates[0].as_str(), *text));
    }
    // The same as JSON lines, of arrays whose rows have no text.
    let arrays = "retrieve --source seen-qab.npy --target seen-qaa.npy --top 2";
    done(folder, &format!("{arrays} --predictions found.jsonl"));
    let text = fs::read_to_string(folder.join("found.jsonl")).unwrap();
    let second: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&second["query"], &second["gold"][0]), (&"1".into(), &"1".into()));
    assert_eq!(second["neighbors"].as_array().unwrap().len(), 2);
    refused(folder, &format!("{arrays} --predictions found.txt"), 2, "name it .tsv or .jsonl");
    refused(folder, &format!("{arrays} --predictions found.tsv"), 2, "found.tsv");

    // `neighbours` of the same sentence finds the same.
    let neighbours = |extra: &str| {
        let near = "neighbours --model run --lang qab --top 3";
        done(folder, &format!("{near} {extra} '{}'", queries[0]))
    };
    let near = neighbours(&format!("--layers 3 --text qaa={SIDE}.qaa"));
    let near = &near["queries"][0]["layers"][0];
    assert_eq!((&near["layer"], &near["languages"][0]["language"]), (&3.into(), &"qaa".into()));
    for (one, (score, text)) in
        near["languages"][0]["neighbors"].as_array().unwrap().iter().zip(&expected)
    {
        assert_eq!(one["text"], *text);
        assert!((one["cosine"].as_f64().unwrap() - score).abs() < 2e-6);
    }
    // At every layer, centred, beside its own language, in which it is not its own neighbour.
    let centred = neighbours(&format!("--center --text qaa={SIDE}.qaa --text qab={SIDE}.qab"));
    assert_eq!(centred["queries"][0]["layers"].as_array().unwrap().len(), 5);
    let own = &centred["queries"][0]["layers"][4]["languages"][1];
    assert!(own["neighbors"].as_array().unwrap().iter().all(|one| one["text"] != queries[0]));
    let alone = format!("neighbours --model run --lang qab --center --text qaa={SIDE}.qaa so");
    refused(folder, &alone, 2, "`qab` has no candidates");
    refused(folder, "neighbours --model run --lang qab so", 2, "--text LANG=FILE or --vocab LANG");
}

#[test]
fn words_and_their_neighbours() {
    let folder = TRAINED.path();
    for side in ["qaa", "qab"] {
        done(folder, &format!("words --model run --lang {side} --embeddings --out n-{side}.vec"));
    }
    let align = "align words --source n-qab.vec --target n-qaa.vec --dictionary \
                 world/muse/qab-qaa.0-5000.txt --test-dictionary world/muse/qab-qaa.5000-6500.txt";
    let found = done(folder, &format!("{align} --predictions words.tsv --lexicon induced.tsv"));
    let rows = cells(folder, "words.tsv");
    let queries = found["queries"].as_u64().unwrap() as usize;
    assert_eq!(rows.len(), 10 * queries);
    let right = rows.iter().filter(|row| row[5] == "1" && row[8] == "1").count();
    let accuracy = found["p_at_1"].as_f64().unwrap();
    assert!((right as f64 / queries as f64 - accuracy).abs() < 1e-9, "{right} of {queries}");
    // No word is twice in a lexicon of mutual nearest neighbours.
    let pairs = cells(folder, "induced.tsv");
    for column in [0, 1] {
        let mut words: Vec<&String> = pairs.iter().map(|pair| &pair[column]).collect();
        words.sort();
        words.dedup();
        assert_eq!(words.len(), pairs.len());
    }
    assert!(!pairs.is_empty());

    // Words of files of vectors, and of a model's vocabulary.
    fs::write(folder.join("fr.vec"), "2 2\nchat 1 0\nchien 0 1\n").unwrap();
    fs::write(folder.join("en.vec"), "3 2\ndog 0.1 1\ncat 1 0.1\nbird -1 0\n").unwrap();
    let spaces = "neighbours --vectors fr=fr.vec --vectors en=en.vec --lang fr --top 2";
    let near = done(folder, &format!("{spaces} chat chien"));
    let texts = |query: usize, language: usize| -> Vec<&str> {
        let found = &near["queries"][query]["layers"][0]["languages"][language]["neighbors"];
        found.as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
    };
    assert_eq!((texts(0, 1), texts(0, 0)), (vec!["cat", "dog"], vec!["chien"]));
    assert_eq!(texts(1, 1), ["dog", "cat"]);
    let [printed, _] = ran(folder, &format!("{spaces} chat"));
    assert!(printed.contains("en  cat    0.995  dog    0.100\n"), "{printed}");
    refused(folder, &format!("{spaces} loup"), 2, "`loup` has no vector");
    refused(folder, "neighbours --vectors en=en.vec --lang fr chat", 2, "--vectors fr=FILE");
    let word = fs::read_to_string(folder.join("n-qaa.vec")).unwrap();
    let word = word.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let near = done(folder, &format!("neighbours --model run --lang qaa --vocab qab {word}"));
    assert!(near["candidates"][0]["candidates"].as_u64().unwrap() > 150, "{near}");
    // A Hugging Face folder.
    let bert = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    fs::write(folder.join("en.txt"), "The cat sat on the mat.\nNo.\n").unwrap();
    let bert = format!("neighbours --model {} --lang fr --text en=en.txt chat", bert.display());
    let near = done(folder, &bert);
    assert_eq!(
        near["queries"][0]["layers"][0]["languages"][0]["neighbors"].as_array().unwrap().len(),
        2
    );
}

/// XNLI in small: premise, hypothesis and label, every premise three times. A language against itself finds
/// every sentence, and a label is no sentence.
#[test]
fn repeated_rows_count_once_and_columns_are_read_alike() {
    let folder = TRAINED.path();
    let lines = |side: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(format!("{SIDE}.{side}"))).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let (qaa, qab) = (lines("qaa"), lines("qab"));
    // Items 0 to 29: premise item / 3, hypothesis 10 + item. Of these 40 sentences 10 stand three times.
    let table = |side: &[String], items: std::ops::Range<usize>| -> String {
        items.map(|i| format!("{}\t{}\tneutral\n", side[i / 3], side[10 + i])).collect()
    };
    for (name, side) in [("qaa", &qaa), ("qab", &qab)] {
        fs::write(folder.join(format!("dev-{name}.tsv")), table(side, 0..12)).unwrap();
        fs::write(folder.join(format!("test-{name}.tsv")), table(side, 12..30)).unwrap();
    }
    let distinct = |sides: &[&[String]]| {
        let row = |i: usize| sides.iter().map(|side| side[i].clone()).collect::<Vec<_>>();
        (0..40).map(row).collect::<std::collections::BTreeSet<_>>().len()
    };
    let twice = |a: &str, b: &str| {
        format!(
            "--parallel {a}=dev-{a}.tsv --parallel {b}=dev-{b}.tsv --parallel {a}=test-{a}.tsv \
             --parallel {b}=test-{b}.tsv --columns 1,2"
        )
    };
    let itself = done(folder, &format!("retrieve --model run {}", twice("qaa", "qaa")));
    assert_eq!((&itself["rows"], &itself["used"]), (&60.into(), &distinct(&[&qaa]).into()));
    assert_eq!(itself["repeated"], 60 - distinct(&[&qaa]));
    for layer in itself["layers"].as_array().unwrap() {
        assert_eq!((&layer["raw"]["mean"], &layer["centered"]["mean"]), (&1.0.into(), &1.0.into()));
    }
    let both = twice("qab", "qaa");
    let pairs = distinct(&[&qab, &qaa]);
    let found = done(folder, &format!("retrieve --model run {both} --out xnli.json"));
    let similar = done(folder, &format!("cka --model run {both} --curve xnli.json"));
    assert_eq!((&found["used"], &similar["used"]), (&pairs.into(), &pairs.into()));
    assert_eq!((&similar["rows"], &similar["too_long"]), (&60.into(), &0.into()));
    assert!(similar["pearson"].get("raw").is_some(), "{similar}");

    // The same as the different sentences by themselves, within sentence lengths too.
    let mut seen = std::collections::BTreeSet::new();
    let (mut a, mut b) = (String::new(), String::new());
    for i in (0..12).flat_map(|i| [i / 3, 10 + i]).chain((12..30).flat_map(|i| [i / 3, 10 + i])) {
        if seen.insert((&qab[i], &qaa[i])) {
            a += &format!("{}\n", qab[i]);
            b += &format!("{}\n", qaa[i]);
        }
    }
    fs::write(folder.join("once.qab"), a).unwrap();
    fs::write(folder.join("once.qaa"), b).unwrap();
    for side in ["qab", "qaa"] {
        let run = format!("encode --model run --text {side}=once.{side} --out once-{side}.npy");
        done(folder, &format!("{run} --lengths once-{side}.lengths"));
    }
    let arrays = done(folder, "cka once-qab.npy once-qaa.npy");
    assert_eq!((&arrays["cka"], &arrays["debiased"]), (&similar["cka"], &similar["debiased"]));
    let within = done(folder, "cka once-qab.npy once-qaa.npy --within once-qaa.lengths");
    assert_eq!(within["cka"], similar["within_length"]);
    let searched = done(folder, "retrieve --source once-qab.npy --target once-qaa.npy");
    assert_eq!(searched["layers"], found["layers"]);

    // Arrays of all rows: retrieval takes equal ones once, CKA says that they repeat.
    for side in ["qab", "qaa"] {
        let files = format!("--text {side}=dev-{side}.tsv --text {side}=test-{side}.tsv");
        done(folder, &format!("encode --model run {files} --columns 1,2 --out all-{side}.npy"));
    }
    let searched = done(folder, "retrieve --source all-qab.npy --target all-qaa.npy");
    assert_eq!(searched["layers"], found["layers"]);
    assert_eq!(done(folder, "cka all-qab.npy all-qaa.npy")["repeated"], 60 - pairs);

    // A label is read nowhere: `shift means` and `words` take the same columns.
    let means = |text: &str, out: &str| {
        let run = format!("shift means --model run --lines --text qaa={text} --out {out}");
        done(folder, &format!("{run} --text qab=once.qab"))["languages"][0]["states"].clone()
    };
    let premises: String = (0..12).map(|i| format!("{}\n", qaa[i / 3])).collect();
    fs::write(folder.join("premises.txt"), premises).unwrap();
    assert_eq!(means("dev-qaa.tsv", "m1"), means("premises.txt", "m2"));
    refused(
        folder,
        "encode --model run --text qaa=dev-qaa.tsv --columns 4 --out no.npy",
        1,
        "dev-qaa.tsv:1: has 3 columns, and column 4",
    );
}

/// Encoders of different depth: every layer of one beside every layer of the other, but no retrieval.
#[test]
fn encoders_of_different_depth() {
    let folder = TRAINED.path();
    let shallow = "pretrain --preset untrained --world world --out shallow --encoder.layers 2";
    done(folder, shallow);
    let both =
        format!("--model run --model shallow --parallel qab={SIDE}.qab --parallel qaa={SIDE}.qaa");
    let similar = done(folder, &format!("cka {both}"));
    let cka = similar["cka"].as_array().unwrap();
    assert_eq!((cka.len(), cka[0].as_array().unwrap().len()), (5, 3));
    refused(folder, &format!("retrieve {both}"), 1, "has 3 layers of dimension 48");
}

#[test]
fn a_map_for_each_layer_from_links() {
    let folder = TRAINED.path();
    // In this world both languages have one order, so word i goes with word i.
    let text = fs::read_to_string(folder.join("world/parallel/train.qaa.txt")).unwrap();
    let links = text.lines().map(|line| {
        let links: Vec<_> =
            (0..line.split_whitespace().count()).map(|i| format!("{i}-{i}")).collect();
        links.join(" ") + "\n"
    });
    fs::write(folder.join("links"), links.collect::<String>()).unwrap();
    let sides =
        "--parallel qab=world/parallel/train.qab.txt --parallel qaa=world/parallel/train.qaa.txt";
    let run = format!("align contexts --model run {sides} --links links");
    let learned = done(folder, &format!("{run} --out context-maps --sample-size 900"));
    assert_eq!(learned["links"], 900);
    for layer in learned["layers"].as_array().unwrap() {
        assert!(layer["after"].as_f64().unwrap() > layer["before"].as_f64().unwrap(), "{layer}");
    }
    assert!(folder.join("context-maps/layer-4.npy").exists());
    assert_eq!((&learned["rows"], &learned["too_long"]), (&200.into(), &0.into()));

    // The same text as one file the other way round, with a pair that is too long, gives the same maps.
    let lines = |side: &str| -> Vec<String> {
        let file = folder.join(format!("world/parallel/train.{side}.txt"));
        fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
    };
    let mut pairs: Vec<String> =
        lines("qaa").iter().zip(lines("qab")).map(|(a, b)| format!("{a} ||| {b}\n")).collect();
    pairs.push(format!("{} ||| {}\n", "so ".repeat(200), lines("qab")[0]));
    pairs.push(" ||| so\n".to_owned());
    fs::write(folder.join("pairs"), pairs.concat()).unwrap();
    let links = fs::read_to_string(folder.join("links")).unwrap() + "0-0 199-1\n\n";
    fs::write(folder.join("more-links"), links).unwrap();
    let one = "align contexts --model run --parallel qaa-qab=pairs --links more-links --onto qaa";
    let again = done(folder, &format!("{one} --out pair-maps --sample-size 900"));
    assert_eq!((&again["rows"], &again["too_long"]), (&202.into(), &1.into()));
    assert_eq!((&again["links"], &again["layers"]), (&learned["links"], &learned["layers"]));
    let other = one.replace("--onto qaa", "--onto qac");
    refused(folder, &format!("{other} --out no-maps"), 2, "--onto qac: the sides are qaa and qab");

    fs::write(folder.join("links"), "0-0\n").unwrap();
    refused(folder, &format!("{run} --out no-maps"), 1, "links: has 1 lines for 200 pairs");
    assert!(!folder.join("no-maps").exists());
}

#[test]
fn similarity_of_matrices_and_of_stacks() {
    let folder: &Path = &Folder::new();
    let x = numbers(3 * 80 * 6, 1);
    let write = |name: &str, shape: &[usize], values: &[f32]| {
        npy::write(&folder.join(name), shape, values, Precision::Single).unwrap();
    };
    write("x.npy", &[80, 6], &x[..480]);
    write("stack.npy", &[3, 80, 6], &x);
    let itself = done(folder, "cka x.npy x.npy --subsamples 20");
    assert!((itself["cka"][0][0].as_f64().unwrap() - 1.0).abs() < 1e-9, "{itself}");
    assert!((itself["debiased"][0][0].as_f64().unwrap() - 1.0).abs() < 1e-9, "{itself}");
    assert_eq!((&itself["used"], &itself["dims"]), (&80.into(), &serde_json::json!([6, 6])));
    assert_eq!(itself["few_rows"], false);
    let on_cpu = done(folder, "cka x.npy x.npy --subsamples 20 --device cpu --threads 1");
    assert_eq!(on_cpu, itself, "so little is never made on a GPU");
    refused(folder, "cka x.npy x.npy --device abacus", 2, "invalid value 'abacus'");

    // A scale changes nothing, however large or small.
    for scale in [1e20_f32, 1e-30] {
        let scaled: Vec<f32> = x[..480].iter().map(|x| x * scale).collect();
        write("scaled.npy", &[80, 6], &scaled);
        let found = done(folder, "cka x.npy scaled.npy --subsamples 0");
        assert!((found["cka"][0][0].as_f64().unwrap() - 1.0).abs() < 1e-5, "{found}");
    }
    refused(folder, "cka x.npy x.npy --subsamples 1", 2, "give 0, or at least 20");

    let chosen = done(folder, "retrieve --source stack.npy --target stack.npy --layers 2");
    assert_eq!(chosen["layers"].as_array().unwrap().len(), 1);
    assert_eq!(chosen["layers"][0]["layer"], 2);
    let all = "retrieve --source stack.npy --target stack.npy";
    refused(folder, &format!("{all} --layers 3"), 2, "--layers 3: there are layers 0 to 2");
    let many = format!("{all} --retrieval csls --neighbors 81");
    refused(
        folder,
        &many,
        2,
        "81 neighbours: there are 80 rows; give fewer, at least 1 (--neighbors)",
    );

    let stacks = done(folder, "cka stack.npy stack.npy --svg map.svg");
    assert!((stacks["cka"][2][2].as_f64().unwrap() - 1.0).abs() < 1e-9, "{stacks}");
    assert!(stacks["debiased"][0][2].as_f64().unwrap().abs() < 0.2, "{stacks}");
    assert!(fs::read_to_string(folder.join("map.svg")).unwrap().starts_with("<svg"));

    write("few.npy", &[10, 6], &x[..60]);
    let [printed, _] = ran(folder, "cka few.npy few.npy");
    assert!(
        printed.contains("warning: n is not well above d") && printed.contains("n 10, d 6"),
        "{printed}"
    );

    write("other.npy", &[3, 80, 6], &numbers(3 * 80 * 6, 3));
    done(folder, "retrieve --source stack.npy --target other.npy --out found.json");
    let correlated = done(folder, "cka stack.npy other.npy --curve found.json");
    assert!(correlated["pearson"].get("raw").is_some(), "{correlated}");
}

#[test]
fn measures_of_similarity_by_layer() {
    let folder: &Path = &Folder::new();
    let x = numbers(2 * 90 * 5, 1);
    let y: Vec<f32> = x.iter().zip(numbers(2 * 90 * 5, 2)).map(|(x, y)| x + 0.3 * y).collect();
    let write = |name: &str, shape: &[usize], values: &[f32]| {
        npy::write(&folder.join(name), shape, values, Precision::Single).unwrap();
    };
    write("x.npy", &[2, 90, 5], &x);
    write("y.npy", &[2, 90, 5], &y);
    let all = done(folder, "similarity x.npy y.npy --subsamples 20 --svg lines.svg");
    let layers = all["layers"].as_array().unwrap();
    assert_eq!((layers.len(), &all["subsamples"], &all["used"]), (2, &20.into(), &90.into()));
    for layer in layers {
        let measures = layer["measures"].as_object().unwrap();
        assert_eq!(measures.len(), 9, "{measures:?}");
        for (name, found) in measures {
            let number = |key: &str| found[key].as_f64().unwrap();
            assert!(number("value") > 0.3 && number("chance") < 0.4, "{name}: {found}");
            let [low, high] = ["low", "high"].map(|end| found["interval"][end].as_f64().unwrap());
            assert!(low <= number("value") && number("value") <= high, "{name}: {found}");
        }
    }
    assert!(fs::read_to_string(folder.join("lines.svg")).unwrap().starts_with("<svg"));
    // The same value as `cka` gives.
    let one = done(folder, "similarity x.npy y.npy --measure cka --layers 1 --subsamples 0");
    let table = done(folder, "cka x.npy y.npy");
    let value = one["layers"][0]["measures"]["cka"]["value"].as_f64().unwrap();
    assert!((value - table["cka"][1][1].as_f64().unwrap()).abs() < 1e-6, "{one}");
    assert_eq!(one["layers"][0]["layer"], 1);
    assert!(one["layers"][0]["measures"]["cka"]["interval"].is_null());

    let [printed, _] = ran(folder, "similarity x.npy y.npy --measure svcca,mexa");
    assert!(
        printed.contains("SVCCA (Raghu et al. 2017)") && printed.contains("chance"),
        "{printed}"
    );
    refused(folder, "similarity x.npy y.npy --measure cosine", 2, "strong-alignment");
    refused(folder, "similarity x.npy y.npy --subsamples 3", 2, "give 0, or at least 20");
    write("narrow.npy", &[2, 90, 4], &x[..720]);
    refused(folder, "similarity x.npy narrow.npy", 2, "`anc` compares coordinates");
    done(folder, "similarity x.npy narrow.npy --measure cka,rsa,mutual-nn");
    write("single.npy", &[90, 5], &x[..450]);
    refused(folder, "similarity x.npy single.npy", 1, "single.npy: has 1 layers, x.npy has 2");
}

#[test]
fn the_language_of_vectors_is_told() {
    let folder: &Path = &Folder::new();
    let x = numbers(2 * 100 * 4, 1);
    // The second language differs by its mean, at the second layer alone.
    let mut y = numbers(2 * 100 * 4, 2);
    y[400..].iter_mut().step_by(4).for_each(|x| *x += 3.0);
    for (name, values) in [("x.npy", &x), ("y.npy", &y)] {
        npy::write(&folder.join(name), &[2, 100, 4], values, Precision::Single).unwrap();
    }
    let found = done(folder, "language-id --vectors a=x.npy --vectors b=y.npy --directions 2");
    let accuracy = |layer: usize, treatment: &str| {
        let treated = found["layers"][layer]["treatments"].as_array().unwrap();
        let own = treated.iter().find(|one| one["treatment"] == treatment).unwrap();
        assert!((own["shuffled"].as_f64().unwrap() - 0.5).abs() < 0.2, "{own}");
        own["accuracy"].as_f64().unwrap()
    };
    assert_eq!(accuracy(1, "raw"), 1.0);
    for treatment in ["centered", "lsar", "without-2"] {
        assert!((accuracy(1, treatment) - 0.5).abs() < 0.3, "{found}");
    }
    assert!((accuracy(0, "raw") - 0.5).abs() < 0.2, "{found}");
    let test = found["languages"][1]["test"].as_u64();
    assert_eq!((found["chance"].as_f64(), test), (Some(0.5), Some(34)));
    refused(folder, "language-id --vectors a=x.npy", 2, "there is one language only");
    refused(folder, "language-id", 2, "--model");

    // Every row three times: each is used once, and what is left out is counted.
    let thrice = |values: &[f32]| -> Vec<f32> {
        values.chunks(4).flat_map(|row| [row; 3].concat()).collect()
    };
    for (name, values) in [("x3.npy", &x), ("y3.npy", &y)] {
        npy::write(&folder.join(name), &[100 * 3, 4], &thrice(&values[..400]), Precision::Single)
            .unwrap();
    }
    let arguments = "language-id --vectors a=x3.npy --vectors b=y3.npy";
    let found = done(folder, arguments);
    for one in found["languages"].as_array().unwrap() {
        assert_eq!((&one["test"], &one["repeated"]), (&34.into(), &200.into()), "{one}");
    }
    let [printed, _] = ran(folder, &arguments);
    assert!(printed.contains("; 200 with a sentence of an earlier row were left out"), "{printed}");
}

/// Sentences of text that come back, and rows of which a line is empty, are not even encoded.
#[test]
fn the_language_of_different_sentences_is_told() {
    let folder = TRAINED.path();
    let lines = |side: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(format!("{SIDE}.{side}"))).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let mut rows: Vec<(String, String)> = Vec::new();
    for (one, other) in lines("qaa").into_iter().zip(lines("qab")) {
        if rows.len() < 14 && rows.iter().all(|row| row.0 != one && row.1 != other) {
            rows.push((one, other));
        }
    }
    // A row that comes back, a sentence with another translation, one without any, and another with a known one.
    let own = |row: usize| rows[row].clone();
    let more = [own(3), (own(4).0, own(5).1 + " so"), (own(6).0 + " so", String::new())];
    rows.extend(more.into_iter().chain([(own(7).0 + " ti", own(8).1)]));
    let column = |of: fn(&(String, String)) -> &String| -> String {
        rows.iter().map(|row| of(row).clone() + "\n").collect()
    };
    fs::write(folder.join("again.qaa"), column(|row| &row.0)).unwrap();
    fs::write(folder.join("again.qab"), column(|row| &row.1)).unwrap();
    let found = done(folder, "language-id --model run --text qaa=again.qaa --text qab=again.qab");
    let counts = |at: usize| {
        let one = &found["languages"][at];
        let used = ["fitted", "train", "test"].map(|part| one[part].as_u64().unwrap());
        (used.iter().sum::<u64>(), one["repeated"].as_u64().unwrap())
    };
    assert_eq!((counts(0), counts(1)), ((14, 3), (14, 3)), "{found}");
}

/// A random model of 32 neurons: what is found in it means nothing, but every number is there.
#[test]
fn neurons_of_languages_are_set_to_zero() {
    let folder: &Path = &Folder::new();
    let bert = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    for (name, words) in [("en", "the cat sat on the mat"), ("fr", "le chat assis sur le tapis")] {
        let lines = (0..40).map(|number| format!("{words} {number}\n")).collect::<String>();
        std::fs::write(folder.join(name), lines).unwrap();
    }
    let command =
        format!("language-neurons --model {} --text en=en --draws 2 --device cpu", bert.display());
    let found = done(folder, &format!("{command} --text fr=fr --share 0.1"));
    assert_eq!(found["layers"][1]["layer"], 2);
    assert_eq!(found["ablations"].as_array().unwrap().len(), 4);
    let [own, random] = ["loss", "random"].map(|key| &found["ablations"][0][key]);
    assert!(own.as_f64().unwrap() > 0.0 && random.as_array().unwrap().len() == 2, "{found}");
    refused(folder, &format!("{command} --text fr=fr --share 0.5"), 2, "--share");
    refused(folder, &command, 2, "at least two");
}

#[test]
fn bad_arrays_are_named() {
    let folder: &Path = &Folder::new();
    let write = |name: &str, rows: usize, values: &[f32]| {
        npy::write(&folder.join(name), &[rows, 2], values, Precision::Single).unwrap();
    };
    let mut values = numbers(20, 2);
    write("x.npy", 10, &values);
    write("short.npy", 9, &values[..18]);
    write("same.npy", 10, &[1.0; 20]);
    values[7] = f32::NAN;
    write("nan.npy", 10, &values);
    values[6..8].fill(0.0);
    write("zero.npy", 10, &values);
    let whole = fs::read(folder.join("x.npy")).unwrap();
    fs::write(folder.join("lying.npy"), &whole[..whole.len() - 8]).unwrap();
    fs::write(folder.join("other.npy"), "no array").unwrap();
    for (arguments, expected) in [
        ("cka x.npy short.npy", "short.npy: has 9 rows, x.npy has 10"),
        (
            "cka x.npy nan.npy",
            "nan.npy: layer 0, row 3: has NaN in column 1 (rows and columns count from 0)",
        ),
        ("cka lying.npy x.npy", "lying.npy: its header promises"),
        ("cka x.npy same.npy", "same.npy: layer 0: all its rows are the same"),
        ("cka other.npy x.npy", "other.npy: is no .npy, .npz or safetensors file"),
        (
            "retrieve --source x.npy --target zero.npy",
            "zero.npy: layer 0, row 3: is a vector of zeros",
        ),
        ("retrieve --source x.npy --target short.npy", "short.npy: has 9 rows"),
    ] {
        refused(folder, arguments, 1, expected);
    }
}

#[test]
fn bad_vectors_and_dictionaries_are_named() {
    let folder: &Path = &Folder::new();
    for (name, text) in [
        ("a.vec", "3 2\nun 1 0\ndeux 0 1\ntrois 1 1\n"),
        ("b.vec", "3 2\none 1 0\ntwo 0 1\nthree 1 1\n"),
        ("lying.vec", "4 2\none 1 0\ntwo 0 1\nthree 1 1\n"),
        ("nan.vec", "2 2\none 1 0\ntwo 0 nan\n"),
        ("zero.vec", "3 2\none 1 0\ntwo 0 0\nthree 1 1\n"),
        ("good.txt", "un one\ndeux two\n"),
        ("turned.txt", "one un\ntwo deux\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let align = |target: &str, dictionary: &str, more: &str| {
        format!(
            "align words --source a.vec --target {target} --dictionary {dictionary} --test-dictionary {dictionary} {more}"
        )
    };
    for (target, dictionary, expected) in [
        ("lying.vec", "good.txt", "lying.vec"),
        ("nan.vec", "good.txt", "nan.vec:3"),
        ("zero.vec", "good.txt", "zero.vec: word 2 (`two`): is a vector of zeros"),
        ("b.vec", "turned.txt", "turned.txt: none of its 2 pairs has a vector on both sides"),
    ] {
        refused(folder, &align(target, dictionary, ""), 1, expected);
    }
    let seen = align("b.vec", "good.txt", "--normalize none --retrieval nn");
    let found = done(folder, &seen);
    assert_eq!((&found["p_at_1"], &found["coverage"]), (&1.0.into(), &1.0.into()));
    // One dictionary to learn from and to look up is no test, and that is said.
    let overlap = |pairs, queries, translations| serde_json::json!({ "pairs": pairs, "queries": queries, "translations": translations });
    assert_eq!(found["train_overlap"], overlap(2, 2, 0));
    assert!(found["unseen"].is_null());
    let [printed, said] = ran(folder, &seen);
    assert!(said.contains("learned from 2 of the 2 test words (2 of 2 pairs)"), "{said}");
    assert!(printed.contains("learned from all of these 2 words"), "{printed}");
    fs::write(folder.join("one.txt"), "deux two\n").unwrap();
    let some =
        "align words --source a.vec --target b.vec --dictionary one.txt --test-dictionary good.txt";
    let found = done(folder, some);
    assert_eq!(found["train_overlap"], overlap(1, 1, 0));
    assert_eq!(found["unseen"]["queries"], 1);
    fs::write(folder.join("other-word.txt"), "trois three\n").unwrap();
    let none = some.replace("one.txt", "other-word.txt");
    assert_eq!(done(folder, &none)["train_overlap"]["queries"], 0);
    assert!(!ran(folder, &none)[1].contains("test words"));
    // A translation that was learned from with another word is no whole test either.
    fs::write(folder.join("translation.txt"), "trois one\n").unwrap();
    let half = some.replace("one.txt", "translation.txt");
    assert_eq!(done(folder, &half)["train_overlap"], overlap(0, 0, 1));
    let [printed, _] = ran(folder, &half);
    assert!(
        printed.contains("map learned from 1 pairs of 1 in the dictionary (100.0 %)"),
        "{printed}"
    );
    assert!(printed.contains("of 1 other words a translation was learned from"), "{printed}");
    // So few pairs of a dictionary with vectors are said, with what is probably wrong.
    let swapped: String = (0..20).map(|number| format!("x{number} y{number}\n")).collect();
    fs::write(folder.join("swapped.txt"), format!("un one\none un\ntwo deux\n{swapped}")).unwrap();
    for flag in
        ["--dictionary swapped.txt --test-dictionary good.txt", "--test-dictionary swapped.txt"]
    {
        let few = format!("align words --source a.vec --target b.vec --normalize none {flag}");
        let [_, said] = ran(folder, &few);
        let expected = "swapped.txt: only 1 of 23 pairs (4.3 %) have vectors on both sides; with its columns swapped, 2 would";
        assert!(said.contains(expected), "{said}");
    }
    let turned = align("b.vec", "turned.txt", "--normalize none --retrieval nn --reversed");
    assert_eq!(done(folder, &turned)["p_at_1"], 1.0);
    let tolerant = done(folder, &align("zero.vec", "good.txt", "--tolerant --normalize unit"));
    assert_eq!((&tolerant["target_words"], &tolerant["coverage"]), (&2.into(), &0.5.into()));
    // Words and pairs have each their own share.
    fs::write(folder.join("half.txt"), "un one\ndeux two\ndeux zwei\nquatre four\n").unwrap();
    let half =
        "align words --source a.vec --target b.vec --test-dictionary half.txt --normalize none";
    let [printed, _] = ran(folder, &half);
    let expected = "\ncoverage: 2 of 3 source words (0.667), 2 of 4 pairs (0.500)\n";
    assert!(printed.contains(expected), "{printed}");
    let half = done(folder, half);
    assert_eq!(half["words"], serde_json::json!([3, 2]));
    assert_eq!((&half["pairs"], &half["pair_coverage"]), (&serde_json::json!([4, 2]), &0.5.into()));
    // A word that is spelled like its translation is no evidence, and vocabularies can be made common.
    fs::write(folder.join("c.vec"), "3 2\nun 1 2\nParis 2 1\ndeux 0 1\n").unwrap();
    fs::write(folder.join("d.vec"), "3 2\none 1 2\nparis 2 1\ntwo 0 1\n").unwrap();
    fs::write(folder.join("names.txt"), "un one\nParis paris\ndeux two\n").unwrap();
    fs::write(folder.join("list.txt"), "un\nParis\n").unwrap();
    let names = "align words --source c.vec --target d.vec --test-dictionary names.txt \
                 --normalize none --retrieval nn";
    let found = done(folder, names);
    assert_eq!((&found["queries"], &found["different"]["queries"]), (&3.into(), &2.into()));
    assert_eq!(found["different"]["p_at_1"], 1.0);
    assert_eq!(found["different"]["candidates"]["queries"], 2);
    assert!(ran(folder, &names)[0].contains("words that no translation equals:"));
    let common = done(folder, &format!("{names} --source-words list.txt --target-words d.vec"));
    assert_eq!((&common["source_words"], &common["queries"]), (&2.into(), &2.into()));
    assert!(common["signature"].as_str().unwrap().contains("|vocab:200000,common|"), "{common}");
    fs::write(folder.join("other.txt"), "vier\n").unwrap();
    let none = format!("{names} --source-words other.txt");
    refused(folder, &none, 1, "c.vec: has no word of other.txt");
    let alike =
        "align words --source a.vec --target b.vec --init identical --test-dictionary good.txt";
    refused(folder, alike, 2, "no word is spelled alike");
    let elsewhere = align("b.vec", "good.txt", "--device abacus");
    refused(folder, &elsewhere, 2, "invalid value 'abacus'");
}

/// Three languages whose vectors are rotations of one another, with dictionaries of two of their three pairs.
#[test]
fn many_languages_are_mapped_into_one_space() {
    let folder: &Path = &Folder::new();
    let value = |word: usize, col: usize| {
        let mixed = (word as u64 * 1000 + col as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    // Each pair of columns is rotated by the angle.
    let vectors = |name: &str, angle: f64| {
        let (sin, cos) = angle.sin_cos();
        let mut text = String::from("40 12\n");
        for word in 0..40 {
            text += &format!("{name}{word}");
            for col in (0..12).step_by(2) {
                let (x, y) = (value(word, col), value(word, col + 1));
                text += &format!(" {} {}", cos * x - sin * y, sin * x + cos * y);
            }
            text.push('\n');
        }
        fs::write(folder.join(format!("{name}.vec")), text).unwrap();
    };
    vectors("a", 0.0);
    vectors("b", 1.2);
    vectors("c", 2.5);
    let dictionary = |name: &str, [x, y]: [&str; 2], words: std::ops::Range<usize>| {
        let text: String = words.map(|word| format!("{x}{word} {y}{word}\n")).collect();
        fs::write(folder.join(name), text).unwrap();
    };
    dictionary("b-a.txt", ["b", "a"], 0..20);
    dictionary("c-b.txt", ["c", "b"], 0..20);
    dictionary("b-a.test", ["b", "a"], 20..40);
    dictionary("a-c.test", ["a", "c"], 20..40);
    let base = "align many --vectors a=a.vec --vectors b=b.vec --vectors c=c.vec --normalize none";
    let learned = "--dictionary b-a=b-a.txt --dictionary c-b=c-b.txt";
    let tested = "--test-dictionary b-a=b-a.test --test-dictionary a-c=a-c.test --out space";
    let result = done(folder, &format!("{base} {learned} {tested}"));
    let pairs = result["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 6, "every ordered pair: {pairs:?}");
    for pair in pairs {
        assert_eq!(
            (&pair["p_at_1_hub"], &pair["p_at_1_joint"]),
            (&1.0.into(), &1.0.into()),
            "{pair}"
        );
        assert!(pair["p_at_1_unmapped"].as_f64().unwrap() < 0.9, "{pair}");
        let of = |key: &str| pair[key].as_str().unwrap();
        let has = |language: &str| of("source") == language || of("target") == language;
        assert_eq!(pair["pivoted"], has("b") && has("c"), "{pair}");
        assert_eq!(pair["trained"], has("b"), "{pair}");
        assert_eq!(pair["seen"], 0, "{pair}");
    }
    // The opposite direction of a dictionary that was learned from is no test either.
    dictionary("a-b.test", ["a", "b"], 15..30);
    let found = done(folder, &format!("{base} {learned} --test-dictionary a-b=a-b.test"));
    for pair in found["pairs"].as_array().unwrap() {
        assert_eq!((&pair["seen"], &pair["queries"]), (&5.into(), &10.into()), "{pair}");
    }
    assert!(folder.join("space/c.npy").is_file() && folder.join("space/a.vec").is_file());
    refused(folder, &format!("{base} --dictionary b-a=b-a.txt"), 2, "joins `c` to `a`");
    refused(folder, &format!("{base} --dictionary d-a=b-a.txt"), 2, "no vectors of `d`");
}
