//! `isogloss transfer` and `isogloss score` as people and scripts meet them: the real binary.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use arrays::npy::{self, Precision};
use serde_json::Value;

use crate::common::{Shared, done, ran, refused};

/// A folder with a small world and an encoder that was never trained.
static MADE: LazyLock<Shared> = LazyLock::new(|| {
    let folder = Shared::new("transfer");
    let sizes = "--set nli={train=150,dev=60,test=60} --set classify={train=600,dev=60,test=100} \
                 --set ner={train=2500,dev=80,test=200} --set treebank={train=500,dev=60,test=100} \
                 --set parallel.train=9 --set tatoeba=40";
    done(folder.path(), &format!("world generate --out world --sentences 3000 {sizes}"));
    done(folder.path(), "pretrain --preset untrained --world world --out run");
    let texts = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";
    let means = "shift means --model run --out run/means.safetensors";
    done(folder.path(), &format!("{means} {texts}"));
    folder
});

/// A transfer over the small world.
fn transfer(task: &str, out: &str, more: &str) -> String {
    format!("transfer --task {task} --quick --world world --out {out} {more}")
}

/// Which settings are trained at the same time, which of them is done first, and on how many threads, changes no file.
#[test]
fn settings_side_by_side_are_settings_one_by_one() {
    let folder = MADE.path();
    let few = "--model run --lr 1e-3,2e-3,5e-3 --batch 8,32 --epochs 2 --limit 300";
    let one = done(folder, &transfer("nli", "one", &format!("{few} --jobs 1 --threads 1")));
    let many = done(folder, &transfer("nli", "many", &format!("{few} --jobs 4 --threads 4")));
    assert_eq!(one["settings"].as_array().unwrap().len(), 6);
    for key in ["best", "dev", "results", "scores", "settings", "parameters"] {
        assert_eq!(one[key], many[key], "{key}");
    }
    assert_eq!(one["speed"]["trained"], many["speed"]["trained"]);
    for file in
        ["results.json", "metrics.jsonl", "model.safetensors", "predictions/qab.test-qab.tsv"]
    {
        let read = |run: &str| {
            fs::read(folder.join(run).join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
        };
        assert!(read("one") == read("many"), "{file} differs");
    }
    let names = |run: &str| {
        let mut names: Vec<_> = fs::read_dir(folder.join(run))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("one"), names("many"), "nothing is left of settings under way");
}

/// A setting that learned nothing is trained again at half the learning rates, and only the last one counts.
#[test]
fn a_setting_that_did_not_learn_is_trained_again() {
    let folder = MADE.path();
    // No weights are of any use after updates of this size.
    let few = "--model run --lr 64 --batch 32 --epochs 1 --limit 200";
    let flags = format!("{few} --restarts 2");
    let result = done(folder, &transfer("nli", "again", &flags));
    let rates = |result: &Value| -> Vec<f64> {
        let settings = result["settings"].as_array().unwrap();
        settings.iter().map(|setting| setting["lr"].as_f64().unwrap()).collect()
    };
    assert_eq!(rates(&result), [64.0, 32.0, 16.0]);
    assert_eq!(result["best"]["lr"], 16.0, "{result}");
    let own = &result["settings"][2]["tests"]["qab"];
    assert_eq!(result["scores"]["qab"], *own, "{result}");
    // What is complete stays as it is.
    let resumed = done(folder, "transfer --resume --out again");
    assert_eq!((&resumed["settings"], &resumed["best"]), (&result["settings"], &result["best"]));
    // Without the flag, and with one that learns, there is one setting.
    assert_eq!(rates(&done(folder, &transfer("nli", "once", few))), [64.0]);
}

#[test]
fn a_run_is_resumed_with_the_same_inputs_or_not_at_all() {
    let folder = MADE.path();
    let read = |file: &str| fs::read(folder.join(file)).unwrap();
    let copy = |from: &str, to: &str| fs::copy(folder.join(from), folder.join(to)).unwrap();
    for split in ["train", "dev", "test"] {
        copy(&format!("world/ner/panx-{split}-qaa.tsv"), &format!("own-{split}.tsv"));
    }
    for seed in ["1", "2"] {
        let out = format!("own-{seed}");
        let random = format!("pretrain --preset untrained --world world --seed {seed}");
        done(folder, &format!("{random} --out {out}"));
    }
    let sets = "--train=qaa=own-train.tsv --dev=qaa=own-dev.tsv --test=qaa=own-test.tsv";
    let flags = "--quick --epochs=1 --limit=100 --seeds=1,2 --model=own-1";
    let whole = done(folder, &format!("transfer --task=ner --out=own {sets} {flags}"));
    let resume = "transfer --resume --out own";

    let other = format!("{resume} --clip 0.5");
    refused(folder, &other, 2, "was begun with other settings: clip (0.5, not 1.0)");
    // One that is done stays as it is.
    let (summary, results) = (read("own/summary.json"), read("own/results.json"));
    assert_eq!(done(folder, &resume), whole);
    assert!(read("own/summary.json") == summary);

    // As after a kill between the two settings.
    let mut records: Vec<Value> = serde_json::from_slice(&results).unwrap();
    records.pop();
    fs::write(folder.join("own/results.json"), serde_json::to_vec(&records).unwrap()).unwrap();
    fs::remove_file(folder.join("own/summary.json")).unwrap();
    let test = read("own-test.tsv");
    fs::write(folder.join("own-test.tsv"), [&test[..], b"word\tO\n\n"].concat()).unwrap();
    refused(folder, &resume, 2, "own-test.tsv is not what it was when own began");
    fs::write(folder.join("own-test.tsv"), test).unwrap();
    let rename = |from: &str, to: &str| fs::rename(folder.join(from), folder.join(to)).unwrap();
    rename("own-1", "own-first");
    rename("own-2", "own-1");
    refused(folder, &resume, 2, "the encoder is not what it was");
    rename("own-1", "own-2");
    rename("own-first", "own-1");
    assert_eq!(done(folder, &resume)["results"], whole["results"]);
    assert!(read("own/results.json") == results);
}

#[test]
fn predictions_score_as_the_run_said() {
    let folder = MADE.path();
    for (task, gold, least) in [
        ("ner", "ner/panx-test-LANG.tsv", 0.8),
        ("parse", "ud/LANG_world-ud-test.conllu", 0.4),
        ("nli", "xnli/test-LANG.tsv", 0.2),
    ] {
        let out = format!("scored-{task}");
        let summary = done(folder, &transfer(task, &out, "--model run --epochs 5 --lr 3e-3"));
        assert_eq!(summary["padding"], 0.0);
        for (at, language) in ["qaa", "qab"].into_iter().enumerate() {
            let gold = format!("world/{}", gold.replace("LANG", language));
            let name = Path::new(&gold).file_name().unwrap().to_string_lossy().into_owned();
            let predicted = format!("{out}/predictions/{language}.{name}");
            let files = format!("--gold {gold} --predicted {predicted}");
            let score = done(folder, &format!("score --task {task} {files}"));
            assert_eq!(score, summary["scores"][language], "{task} {language}");
            let mean = summary["results"][at]["mean"].as_f64().unwrap();
            assert!(at > 0 || mean > least, "{task}: the source language is learned: {mean}");
            let itself = format!("--gold {gold} --predicted {gold}");
            let perfect = done(folder, &format!("score --task {task} {itself}"));
            let headline = match task {
                "ner" => &perfect["micro"]["f1"],
                "parse" => &perfect["all"]["las"],
                _ => &perfect["accuracy"],
            };
            assert_eq!(*headline, 1.0);
        }
    }
}

/// The tasks beyond those of the papers: trained, scored and resumed like the others.
#[test]
fn parts_of_speech_and_sentence_labels_transfer() {
    let folder = MADE.path();
    for (task, gold) in
        [("pos", "ud/LANG_world-ud-test.conllu"), ("classify", "classify/test-LANG.tsv")]
    {
        let more = "--model run --epochs 4 --lr 3e-3 --seeds 1,2";
        let flags = transfer(task, task, more);
        let whole = done(folder, &flags);
        assert_eq!((&whole["measure"], &whole["results"][0]["n"]), (&"accuracy".into(), &2.into()));
        let of = |at: usize, key: &str| whole["results"][at][key].as_f64().unwrap();
        let (mean, majority, chance) = (of(0, "mean"), of(0, "majority"), of(0, "chance"));
        assert!(mean > majority + 0.1, "{task}: {mean}, majority {majority}");
        assert!(majority >= 0.9 * chance && chance > 0.0 && of(1, "majority") > 0.0);
        for language in ["qaa", "qab"] {
            let gold = format!("world/{}", gold.replace("LANG", language));
            let name = Path::new(&gold).file_name().unwrap().to_string_lossy().into_owned();
            let predicted = format!("{task}/predictions/{language}.{name}");
            let files = format!("score --task {task} --gold {gold} --predicted {predicted}");
            assert_eq!(done(folder, &files), whole["scores"][language], "{task} {language}");
        }
    }
}

/// WikiAnn's parts share sentences: their score counts, and that of the others stands beside it.
#[test]
fn sentences_that_training_has_too_are_counted() {
    let folder = MADE.path();
    let sentences = |part: &str| -> Vec<String> {
        let file = folder.join(format!("world/ner/panx-{part}-qaa.tsv"));
        let text = fs::read_to_string(file).unwrap();
        text.trim_end().split("\n\n").map(|one| format!("{one}\n\n")).collect()
    };
    let words = |sentence: &String| -> Vec<String> {
        sentence.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    let train = sentences("train");
    let mut known: std::collections::HashSet<Vec<String>> =
        train[..200].iter().map(words).collect();
    let dev = sentences("dev");
    let chosen_on: Vec<String> =
        dev.iter().filter(|one| !known.contains(&words(one))).take(10).cloned().collect();
    known.extend(dev.iter().map(words));
    let novel: Vec<String> =
        sentences("test").into_iter().filter(|one| !known.contains(&words(one))).take(40).collect();
    fs::write(folder.join("novel.tsv"), novel.concat()).unwrap();
    fs::write(
        folder.join("mixed.tsv"),
        [&novel[..20], &train[..30], &chosen_on, &novel[20..]].concat().concat(),
    )
    .unwrap();
    let files = ["train", "dev"].map(|part| format!("qaa=world/ner/panx-{part}-qaa.tsv"));
    let [train, dev] = &files;
    let run = format!(
        "transfer --task ner --quick --epochs 2 --model run --limit 200 --train {train} \
            --dev {dev} --allow-unseen --out overlap"
    );
    let result = done(folder, &format!("{run} --test qaa=mixed.tsv --test qaa=novel.tsv"));
    let [mixed, novel] = [&result["results"][0], &result["results"][1]];
    assert_eq!((&mixed["overlap"], &novel["overlap"]), (&30.into(), &0.into()));
    // The epoch is chosen on the development file.
    assert_eq!((&mixed["dev_overlap"], &novel["dev_overlap"]), (&10.into(), &0.into()));
    assert_eq!(mixed["without_overlap"]["mean"], novel["mean"]);
    assert!(novel.get("without_overlap").is_none(), "{novel}");
    let [shown, _] = ran(folder, "transfer --resume --out overlap");
    assert!(
        shown.contains(
            "qaa:mixed: 30 of 80 items stand in what was trained on too, 10 of 80 items stand in what was chosen on too"
        ),
        "{shown}"
    );

    // What epochs are chosen on is no test set, unless they are halves of it.
    refused(folder, &format!("{run} --test {dev} --force"), 2, "is what is chosen on too");
}

#[test]
fn a_sample_is_drawn_by_seed_and_the_head_of_a_file_is_not() {
    let folder = MADE.path();
    let begin = "--model run --epochs 1";
    let run = |out: &str, more: &str| {
        done(folder, &transfer("classify", out, &format!("{begin} {more}")))
    };
    let sample = run("sample", "--sample-size 200");
    assert_eq!(sample["sets"]["train"]["items"], 200);
    let again = run("sample-again", "--sample-size 200 --threads 1");
    assert_eq!(again["settings"], sample["settings"]);
    let tokens = |result: &Value| result["sets"]["train"]["tokens"].as_u64().unwrap();
    assert_ne!(tokens(&run("sample-two", "--sample-size 200 --seeds 2")), tokens(&sample));
    assert_ne!(tokens(&run("head", "--limit 200")), tokens(&sample));
    let more = "--model run --sample-size 601";
    refused(folder, &transfer("classify", "never", more), 2, "sample_size: 601 asked for");
    refused(folder, &transfer("classify", "head", begin), 2, "head is not empty; resume it");
    let replaced = run("head", "--force");
    assert_eq!(replaced["sets"]["train"]["items"], 600);
    refused(folder, &transfer("classify", "world", "--model run --force"), 2, "not empty");
}

#[test]
fn what_is_wrong_is_named_by_file_and_line() {
    let folder = MADE.path();
    let broken = |from: &str, to: &str, change: &dyn Fn(&str) -> String| {
        let text = fs::read_to_string(folder.join("world").join(from)).unwrap();
        fs::write(folder.join(to), change(&text)).unwrap();
    };
    let bank = "ud/qaa_world-ud-test.conllu";
    broken(bank, "nine.conllu", &|text| text.replacen("\t_\t_\n", "\t_\n", 1));
    broken(bank, "range.conllu", &|text| text.replacen("\t0\troot", "\t99\troot", 1));
    broken(bank, "cycle.conllu", &|text| text.replacen("\t0\troot", "\t1\troot", 1));
    broken("ner/panx-test-qaa.tsv", "tag.tsv", &|text| text.replacen("\tO", "\tX-PER", 1));
    broken("ner/panx-test-qaa.tsv", "unseen.tsv", &|text| text.replacen("\tO", "\tB-GPE", 1));
    broken("xnli/test-qaa.tsv", "half.tsv", &|text| format!("a thing\t\tneutral\n{text}"));
    broken("xnli/test-qaa.tsv", "label.tsv", &|text| format!("a b\tc d\tperhaps\n{text}"));
    let ner = ["ner/panx-train-qaa.tsv", "ner/panx-dev-qaa.tsv"];
    let ud = ["ud/qaa_world-ud-train.conllu", "ud/qaa_world-ud-dev.conllu"];
    let nli = ["xnli/train-qaa.tsv", "xnli/dev-qaa.tsv"];
    for (task, [train, dev], test, reason) in [
        ("parse", ud, "nine.conllu", ": 9 columns, not 10"),
        ("parse", ud, "range.conllu", ": the head is 99, but the sentence has"),
        ("parse", ud, "cycle.conllu", "there is a cycle"),
        ("ner", ner, "tag.tsv", ": `X-PER` is no tag"),
        ("ner", ner, "unseen.tsv", ": the label `B-GPE` is not in the training file"),
        ("nli", nli, "half.tsv", "half.tsv:1: a pair without hypothesis"),
        ("nli", nli, "label.tsv", "label.tsv:1: the label `perhaps` is not in the training"),
    ] {
        let sets = format!("--train=qaa=world/{train} --dev=qaa=world/{dev} --test=qaa={test}");
        let begin = format!("transfer --task {task} --quick --model run --out refused {sets}");
        let message = refused(folder, &begin, 1, reason);
        assert!(message.contains(&format!("{test}:")), "{message}");
        assert!(!folder.join("refused").exists(), "nothing is begun");
    }
    let folder_as_file = "transfer --task=ner --quick --model=run --out=refused --train=qaa=world/ner \
            --dev=qaa=world/ner/panx-dev-qaa.tsv --test=qaa=world/ner/panx-test-qaa.tsv";
    refused(folder, &folder_as_file, 1, "world/ner: is a folder, not a labelled file");
    let arguments = "--task=ner --quick --model=run --out=allowed --epochs=1 --allow-unseen \
            --train=qaa=world/ner/panx-train-qaa.tsv --dev=qaa=world/ner/panx-dev-qaa.tsv \
            --test=qaa=unseen.tsv";
    let summary = done(folder, &format!("transfer {arguments}"));
    assert_eq!(summary["sets"]["qaa"]["unseen"], 1);
}

/// Labelled files may be packed; those that are packed otherwise are called what they are.
#[test]
fn compressed_files_are_read_or_named() {
    let folder = MADE.path();
    let plain = fs::read(folder.join("world/xnli/test-qab.tsv")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    fs::write(folder.join("packed.tsv.gz"), gzip.finish().unwrap()).unwrap();
    fs::write(folder.join("packed.tsv.zst"), zstd::encode_all(&plain[..], 1).unwrap()).unwrap();
    fs::write(folder.join("packed.tsv.xz"), b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F").unwrap();
    fs::write(folder.join("packed.tsv.bz2"), b"BZh91AY&SY\xb6\xd5\xc7\x10").unwrap();
    let with = |predicted| format!("score --task nli --gold packed.tsv.gz --predicted {predicted}");
    assert_eq!(done(folder, &with("packed.tsv.zst"))["accuracy"], 1.0);
    refused(folder, &with("packed.tsv.xz"), 1, "packed.tsv.xz: is compressed by xz");
    let printed = refused(folder, &with("packed.tsv.bz2"), 1, "unpack it with `bzip2 -d`");
    assert!(!printed.contains("iconv"), "{printed}");

    let sets = "--train=qaa=world/xnli/train-qaa.tsv --dev=qaa=world/xnli/dev-qaa.tsv \
            --test=qab=packed.tsv.gz";
    let run = "transfer --task=nli --quick --model=run --epochs=1 --out=packed";
    done(folder, &format!("{run} {sets}"));
    // What is written is plain, and called so.
    let predicted = fs::read_to_string(folder.join("packed/predictions/qab.packed.tsv")).unwrap();
    assert_eq!(predicted.lines().count(), plain.split(|&byte| byte == b'\n').count() - 1);
    refused(
        folder,
        &format!("transfer --task=nli --quick --model=run --limit=1 --out=few {sets}"),
        1,
        "is not in the first 1 items of the training file (limit)",
    );
}

#[test]
fn requests_that_make_no_sense_are_usage() {
    let folder = MADE.path();
    for (more, reason) in [
        ("--model run --train-layers 3-9", "but the encoder has 4"),
        ("--model run --train-layers top", "names no layers to train"),
        ("--model run --reinit-layers 4-5", "but the encoder has 4"),
        ("--model run --reinit-layers embeddings,2", "names no layers to init"),
        ("--model run --lr 0", "lr: give at least one learning rate, all of them above 0 (--lr)"),
        ("--model run --epochs 0", "epochs: must not be 0"),
        ("--model run --seeds 1,2,1", "seeds: give each seed once"),
        ("--model run --feature-layer 7", "layer 7 of run, which has 4"),
        (
            "--model run --full-labels",
            "applies to task parse, not ner; leave it out (--full-labels)",
        ),
        ("", "--model DIR, or --vectors LANG=FILE is missing"),
    ] {
        refused(folder, &transfer("ner", "never", more), 2, reason);
    }
    let set = |part: &str| format!("--{part}=qaa=world/ner/panx-{part}-qaa.tsv");
    let [train, dev, test] = ["train", "dev", "test"].map(set);
    let twice = format!("transfer --task=ner --model=run --out=never {train} {dev} {test} {test}");
    refused(folder, &twice, 2, "two test files are called");
    refused(folder, "transfer --resume --out never", 2, "holds no run");
}

/// The lock is taken before anything is written: of two that begin together, the loser leaves no trace.
#[test]
fn a_run_that_another_process_works_in_is_not_touched() {
    let folder = MADE.path();
    let run = folder.join("contested");
    let held = files::FolderLock::take(&run).unwrap();
    let begin = "--model run --epochs 1 --limit 60";
    refused(folder, &transfer("ner", "contested", begin), 1, "another process is working in");
    let left: Vec<_> = fs::read_dir(&run).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["lock"]);
    drop(held);
    // With nothing but a lock, it can be resumed as well as begun.
    fs::write(run.join(".unfinished-0000000000000000-65a99287"), "").unwrap();
    let resume = format!("{begin} --resume");
    done(folder, &transfer("ner", "contested", &resume));
    assert!(!run.join(".unfinished-0000000000000000-65a99287").exists());
    // As a kill in the first epoch leaves it.
    for file in ["summary.json", "results.json", "inputs.json"] {
        fs::remove_file(run.join(file)).unwrap();
    }
    done(folder, &transfer("ner", "contested", begin));
    refused(folder, &transfer("ner", "contested", begin), 2, "is not empty");
    // A digit of a result that changed on the disk.
    fs::remove_file(run.join("summary.json")).unwrap();
    let results = fs::read_to_string(run.join("results.json")).unwrap();
    let (place, length) = (results.find("\"dev\": 0.").unwrap(), "\"dev\": 0.".len());
    let mut altered = results.into_bytes();
    altered[place + length] ^= 1;
    fs::write(run.join("results.json"), altered).unwrap();
    let resume = "transfer --resume --out contested";
    refused(folder, &resume, 1, "results.json: was altered since it was written");
}

#[test]
fn a_learning_rate_that_is_too_high_is_reported_and_leaves_nothing() {
    let folder = MADE.path();
    let more = "--model run --lr 1e30 --limit 200 --epochs 1";
    let printed = refused(folder, &transfer("ner", "high", more), 1, "try a lower `lr`");
    assert!(printed.contains("setting 1 of 1 (seed 1, batch 32, lr 1e30)"), "{printed}");
    assert!(!folder.join("high").exists(), "the corrected command needs the folder");
}

#[test]
fn a_run_of_another_kind_or_from_elsewhere_is_refused() {
    let folder = MADE.path();
    let more = "--model run --limit 100 --epochs 1";
    done(folder, &transfer("ner", "kind", more));
    refused(folder, "pretrain --resume --out kind", 2, "isogloss transfer --resume --out kind");
    fs::remove_file(folder.join("kind/summary.json")).unwrap();
    let elsewhere = folder.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let resume = "transfer --resume --out ../kind";
    refused(&elsewhere, &resume, 2, "relative to where the run was begun");
}

#[test]
fn only_the_layers_that_were_named_learn() {
    let folder = MADE.path();
    let all = done(folder, &transfer("ner", "all", "--model run --epochs 1"));
    let more = "--model run --epochs 1 --train-layers 4";
    let some = done(folder, &transfer("ner", "some", more));
    let count = |summary: &Value| summary["parameters"].as_u64().unwrap();
    // One layer of dim 48, the last norm and seven tags.
    assert_eq!(count(&some), 12 * 48 * 48 + 13 * 48 + 2 * 48 + 49 * 7);
    assert!(count(&all) > 4 * count(&some) - 4 * 49 * 7);
}

#[test]
fn a_frozen_layer_is_read_through_its_map() {
    let folder = MADE.path();
    let matrix = |diagonal: f32| -> Vec<f32> {
        (0..48 * 48).map(|at| if at / 48 == at % 48 { diagonal } else { 0.0 }).collect()
    };
    let array = |name: &str, shape: &[usize], values: &[f32]| {
        npy::write(&folder.join(name), shape, values, Precision::Single).unwrap();
    };
    array("same.npy", &[48, 48], &matrix(1.0));
    array("other.npy", &[48, 48], &matrix(-1.0));
    array("zero.npy", &[48], &[0.0; 48]);
    let layer = "--model run --feature-layer 1 --new-layers 1 --lr 3e-3";
    let summary =
        |out: &str, more: &str| done(folder, &transfer("ner", out, &format!("{layer} {more}")));
    let run = |out: &str, more: &str| summary(out, more)["scores"].clone();
    let plain = run("layer", "");
    assert!(plain["qaa"]["micro"]["f1"].as_f64().unwrap() > 0.3, "{plain}");
    assert_eq!(run("same", "--map qab=same.npy"), plain);
    let zero = "--shift-vector qab=zero.npy --shift-layer 1 --alpha 1";
    let zero = summary("zero", zero);
    assert_eq!((&zero["shift"]["sets"]["qab"]["score"], &zero["scores"]), (&plain["qab"], &plain));
    array("nan.npy", &[48, 48], &matrix(f32::NAN));
    array("far.npy", &[48], &[f32::INFINITY; 48]);
    for broken in ["--map qab=nan.npy", "--shift-vector qab=far.npy --shift-layer 1 --alpha 1"] {
        let arguments = transfer("ner", "broken-numbers", &format!("{layer} {broken}"));
        refused(folder, &arguments, 1, "is not finite");
    }
    let other = run("other", "--map qab=other.npy");
    assert!(other["qaa"] == plain["qaa"] && other["qab"] != plain["qab"], "{other} {plain}");
}

#[test]
fn static_vectors_that_agree_transfer() {
    let folder = MADE.path();
    let dictionary = fs::read_to_string(folder.join("world/muse/qaa-qab.txt")).unwrap();
    let (mut first, mut second) = (String::new(), String::new());
    for (number, line) in dictionary.lines().enumerate() {
        let (from, to) = line.split_once([' ', '\t']).unwrap();
        // Any numbers will do, as long as a word and its translation have the same.
        let mut state = number as u64 + 1;
        let mut value = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let row: Vec<String> = (0..48).map(|_| value().to_string()).collect();
        for (text, word) in [(&mut first, from), (&mut second, to)] {
            if !text.lines().any(|line| line.starts_with(&format!("{word} "))) {
                text.push_str(&format!("{word} {}\n", row.join(" ")));
            }
        }
    }
    fs::write(folder.join("a.txt"), first).unwrap();
    fs::write(folder.join("b.txt"), second).unwrap();
    let vectors = "--vectors qaa=a.txt --vectors qab=b.txt --lr 3e-3 --epochs 5";
    let summary = done(folder, &transfer("ner", "static", vectors));
    let score = |at: usize| summary["results"][at]["mean"].as_f64().unwrap();
    assert!(score(0) > 0.8 && score(1) > 0.8, "{} {}", score(0), score(1));
}

/// New weights in some layers: another result, which says so, and the same again by the same seed.
#[test]
fn layers_are_initialised_anew_before_fine_tuning() {
    let folder = MADE.path();
    let flags = "--model run --epochs 1 --seeds";
    let score = |out: &str, more: &str| {
        let result = done(folder, &transfer("pos", out, &format!("{flags} {more}")));
        (result["settings"][0]["dev"].clone(), result["reinit_layers"].clone())
    };
    let (kept, none) = score("reinit-kept", "2");
    let (new, layers) = score("reinit-new", "2 --reinit-layers 1-3");
    assert_eq!((none, layers), (Value::Null, "1-3".into()));
    assert_ne!(new, kept);
    assert_eq!(score("reinit-again", "2 --reinit-layers 1-3").0, new);
    assert_ne!(score("reinit-other", "3 --reinit-layers 1-3").0, new);
    // The encoder was never trained, and its own seed does not give its layers what they began with.
    assert_ne!(score("reinit-same", "1").0, score("reinit-same-new", "1 --reinit-layers 1-3").0);
    let config = fs::read_to_string(folder.join("reinit-new/config.toml")).unwrap();
    assert!(config.contains("reinit_layers = \"1-3\""), "{config}");
}

/// Special tokens and positions of each language's own: the encoder has rows for them, and is read back.
#[test]
fn special_tokens_may_be_separate() {
    let folder = MADE.path();
    let train = |out: &str, separate: &str| {
        let flags = "pretrain --preset no-anchors --world world --steps 3";
        done(folder, &format!("{flags} --out {out} --set encoder.separate={separate}"));
        done(folder, &["inspect", out])
    };
    let (shared, separate) = (train("shared", "none"), train("separate", "'positions, specials'"));
    let rows = |inspected: &Value| inspected["encoder"]["vocabulary"].as_u64().unwrap();
    // Five special tokens of the second language.
    assert_eq!(rows(&separate), rows(&shared) + 5);
    assert_eq!(separate["encoder"]["separate"], "positions, specials");
    let parallel =
        ["qab", "qaa"].map(|side| format!("{side}=world/tatoeba/tatoeba.qab-qaa.{side}"));
    let retrieve = format!("retrieve --model separate --parallel {} --parallel", parallel[0]);
    done(folder, &format!("{retrieve} {}", parallel[1]));
    let export = "hub export --model separate --lang qab --out exported";
    refused(folder, &export, 2, "special tokens are separate");
}
