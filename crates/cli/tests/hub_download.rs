//! Drives `hub download` against a server of its own.

#![allow(missing_docs, reason = "tests")]

mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use server::{Answer, Asked, Server, isogloss, nowhere};

/// Weights, and their SHA-256, which the hub gives as their mark.
const WEIGHTS: &[u8] = b"abc";
const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const COMMIT: &str = "c0ffee";

fn info(files: &[&str]) -> Answer {
    let files: Vec<Value> =
        files.iter().map(|name| serde_json::json!({ "rfilename": name })).collect();
    Answer::text(&serde_json::json!({ "sha": COMMIT, "siblings": files }).to_string())
}

/// A hub with one model.
fn hub(asked: &Asked) -> Answer {
    let file = |body: &[u8], mark| Answer::file(asked, body, mark).with("X-Repo-Commit", COMMIT);
    match asked.path.as_str() {
        "/api/models/own/model/revision/main" => {
            info(&["README.md", "config.json", "model.safetensors", "vocab.txt", "tf_model.h5"])
        }
        "/own/model/resolve/main/config.json" => file(b"{}", "one"),
        "/own/model/resolve/main/vocab.txt" => file(b"[PAD]\n", "two"),
        "/own/model/resolve/main/model.safetensors" => file(WEIGHTS, DIGEST),
        _ => Answer::status(404),
    }
}

fn run(home: &Path, address: &str, settings: &[(&str, &str)], model: &str) -> Output {
    let mut command = isogloss();
    command
        .args(["hub", "download", model, "--json"])
        .env("HF_ENDPOINT", address)
        .env("HF_HOME", home);
    command.envs(settings.iter().copied()).output().unwrap()
}

fn done(home: &Path, address: &str) -> Value {
    let output = run(home, address, &[], "own/model");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(output: Output, code: i32, expected: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    for expected in expected {
        assert!(errors.contains(expected), "{expected:?} is not in {errors}");
    }
    assert!(output.stdout.is_empty());
}

fn blob(home: &Path, name: &str) -> PathBuf {
    home.join("hub/models--own--model/blobs").join(name)
}

#[test]
fn a_model_comes_whole_and_comes_once() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(hub);
    let printed = done(home.path(), &server.address);
    let folder = PathBuf::from(printed["folder"].as_str().unwrap());
    assert_eq!(folder, home.path().join("hub/models--own--model/snapshots").join(COMMIT));
    assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), WEIGHTS);
    assert_eq!(fs::read(folder.join("vocab.txt")).unwrap(), b"[PAD]\n");
    assert!(folder.join("config.json").exists() && !folder.join("tf_model.h5").exists());
    assert_eq!((&printed["commit"], &printed["offline"]), (&COMMIT.into(), &false.into()));
    server.asked();
    // Again: nothing but the list is asked for.
    let printed = done(home.path(), &server.address);
    assert_eq!(server.asked(), ["/api/models/own/model/revision/main"]);
    assert!(printed["files"].as_array().unwrap().iter().all(|file| file["found"] == true));
    // And without a network, it is found all the same.
    let printed = done(home.path(), &nowhere());
    assert_eq!(
        (&printed["offline"], &printed["folder"]),
        (&true.into(), &folder.to_str().unwrap().into())
    );
}

/// The beginning of the weights that an interrupted download left, with the server's mark of it.
fn plant_part(home: &Path, part: &[u8]) {
    fs::write(blob(home, DIGEST).with_extension("part"), part).unwrap();
    fs::write(blob(home, DIGEST).with_extension("mark"), format!("\"{DIGEST}\"")).unwrap();
}

#[test]
fn a_part_that_is_wrong_is_thrown_away() {
    // Longer than the file, of other bytes, or sent to by a server that cannot go on.
    for (part, whole) in [(&b"abcdef"[..], false), (b"xy", false), (b"abc", false), (b"ab", true)] {
        let home = tempfile::tempdir().unwrap();
        let server = Server::start(move |asked| {
            let answer = hub(asked);
            match asked.header("range") {
                Some(range) if whole && range.starts_with("bytes=2") => {
                    Answer { status: 200, body: WEIGHTS.to_vec(), ..answer }
                }
                _ => answer,
            }
        });
        fs::create_dir_all(blob(home.path(), "")).unwrap();
        plant_part(home.path(), part);
        let printed = done(home.path(), &server.address);
        let folder = PathBuf::from(printed["folder"].as_str().unwrap());
        assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), WEIGHTS);
    }
}

