//! `isogloss hub`, and folders of Hugging Face's in the place of runs, as they are typed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use arrays::npy;
use serde_json::{Value, json};

use crate::common::{Folder, done, ran, refused};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures").join(name)
}

#[test]
fn a_folder_of_theirs_is_a_model_like_any_other() {
    let path: &Path = &Folder::new();
    fs::write(path.join("text"), "the cat\nle chat sur\nкошка 42\n").unwrap();
    for name in ["bert", "distilbert", "roberta", "xlm-roberta", "xlm", "xlm-roberta-xl"] {
        let model = fixture(name).display().to_string();
        let imported = done(path, &format!("hub import {model} --out {name}"));
        assert_eq!(imported["has_mlm_head"], true);
        let encode = |model: &str, out: &str| {
            done(path, &format!("encode --model {model} --text fr=text --out {out}"));
            npy::read::<f32>(&path.join(out)).unwrap().values
        };
        let (theirs, ours) = (format!("{name}-theirs.npy"), format!("{name}-ours.npy"));
        assert_eq!(encode(&model, &theirs), encode(name, &ours), "{name}: the same as a run");
    }
    let words = done(
        path,
        &format!("words --model {} --lang fr --embeddings --out w.vec", fixture("bert").display()),
    );
    assert!(words["words"].as_u64().is_some_and(|count| count > 50), "{words}");
    refused(path, "encode --model xlm --text sw=text --out x.npy", 2, "it has en, fr, zh");
    refused(path, "hub import nowhere --out run", 1, "nowhere/config.json");
}

#[test]
fn a_folder_of_theirs_is_fine_tuned() {
    let folder = Folder::new();
    let rows = "the cat\tchat\tneutral\nle chat\tthe\tentailment\n";
    let words = "the\tO\ncat\tB-PER\n\nchat\tO\nsur\tB-PER\n";
    for (task, text) in [("nli", rows), ("ner", words)] {
        for part in ["train", "test"] {
            fs::write(folder.join(format!("{task}-{part}.tsv")), text).unwrap();
        }
    }
    for (name, task) in [("bert", "nli"), ("roberta", "ner"), ("xlm", "ner")] {
        let model = fixture(name).display().to_string();
        let transfer = format!(
            "transfer --task {task} --model {model} --train en={task}-train.tsv --dev en={task}-train.tsv \
             --test fr={task}-test.tsv --quick --epochs 1 --out {name}-{task}"
        );
        let scored = done(&folder, &transfer);
        assert!(scored.to_string().contains("fr"), "{scored}");
    }
}

/// A copy of a fixture whose weights are those of the body alone, as `BertModel` saves them.
fn without_head(name: &str, prefix: &str, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    let bytes = fs::read(fixture(name).join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.tensors().into_iter();
    let body =
        tensors.filter_map(|(name, view)| Some((name.strip_prefix(prefix)?.to_owned(), view)));
    safetensors::serialize_to_file(body, None, &to.join("model.safetensors")).unwrap();
}

/// A model that came without a head goes without one, and the card says where it comes from.
#[test]
fn what_was_imported_is_exported_as_it_came() {
    let path: &Path = &Folder::new();
    fs::write(path.join("text"), "the cat\nle chat sur\nкошка 42\n").unwrap();
    let encode = |model: &str, out: &str| {
        done(path, &format!("encode --model {model} --text fr=text --out {out}.npy"));
        npy::read::<f32>(&path.join(format!("{out}.npy"))).unwrap().values
    };
    for (name, prefix, class) in [
        ("bert", "bert.", "BertModel"),
        ("xlm", "transformer.", "XLMModel"),
        ("xlm-roberta-xl", "roberta.", "XLMRobertaXLModel"),
    ] {
        without_head(name, prefix, &path.join(name));
        done(path, &format!("hub import {name} --out {name}-run"));
        let exported = done(path, &format!("hub export --model {name}-run --out {name}-hf"));
        assert_eq!(exported["architecture"], class);
        let config = fs::read_to_string(path.join(format!("{name}-hf/config.json"))).unwrap();
        let config: Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config["architectures"], json!([class]));
        let card = fs::read_to_string(path.join(format!("{name}-hf/README.md"))).unwrap();
        assert!(card.contains("pipeline_tag: feature-extraction"), "{card}");
        assert!(card.contains(&format!("imported from `{name}`")), "{card}");
        assert!(!card.contains("It was trained") && !card.contains("MaskedLM"), "{card}");
        let again = done(path, &format!("inspect {name}-hf"));
        assert_eq!((&again["has_mlm_head"], &again["left_over"]), (&json!(false), &json!([])));
        let (before, after) =
            (encode(name, name), encode(&format!("{name}-hf"), &format!("{name}-2")));
        let far = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(before.len() == after.len() && far < 1e-5, "{name}: {far}");
    }
    // With its head it guesses still, and was trained elsewhere all the same.
    let whole = fixture("bert").display().to_string();
    assert_eq!(
        done(path, &format!("hub export --model {whole} --out whole-hf"))["architecture"],
        "BertForMaskedLM"
    );
    let card = fs::read_to_string(path.join("whole-hf/README.md")).unwrap();
    assert!(card.contains("fill-mask") && card.contains("imported from `bert`"), "{card}");
}

