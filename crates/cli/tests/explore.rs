//! `isogloss explore` as a browser meets it: the real binary, asked over a socket. Every number that it gives is that of the command line.

mod common;

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Folder, Shared, command, copy, done, refused, with_world};

/// A world, and a run of sixty updates on it.
static RUNS: LazyLock<Shared> = LazyLock::new(|| {
    let shared = Shared::new("explore");
    let world = with_world();
    let folder = shared.path();
    copy(&world.join("world"), &folder.join("world"));
    done(folder, "pretrain --world world --preset no-anchors --out run --steps 60 --set stages=[]");
    shared
});

const PARALLEL: &str = "--parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa --parallel qab=world/tatoeba/tatoeba.qab-qaa.qab";

/// A server, ended when it is dropped.
struct Served {
    child: Child,
    port: u16,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer of the server.
struct Answer {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Answer {
    fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}: {text}", self.status))
    }

    fn header(&self, name: &str) -> String {
        let start = format!("{}: ", name.to_lowercase());
        let found = self.headers.lines().find(|line| line.to_lowercase().starts_with(&start));
        found.map(|line| line[start.len()..].to_owned()).unwrap_or_default()
    }
}

impl Served {
    fn start(folder: &Path, arguments: &str) -> Self {
        let mut child = command(folder, &format!("explore {arguments}"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut printed = String::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {printed}")).unwrap();
            match line.trim().strip_prefix("http://127.0.0.1:") {
                Some(address) => break address.to_owned(),
                None => printed += &(line + "\n"),
            }
        };
        // What else it prints is read, so that it can print it.
        std::thread::spawn(move || lines.for_each(drop));
        let (port, token) = address.split_once("/?token=").unwrap();
        Self { child, port: port.parse().unwrap(), token: token.to_owned() }
    }

    fn cookie(&self) -> String {
        format!("isogloss-{}={}", self.port, self.token)
    }

    /// Sends a request with nothing but these headers.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        stream.write_all((head + "\r\n").as_bytes()).unwrap();
        // A server that refuses a body may not read it.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let headers = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers, body: bytes[end + 4..].to_vec() }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A request as the page sends it.
    fn get(&self, path: &str) -> Answer {
        let (host, cookie) = (self.host(), self.cookie());
        self.send("GET", path, &[("Host", &host), ("Cookie", &cookie)], b"")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        let (host, cookie) = (self.host(), self.cookie());
        let origin = format!("http://{host}");
        let headers = [("Host", &*host), ("Cookie", &*cookie), ("Origin", &*origin)];
        self.send("POST", path, &headers, body.to_string().as_bytes())
    }

    /// The id of the first run.
    fn run(&self) -> String {
        self.get("/api/runs").json()["runs"][0]["id"].as_str().unwrap().to_owned()
    }

    /// What the command of a view prints as JSON, run as it would be typed.
    fn typed(&self, folder: &Path, query: &str) -> Value {
        let line = self.get(&format!("/api/command?{query}")).json()["command"].clone();
        let line = line.as_str().unwrap_or_else(|| panic!("{query}: {line}")).to_owned();
        let program = Path::new(env!("CARGO_BIN_EXE_isogloss"));
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let shell = Command::new("sh")
            .args(["-c", &format!("{line} --json")])
            .current_dir(folder)
            .env("PATH", path)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&shell.stderr);
        assert!(shell.status.success(), "{line}: {errors}");
        // Of two commands, the second prints last.
        let printed = String::from_utf8_lossy(&shell.stdout);
        let last = printed.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{line}: {printed} {errors}"))
    }
}

/// Text as part of an address.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn nothing_is_answered_without_the_token_or_to_another_site() {
    let server = Served::start(RUNS.path(), "run");
    let (host, cookie) = (server.host(), server.cookie());
    let status =
        |headers: &[(&str, &str)], path: &str| server.send("GET", path, headers, b"").status;
    for path in ["/", "/page.js", "/api/runs", "/?token=0", "/nowhere"] {
        assert_eq!(status(&[("Host", &host)], path), 403, "{path}");
        assert_eq!(status(&[("Host", "evil.com"), ("Cookie", &cookie)], path), 403, "{path}");
        assert_eq!(status(&[("Cookie", &cookie)], path), 403, "{path}");
        let origin = [("Host", &*host), ("Cookie", &*cookie), ("Origin", "http://evil.com")];
        assert_eq!(status(&origin, path), 403, "{path}");
    }
    let port = server.port;
    let rebound = format!("evil.com:{port}");
    assert_eq!(status(&[("Host", &rebound), ("Cookie", &cookie)], "/api/runs"), 403);
    let entered = server.send("GET", &format!("/?token={}", server.token), &[("Host", &host)], b"");
    assert_eq!((entered.status, entered.header("Location")), (303, "/".to_owned()));
    let set = entered.header("Set-Cookie");
    assert!(
        set.starts_with(&cookie) && set.contains("HttpOnly") && set.contains("SameSite=Strict")
    );
    // The page itself, and what it may load.
    let page = server.get("/");
    assert!(page.status == 200 && page.body.starts_with(b"<!doctype html>"));
    let policy = page.header("Content-Security-Policy");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.split("; ").any(|own| own == rule), "{rule}: {policy}");
    }
    assert_eq!(page.header("X-Content-Type-Options"), "nosniff");
    // Only this machine's own interface listens.
    assert!(
        TcpStream::connect_timeout(&([127, 0, 0, 2], port).into(), Duration::from_millis(300))
            .is_err()
    );
}