#[test]
fn what_is_not_what_was_promised_is_refused() {
    // Other bytes than the mark says, and another size than announced.
    for (wrong, reason) in
        [(&b"xyz"[..], "its SHA-256 is not the hub's"), (b"abcd", "4 bytes came where 3 were")]
    {
        let home = tempfile::tempdir().unwrap();
        let server = Server::start(move |asked| {
            let first = asked.header("range") == Some("bytes=0-0");
            let weights = asked.path.ends_with("safetensors") && !first;
            if weights { Answer { body: wrong.to_vec(), ..hub(asked) } } else { hub(asked) }
        });
        refused(
            run(home.path(), &server.address, &[], "own/model"),
            1,
            &["model.safetensors", reason],
        );
        assert!(!blob(home.path(), DIGEST).exists());
    }
}

#[test]
fn a_token_is_sent_and_advised() {
    let home = tempfile::tempdir().unwrap();
    let open = |asked: &Asked| match asked.header("authorization") {
        Some("Bearer secret") => hub(asked),
        Some(_) => Answer::status(403),
        None => Answer::status(401),
    };
    let server = Server::start(open);
    let token = home.path().join("token");
    let plain = run(home.path(), &server.address, &[], "own/model");
    refused(
        plain,
        1,
        &["private or gated", "accept its terms at", "HF_TOKEN", token.to_str().unwrap()],
    );
    let wrong = run(home.path(), &server.address, &[("HF_TOKEN", "other")], "own/model");
    refused(wrong, 1, &["the token does not open this model"]);
    server.headers("authorization");
    fs::write(&token, "secret\n").unwrap();
    done(home.path(), &server.address);
    assert!(
        server.headers("authorization").iter().all(|sent| sent.as_deref() == Some("Bearer secret"))
    );
    fs::remove_file(&token).unwrap();
    let fresh = home.path().join("fresh");
    assert!(run(&fresh, &server.address, &[("HF_TOKEN", "secret")], "own/model").status.success());
}

#[test]
fn what_cannot_be_had_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(hub);
    let run = |address: &str, model| run(home.path(), address, &[], model);
    refused(run(&server.address, "own/other"), 1, &["there is no such model"]);
    refused(
        run(&server.address, "a/b/c"),
        2,
        &["`a/b/c` is not a valid model name", "OWNER/MODEL"],
    );
    let offline =
        ["no network", "config.json", "vocab.txt", "model.safetensors", "takes that folder"];
    refused(run(&nowhere(), "own/model"), 1, &offline);
    let server = Server::start(|_| info(&["config.json", "tf_model.h5"]));
    refused(
        run(&server.address, "own/model"),
        1,
        &["it has no weights, only config.json, tf_model.h5"],
    );
    let server = Server::start(|_| Answer::text("<html>a portal</html>"));
    refused(run(&server.address, "own/model"), 1, &["cannot fetch"]);
}

/// A server that names files outside of the cache, redirects to nowhere, or moves on meanwhile: refused, and nothing is left
/// behind. Where else one may be sent is a test of the client.
#[test]
fn a_hostile_hub_is_refused() {
    type HostileAnswer = fn(&Asked) -> Option<Answer>;
    let cases: [(HostileAnswer, &str); 3] = [
        (|asked| Some(Answer::file(asked, b"x", "../../../stolen")), "mark of a file"),
        (|_| Some(Answer::status(302).with("ETag", "\"one\"")), "which is no address"),
        (
            |asked| Some(Answer::file(asked, WEIGHTS, DIGEST).with("X-Repo-Commit", "facade")),
            "moved on at the hub",
        ),
    ];
    for (answer, reason) in cases {
        let home = tempfile::tempdir().unwrap();
        let server = Server::start(move |asked| {
            let weights = asked.path.ends_with("safetensors");
            let other = if weights { answer(asked) } else { None };
            other.map_or_else(
                || hub(asked),
                |answer| match answer.headers.iter().any(|(name, _)| *name == "X-Repo-Commit") {
                    true => answer,
                    false => answer.with("X-Repo-Commit", COMMIT),
                },
            )
        });
        refused(run(home.path(), &server.address, &[], "own/model"), 1, &[reason]);
        assert!(!home.path().join("stolen").exists());
        let names = fs::read_dir(blob(home.path(), "")).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names.len(), 2, "{reason}: {names:?}");
    }
}
