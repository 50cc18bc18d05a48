//! Drives the binary from text to vectors, and tries to break it.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Folder, command, done, reading, refused};

/// Sentences about cats and about numbers, in two languages.
fn place() -> Folder {
    let folder = Folder::new();
    let english = "the cat eats the fish\none and two are three\nthe dog sees the cat\n";
    let french = "le chat mange le poisson\nun et deux font trois\nle chien voit le chat\n";
    fs::write(folder.join("en.txt"), english.repeat(300)).unwrap();
    fs::write(folder.join("fr.txt"), french.repeat(300)).unwrap();
    folder
}

const TEXTS: &str = "--text en=en.txt --text fr=fr.txt --lines";

fn train(kind: &str, flags: &str) -> String {
    format!("vectors {kind} {TEXTS} {flags}")
}

#[test]
fn both_kinds_learn_from_two_languages_together() {
    let folder: &Path = &place();
    // Every word of so small a vocabulary is frequent, so none is left out.
    let all = ["--subsample 0", ""];
    for ((kind, out), all) in [("word2vec", "w.vec"), ("glove", "g.vec")].into_iter().zip(all) {
        let train = |flags: &str| train(kind, &format!("--dim 20 --epochs 2 {all} {flags}"));
        let printed = done(folder, &train(&format!("--out {out}")));
        assert_eq!((&printed["dim"], &printed["tokens"]), (&20.into(), &9000.into()));
        let losses = printed["losses"].as_array().unwrap();
        assert!(losses[1].as_f64() < losses[0].as_f64(), "{losses:?}");
        let text = fs::read_to_string(folder.join(out)).unwrap();
        assert!(text.starts_with(&format!("{} 20\n", printed["words"])), "{text}");
        assert!(text.contains("\nchat ") && text.contains("\ncat "));
        assert!(!folder.join(format!("{out}.state")).exists());
        // On another number of threads, the same bytes.
        done(folder, &train("--threads 1 --force --out one.vec"));
        assert_eq!(fs::read_to_string(folder.join("one.vec")).unwrap(), text);
        done(folder, &train("--seed 5 --force --out five.vec"));
        assert_ne!(fs::read_to_string(folder.join("five.vec")).unwrap(), text);
    }
}

#[test]
fn words_are_a_vocabularys_subwords() {
    let folder: &Path = &place();
    done(folder, &format!("vocab train --merges 30 --out joint {TEXTS}"));
    let flags = "--tokenizer joint --dim 8 --epochs 1 --out p.vec";
    let printed = done(folder, &train("word2vec", flags));
    assert!(printed["tokens"].as_u64() > Some(9000));
    let text = fs::read_to_string(folder.join("p.vec")).unwrap();
    assert!(text.contains("</w> "), "{text}");
}

/// A short window is one for static vectors too: other sentences, other vectors. Most sentences are longer
/// than it at `tiny`, where Liu et al.'s 20 tokens would cut none.
#[test]
fn sentences_are_cut_as_the_runs_inputs_were() {
    let folder: &Path = &crate::common::with_world();
    for preset in ["default", "window-20"] {
        let run = format!("pretrain --preset {preset} --world world --out {preset}");
        done(folder, &format!("{run} --steps 2 --text.dev 50"));
    }
    for kind in ["word2vec", "glove"] {
        let learn = |model: &str, out: &str| {
            let flags = format!("--dim 8 --epochs 1 --out {out}");
            let result = done(folder, &format!("vectors {kind} --model {model} {flags}"));
            let count = |key: &str| result[key].as_u64().unwrap();
            (count("tokens"), count("sentences"), count("cut"))
        };
        let (tokens, sentences, cut) = learn("default", &format!("{kind}.full.vec"));
        assert_eq!((cut, sentences), (0, 5900));
        let (same_tokens, same_sentences, cut) = learn("window-20", &format!("{kind}.short.vec"));
        assert_eq!((same_tokens, same_sentences), (tokens, sentences));
        assert!(2 * cut > sentences, "{cut} of {sentences} sentences are cut");
        let read = |length: &str| fs::read(folder.join(format!("{kind}.{length}.vec"))).unwrap();
        assert_ne!(read("full"), read("short"));
    }
}

