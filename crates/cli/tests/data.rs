//! Drives `data list` and `data get`: archives of the real formats in miniature, and a server.

#![allow(missing_docs, reason = "tests")]

mod server;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use server::{Answer, Server, isogloss, nowhere};
use zip::write::SimpleFileOptions;

fn run(folder: &Path, line: &str) -> Output {
    isogloss().args(line.split(' ')).current_dir(folder).output().unwrap()
}

#[track_caller]
fn done(folder: &Path, arguments: &str) -> Value {
    let output = run(folder, &format!("{arguments} --json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(folder: &Path, arguments: &str, code: i32, expected: &[&str]) {
    let output = run(folder, arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    for expected in expected {
        assert!(errors.contains(expected), "{expected:?} is not in {errors}");
    }
    assert!(output.stdout.is_empty());
}

fn zip(path: &Path, members: &[(&str, &[u8])]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, bytes) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

fn tar_gz(members: &[(&str, &str)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    for (name, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// What others read of a file is what counts.
fn is_read(folder: &Path, task: &str, file: &str) {
    done(folder, &format!("score --task {task} --gold {file} --predicted {file}"));
}

#[test]
fn the_catalogue_is_shown() {
    let place = tempfile::tempdir().unwrap();
    let printed = done(place.path(), "data list");
    let entries = printed["entries"].as_array().unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let there = "xnli xnli-train multinli wikiann panx ud pud muse tatoeba wikipedia";
    assert!(there.split(' ').all(|name| names.contains(&name)), "{names:?}");
    let text = String::from_utf8(run(place.path(), "data list xnli").stdout).unwrap();
    for part in [
        "CC BY-NC 4.0 (no commercial use)",
        "XNLI-1.0.zip",
        "-> xnli/dev-{lang}.tsv",
        "Liu et al. 2020",
    ] {
        assert!(text.contains(part), "{text}");
    }
    refused(place.path(), "data list xnly", 2, &["no `xnly`", "xnli-train"]);
}

#[test]
fn inference_pairs_are_taken_from_their_archives() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let pair = |language: &str, label: &str, premise: &str| {
        format!(
            "{{\"annotator_labels\":[\"{label}\"],\"genre\":\"face\",\"gold_label\":\"{label}\",\"language\":\
             \"{language}\",\"pairID\":\"1\",\"sentence1\":\"{premise}\",\"sentence2\":\"Oui.\"}}\n"
        )
    };
    let jsonl = [
        pair("en", "neutral", "No."),
        pair("fr", "entailment", "Non\\t!"),
        pair("fr", "neutral", "Bon."),
    ];
    let jsonl = jsonl.concat();
    zip(
        &folder.join("XNLI-1.0.zip"),
        &[
            ("__MACOSX/XNLI-1.0/._xnli.dev.jsonl", b"x"),
            ("XNLI-1.0/xnli.dev.jsonl", jsonl.as_bytes()),
            ("XNLI-1.0/xnli.test.jsonl", jsonl.as_bytes()),
        ],
    );
    let get = "data get xnli --lang fr --from XNLI-1.0.zip --out d";
    refused(folder, get, 2, &["CC BY-NC 4.0 (no commercial use)", "--accept"]);
    let printed = done(folder, &format!("{get} --accept"));
    let text = fs::read_to_string(folder.join("d/xnli/dev-fr.tsv")).unwrap();
    assert_eq!(text, "Non !\tOui.\tentailment\nBon.\tOui.\tneutral\n");
    assert_eq!(printed["files"][0]["lines"], serde_json::json!([2, 0]));
    // It is not the archive whose checksum is known, and that is printed.
    assert!(
        printed["warnings"][0].as_str().unwrap().contains("the catalogue knows 4ba1d5e1"),
        "{printed}"
    );
    is_read(folder, "nli", "d/xnli/test-fr.tsv");
    // German was not in it; nothing half-made is left.
    let german = "data get xnli --accept --lang de --from XNLI-1.0.zip --out d";
    refused(folder, german, 1, &["XNLI-1.0.zip!XNLI-1.0/xnli.dev.jsonl: holds nothing of `de`"]);
    let left = fs::read_dir(folder.join("d/xnli")).unwrap().count();
    assert_eq!(left, 2);

    let train = "premise\thypo\tlabel\nUn chat.\tNon.\tcontradictory\n";
    zip(
        &folder.join("mt.zip"),
        &[("XNLI-MT-1.0/multinli/multinli.train.fr.tsv", train.as_bytes())],
    );
    done(folder, "data get xnli-train --accept --lang fr --from mt.zip --out d");
    is_read(folder, "nli", "d/xnli/train-fr.tsv");

    let unsure = "{\"gold_label\":\"-\",\"sentence1\":\"A\",\"sentence2\":\"B\"}\n";
    let english =
        format!("{unsure}{}", pair("en", "neutral", "No.").replace(",\"language\":\"en\"", ""));
    let members = ["train", "dev_matched", "dev_mismatched"]
        .map(|name| format!("multinli_1.0/multinli_1.0_{name}.jsonl"));
    let members: Vec<(&str, &[u8])> =
        members.iter().map(|name| (name.as_str(), english.as_bytes())).collect();
    zip(&folder.join("m.zip"), &members);
    let printed = done(folder, "data get multinli --from m.zip --out d");
    assert_eq!(printed["files"][0]["lines"], serde_json::json!([1, 1]));
    is_read(folder, "nli", "d/nli/multinli.train.tsv");
}

#[test]
fn entities_are_taken_from_archives_in_an_archive() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let text = "fr:Paris\tB-LOC\nfr::\tO\n\nfr:Ada\tB-PER\n\n";
    let inner = tar_gz(&[("./train", text), ("dev", text), ("test", text), ("extra", text)]);
    zip(&folder.join("panx_dataset.zip"), &[("de.tar.gz", b"other"), ("fr.tar.gz", &inner)]);
    fs::write(folder.join("fr.tar.gz"), &inner).unwrap();
    for (name, from) in
        [("panx", "panx_dataset.zip"), ("panx", "fr.tar.gz"), ("wikiann", "panx_dataset.zip")]
    {
        let out = format!("{name}-{from}");
        done(folder, &format!("data get {name} --accept --lang fr --from {from} --out {out}"));
        let (file, plain) = match name {
            "panx" => (format!("{out}/ner/panx-test-fr.tsv"), text.replace("fr:", "")),
            _ => (format!("{out}/ner/wikiann-test-fr.txt"), text.to_owned()),
        };
        assert_eq!(fs::read_to_string(folder.join(&file)).unwrap(), plain);
        is_read(folder, "ner", &file);
    }
    let half = fs::read(folder.join("panx_dataset.zip")).unwrap();
    fs::write(folder.join("half.zip"), &half[..half.len() / 2]).unwrap();
    fs::write(folder.join("page.html"), "<html>").unwrap();
    fs::write(folder.join("text.txt"), "Not here.").unwrap();
    for (language, from, reason) in [
        ("ru", "panx_dataset.zip", "has no `ru.tar.gz`; it holds de.tar.gz, fr.tar.gz"),
        ("de", "panx_dataset.zip", "panx_dataset.zip!de.tar.gz: is cut short or damaged"),
        ("fr", "half.zip", "half.zip: is cut short or damaged"),
        ("fr", "page.html", "page.html: is a page of HTML, and no data"),
        ("fr", "text.txt", "is neither a zip archive nor a tar.gz"),
        ("fr", "none.zip", "none.zip: does not exist"),
    ] {
        let get = format!("data get panx --accept --lang {language} --from {from} --out x");
        refused(folder, &get, 1, &[reason]);
    }
}

const SENTENCES: &str = "La première phrase.\nLa deuxième phrase.\n";

fn tatoeba(server: &str, out: &str) -> String {
    format!("data get tatoeba --lang fr --mirror {server} --out {out}")
}

#[test]
fn files_are_fetched_once_and_go_on_after_a_break() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let breaks = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        let answer = Answer::file(asked, SENTENCES.as_bytes(), "one");
        match breaks.fetch_add(1, Ordering::Relaxed) {
            0 => answer.cut(10),
            1 => Answer::status(503),
            2 => answer.cut(5),
            _ => answer,
        }
    });
    let printed = done(folder, &tatoeba(&server.address, "d"));
    let path = "/facebookresearch/LASER/main/data/tatoeba/v1/tatoeba.fra-eng";
    let rest = |from| format!("{path}.fra bytes={from}-");
    assert_eq!(
        server.asked(),
        [format!("{path}.fra"), rest(10), rest(10), rest(15), format!("{path}.eng")]
    );
    for side in ["fra", "eng"] {
        let file = folder.join(format!("d/tatoeba/tatoeba.fra-eng.{side}"));
        assert_eq!(fs::read_to_string(file).unwrap(), SENTENCES);
    }
    assert_eq!(fs::read_dir(folder.join("d/downloads")).unwrap().count(), 0);
    let receipt = fs::read_to_string(folder.join("d/receipts/tatoeba.json")).unwrap();
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    let url = format!("https://raw.githubusercontent.com{path}.fra");
    let fetched = &receipt["fetched"][&url];
    assert_eq!(
        (&receipt["licence"], &fetched["bytes"]),
        (&"CC BY 2.0 FR".into(), &SENTENCES.len().into())
    );
    assert_eq!((&fetched["confirmed"], &fetched["by_hand"]), (&false.into(), &false.into()));
    assert_eq!(fetched["date"].as_str().unwrap().len(), 10);
    assert_eq!(printed["files"][0]["found"], false);
    // Again: nothing is asked for.
    let printed = done(folder, &tatoeba(&server.address, "d"));
    assert!(server.asked().is_empty());
    assert_eq!(printed["files"][1]["found"], true);
    // A file that was changed here is not silently kept, nor one that has changed there.
    fs::write(folder.join("d/tatoeba/tatoeba.fra-eng.fra"), "mine\n").unwrap();
    refused(
        folder,
        &tatoeba(&server.address, "d"),
        1,
        &["tatoeba.fra-eng.fra: is not the file that the receipt"],
    );
    fs::remove_file(folder.join("d/tatoeba/tatoeba.fra-eng.fra")).unwrap();
    let changed = Server::start(|asked| Answer::file(asked, b"Other.\n", "two"));
    refused(
        folder,
        &tatoeba(&changed.address, "d"),
        1,
        &["is not what was fetched from there on 2"],
    );
}

#[test]
fn what_does_not_come_is_explained() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let by_hand = [
        "no network",
        "https://raw.githubusercontent.com/facebookresearch/LASER/main/data/tatoeba/v1/tatoeba.fra-eng.eng",
        "isogloss data get tatoeba --lang fr --out d --from FOLDER",
    ];
    refused(folder, &tatoeba(&nowhere(), "d"), 1, &by_hand);
    let server = Server::start(|_| Answer::status(404));
    refused(folder, &tatoeba(&server.address, "d"), 1, &["the server has no such file"]);
    assert_eq!(server.asked().len(), 1);
    let server = Server::start(|asked| Answer::file(asked, SENTENCES.as_bytes(), "one").cut(0));
    refused(
        folder,
        &tatoeba(&server.address, "d"),
        1,
        &["the connection broke after 0 bytes", "trying again did not help"],
    );
    assert!(!folder.join("d/tatoeba").exists() && !folder.join("d/receipts/tatoeba.json").exists());
    // The advice can be followed.
    fs::create_dir(folder.join("hand")).unwrap();
    for side in ["fra", "eng"] {
        fs::write(folder.join(format!("hand/tatoeba.fra-eng.{side}")), SENTENCES).unwrap();
    }
    done(folder, "data get tatoeba --lang fr --out d --from hand");
    let one = "data get tatoeba --lang de --out d --from hand/tatoeba.fra-eng.fra";
    refused(folder, one, 2, &["tatoeba.deu-eng.deu is not among", "give a folder with"]);
    // A file whose checksum is known is held against it.
    let server = Server::start(|asked| Answer::file(asked, b"no such zip", "one"));
    let get = format!("data get xnli --accept --lang fr --mirror {} --out d", server.address);
    refused(folder, &get, 1, &["XNLI-1.0.zip: has SHA-256", "but the catalogue knows 4ba1d5e1"]);
}

