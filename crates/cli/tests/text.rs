//! Drives the binary from text to tokenised corpora.

mod common;

use std::path::Path;

use serde_json::Value;

use crate::common::{Folder, done, reading, refused};

fn place() -> Folder {
    let folder = Folder::new();
    let english = "Mr. Smith met Anna in Paris. They talked.\nParis is a city, and so is Rome.\n";
    let french = "M. Smith a rencontré Anna à Paris. Ils ont parlé.\nParis est une ville.\n";
    std::fs::write(folder.join("a.en.txt"), english.repeat(20)).unwrap();
    std::fs::write(folder.join("b.en.txt"), "Rome is far. Anna sleeps.\n").unwrap();
    std::fs::write(folder.join("fr.txt"), french.repeat(20)).unwrap();
    folder
}

const TRAIN: &str = "vocab train --text en=*.en.txt --text fr=fr.txt";

#[test]
fn from_text_to_tokens() {
    let folder: &Path = &place();
    for (kind, shares) in [("joint", true), ("union", true), ("disjoint", false)] {
        let trained = done(folder, &format!("{TRAIN} --kind {kind} --merges 200 --out {kind}"));
        assert_eq!(trained["languages"][0]["report"]["kept"][0], 62);
        let stats = done(folder, &format!("vocab stats {kind}"));
        assert_eq!(stats["fingerprint"], trained["fingerprint"]);
        let anchors = stats["pairs"][0]["anchors"].as_array().unwrap();
        let paris = anchors.iter().any(|anchor| anchor["subword"] == "Paris</w>");
        assert_eq!(paris, shares, "{kind}: {anchors:?}");
    }
    let prepare = |extra: &str| {
        let flags = "corpus prepare --vocab union --text en=*.en.txt --out c";
        done(folder, &format!("{flags} {extra}"))["corpora"][0].clone()
    };
    let made = prepare("--distinct --dev 1 --test 1");
    assert_eq!(made["found"], false);
    assert_eq!(made["sentences"], serde_json::json!([3, 1, 1]));
    assert_eq!(made["report"]["duplicates"], 57);
    assert_eq!(made["first"].as_array().unwrap().len(), 1);
    let found = prepare("--distinct --dev 1 --test 1");
    assert_eq!((&found["found"], &found["folder"]), (&Value::Bool(true), &made["folder"]));
    assert_ne!(prepare("--limit 10")["folder"], made["folder"]);
}