#[test]
fn runs_are_exported_whole_or_for_one_language() {
    let path: &Path = &Folder::new();
    let world = "world generate --out world --sentences 2000 --set nli={train=3,dev=3,test=3} \
                 --set ner.train=9 --set treebank.train=9 --set parallel.train=20 --set tatoeba=20";
    done(path, world);
    let cases = [
        ("pre", "--preset sep-emb-l1-3", "--lang qab", "xlm-roberta-xl"),
        (
            "xlm",
            "--preset default --encoder.norm post --encoder.language_embeddings true",
            "",
            "xlm",
        ),
        ("bert", "--preset default --encoder.norm post --encoder.transform true", "", "bert"),
        (
            "narrow",
            "--preset no-anchors --encoder.norm post --encoder.hidden 80",
            "--lang qaa",
            "bert",
        ),
        ("joint", "--preset default --encoder.separate embeddings", "--lang qab", "xlm-roberta-xl"),
    ];
    for (name, flags, language, family) in cases {
        let train =
            format!("pretrain {flags} --world world --out {name} --steps 3 --evaluate-every 3");
        ran(path, &train);
        if !language.is_empty() {
            refused(
                path,
                &format!("hub export --model {name} --out no"),
                2,
                "one language at a time: qaa, qab",
            );
        }
        let exported = done(path, &format!("hub export --model {name} {language} --out {name}-hf"));
        assert_eq!(exported["family"], family);
        // The dense layer that does nothing is the less exact the smaller the states are beside the
        // LayerNorm's ε, and after three updates they are small.
        assert!(exported["largest_difference"].as_f64().unwrap() < 2e-3, "{name}: {exported}");
        let card = fs::read_to_string(path.join(format!("{name}-hf/README.md"))).unwrap();
        assert!(card.contains("## Evaluation") && card.contains("steps = 3"), "{card}");
        assert!(card.contains("It was trained with Isogloss."), "{card}");
        let again = done(path, &format!("inspect {name}-hf"));
        assert_eq!(again["left_over"], json!([]));
    }
    refused(path, "hub export --model xlm --out xlm-hf", 2, "xlm-hf");
}