/// What a server says in the place of a file is no data, however it came here.
#[test]
fn error_pages_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("hand")).unwrap();
    let muse = "data get muse --lang fr --accept --out d --from hand";
    let sides = "data get tatoeba --lang fr --out d --from hand";
    let hold = |name: &str, text: &str| fs::write(folder.join("hand").join(name), text).unwrap();
    let dictionaries =
        ["en-fr.0-5000", "en-fr.5000-6500", "en-fr", "fr-en.0-5000", "fr-en.5000-6500"];
    for (text, expected) in [
        ("<html><body>404 Not Found</body></html>\n", "en-fr.0-5000.txt: is a page of HTML"),
        ("\n<!DOCTYPE html>\n", "en-fr.0-5000.txt: is a page of HTML"),
        ("<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code>", "a server's error in XML"),
        ("", "en-fr.0-5000.txt: is empty"),
        ("the le\nAccess is denied\n", "en-fr.0-5000.txt:2: `Access is denied` is no word"),
    ] {
        dictionaries.iter().for_each(|name| hold(&format!("{name}.txt"), text));
        refused(folder, muse, 1, &[expected]);
        assert!(!folder.join("d/muse/en-fr.0-5000.txt").exists());
    }
    assert!(!folder.join("d/receipts/muse.json").exists());
    dictionaries.iter().for_each(|name| hold(&format!("{name}.txt"), "the le\n"));
    assert_eq!(done(folder, muse)["files"].as_array().unwrap().len(), 5);
    // Two sides of a text have as many lines.
    hold("tatoeba.fra-eng.fra", "Un.\nDeux.\n");
    hold("tatoeba.fra-eng.eng", "One.\n");
    refused(
        folder,
        sides,
        1,
        &["fra-eng.eng: has 1 lines and d/tatoeba/tatoeba.fra-eng.fra has 2"],
    );
    assert!(!folder.join("d/tatoeba/tatoeba.fra-eng.eng").exists());
    hold("tatoeba.fra-eng.eng", "One.\nTwo.");
    done(folder, sides);
}