#[test]
fn requests_are_bounded_and_runs_are_named_by_their_ids_alone() {
    let server = Served::start(RUNS.path(), "run");
    let (host, cookie) = (server.host(), server.cookie());
    let headers = [("Host", &*host), ("Cookie", &*cookie)];
    let large = vec![b' '; (64 << 10) + 1];
    assert_eq!(server.send("POST", "/api/translate", &headers, &large).status, 413);
    assert_eq!(server.send("POST", "/api/translate", &headers, b"not json").status, 400);
    for method in ["PUT", "DELETE", "PATCH"] {
        assert_eq!(server.send(method, "/api/runs", &headers, b"").status, 405, "{method}");
    }
    for path in [
        "/../Cargo.toml",
        "/api/../../etc/passwd",
        "/api/figure/..%2F..%2Fx.svg",
        "/run/config.toml",
        "/%2e%2e/x",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    for id in ["run", "../run", "%2Fetc", "..", &escaped("/tmp")] {
        for path in ["run", "items", "points", "metrics", "cka", "live"] {
            assert_eq!(server.get(&format!("/api/{path}?run={id}")).status, 404, "{path} {id}");
        }
    }
    let run = server.run();
    for wrong in ["layer=99", "layer=-1", "layer=x", "mode=y", "proj=z", "kind=letters"] {
        let answer = server.get(&format!("/api/points?run={run}&{wrong}"));
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.json()["error"].is_string());
    }
}