#[test]
fn words_are_those_of_an_encoders_run() {
    let folder: &Path = &Folder::new();
    let few = "--set nli={train=3,dev=3,test=3} --set ner.train=9 --set treebank.train=9 --set tatoeba=40";
    let world = "world generate --out world --sentences 3000";
    done(folder, &format!("{world} {few}"));
    let pretrain = "pretrain --preset no-anchors --world world --out run";
    done(folder, &format!("{pretrain} --steps 4 --checkpoint-every 4 --evaluate-every 4"));
    for kind in ["word2vec", "glove"] {
        let learn = |out: &str, threads: &str| {
            let flags = format!("--dim 8 --epochs 1 --threads {threads} --force --out {out}");
            done(folder, &format!("vectors {kind} --model run {flags}"))
        };
        let printed = learn("r.vec", "2");
        let text = fs::read_to_string(folder.join("r.vec")).unwrap();
        // Pieces of both languages, and nothing else: no mark of an end or of a mask.
        let words: Vec<&str> = text.lines().skip(1).map(|l| l.split(' ').next().unwrap()).collect();
        assert_eq!(printed["words"], words.len());
        for language in ["qaa:", "qab:"] {
            assert!(words.iter().filter(|word| word.starts_with(language)).count() > 50);
        }
        assert!(words.iter().all(|word| word.starts_with("qaa:") || word.starts_with("qab:")));
        learn("one.vec", "1");
        assert_eq!(fs::read_to_string(folder.join("one.vec")).unwrap(), text);
    }
    // What a kill left of a corpus is no corpus, and two of one language cannot both have been read.
    let shelf = folder.join("run/corpora");
    let corpus = fs::read_dir(&shelf).unwrap().next().unwrap().unwrap().path();
    let copy = |name: &str| {
        fs::create_dir(shelf.join(name)).unwrap();
        for entry in fs::read_dir(&corpus).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), shelf.join(name).join(entry.file_name())).unwrap();
        }
    };
    copy(".unfinished-1");
    let again = "vectors glove --model run --dim 8 --epochs 1 --out";
    done(folder, &format!("{again} again.vec"));
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    assert!(read("again.vec") == read("one.vec"));
    copy("other");
    refused(folder, &format!("{again} o.vec"), 2, "two corpora of `qa");
    refused(folder, "vectors glove --model run --text qaa=x --out o.vec", 2, "cannot be used with");
    refused(folder, "vectors glove --model world --out o.vec", 1, "vocabulary");
}

