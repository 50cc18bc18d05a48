//! Drives the binary through word alignment: invented languages whose links are known, files in
//! every form, saved models, encoders, scores, and bad input.

mod common;

use std::path::Path;

use crate::common::{Folder, done, ran, refused};

const PAIRS: &str = "the house ||| la maison
the blue house ||| la maison bleue
the flower ||| la fleur
the blue flower ||| la fleur bleue
a flower ||| une fleur
a house ||| une maison
";

/// The alignment error on 5,000 sentence pairs of an invented world.
fn error_rate(flags: &str) -> f64 {
    let folder: &Path = &Folder::new();
    let small = "world generate --out w --sentences 100 --set parallel.train=5000";
    done(folder, &format!("{small} --set nli={{train=0,dev=0,test=0}} --set tatoeba=50 {flags}"));
    let aligned = done(folder, "word-align -p qaa-qab=w/bitext/bitext.qaa-qab.tsv --out links.txt");
    assert_eq!(aligned["pairs"], 5000);
    let gold = "--gold w/bitext/bitext.qaa-qab.align --predicted links.txt";
    let score = done(folder, &format!("word-align score {gold}"));
    score["aer"].as_f64().unwrap()
}

#[test]
fn the_links_of_invented_languages_are_found() {
    // As in the first language but for the words: nothing is in the way.
    let near = error_rate("");
    assert!(near < 0.01, "{near}");
    let distant = error_rate("--distance 0.9");
    assert!(distant < 0.08, "{distant}");
}

#[test]
fn every_form_of_input_gives_the_same_links() {
    let folder: &Path = &Folder::new();
    let put = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let side = |take: fn((&str, &str)) -> String| -> String {
        PAIRS.lines().map(|line| take(line.split_once(" ||| ").unwrap()) + "\n").collect()
    };
    put("bars", PAIRS.to_owned());
    put("tight", PAIRS.replace(" ||| ", "|||"));
    put("tabs", PAIRS.replace(" ||| ", "\t"));
    put("en", side(|pair| pair.0.to_owned()));
    put("fr", side(|pair| pair.1.to_owned()));
    let links = |input: &str| {
        done(folder, &format!("word-align --force --out links {input}"));
        std::fs::read_to_string(folder.join("links")).unwrap()
    };
    let expected = links("-p en-fr=bars");
    assert_eq!(expected.lines().nth(1), Some("0-0 1-2 2-1"), "{expected}");
    for input in [
        "-p en-fr=tight",
        "-p en-fr=tabs",
        "--parallel en=en --parallel fr=fr",
        "-p en-fr=bars --threads 1",
    ] {
        assert_eq!(links(input), expected, "{input:?}");
    }
}