#[test]
fn points_and_curves_are_those_of_the_map() {
    let folder = RUNS.path();
    let server = Served::start(folder, "run");
    let run = server.run();
    let overview = server.get(&format!("/api/run?run={run}")).json();
    assert_eq!(overview["steps"], json!([0, 50, 60]));
    let layers = overview["layers"].as_u64().unwrap();
    let items = server.get(&format!("/api/items?run={run}")).json();
    let pairs = items["texts"][0].as_array().unwrap().len();
    assert_eq!(items["languages"][1]["name"], "language B");
    // Every word of the language has a meaning, also those that are in no sentence shown.
    let meant = |side: usize, text: &Value| {
        let words = text.as_str().unwrap().split(' ').map(|word| &items["lexicon"][side][word]);
        words.map(|gloss| gloss.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let tatoeba = folder.join("world/tatoeba");
    let glosses = fs::read_to_string(tatoeba.join("gloss.qab.txt")).unwrap();
    assert_eq!(meant(1, &items["texts"][1][0]), glosses.lines().next().unwrap());
    let lines = fs::read_to_string(tatoeba.join("tatoeba.qab-qaa.qab")).unwrap();
    let words: HashSet<&str> = lines.split_whitespace().collect();
    assert_eq!(items["lexicon"][1].as_object().unwrap().len(), words.len());
    // Ranks are those of the retrieval among the same sentences, but for what the rounding of saved states flips; each has one nearest.
    let metrics = server.get(&format!("/api/metrics?run={run}&layer=2")).json();
    for (mode, step) in [("raw", 0), ("centered", 2)] {
        let ranks = server.get(&format!("/api/ranks?run={run}&layer=2&mode={mode}"));
        assert_eq!(ranks.header("X-Shape"), format!("3,{},2", 2 * pairs));
        let numbers: Vec<f32> =
            floats(&ranks.body).skip(step * 4 * pairs).take(4 * pairs).collect();
        assert_eq!(numbers.iter().skip(1).step_by(2).sum::<f32>(), 2.0 * pairs as f32);
        let found = numbers.iter().step_by(2).filter(|rank| **rank == 1.0).count() as f64;
        let flipped = found - metrics[mode][step][2].as_f64().unwrap() * (2 * pairs) as f64;
        assert!(overview["candidates"] == pairs && flipped.abs() < 2.0, "{found} {flipped}");
    }
    for mode in ["raw", "centered", "aligned"] {
        let points = server.get(&format!("/api/points?run={run}&layer=1&mode={mode}"));
        assert_eq!(points.header("X-Shape"), format!("3,{},2", 2 * pairs));
        assert_eq!(points.header("X-Steps"), "0,50,60");
        assert_eq!(points.body.len(), 3 * 2 * pairs * 2 * 4);
        // The first step is not turned, so that the numbers themselves are those of the figure.
        let query = format!("run={run}&view=emergence&layer=1");
        let line = server.get(&format!("/api/command?{query}")).json()["command"].clone();
        let out = format!("{mode}.csv");
        let line = line.as_str().unwrap().replace("emergence.csv", &out);
        let mut words: Vec<&str> = line.split(' ').skip(1).collect();
        words.extend(["--view", mode, "--force"]);
        done(folder, &words);
        assert_eq!(drawn_points(&folder.join(&out), &points, 2 * pairs), 2 * pairs, "{mode}");
        let csv = fs::read_to_string(folder.join(&out)).unwrap();
        if mode == "raw" {
            let metrics = server.get(&format!("/api/metrics?run={run}&layer=1")).json();
            for (measure, key) in [
                ("raw retrieval", "raw"),
                ("centred retrieval", "centered"),
                ("language share of variance", "language_share"),
            ] {
                let of_csv = csv_measure(&csv, measure);
                assert_eq!(of_csv.len(), 3, "{measure}");
                for (step, value) in of_csv.into_iter().enumerate() {
                    let shown = metrics[key][step][1].as_f64().unwrap();
                    assert!((shown - value).abs() < 1e-4, "{measure} {step}: {shown} {value}");
                }
            }
            assert!(metrics["perplexity"].as_array().unwrap().len() > 1);
            assert_eq!(metrics["raw"][0].as_array().unwrap().len() as u64, layers);
        }
    }
    let difference = server.get(&format!("/api/points?run={run}&layer=1&proj=difference"));
    assert_eq!(difference.status, 200);
}

#[test]
fn words_are_those_of_the_vocabulary() {
    let folder = RUNS.path();
    let server = Served::start(folder, "run");
    let run = server.run();
    let items = server.get(&format!("/api/items?run={run}&kind=words")).json();
    let texts = |side: usize| items["texts"][side].as_array().unwrap();
    let count = texts(0).len() + texts(1).len();
    assert!(texts(0).len() > 50 && texts(1).len() > 50, "{count}");
    // The vectors are of the weights that were saved: those of the snapshots, and the run's own.
    let at = format!("run={run}&kind=words&layer=1&mode=centered");
    let points = server.get(&format!("/api/points?{at}"));
    assert_eq!((points.status, points.header("X-Steps")), (200, "0,50,60".to_owned()));
    assert_eq!(points.header("X-Shape"), format!("3,{count},2"));
    // The first step is not turned, so that its numbers are those of the map.
    let line =
        server.get(&format!("/api/command?{at}&step=0&view=space")).json()["command"].clone();
    let line = line.as_str().unwrap().replace("words.svg", "words.csv");
    assert!(line.contains("run@0 --vocab qaa --vocab qab"), "{line}");
    done(folder, &line.split(' ').skip(1).chain(["--force"]).collect::<Vec<_>>());
    assert_eq!(drawn_points(&folder.join("words.csv"), &points, usize::MAX), count);
    // A word of which a translation is known, and its neighbours.
    let gloss = |side: usize, word: &Value| {
        items["lexicon"][side][word.as_str().unwrap()].as_str().map(str::to_owned)
    };
    let (row, other) = (0..texts(0).len())
        .find_map(|row| {
            let meaning = Some(gloss(0, &texts(0)[row])?);
            Some((row, texts(1).iter().position(|word| gloss(1, word) == meaning)?))
        })
        .expect("a word whose meaning both languages have");
    let word = texts(0)[row].as_str().unwrap();
    let body =
        json!({ "run": run, "kind": "words", "step": 50, "lang": "qaa", "text": word, "k": 4 });
    let found = server.post("/api/neighbours", &body).json();
    let query = format!("run={run}&kind=words&step=50&lang=qaa&text={word}&k=4&view=neighbours");
    let printed = server.typed(folder, &query);
    assert_eq!(found["queries"], printed["queries"], "{found}");
    assert_eq!(found["candidates"], printed["candidates"]);
    assert_eq!(found["gold"][1], texts(1)[other]);
}

/// The coordinates of the rows of a figure's table that have them.
/// How many points a figure has, up to a number; they are where the page has them.
fn drawn_points(csv: &Path, points: &Answer, most: usize) -> usize {
    let mut drawn = csv_points(&fs::read_to_string(csv).unwrap());
    drawn.truncate(most);
    for (place, shown) in drawn.iter().flatten().zip(floats(&points.body)) {
        let shown = f64::from(shown);
        assert!((shown - place).abs() <= 1e-3 * place.abs().max(1e-2), "{shown} {place}");
    }
    drawn.len()
}

fn floats(body: &[u8]) -> impl Iterator<Item = f32> {
    body.chunks_exact(4).map(|number| f32::from_le_bytes(number.try_into().unwrap()))
}

fn csv_points(csv: &str) -> Vec<[f64; 2]> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|one| *one == name).unwrap();
    let (x, y) = (column("x"), column("y"));
    let number = |line: &str, column: usize| line.split(',').nth(column)?.parse::<f64>().ok();
    lines.filter_map(|line| Some([number(line, x)?, number(line, y)?])).collect()
}