/// Runs of real text cut punctuation, and what they export is given raw text.
#[test]
fn exported_tokenizers_cut_raw_text_as_the_run_does() {
    let path: &Path = &Folder::new();
    let line = |n: usize| {
        let (cat, dog) = ([["cat", "mat", "hat"], ["dog", "log", "fog"]][n % 2][n % 3], n % 7);
        format!(
            "The {cat} sleeps. Mr. Smith's {dog},000 \u{201c}well-known\u{201d} dogs don\u{2019}t\u{2026} (or so).\n"
        )
    };
    let text: String = (0..400).map(line).collect();
    fs::write(path.join("en.txt"), &text).unwrap();
    fs::write(path.join("es.txt"), text.replace("The", "El").replace("or so", "o no")).unwrap();
    fs::write(path.join("zh.txt"), "我喜欢猫。他来了！\n".repeat(400)).unwrap();
    for (name, others) in [("run", "--text es=es.txt"), ("chinese", "--text zh=zh.txt")] {
        let train = format!(
            "pretrain --preset default --text en=en.txt {others} --out {name} --steps 3 --evaluate-every 3 \
             --text.lines true --text.dev 20 --vocabulary.merges 200 --vocabulary.kind joint"
        );
        ran(path, &train);
    }
    done(path, "hub export --model run --lang en --out hf");
    let raw: String = text.lines().take(9).map(|line| format!("{line}\n")).collect();
    fs::write(path.join("raw.txt"), raw).unwrap();
    let states = |model: &str| {
        let out = format!("{model}.npy");
        done(
            path,
            &format!(
                "encode --model {model} --text en=raw.txt --pool none --lengths n --force --out {out}"
            ),
        );
        npy::read::<f32>(&path.join(out)).unwrap().values
    };
    let (own, theirs) = (states("run"), states("hf"));
    assert_eq!(own.len(), theirs.len(), "it is cut into as many tokens");
    let far = own.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(far < 1e-4, "{far}");
    let card = fs::read_to_string(path.join("hf/README.md")).unwrap();
    assert!(card.contains("takes raw text"), "{card}");
    for (command, reason) in [
        ("--model run", "by other rules than text of es"),
        ("--model chinese --lang zh", "the dictionary of jieba"),
    ] {
        let message = refused(path, &format!("hub export {command} --force --out no"), 2, reason);
        assert!(message.contains("--prepared"), "{message}");
        done(path, &format!("hub export {command} --prepared --force --out no"));
        let card = fs::read_to_string(path.join("no/README.md")).unwrap();
        assert!(card.contains("expects words that were cut"), "{card}");
    }
}

#[test]
fn inputs_that_would_give_wrong_numbers_are_named() {
    let path: &Path = &Folder::new();
    let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    write("x.jsonl", "{\"sentence\": \"the cat\"}\n");
    write("x.csv", "id,sentence\n1,the cat\n");
    write("pairs.tsv", "Sentence1\tsentence2\nthe cat\tle chat\n");
    write("zh.txt", "猫 你\n");
    write("plain.txt", "the cat sat\non the mat\n");
    let bert = fixture("bert").display().to_string();
    let encode = |text: &str| format!("encode --model {bert} --text en={text} --force --out x.npy");
    for (command, reason) in [
        (encode("x.jsonl"), "x.jsonl: is JSON by its name"),
        (encode("x.csv"), "x.csv: is a table with commas by its name"),
        (
            "align words --dictionary d --source no.vec --target no.vec --out m.npy".to_owned(),
            "no.vec: does not exist",
        ),
    ] {
        refused(path, &command, 1, reason);
    }
    let said = |command: &str| {
        let [_, message] = ran(path, command);
        message
    };
    let header = said(&encode("pairs.tsv --columns 1,2"));
    assert!(header.contains("pairs.tsv:1: names columns, and is left out"), "{header}");
    assert_eq!(done(path, &encode("pairs.tsv --columns 1,2"))["sentences"], 2);
    assert!(
        header.contains("en: 0.00 % of 5 tokens unknown") && !header.contains("does not know"),
        "{header}"
    );
    let unknown = said(&encode("zh.txt"));
    assert!(unknown.contains("does not know 50.0 % of the tokens of en"), "{unknown}");
    assert_eq!(done(path, &encode("zh.txt"))["unknown_share"], 0.5);
    // What git has before `git lfs pull`.
    let clone = path.join("clone");
    fs::create_dir(&clone).unwrap();
    for entry in fs::read_dir(fixture("bert")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), clone.join(entry.file_name())).unwrap();
    }
    write(
        "clone/model.safetensors",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 71\n",
    );
    let encode = "encode --model clone --text en=plain.txt --out y.npy";
    let message = refused(path, encode, 1, "model.safetensors");
    assert!(message.contains("git lfs pull"), "{message}");
    let inspected = done(path, "inspect plain.txt");
    assert_eq!(
        (&inspected["kind"], &inspected["lines"], &inspected["words"]),
        (&json!("text"), &json!(2), &json!(6))
    );
    write("no.vec", "the 0.5 0.5\ncat 1 0\n");
    assert_eq!(done(path, "inspect no.vec")["kind"], "word_vectors");
    said("results add --lab lab --measure accuracy --value 0.5 --command x");
    assert_eq!(done(path, "inspect lab")["kind"], "laboratory");
}