#[test]
fn everything_that_can_be_asked_for_is_written() {
    let folder: &Path = &Folder::new();
    std::fs::write(folder.join("pairs"), PAIRS.to_uppercase()).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let files = "--forward f --reverse r --posteriors p --scores s --save m";
    let pairs = "word-align -p en-fr=pairs";
    let learn = "--out links --lowercase --prepared words --readable w";
    let learned = done(folder, &format!("{pairs} {learn} --lexicon lexicon.tsv {files}"));
    assert_eq!(learned["forward"].as_array().unwrap().len(), 5);
    assert!(learned["reverse"][4]["log_likelihood"].as_f64().unwrap() < 0.0);
    assert_eq!(read("words"), PAIRS);
    for name in ["f", "r", "p", "s", "links"] {
        assert_eq!(read(name).lines().count(), 6, "{name}");
    }
    let first = read("p").lines().next().unwrap().to_owned();
    assert!(first.starts_with("0-0:") && first.split(' ').next().unwrap().split(':').count() == 3);
    // In words, and as a lexicon: `the` is linked to `la` four times, and to nothing else.
    assert_eq!(read("w").lines().nth(1), Some("the=la blue=bleue house=maison"));
    let lexicon = read("lexicon.tsv");
    assert!(lexicon.starts_with("source\ttarget\tlinks\ttarget_given_source\t"), "{lexicon}");
    let entry = "the\tla\t4\t1.000000\t1.000000";
    assert_eq!(lexicon.lines().nth(1), Some(entry), "{lexicon}");
    // By the saved model, the same text in capitals is linked as it was.
    let links = read("links");
    done(folder, &format!("{pairs} --model m --out again"));
    assert_eq!(read("again"), links);
    std::fs::write(folder.join("new"), "A BLUE THING ||| UNE CHOSE BLEUE\n").unwrap();
    let new = "word-align -p en-fr=new --model m --out";
    done(folder, &format!("{new} new.links"));
    assert!(read("new.links").contains("1-2"), "{}", read("new.links"));
    // A word that the model does not know is shown as it is written.
    done(folder, &format!("{new} also.links --readable new.words --lexicon new.jsonl"));
    let (words, lexicon) = (read("new.words"), read("new.jsonl"));
    assert!(words.contains("blue=bleue") && words.contains("thing=bleue"), "{words}");
    assert!(lexicon.contains(r#"{"source":"blue","target":"bleue","links":1,"#), "{lexicon}");
    let unnamed = "--lexicon new.dictionary --force";
    refused(folder, &format!("{new} new.links {unnamed}"), 2, "name it .tsv or .jsonl");
    refused(folder, &format!("{new} new.links"), 2, "exists; name another output");
    assert_eq!(ran(folder, &format!("{new} -"))[0], read("new.links"));
    // The other way round, or of another language, the model does not fit.
    let swapped = "word-align -p fr-en=new --model m --out no";
    refused(folder, &swapped, 2, "give the two sides in the model's order");
    std::fs::write(folder.join("other"), "X Y Z ||| UNE FLEUR\n").unwrap();
    let other = "word-align -p en-fr=other --model m --out other.links";
    let warned = done(folder, &other)["warnings"][0].as_str().unwrap().to_owned();
    assert!(warned.contains("does not know 100 % of the words of `en`"), "{warned}");
}

#[test]
fn bad_input_is_refused_by_name() {
    let folder: &Path = &Folder::new();
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    put("pairs", "a ||| b\nc d\n");
    put("one", "1\n2\n3\n");
    put("two", "1\n2\n");
    put("hole", "a ||| b\n ||| c\n");
    put("gold", "0-0 1?1\n0-0\n");
    put("wrong", "0-0\n0:0\n");
    let align = |input: &str, code, expected: &str| {
        refused(folder, &format!("word-align --out links {input}"), code, expected);
        assert!(!folder.join("links").exists());
    };
    align("-p a-b=pairs", 1, "pairs:2: no ||| between two sides");
    align("-p a-b=none", 1, "none");
    align("-p a=one -p b=two", 1, "one: has 3 lines, and two has 2");
    align("-p a-b=hole", 1, "hole:2: the first side is empty");
    align("-p a-b=pairs --tension 20", 2, "tension is 20");
    align("-p a=pairs", 2, "give the other side too");
    align("-p a=one -p b=two -p c=two", 2, "names 3 languages");
    align("-p a-b=pairs --model gold", 1, "not a saved word alignment");
    align("-p a-b=pairs --model m --iterations 3", 2, "cannot be used with");
    align("", 2, "no parallel text");
    align("-p a-b=two --threads 100000", 2, "--threads");
    let twice = "word-align -p a-b=two --out - --forward -";
    refused(folder, &twice, 2, "only one output can be standard output");
    align("-p a-b=pairs --save no/such/folder", 1, "no/such");
    refused(folder, "word-align -p a-b=pairs", 2, "--out");
    let score = |predicted: &str, expected: &str| {
        let files = format!("--gold gold --predicted {predicted}");
        refused(folder, &format!("word-align score {files}"), 1, expected);
    };
    score("wrong", "wrong:2: not links");
    score("one", "one:1: not links");
    put("short", "0-0\n");
    score("short", "short: has 1 lines, and the gold standard 2");
    done(folder, "word-align -p a-b=hole --allow-empty --out links");
    assert_eq!(std::fs::read_to_string(folder.join("links")).unwrap(), "0-0\n\n");
}

/// A folder of the tests of Hugging Face checkpoints: a random BERT of four layers.
fn encoder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert")
}

#[test]
fn an_encoder_links_words_by_its_hidden_states() {
    let folder: &Path = &Folder::new();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let model = encoder();
    let model = model.to_str().unwrap();
    // A sentence beside itself: every word is the most similar to itself, in the embeddings at least.
    let same: String = PAIRS
        .lines()
        .map(|line| {
            let side = line.split_once(" ||| ").unwrap().0;
            format!("{side} ||| {side}\n")
        })
        .collect();
    let gold = |line: &str| {
        let words = line.split_once(" ||| ").unwrap().0.split(' ').count();
        (0..words).map(|word| format!("{word}-{word}")).collect::<Vec<_>>().join(" ") + "\n"
    };
    std::fs::write(folder.join("same"), &same).unwrap();
    std::fs::write(folder.join("gold"), same.lines().map(gold).collect::<String>()).unwrap();
    let language = "en";
    let pairs = format!("{language}-{language}=same");
    let base = format!("word-align -p {pairs} --model {model} --device cpu");
    let run = |flags: &str| done(folder, &format!("{base} {flags}"));
    let written = "--layers 1 --extract argmax --out links --confidences scored --readable words";
    let result = run(written);
    assert_eq!(result["pairs"], 6);
    assert_eq!(read("links"), read("gold"));
    assert!(read("scored").starts_with("0-0:1.0000 1-1:1.0000"), "{}", read("scored"));
    assert!(read("words").starts_with("the=the house=house"), "{}", read("words"));
    // Every layer by every extraction against gold links, beside the IBM model and the diagonal.
    let compared = run("--layers all --extract argmax,itermax,softmax --gold gold");
    let rows = compared["alignments"].as_array().unwrap();
    let layers = rows.len() / 3;
    assert!(layers > 1 && rows.len().is_multiple_of(3), "{rows:?}");
    assert_eq!(rows[0]["extraction"], "argmax");
    assert_eq!(rows[0]["score"]["aer"], 0.0);
    let methods: Vec<_> =
        compared["references"].as_array().unwrap().iter().map(|one| &one["method"]).collect();
    assert_eq!(methods, ["ibm2", "diagonal"]);
    assert_eq!(compared["references"][1]["score"]["f1"], 1.0);
    // Words as means of subwords, and the same bits on one thread.
    run("--units words --out whole --extract softmax --threads 1");
    assert_eq!(read("whole").lines().count(), 6);
    let refuse = |flags: &str, code, expected: &str| {
        refused(folder, &format!("{base} {flags}"), code, expected);
    };
    refuse("--layers all --out many", 2, "choose one layer and one extraction");
    refuse("--out x --posteriors p", 2, "--posteriors is for the IBM model");
    refuse("--out x --threshold 1.5", 2, "--threshold 1.5");
    refuse("--out x --iterations 2", 2, "cannot be used with");
    std::fs::write(folder.join("short"), "0-0\n").unwrap();
    refuse("--gold short", 1, "has 1 lines, and the text 6 sentence pairs");
    let without = format!("word-align -p {pairs} --out x --layers 2");
    refused(folder, &without, 2, "--layers is for the hidden states of an encoder");
}