/// The values of a measure, in order.
fn csv_measure(csv: &str, measure: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let value = header.iter().position(|one| *one == "value").unwrap();
    let of = lines.filter(|line| line.split(',').any(|cell| cell == measure));
    of.map(|line| line.split(',').nth(value).unwrap().parse().unwrap()).collect()
}

#[test]
fn neighbours_translations_and_similarities_are_those_of_the_commands() {
    let folder = RUNS.path();
    let server = Served::start(folder, "run");
    let run = server.run();
    let items = server.get(&format!("/api/items?run={run}")).json();
    let text = items["texts"][0][3].as_str().unwrap().to_owned();
    for (step, mode) in [(60, "raw"), (50, "centered")] {
        let body =
            json!({ "run": run, "step": step, "mode": mode, "lang": "qaa", "text": text, "k": 7 });
        let found = server.post("/api/neighbours", &body).json();
        let text = escaped(&text);
        let query =
            format!("run={run}&step={step}&mode={mode}&lang=qaa&text={text}&k=7&view=neighbours");
        let printed = server.typed(folder, &query);
        assert_eq!(found["queries"], printed["queries"], "{found}");
        assert_eq!(found["candidates"], printed["candidates"]);
        assert_eq!(found["gold"][1], items["texts"][1][3]);
        let snapshot = if step == 60 { Value::Null } else { json!(50) };
        assert_eq!(found["weights"]["step"], snapshot);
    }
    // Without a file of mean vectors they are computed; with one, it is used.
    let alphas = json!([0, 0.5, 1]);
    let body = json!({ "run": run, "step": 60, "from": "qaa", "to": "qab", "layer": 2, "kind": "mean", "alphas": alphas, "text": text });
    let query = format!(
        "run={run}&step=60&from=qaa&to=qab&layer=2&kind=mean&alphas=0,0.5,1&text={}&view=shift",
        escaped(&text)
    );
    let found = server.post("/api/translate", &body).json();
    let printed = server.typed(folder, &query);
    assert_eq!(found["outputs"], printed["sentences"][0]["outputs"], "{found}");
    assert_eq!(found["means"], Value::Null);
    for (output, positions) in
        found["outputs"].as_array().unwrap().iter().zip(found["probabilities"].as_array().unwrap())
    {
        for (subword, likely) in
            output["subwords"].as_array().unwrap().iter().zip(positions.as_array().unwrap())
        {
            let likely = likely.as_array().unwrap();
            assert_eq!((likely.len(), &likely[0]["text"]), (3, &subword["text"]));
            let p: Vec<f64> =
                likely.iter().map(|one| one["probability"].as_f64().unwrap()).collect();
            assert!(
                p[0] >= p[1] && p[1] >= p[2] && p[2] > 0.0 && p.iter().sum::<f64>() <= 1.000_001,
                "{p:?}"
            );
        }
    }
    let similarity = server.get(&format!("/api/cka?run={run}&step=60")).json();
    assert_eq!(
        similarity["result"],
        server.typed(folder, &format!("run={run}&step=60&view=layers"))
    );
    let other = format!("run={run}&step=60&other_step=0");
    let similarity = server.get(&format!("/api/cka?{other}")).json();
    assert_eq!(similarity["result"], server.typed(folder, &format!("{other}&view=layers")));
    // Errors of retrieval are as many as its accuracy says.
    let errors = server.get(&format!("/api/errors?run={run}&step=60&layer=1")).json();
    let printed = done(folder, &format!("retrieve --model run --layers 1 {PARALLEL}"));
    assert_eq!(errors["mean"], printed["layers"][0]["raw"]["mean"]);
    let wrong =
        2.0 * errors["sentences"].as_f64().unwrap() * (1.0 - errors["mean"].as_f64().unwrap());
    assert!((errors["wrong"].as_f64().unwrap() - wrong).abs() < 1e-6);
    for (wrong, part) in [
        (json!({ "layer": 99 }), "99"),
        (json!({ "alphas": ["x"] }), "alphas"),
        (json!({ "to": "fr" }), "fr"),
        (json!({ "text": "so ".repeat(200) }), "longer"),
    ] {
        let mut body = json!({ "run": run, "from": "qaa", "to": "qab", "layer": 1, "alphas": [1], "text": text });
        body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let answer = server.post("/api/translate", &body);
        let message = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(
            (400..=404).contains(&answer.status) && message.contains(part),
            "{} {message}",
            answer.status
        );
    }
}