/// On real English, words lie beside their like, and with n-grams beside their other forms.
#[test]
fn neighbours_in_real_text_make_sense() {
    let Some(data) = terms::tests::real_data() else { return };
    let folder: &Path = &Folder::new();
    let text = format!("en={}", Path::new(&data).join("text/en.tatoeba.txt.zst").display());
    let learn = |kind: &str, flags: &str, out: &str| {
        let common = format!("vectors {kind} --text {text} --lowercase --sample-size 200000");
        done(folder, &format!("{common} --dim 64 --out {out} {flags}"));
    };
    let nearest = |vectors: &str, word: &str, count: usize| -> Vec<String> {
        let near = format!("neighbours --vectors en={vectors} --lang en --top {count} {word}");
        let near = done(folder, &near);
        let near = near["queries"][0]["layers"][0]["languages"][0]["neighbors"].as_array();
        near.unwrap().iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
    };
    let groups = [
        ("monday", vec!["tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]),
        ("three", vec!["two", "four", "five", "six", "seven", "several"]),
        ("france", vec!["italy", "germany", "spain", "england", "europe", "paris"]),
    ];
    learn("word2vec", "", "w.vec");
    learn("glove", "--epochs 15", "g.vec");
    for (vectors, (word, like)) in
        ["w.vec", "g.vec"].iter().flat_map(|v| groups.iter().map(move |g| (v, g)))
    {
        let nearest = nearest(vectors, word, 10);
        let found = nearest.iter().filter(|other| like.contains(&other.as_str())).count();
        assert!(found >= 2, "beside {word}: {nearest:?}");
    }
    learn("word2vec", "--ngrams 3-6", "f.vec");
    for (word, other) in [("teachers", "teacher"), ("quickly", "quick")] {
        let (with, without) = (nearest("f.vec", word, 20), nearest("w.vec", word, 20));
        assert!(
            with.iter().any(|one| one == other),
            "beside {word}: {with:?} (without n-grams {without:?})"
        );
    }
}

/// A sample that the text cannot give would make vectors of less than was asked for.
#[test]
fn a_sample_larger_than_the_text_is_refused() {
    let place = place();
    let sample = |size: &'static str| {
        train("word2vec", &format!("--dim 8 --sample-size {size} --out s.vec"))
    };
    refused(&place, &sample("901"), 2, "a sample of 901 sentences is asked for, and `en` has 900");
    done(&place, &sample("900"));
}

/// Steps so wide that the loss only grows are told, and nothing is written.
#[test]
fn vectors_that_did_not_learn_are_not_written() {
    let place = place();
    fs::write(place.join("killed.vec.state"), "of a run that was killed").unwrap();
    let begun = train("word2vec", "--dim 8 --out killed.vec");
    refused(&place, &begun, 2, "is of an unfinished run");
    for (kind, lr) in [("glove", "100"), ("word2vec", "1e30")] {
        let flags = format!("--dim 8 --epochs 2 --lr {lr} --out g.vec");
        refused(&place, &train(kind, &flags), 2, "lower lr, the learning rate");
        assert!(!place.join("g.vec").exists());
    }
}

#[test]
fn every_variant_of_word2vec_runs() {
    let place = place();
    for (number, flags) in ["--cbow", "--ngrams 2-3", "--tokenizer whitespace"].iter().enumerate() {
        let out = format!("{number}.bin");
        done(&place, &train("word2vec", &format!("--dim 8 --epochs 1 --out {out} {flags}")));
    }
}

#[test]
fn words_that_the_text_lacks_are_made_of_their_n_grams() {
    let folder: &Path = &place();
    fs::write(folder.join("also.txt"), "cats\nchats\n\ncat\nxyz\n").unwrap();
    let flags = "--ngrams 2-4 --dim 8 --also also.txt --out n.vec";
    let learned = done(folder, &train("word2vec", &format!("{flags} --format vec")));
    assert_eq!(learned["without"], serde_json::json!(["xyz"]));
    let text = fs::read_to_string(folder.join("n.vec")).unwrap();
    let words: Vec<&str> = text.lines().skip(1).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(words[words.len() - 2..], ["cats", "chats"]);
    assert!(!words.contains(&"xyz"));
    refused(folder, &train("word2vec", "--also also.txt --out o.vec"), 2, "--ngrams");
    let none = "--ngrams 2-4 --also none.txt --out o.vec";
    refused(folder, &train("word2vec", none), 1, "none.txt: does not exist");
    fs::write(folder.join("two.txt"), "cats\nnew york\n").unwrap();
    let two = "--ngrams 2-4 --also two.txt --out o.vec";
    refused(folder, &train("word2vec", two), 2, "two.txt:2: `new york` is more than one word");
}

#[test]
fn formats_are_converted_there_and_back() {
    let folder: &Path = &place();
    fs::write(folder.join("a.vec"), "2 2\nthe 0.5 -1\ncat 2 3e-5\n").unwrap();
    let mut from = "a.vec".to_owned();
    for to in ["b.bin", "c.glove", "d.npy", "e.vec"] {
        let printed = done(folder, &format!("vectors convert {from} --out {to}"));
        assert_eq!((&printed["words"], &printed["dim"]), (&2.into(), &2.into()));
        from = to.to_owned();
    }
    assert_eq!(fs::read_to_string(folder.join("d.vocab")).unwrap(), "the\ncat\n");
    let text = fs::read_to_string(folder.join("e.vec")).unwrap();
    assert_eq!(text, "2 2\nthe 0.5 -1\ncat 2 0.00003\n");
    done(folder, "vectors convert a.vec --limit 1 --out f.vec");
    assert_eq!(fs::read_to_string(folder.join("f.vec")).unwrap(), "1 2\nthe 0.5 -1\n");
    // As fastText ships them; what is written is plain, and is not called otherwise.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    fs::write(folder.join("g.vec.gz"), gzip.finish().unwrap()).unwrap();
    done(folder, "vectors convert g.vec.gz --out g.vec");
    assert_eq!(fs::read_to_string(folder.join("g.vec")).unwrap(), text);
    let named = "vectors convert g.vec --out h.vec.gz";
    refused(folder, &named, 2, "h.vec.gz: vectors are written plain");
    // Nothing is replaced unasked, pipes are files, and formats of other programs are named.
    let again = "vectors convert a.vec --out e.vec";
    refused(folder, &again, 2, "e.vec: exists; name another output, or give --force");
    done(folder, &format!("{again} --force"));
    let piped = reading(folder, "vectors convert - --out -", &text);
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), text);
    let csv = "vectors convert a.vec --out a.csv";
    refused(folder, &csv, 2, "vectors are not written as .csv; name a file .vec or .txt");
    done(folder, &format!("{csv} --to text"));
    fs::write(folder.join("a.kv"), b"\x80\x04\x95gensim").unwrap();
    let pickle = "vectors convert a.kv --out k.vec";
    refused(folder, &pickle, 1, "a.kv: is a Python pickle, such as gensim's");
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_written_into() {
    let folder: &Path = &place();
    fs::write(folder.join("a.vec"), "1 2\na 0.5 0.25\n").unwrap();
    let convert = |out| format!("vectors convert a.vec --to text --out {out}");
    for out in ["-", "/dev/stdout"] {
        let redirected = fs::File::create(folder.join("printed")).unwrap();
        let mut run = command(folder, &convert(out));
        assert!(run.stdout(redirected).stderr(Stdio::null()).status().unwrap().success());
        let printed = fs::read_to_string(folder.join("printed")).unwrap();
        assert_eq!(printed, "1 2\na 0.5 0.25\n", "{out}");
    }
    assert!(Path::new("/dev/stdout").exists());
    std::os::unix::fs::symlink("a.vec", folder.join("link.vec")).unwrap();
    done(folder, &format!("{} --force", convert("link.vec")));
    assert!(folder.join("link.vec").is_symlink() && !folder.join("a.vec").is_symlink());
    if Path::new("/dev/full").exists() {
        refused(folder, &convert("/dev/full"), 1, "/dev/full: cannot write (the disk is full");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let folder: &Path = &place();
    for (kind, flags, code, reason) in [
        ("word2vec", "--window 0", 2, "window is a number of words"),
        ("word2vec", "--dim 0", 2, "dim is a number"),
        ("word2vec", "--min-count 9999", 2, "the vocabulary is empty"),
        ("word2vec", "--lowercase --tokenizer joint", 2, "a vocabulary itself decides"),
        ("word2vec", "--ngrams x", 2, "such as 3-6"),
        ("word2vec", "--tokenizer nowhere", 1, "nowhere"),
        ("glove", "--window 0", 2, "window is a number of words"),
    ] {
        refused(folder, &train(kind, &format!("{flags} --out o.vec")), code, reason);
    }
    refused(folder, "vectors word2vec --out o.vec", 2, "no text");
    fs::write(folder.join("one.txt"), "word word word word word\n".repeat(9)).unwrap();
    for kind in ["word2vec", "glove"] {
        let one = format!("vectors {kind} --text en=one.txt --out o.vec");
        refused(folder, &one, 2, "a word alone has no neighbours");
    }
    assert!(!folder.join("o.vec").exists());
}