#[test]
fn standard_input_is_a_file_like_any() {
    let place = place();
    let flags = "vocab train --text en=- --merges 5 --out v";
    let output = reading(&place, &flags, "one two three\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("from 1 sentences"));
}

#[test]
fn wordpiece_subwords_are_counted_in_given_text() {
    let place = place();
    let pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nParis\nis\nest\n.\n";
    std::fs::write(place.join("vocab.txt"), pieces).unwrap();
    done(&place, &format!("{TRAIN} --kind wordpiece --subwords vocab.txt --out m"));
    let stats = done(&place, "vocab stats m --text en=b.en.txt --text fr=fr.txt");
    // `is`, `.` and the unknown in English; `Paris`, `est`, `.` and the unknown in French.
    assert_eq!(stats["languages"][0]["types"], 3);
    assert_eq!(stats["languages"][1]["types"], 4);
    assert_eq!(stats["pairs"][0]["shared_types"], 2);
}

#[test]
fn numbers_without_bounds_are_met_or_refused() {
    let folder: &Path = &place();
    let train = |flags: &str| format!("{TRAIN} {flags}");
    let all = done(folder, &train("--merges 5000 --out all"));
    for (merges, out) in [("99999999999", "many"), ("18446744073709551615", "most")] {
        let trained = done(folder, &train(&format!("--merges {merges} --out {out}")));
        assert_eq!(trained["subwords"], all["subwords"]);
    }
    for (flag, value) in [("--characters", "0"), ("--limit", "0"), ("--sample-size", "0")] {
        refused(folder, &train(&format!("{flag} {value} --out v")), 2, flag);
    }
    refused(folder, &train("--dev 18446744073709551615 --test 1 --out v"), 2, "to be held out");
    assert!(!folder.join("v").exists());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let folder: &Path = &place();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    put("file", b"");
    put("bad.txt", b"good line\nbad \xff line\n");
    // The start of a zstd frame, and nothing after it.
    put("cut.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0x04]);
    for (flags, code, reason) in [
        // Before text is read.
        ("--text en=bad.txt --text e!n=fr.txt --out v", 2, "`e!n` is not a valid name"),
        ("--text en=bad.txt --out file", 2, "file: is a file"),
        ("--text en=bad.txt --out file/v", 1, "file: cannot make a folder in"),
        ("--text en=bad.txt --out .", 2, "exists; name another"),
        (
            "--text en=bad.txt --kind wordpiece --subwords gone.txt --merges 5 --out v",
            2,
            "--merges",
        ),
        ("--text en=bad.txt --simplify gone.tsv --out v", 2, "--simplify"),
        ("--out v", 2, "--text LANG=FILE"),
        ("--text en --out v", 2, "LANG=FILE"),
        ("--kind wordpiece --text en=fr.txt --out v", 2, "--subwords"),
        ("--text e/n=gone.txt --out v", 2, "not a valid name for a language"),
        ("--text en=- --text fr=- --out v", 2, "standard input can be one text only"),
        // With a remedy that fits.
        ("--text en=gone.txt --out v", 1, "gone.txt: no such file"),
        ("--text en=cut.zst --out v", 1, "cut short or damaged"),
        ("--text en=. --out v", 1, ".: is a folder"),
        ("--text en=bad.txt --out v", 1, "bad.txt:2: not UTF-8 at byte 5"),
        ("--text en=bad.txt --out v", 1, "give --tolerant"),
        ("--text en=fr.txt --longest-line 5 --out v", 1, "raise `longest_line`"),
    ] {
        refused(folder, &format!("vocab train {flags}"), code, reason);
    }
    assert!(!folder.join("v").exists());
    let bad = "vocab train --text en=bad.txt --out v";
    let tolerated = done(folder, &format!("{bad} --tolerant --merges 9"));
    assert_eq!(tolerated["languages"][0]["report"]["skipped"]["invalid"], 1);
    done(folder, &format!("{bad} --tolerant --merges 9 --force"));
    for (line, code, reason) in [
        (bad, 2, "exists; name another output, or give --force"),
        ("corpus prepare --vocab v --out c --text fr=fr.txt", 2, "no language `fr`"),
        ("corpus prepare --vocab v --out c --text en=b.en.txt --dev 9", 2, "dev = 9 and"),
        ("vocab stats v --limit 3", 2, "--limit has no effect"),
    ] {
        refused(folder, line, code, reason);
    }
    // A cause is printed once.
    let errors = refused(folder, "vocab stats nowhere", 1, "nowhere/vocabulary.json");
    assert_eq!(errors.matches("os error 2").count(), 1, "{errors}");
}

#[test]
fn paraphrases_are_found_in_parallel_text() {
    let folder: &Path = &Folder::new();
    let text =
        "Hi!\tSalut\nHello.\tSalut\nIt rains.\tIl pleut\nIt's raining.\tIl pleut\nYes\tOui\n";
    std::fs::write(folder.join("bitext.tsv"), text).unwrap();
    let find = "corpus paraphrases --parallel en-fr=bitext.tsv --out p.tsv";
    let found = done(folder, &format!("{find} --lang en"));
    assert_eq!((&found["pairs"], &found["rows"]), (&2.into(), &5.into()));
    let written = std::fs::read_to_string(folder.join("p.tsv")).unwrap();
    assert_eq!(written, "Hi!\tHello.\nIt rains.\tIt's raining.\n");
    std::fs::write(folder.join("train.txt"), "Hello.\n").unwrap();
    let fewer = "--lang en --exclude train.txt --force";
    let fewer = done(folder, &format!("{find} {fewer}"));
    assert_eq!((&fewer["pairs"], &fewer["excluded"]), (&1.into(), &1.into()));
    let none = format!("{find} --lang fr --force");
    refused(folder, &none, 1, "no two sentences of `fr` have one translation");
}

/// From text to an altered language whose subwords are its own, parallel to the original.
#[test]
fn an_altered_language_shares_no_subword_and_is_parallel() {
    let folder: &Path = &place();
    let flags =
        "corpus alter --text en=*.en.txt --out xx.txt --original en.txt --dictionary xx-en.txt";
    let made = done(folder, &flags);
    assert_eq!((&made["sentences"], &made["alteration"]["order"]), (&62.into(), &"same".into()));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!((read("xx.txt").lines().count(), read("en.txt").lines().count()), (62, 62));
    let words = |text: &str| text.split_whitespace().count();
    let (altered, plain) = (read("xx.txt"), read("en.txt"));
    assert!(altered.lines().zip(plain.lines()).all(|(a, b)| words(a) == words(b)));
    refused(folder, &flags, 2, "exists");
    let learn =
        "vocab train --kind union --text xx=xx.txt --text en=en.txt --lines --merges 100 --out v";
    done(folder, learn);
    let stats = done(folder, "vocab stats v");
    assert_eq!(stats["pairs"][0]["shared_types"], 0, "{stats}");
    // The dictionary has the words that the text has.
    let first = read("xx-en.txt").lines().next().unwrap().to_owned();
    let (form, word) = first.split_once(' ').unwrap();
    assert!(altered.split_whitespace().any(|own| own == form) && plain.contains(word), "{first}");

    // The same seed from standard input to standard output, another order.
    let inverted = "corpus alter --text en=- --order inverted --out -";
    let output = reading(folder, &inverted, "Rome is far.\n");
    let line = String::from_utf8(output.stdout).unwrap();
    let forward: Vec<&str> = line.trim_end().split(' ').rev().collect();
    assert!(altered.lines().any(|line| line == forward.join(" ")), "{line}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("inverted order"));

    std::fs::write(folder.join("ner.tsv"), "Anna\tB-PER\nsleeps\tO\n").unwrap();
    let labelled = "corpus alter --text en=ner.tsv --task ner --out xx.tsv";
    done(folder, &labelled);
    let anna = read("xx.tsv").split('\t').next().unwrap().to_owned();
    assert!(altered.split_whitespace().any(|own| own == anna), "{anna}");
    let permuted = format!("{labelled} --order permuted --force");
    refused(folder, &permuted, 2, "tear entities apart");
    for (flags, words) in [
        ("--script same", "nothing would be altered"),
        ("--strength 0.5", "--order permuted"),
        ("--order permuted --strength 2", "from 0 to 1"),
        ("--text fr=fr.txt", "one language at a time"),
        ("--original y", "two outputs have one name"),
    ] {
        refused(folder, &format!("corpus alter --text en=a.en.txt --out y {flags}"), 2, words);
    }
}