#[test]
fn a_damaged_step_is_left_out_and_a_run_that_vanishes_is_gone() {
    let place = Folder::new();
    copy(&RUNS.path().join("run"), &place.join("run"));
    let probe = place.join("run/probes/qaa-qab/50.npz");
    let whole = fs::read(&probe).unwrap();
    fs::write(&probe, &whole[..whole.len() / 2]).unwrap();
    // In the folder above, without a name.
    let server = Served::start(&place, "");
    let run = server.run();
    let overview = server.get(&format!("/api/run?run={run}")).json();
    assert_eq!(overview["steps"], json!([0, 60]));
    assert!(overview["notes"][0].as_str().unwrap().contains("50.npz"), "{overview}");
    assert_eq!(server.get(&format!("/api/points?run={run}&layer=1")).header("X-Steps"), "0,60");
    // A page that follows hears of the step that is whole again, and that the run is gone.
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (host, cookie) = (server.host(), server.cookie());
    write!(stream, "GET /api/live?run={run} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n")
        .unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut probes = || loop {
        let line = lines.next().expect("it goes on");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str::<Value>(data).unwrap()["probes"].clone();
        }
    };
    let before = probes();
    fs::write(&probe, &whole).unwrap();
    assert_ne!(probes(), before);
    assert_eq!(server.get(&format!("/api/run?run={run}")).json()["steps"], json!([0, 50, 60]));
    // Weights that are half written: what needs them says so, and all else is answered.
    let weights = place.join("run/snapshots/50.safetensors");
    let whole = fs::read(&weights).unwrap();
    fs::write(&weights, &whole[..whole.len() / 2]).unwrap();
    let text = server.get(&format!("/api/items?run={run}")).json()["texts"][0][0].clone();
    let ask = |step: u64| {
        let body = json!({ "run": run, "step": step, "lang": "qaa", "text": text, "k": 3 });
        server.post("/api/neighbours", &body)
    };
    let refused = ask(50);
    let message = refused.json()["error"].as_str().unwrap().to_owned();
    assert!(refused.status >= 400 && message.contains("50.safetensors"), "{message}");
    assert_eq!(ask(60).status, 200);
    let words = server.get(&format!("/api/points?run={run}&layer=1&kind=words"));
    assert_eq!(words.header("X-Steps"), "0,60");
    fs::write(&weights, whole).unwrap();
    assert_eq!(ask(50).status, 200);
    fs::rename(place.join("run"), place.join("elsewhere")).unwrap();
    assert_eq!(server.get(&format!("/api/run?run={run}")).status, 410);
    assert!(lines.any(|line| line == "event: gone"));
}

#[test]
fn a_laboratory_and_a_hugging_face_folder() {
    let folder: &Path = &Folder::new();
    let number = "results add --measure accuracy --value 0.5 --command x";
    done(folder, &format!("{number} --factor system=mine --factor language=fr"));
    let server = Served::start(folder, "");
    assert_eq!(server.get("/api/runs").json()["laboratory"], "lab");
    assert!(server.get("/api/findings").json()["findings"].is_array());
    let output = common::isogloss(folder, "results --format json");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(server.get("/api/records").json(), printed);
    assert_eq!(server.get("/api/figure/nothing.svg").status, 404);
    drop(server);

    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    let model = model.to_str().unwrap();
    refused(folder, &format!("explore {model}"), 2, "--parallel");
    refused(folder, "explore no/such/folder", 2, "there is no such folder");
    refused(folder, "explore lob", 2, "beside it there are: lab");
    fs::create_dir(folder.join("empty")).unwrap();
    refused(folder, "explore empty", 2, "isogloss demo");
    let lines = |words: [&str; 4]| words.map(|word| format!("{word}.\n")).concat();
    fs::write(folder.join("en.txt"), lines(["A cat", "The dog", "a big house", "no"])).unwrap();
    fs::write(folder.join("fr.txt"), lines(["un chat", "Le chien", "une maison", "non"])).unwrap();
    let flags = "--parallel en=en.txt --parallel fr=fr.txt --limit 3";
    let server = Served::start(folder, &format!("{model} {flags}"));
    let run = server.run();
    let overview = server.get(&format!("/api/run?run={run}")).json();
    assert_eq!(
        (&overview["has_steps"], &overview["points"]),
        (&json!(false), &json!(6)),
        "{overview}"
    );
    assert!(overview["notes"][0].as_str().unwrap().contains("first 3"));
    assert_eq!(server.get(&format!("/api/points?run={run}&layer=1")).header("X-Shape"), "1,6,2");
    drop(server);
    // All lines: the curve over layers is what the command prints.
    let server =
        Served::start(folder, &format!("{model} --parallel en=en.txt --parallel fr=fr.txt"));
    let run = server.run();
    let metrics = server.get(&format!("/api/metrics?run={run}&layer=1")).json();
    let printed = server.typed(folder, &format!("run={run}&view=emergence"));
    for layer in 0..3 {
        assert_eq!(metrics["raw"][0][layer], printed["layers"][layer]["raw"]["mean"]);
        assert_eq!(metrics["centered"][0][layer], printed["layers"][layer]["centered"]["mean"]);
    }
}

