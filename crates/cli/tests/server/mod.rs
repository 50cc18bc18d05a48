//! A small HTTP server on this machine, which answers as a test wants and remembers what it was
//! asked.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

/// What was asked.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: Vec<String>,
}

impl Asked {
    /// The value of a header, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self
            .headers
            .iter()
            .find_map(|line| line.split_once(": ").filter(|(key, _)| *key == name));
        line.map(|(_, value)| value)
    }

    /// Where the wanted part begins, and where it ends if that was printed.
    fn range(&self) -> Option<(usize, Option<usize>)> {
        let (from, to) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse().ok()?, to.parse().ok()))
    }
}

/// What to answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Hang up after so many bytes of the body.
    pub(crate) cut: Option<usize>,
}

impl Answer {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: b"no".to_vec(), cut: None }
    }

    pub(crate) fn text(body: &str) -> Self {
        Self { status: 200, body: body.into(), ..Self::status(200) }
    }

    /// A file, or the part of it that was asked for, as servers of files answer.
    pub(crate) fn file(asked: &Asked, body: &[u8], mark: &str) -> Self {
        let headers = vec![("ETag", format!("\"{mark}\""))];
        let same = asked.header("if-range").is_none_or(|given| given == format!("\"{mark}\""));
        let whole = Self { status: 200, headers, body: body.to_vec(), cut: None };
        match asked.range().filter(|_| same) {
            None => whole,
            Some((from, _)) if from >= body.len() => Self::status(416),
            Some((from, to)) => {
                let to = to.map_or(body.len(), |to| (to + 1).min(body.len()));
                let range = format!("bytes {from}-{}/{}", to - 1, body.len());
                let mut part = Self { status: 206, body: body[from..to].to_vec(), ..whole };
                part.headers.push(("Content-Range", range));
                part
            }
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn cut(mut self, after: usize) -> Self {
        self.cut = Some(after);
        self
    }

    fn send(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let length = self.body.len();
        let mut head = format!(
            "HTTP/1.1 {} x\r\nContent-Length: {length}\r\nConnection: close\r\n",
            self.status
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        stream.write_all(&self.body[..self.cut.unwrap_or(length).min(length)])
    }
}

/// A server that runs until the test ends.
pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Asked) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else { continue };
                let answer = answer(&request);
                // Noted before it is answered: the client may be done before this thread goes on.
                log.lock().unwrap().push(request);
                // A client that went away is the test's business, not the server's.
                let _ = answer.send(&stream);
            }
        });
        Self { address, asked }
    }

    /// What was asked since the last time, in short: path, and range where one was given.
    pub(crate) fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let short = |asked: Asked| match asked.header("range") {
            Some(range) => format!("{} {range}", asked.path),
            None => asked.path,
        };
        asked.into_iter().map(short).collect()
    }

    /// The values of a header that were sent since the last time.
    pub(crate) fn headers(&self, name: &str) -> Vec<Option<String>> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.iter().map(|asked| asked.header(name).map(str::to_owned)).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.take_while(|line| !line.is_empty());
    let lower = |line: String| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line,
    };
    Some(Asked { path, headers: headers.map(lower).collect() })
}

/// An address at which nobody listens.
pub(crate) fn nowhere() -> String {
    // A port that is free now might be another test's server in a moment; nobody is ever given this one.
    "http://127.0.0.1:1".to_owned()
}

/// The binary, with nothing of this machine's settings for networks and hubs.
pub(crate) fn isogloss() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isogloss"));
    let proxies =
        ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    for name in proxies.into_iter().chain(["HF_TOKEN", "HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT"]) {
        command.env_remove(name);
    }
    command
}
