//! `isogloss shift` as people meet it: the real binary on a world of its own.

mod common;

use std::path::Path;

use crate::common::{Folder, done, ran, refused};

#[test]
fn from_means_to_a_sweep() {
    let folder: &Path = &Folder::new();
    let world = "world generate --out world --sentences 2000";
    let sizes = "--set nli={train=3,dev=3,test=3} --set tatoeba=50";
    done(folder, &format!("{world} {sizes}"));
    let run = "pretrain --world world --steps 20 --out run --text.dev 100";
    done(folder, &run);

    let translate = "shift translate --model run --from qaa --to qab";
    let second = format!("{translate} --layer 2 x");
    refused(folder, &second, 2, "isogloss shift means");

    let texts = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";
    let out = "--out run/means.safetensors";
    let means = done(folder, &format!("shift means --model run {texts} {out}"));
    assert!(folder.join("run/means.safetensors").is_file());
    assert_eq!(means["languages"][1]["language"], "qab");
    assert!(means["languages"][0]["states"]["all"].as_u64().unwrap() > 10_000);
    // A sample is drawn from all files of a language, by the seed: not the head of the first.
    let second = std::fs::read_to_string(folder.join("world/text/qab.base.txt")).unwrap();
    std::fs::write(folder.join("head.txt"), "x\n".repeat(500)).unwrap();
    std::fs::write(
        folder.join("tail.txt"),
        second.lines().take(500).fold(String::new(), |text, line| text + line + "\n"),
    )
    .unwrap();
    let sample = |seed: &str, out: &str| {
        let texts = "--text qab=head.txt --text qab=tail.txt --lines";
        let flags = format!("--sample-size 100 --seed {seed} --out {out}");
        let result = done(folder, &format!("shift means --model run {texts} {flags}"));
        (
            result["languages"][0]["subwords"].as_u64().unwrap(),
            std::fs::read(folder.join(out)).unwrap(),
        )
    };
    let (subwords, bytes) = sample("1", "1.safetensors");
    assert!(subwords > 20, "{subwords} different subwords, so none of the second file");
    assert_eq!(sample("1", "again.safetensors").1, bytes);
    assert_ne!(sample("2", "2.safetensors").1, bytes);

    let text = std::fs::read_to_string(folder.join("world/tatoeba/tatoeba.qab-qaa.qaa")).unwrap();
    let sentence = text.lines().next().unwrap();
    let flags = format!("--layer 2 --alpha=-1,0,1 '{sentence}'");
    let printed = done(folder, &format!("{translate} {flags}"));
    let lines = printed["sentences"][0]["outputs"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["alpha"], -1.0);
    // The text is that of the pieces, whichever language they are of.
    for line in lines {
        let pieces = line["subwords"].as_array().unwrap();
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>();
        let printed = pieces.iter().map(|piece| piece["text"].as_str().unwrap());
        let pieces: String = printed.filter(|piece| !piece.starts_with('<')).map(letters).collect();
        assert_eq!(letters(line["text"].as_str().unwrap()), pieces, "{line}");
    }
    // Of words that the language does not have nothing can change language: no rate.
    let rates = |sentence: &str| {
        let printed = done(folder, &format!("{translate} --layer 2 --alpha 0,1 '{sentence}'"));
        let outputs = printed["sentences"][0]["outputs"].as_array().unwrap().clone();
        outputs.into_iter().map(|one| one["conversion_rate"].is_number()).collect::<Vec<_>>()
    };
    assert_eq!(rates("12 345 6"), [false, false]);
    let mixed = format!("12 {sentence}");
    assert_eq!(rates(&mixed), [true, true]);
    for (sentence, said) in
        [("12 345 6", "none of these 3 words is in qaa"), (&*mixed, "are not in qaa: 12\n")]
    {
        let [output, _] = ran(folder, &format!("{translate} --layer 2 '{sentence}'"));
        assert!(output.contains(said), "{output}");
    }
    let nan = format!("{translate} --layer 2 --alpha nan '{sentence}'");
    refused(folder, &nan, 2, "a weight is a finite number");
    refused(folder, &format!("{translate} --layer 9 x"), 2, "there is no layer 9");

    // Which line, and what is wrong with it.
    std::fs::write(folder.join("long.txt"), format!("{sentence}\n{}\n", "so ".repeat(90))).unwrap();
    let file = |name: &'static str| format!("{translate} --layer 2 --text {name}");
    refused(
        folder,
        &file("qaa=long.txt"),
        2,
        "long.txt:2: the sentence is longer than the 30 subwords",
    );
    std::fs::write(folder.join("gap.tsv"), format!("{sentence}\tx\n\ty\n")).unwrap();
    refused(folder, &file("qaa=gap.tsv"), 1, "gap.tsv:2: a line without text");
    std::fs::write(folder.join("one.txt"), "so\n").unwrap();
    let short = "--layer 2 --parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa --parallel qab=one.txt";
    refused(folder, &format!("{translate} {short}"), 1, "one.txt: has 1 lines");
    let means = std::fs::read(folder.join("run/means.safetensors")).unwrap();
    std::fs::write(folder.join("cut.safetensors"), &means[..means.len() / 2]).unwrap();
    let cut = format!("{translate} --layer 2 --means cut.safetensors x");
    refused(folder, &cut, 1, "cut.safetensors");

    let parallel = "--parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa --parallel \
            qab=world/tatoeba/tatoeba.qab-qaa.qab --dictionary qaa-qab=world/muse/qaa-qab.txt";
    let flags = "--shift-kind mean --shift-kind bands --shift-kind lsar --shift-kind principal-2 \
            --alpha 0,1,2 --out sweep.json";
    let swept = done(folder, &format!("shift sweep --model run {parallel} {flags}"));
    let sweeps = swept["sweeps"].as_array().unwrap();
    assert_eq!(sweeps.len(), 8);
    assert_eq!(sweeps[2]["kind"], "lsar");
    assert_eq!(sweeps[0]["cells"].as_array().unwrap().len(), 12);
    assert!(swept["signature"].as_str().unwrap().starts_with("BLEU-1|"));
    let cell = &sweeps[0]["cells"][0];
    for key in ["translated", "translated_different", "translated_shuffled", "bleu1_permuted"] {
        assert!((0.0..=1.0).contains(&cell[key].as_f64().unwrap()), "{key}: {cell}");
    }
    assert!(sweeps[0]["bleu1_frequent"].as_f64().unwrap() > 0.0);
    assert!((0.0..=1.0).contains(&sweeps[0]["cells"][0]["bleu1"].as_f64().unwrap()));
    assert!(folder.join("sweep.json").is_file());
    // The same again from what was kept, without running the model.
    let kept = format!("{parallel} {} --work work", flags.replace(" --out sweep.json", ""));
    for attempt in 0..2 {
        assert_eq!(
            done(folder, &format!("shift sweep --model run {kept}"))["sweeps"],
            swept["sweeps"],
            "{attempt}"
        );
    }
    // Eight parts, the lock, and what marks the folder as made for work.
    assert_eq!(std::fs::read_dir(folder.join("work")).unwrap().count(), 8 + 1 + 1);
    let first = &sweeps[0];
    assert_eq!(
        (&first["rows"], &first["repeated"], &first["used"]),
        (&50.into(), &0.into(), &50.into())
    );
    assert!(
        first["cells"][0]["other_rate"].is_number() && first["cells"][0]["third_rate"].is_null()
    );
    assert!(first["masked"]["positions"].as_u64().unwrap() >= 50, "{first}");
    // Once for each direction, whatever the kinds of shift.
    assert!(sweeps[1]["masked"].is_null() && sweeps[4]["masked"].is_object());
    let sweep = format!("shift sweep --model run {parallel} --limit 5");
    // Token sets of one sentence each, and nothing more.
    for language in ["qaa", "qab"] {
        let file = format!("world/tatoeba/tatoeba.qab-qaa.{language}");
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        std::fs::write(folder.join(format!("one.{language}")), lines[0]).unwrap();
        // Every row three times, as XNLI has its premises.
        let thrice: String = lines.iter().map(|line| format!("{line}\n").repeat(3)).collect();
        std::fs::write(folder.join(format!("thrice.{language}")), thrice).unwrap();
    }
    let sets = "--token-text qaa=one.qaa --token-text qab=one.qab --alpha 0";
    let small = done(folder, &format!("{sweep} {sets}"));
    let sizes = small["token_sets"].as_array().unwrap();
    let whole = swept["token_sets"].as_array().unwrap();
    for (small, whole) in sizes.iter().zip(whole) {
        assert!(small["subwords"].as_u64().unwrap() < 30 && small["subwords"] != whole["subwords"]);
    }
    let other = |swept: &serde_json::Value| swept["sweeps"][0]["cells"][0]["other_rate"].as_f64();
    assert!(other(&small) >= other(&swept), "{small}");
    refused(folder, &format!("{sweep} --token-text qaa=one.qaa"), 2, "no text of `qab`");
    let thrice = "--parallel qaa=thrice.qaa --parallel qab=thrice.qab --alpha 0,1,2";
    let thrice = done(folder, &format!("shift sweep --model run {thrice}"));
    let rows = ["rows", "repeated", "used"].map(|key| thrice["sweeps"][0][key].as_u64().unwrap());
    assert_eq!(rows, [150, 100, 50]);
    let bleu = |swept: &serde_json::Value| swept["sweeps"][0]["cells"][1]["bleu1"].as_f64();
    assert_eq!(bleu(&thrice), bleu(&swept));
    let some = done(folder, &format!("{sweep} --layers 1-2 --alpha 0"));
    assert_eq!(some["sweeps"][0]["cells"].as_array().unwrap().len(), 2);
    let other = format!("{sweep} --dictionary qaa-xx=world/muse/qaa-qab.txt");
    refused(folder, &other, 2, "'xx' is none of the languages of --parallel: qaa, qab");
}