/// What a folder holds: names, sizes and times.
fn listing(folder: &Path) -> Vec<String> {
    let output = Command::new("find").arg(folder).args(["-printf", "%p %s %T@\n"]).output();
    let mut all: Vec<String> =
        String::from_utf8(output.unwrap().stdout).unwrap().lines().map(str::to_owned).collect();
    all.sort();
    all
}

/// Of more text than is shown, a sample of lines: the same of both languages, and every command is of this very sample.
#[test]
fn of_much_text_a_sample_is_shown_and_its_commands_reproduce_it() {
    let folder: &Path = &Folder::new();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    let model = model.to_str().unwrap();
    // Words of letters that the fixture has, so that no two lines are the same subwords.
    let words = ["cat", "mat", "rat", "hat", "sad", "red", "un", "chat", "le", "sur"];
    let line = |mark: &str, row: usize| {
        format!("{mark} {} {} {}\n", words[row % 10], words[row / 10 % 10], words[row / 100 % 10])
    };
    let rows = 700;
    for (name, mark) in [("en.txt", "the"), ("fr.txt", "le")] {
        fs::write(folder.join(name), (0..rows).map(|row| line(mark, row)).collect::<String>())
            .unwrap();
    }
    let flags = "--parallel en=en.txt --parallel fr=fr.txt --sample-size 9";
    let before = listing(folder);
    let server = Served::start(folder, &format!("{model} {flags} --seed 3"));
    let run = server.run();
    let overview = server.get(&format!("/api/run?run={run}")).json();
    assert_eq!(overview["points"], 18, "{overview}");
    let note = "A random sample of 9 of 700 sentence pairs is shown (--sample-size, --seed 3).";
    assert_eq!(overview["notes"], json!([note]));
    let items = server.get(&format!("/api/items?run={run}")).json();
    let (en, fr) = (&items["texts"][0], &items["texts"][1]);
    for row in 0..9 {
        let (en, fr) = (en[row].as_str().unwrap(), fr[row].as_str().unwrap());
        assert_eq!(en.strip_prefix("the "), fr.strip_prefix("le "));
    }
    assert_ne!(en[8], json!(line("the", 8).trim()), "these are the first lines, not a sample");
    // The curve over layers, the points, the neighbours and the similarities.
    let metrics = server.get(&format!("/api/metrics?run={run}&layer=1")).json();
    let printed = server.typed(folder, &format!("run={run}&view=emergence"));
    assert_eq!(metrics["raw"][0][1], printed["layers"][1]["raw"]["mean"]);
    assert_eq!(metrics["candidates"], printed["candidates"][0]);
    let map = server.typed(folder, &format!("run={run}&layer=1&view=space"));
    assert!(map["caption"].as_str().unwrap().contains("9"), "{map}");
    let line = server.get(&format!("/api/command?run={run}&layer=1&view=space")).json();
    let line = line["command"].as_str().unwrap().replace("map.svg", "map.csv");
    done(folder, &line.split(' ').skip(1).collect::<Vec<_>>());
    let points = server.get(&format!("/api/points?run={run}&layer=1"));
    assert_eq!(drawn_points(&folder.join("map.csv"), &points, usize::MAX), 18);
    let body = json!({ "run": run, "lang": "en", "text": en[0], "k": 3 });
    let found = server.post("/api/neighbours", &body).json();
    let text = escaped(en[0].as_str().unwrap());
    let query = format!("run={run}&lang=en&text={text}&k=3&view=neighbours");
    assert_eq!(found["queries"], server.typed(folder, &query)["queries"]);
    let similarity = server.get(&format!("/api/cka?run={run}")).json();
    assert_eq!(similarity["result"], server.typed(folder, &format!("run={run}&view=layers")));
    // The server itself has written nothing; the commands wrote their pictures.
    for made in ["map.svg", "map.csv"] {
        fs::remove_file(folder.join(made)).unwrap();
    }
    let names = |all: Vec<String>| -> Vec<String> {
        all.into_iter().filter(|line| line.contains(".txt")).collect()
    };
    assert_eq!(names(listing(folder)), names(before));
}