#[test]
fn wikipedia_becomes_text_that_is_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let page = "<page><title>Nairobi</title><ns>0</ns><revision><text>{{Jiji|x=[[y]]}}\n'''Nairobi''' ni [[mji mkuu|mji]] \
                wa [[Kenya]].&lt;ref&gt;z&lt;/ref&gt; Una watu wengi.\n\n== Historia ==\n* orodha\nMji ulianza.</text>\
                </revision></page>";
    let dump = format!("<mediawiki>{}</mediawiki>", page.repeat(20));
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(dump.as_bytes()).unwrap();
    let dump = encoder.finish().unwrap();
    let server = Server::start(move |asked| match asked.path.as_str() {
        "/swwiki/latest/swwiki-latest-pages-articles.xml.bz2" => Answer::file(asked, &dump, "one"),
        _ => Answer::status(404),
    });
    let printed =
        done(folder, &format!("data get wikipedia --lang sw --mirror {}", server.address));
    assert_eq!(printed["files"][0]["lines"], serde_json::json!([40, 0]));
    let text =
        zstd::decode_all(File::open(folder.join("data/text/sw.wiki.txt.zst")).unwrap()).unwrap();
    let article = "Nairobi ni mji wa Kenya. Una watu wengi.\nMji ulianza.\n";
    assert_eq!(String::from_utf8(text).unwrap(), article.repeat(20));
    done(folder, "vocab train --merges 20 --text sw=data/text/sw.wiki.txt.zst --out v");
    refused(folder, "data get wikipedia", 2, &["name some of"]);
}

#[test]
fn panlex_comes_by_hand_and_becomes_a_weighted_dictionary() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    refused(folder, "data get panlex --lang fr", 2, &["no lasting address", "--from"]);
    zip(
        &folder.join("panlex-20300101-csv.zip"),
        &[
            ("p/langvar.csv", b"id,lang_code\n1,eng\n2,fra\n"),
            ("p/expr.csv", b"id,langvar,txt\n10,1,cat\n20,2,chat\n21,2,minou\n"),
            ("p/source.csv", b"id,quality\n5,7\n6,2\n"),
            ("p/meaning.csv", b"id,source\n100,5\n101,6\n"),
            (
                "p/denotation.csv",
                b"id,meaning,expr\n1,100,10\n2,100,20\n3,101,10\n4,101,20\n5,101,21\n",
            ),
        ],
    );
    let got = done(folder, "data get panlex --lang fr --from panlex-20300101-csv.zip");
    assert_eq!(got["files"][0]["lines"], serde_json::json!([2, 0]));
    let text = fs::read_to_string(folder.join("data/panlex/en-fr.tsv")).unwrap();
    assert_eq!(text, "cat\tchat\t9\ncat\tminou\t2\n");
}