/// A run that is opened with sentences has been trained, and has the weights that it saved on the way.
#[test]
fn given_sentences_have_the_steps_of_their_run() {
    let folder = RUNS.path();
    let server = Served::start(folder, &format!("run {PARALLEL}"));
    let run = server.run();
    let overview = server.get(&format!("/api/run?run={run}")).json();
    let snapshots = overview["snapshots"].as_array().unwrap();
    let mut steps = snapshots.clone();
    steps.retain(|step| *step != 60);
    steps.push(json!(60));
    assert!(steps.len() > 1 && overview["steps"] == json!(steps), "{overview}");
    assert_eq!(
        json!([overview["has_steps"], overview["given"], overview["from_random"]]),
        json!([true, true, true])
    );
    let metrics = server.get(&format!("/api/metrics?run={run}&layer=1")).json();
    assert!(metrics["title"].as_str().unwrap().contains("untrained"), "{metrics}");
    for (number, step) in steps.iter().enumerate() {
        let printed = server.typed(folder, &format!("run={run}&view=emergence&step={step}"));
        assert_eq!(metrics["raw"][number][1], printed["layers"][1]["raw"]["mean"], "step {step}");
    }
    let points = server.get(&format!("/api/points?run={run}&layer=1"));
    assert_eq!(points.header("X-Steps").split(',').count(), steps.len());
}

#[test]
fn two_runs_stand_beside_each_other() {
    let folder: &Path = &Folder::new();
    for name in ["run", "another"] {
        copy(&RUNS.path().join("run"), &folder.join(name));
    }
    let server = Served::start(folder, "run another");
    let list = server.get("/api/runs").json();
    assert_eq!(list["runs"].as_array().unwrap().len(), 2);
    assert_eq!(list["beside"], list["runs"][1]["id"]);
    let second = list["beside"].as_str().unwrap();
    let points = |run: &str| server.get(&format!("/api/points?run={run}&layer=1")).body;
    assert_eq!(points(second), points(list["runs"][0]["id"].as_str().unwrap()));
    let alone = Served::start(folder, "run");
    assert_eq!(alone.get("/api/runs").json()["beside"], Value::Null);
    refused(folder, "explore run nowhere", 2, "there is no such folder");
    done(folder, "explore run another --export two.html");
    let page = fs::read_to_string(folder.join("two.html")).unwrap();
    assert!(page.contains(&format!("/api/ranks?layer=1&mode=raw&pair=qaa-qab&run={second}")));
}

#[test]
fn nothing_is_written_to_a_run() {
    let folder = RUNS.path().join("run");
    let before = listing(&folder);
    let server = Served::start(RUNS.path(), "run");
    let run = server.run();
    let text = server.get(&format!("/api/items?run={run}")).json()["texts"][0][0].clone();
    let body = json!({ "run": run, "from": "qaa", "to": "qab", "layer": 1, "alphas": [1], "text": text, "lang": "qaa" });
    for path in ["translate", "neighbours"] {
        assert_eq!(server.post(&format!("/api/{path}"), &body).status, 200, "{path}");
    }
    for path in ["points", "metrics", "errors", "cka", "run"] {
        assert_eq!(server.get(&format!("/api/{path}?run={run}&layer=1")).status, 200, "{path}");
    }
    assert_eq!(listing(&folder), before);
}

/// Connections that say a byte now and then, with the token or without it, keep nobody out, and end.
#[test]
fn slow_connections_neither_fill_the_table_nor_last() {
    if !terms::tests::slow() {
        return;
    }
    let server = Served::start(RUNS.path(), "run");
    let connect = || TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let drip = |mut stream: TcpStream| {
        std::thread::spawn(move || {
            let begun = Instant::now();
            stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            // An answer, or the end.
            while begun.elapsed() < Duration::from_secs(30) {
                if stream.write_all(b"x").is_err() || stream.read(&mut [0]).is_ok() {
                    break;
                }
            }
            begun.elapsed()
        })
    };
    let mut with_token = connect();
    let (host, cookie) = (server.host(), server.cookie());
    let head = format!(
        "POST /api/neighbours HTTP/1.0\r\nHost: {host}\r\nCookie: {cookie}\r\nContent-Length: 9999\r\n\r\n"
    );
    with_token.write_all(head.as_bytes()).unwrap();
    let mut slow = vec![drip(with_token)];
    slow.extend((0..100).map(|_| drip(connect())));
    let begun = Instant::now();
    assert_eq!(server.get("/api/runs").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for drip in slow {
        let held = drip.join().unwrap();
        assert!(held < Duration::from_secs(15), "one was held for {held:?}");
    }
}

/// Verdicts and figures of a laboratory are inside an exported page.
#[test]
fn an_export_of_a_laboratory_has_its_studies() {
    let folder: &Path = &Folder::new();
    let number = "results add --measure accuracy --value 0.5 --command x";
    done(folder, &format!("{number} --factor system=mine --factor language=fr"));
    let result = done(folder, "explore --export page.html");
    assert_eq!((&result["run"], &result["figures_left_out"]), (&json!("lab"), &json!(0)));
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    let start = page.find("id=\"baked\">").unwrap() + "id=\"baked\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    let inside: Value = serde_json::from_str(&page[start..end]).unwrap();
    assert_eq!(inside["/api/runs?"]["json"]["laboratory"], "lab");
    let findings = &inside["/api/findings?"]["json"];
    assert!(findings["findings"].is_array() && findings["left_out"] == 0, "{findings}");
    for figure in findings["figures"].as_array().unwrap() {
        let id = figure["id"].as_str().unwrap();
        for ending in ["svg", "csv"] {
            assert!(inside[&format!("/api/figure/{id}.{ending}?")]["base64"].is_string(), "{id}");
        }
    }
}

/// Where memory cannot be had, an export ends with one sentence, or is whole.
#[cfg(target_os = "linux")]
#[test]
fn an_export_without_the_memory_for_it_says_so() {
    if !terms::tests::slow() {
        return;
    }
    let place = Folder::new();
    let run = RUNS.path().join("run");
    let mut failed = 0;
    for megabytes in [64, 80, 100, 150, 200, 250] {
        let script = format!("ulimit -v {} && exec \"$@\"", megabytes * 1000);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_isogloss"), "explore"]).arg(&run);
        let page = format!("{megabytes}.html");
        shell.args(["--threads", "1", "--device", "cpu", "--export", &page]);
        let output = shell.current_dir(&place).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let written = place.join(&page).exists();
        match output.status.code() {
            Some(0) => assert!(written),
            Some(1 | 2) => {
                assert!(
                    errors.lines().filter(|line| line.starts_with("error:")).count() == 1,
                    "{errors}"
                );
                assert!(!written, "{megabytes}: {errors}");
                failed += 1;
            }
            _ => panic!("{megabytes} MB: {:?} {errors}", output.status),
        }
    }
    assert!(failed > 0, "memory was enough each time");
}

#[test]
fn an_export_asks_nobody() {
    let place = Folder::new();
    let run = RUNS.path().join("run");
    let run = run.to_str().unwrap();
    let export = format!("explore {run} --export page.html");
    let result = done(&place, &export);
    assert!(result["answers"].as_u64().unwrap() > 100);
    let page = fs::read_to_string(place.join("page.html")).unwrap();
    for outside in ["src=\"", "href=\"page", "http://", "https://"] {
        let allowed = ["http://www.w3.org/2000/svg"];
        let found = page
            .match_indices(outside)
            .find(|(at, _)| !allowed.iter().any(|allowed| page[*at..].starts_with(allowed)));
        assert!(found.is_none(), "{outside}: {}", &page[found.unwrap().0..][..80]);
    }
    assert!(page.contains("Content-Security-Policy") && page.contains("/api/translate?alphas="));
    refused(&place, &export, 2, "exists");
}

/// Damage is not filed in the page as if nothing were wrong.
#[test]
fn an_export_counts_what_failed() {
    let place = Folder::new();
    let run = place.join("run");
    copy(&RUNS.path().join("run"), &run);
    let cut = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    let pair = fs::read_dir(run.join("probes")).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(pair).unwrap().map(|entry| entry.unwrap().path());
    let states: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|x| x == "npz")).collect();
    let export = "explore run --export page.html --force";
    cut(&states[0]);
    let errors = refused(&place, &export, 1, "answers failed, and the page shows why");
    assert!(errors.contains(".npz"), "{errors}");
    states[1..].iter().for_each(|path| cut(path));
    refused(&place, &export, 1, ".npz");
    copy(&RUNS.path().join("run/probes"), &run);
    cut(&run.join("vocabulary/vocabulary.json"));
    refused(&place, &export, 1, "answers failed, and the page shows why");
}
