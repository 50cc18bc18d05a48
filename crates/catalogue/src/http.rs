//! HTTP downloads, whole or not at all, resumed where an earlier attempt stopped.
//!
//! What has arrived so far is beside the target (`.part`), with the server's ETag or date of the file
//! (`.mark`). The rest is requested under that validator (`If-Range`), so that the server starts over
//! where the file has changed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use files::At;
use ureq::http::{HeaderMap, StatusCode};
use ureq::{Agent, Body};

use crate::DownloadObserver;

/// Consecutive attempts without progress before a download fails.
const ATTEMPTS: u32 = 4;

/// Why a download failed.
#[derive(Debug)]
pub(crate) enum FetchError {
    /// No server was reached.
    Unreachable(String),
    /// The server said no.
    Status(u16),
    /// The server answered, and then something else went wrong, again and again.
    Broken(String),
    /// It arrived, and could not be written.
    Files(files::Error),
}

impl From<files::Error> for FetchError {
    fn from(error: files::Error) -> Self {
        FetchError::Files(error)
    }
}

/// The HTTP client.
pub(crate) struct Client {
    agent: Agent,
    /// How long to wait after a first failure; each further one doubles it.
    pause: Duration,
}

impl Client {
    pub(crate) fn new(pause: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("isogloss/", env!("CARGO_PKG_VERSION")))
            // Sizes and ranges are of the file as it lies there.
            .accept_encoding("identity")
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .timeout_per_read(Some(Duration::from_secs(60)));
        Self { agent: config.build().into(), pause }
    }

    /// Brings what lies at an address to `to`.
    pub(crate) fn fetch(
        &self,
        url: &str,
        to: &Path,
        watch: &mut DownloadObserver,
    ) -> Result<(), FetchError> {
        let part = Part::of(to);
        let (mut failures, mut pause) = (0, self.pause);
        loop {
            let before = part.length();
            let trouble = match self.attempt(url, &part, watch) {
                Ok(()) => return Ok(part.finish(to)?),
                Err(trouble) => trouble,
            };
            if !trouble.may_pass() {
                return Err(trouble);
            }
            // As long as something comes, it is worth going on.
            failures = if part.length() > before { 1 } else { failures + 1 };
            if failures >= ATTEMPTS {
                return Err(trouble);
            }
            thread::sleep(pause);
            pause *= 2;
        }
    }

    /// Asks once for what is missing, and adds it.
    fn attempt(
        &self,
        url: &str,
        part: &Part,
        watch: &mut DownloadObserver,
    ) -> Result<(), FetchError> {
        let mark = part.mark();
        // Without a mark nobody can tell whether the rest belongs to this beginning.
        let have = if mark.is_some() { part.length() } else { 0 };
        let mut request = self.agent.get(url);
        if let Some(mark) = mark.filter(|_| have > 0) {
            request = request.header("Range", format!("bytes={have}-")).header("If-Range", mark);
        }
        let response = request.call().map_err(|error| classify(&error))?;
        let (head, body) = response.into_parts();
        let begins = match head.status {
            StatusCode::OK => Some(0),
            StatusCode::PARTIAL_CONTENT => range(&head.headers).map(|(start, _)| start),
            StatusCode::RANGE_NOT_SATISFIABLE => None,
            status => return Err(FetchError::Status(status.as_u16())),
        };
        let Some(begins) = begins.filter(|&start| start == have || start == 0) else {
            part.forget()?;
            return Err(FetchError::Broken(
                "the server sent another part than was asked for".into(),
            ));
        };
        let total = range(&head.headers).and_then(|(_, total)| total);
        let total = total.or(length(&head.headers).map(|length| begins + length));
        let name = url.rsplit('/').next().unwrap_or(url);
        part.begin(begins, &head.headers)?;
        part.add(body, |done| watch(name, done, total))?;
        let done = part.length();
        match total {
            Some(total) if done > total => {
                part.forget()?;
                Err(FetchError::Broken(format!("{done} bytes came where {total} were promised")))
            }
            Some(total) if done < total => {
                Err(FetchError::Broken(format!("only {done} of {total} bytes came")))
            }
            _ => Ok(()),
        }
    }
}

impl FetchError {
    /// Whether asking again may help.
    fn may_pass(&self) -> bool {
        match self {
            FetchError::Status(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            FetchError::Broken(_) => true,
            FetchError::Unreachable(_) | FetchError::Files(_) => false,
        }
    }

    /// In words.
    pub(crate) fn reason(&self) -> String {
        match self {
            FetchError::Unreachable(why) => format!("no network, or no way to that server ({why})"),
            FetchError::Status(401 | 403) => "the server refuses access".into(),
            FetchError::Status(404 | 410) => "the server has no such file".into(),
            FetchError::Status(status) => format!("the server answers with status {status}"),
            FetchError::Broken(why) => format!("{why}, and trying again did not help"),
            FetchError::Files(error) => error.to_string(),
        }
    }
}

/// What an error of the client means: no server, or one that went away.
pub(crate) fn classify(error: &ureq::Error) -> FetchError {
    use ureq::Error::{ConnectionFailed, HostNotFound, Io, Protocol, StatusCode, Timeout};
    match error {
        StatusCode(status) => FetchError::Status(*status),
        HostNotFound | ConnectionFailed => FetchError::Unreachable(error.to_string()),
        Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            FetchError::Unreachable(error.to_string())
        }
        Io(source) if !is_cut(source) => FetchError::Unreachable(error.to_string()),
        Io(_) | Timeout(_) | Protocol(_) => FetchError::Broken(error.to_string()),
        _ => FetchError::Unreachable(error.to_string()),
    }
}

/// Whether a connection stood, and ended too early.
fn is_cut(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Where a part begins, and how long the whole is: `bytes 5-9/10`.
fn range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get("content-range")?.to_str().ok()?.strip_prefix("bytes ")?;
    let (part, total) = text.split_once('/')?;
    Some((part.split_once('-')?.0.trim().parse().ok()?, total.trim().parse().ok()))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get("content-length")?.to_str().ok()?.trim().parse().ok()
}

/// The beginning of a file that is still to come.
struct Part {
    path: PathBuf,
    mark: PathBuf,
}

impl Part {
    fn of(to: &Path) -> Self {
        Self { path: to.with_added_extension("part"), mark: to.with_added_extension("mark") }
    }

    fn length(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    fn mark(&self) -> Option<String> {
        fs::read_to_string(&self.mark).ok().filter(|mark| !mark.is_empty())
    }

    /// Cuts to what the server goes on from, and notes the file's mark.
    fn begin(&self, from: u64, headers: &HeaderMap) -> Result<(), files::Error> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(&self.path);
        file.and_then(|file| file.set_len(from)).at(&self.path, "write")?;
        // A weak mark does not promise the same bytes.
        let strong = |mark: &&str| !mark.starts_with("W/");
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let mark = header("etag").filter(strong).or(header("last-modified"));
        files::write(&self.mark, mark.unwrap_or_default())
    }

    /// Adds what comes.
    fn add(&self, body: Body, mut watch: impl FnMut(u64)) -> Result<(), FetchError> {
        let mut file = OpenOptions::new().append(true).open(&self.path).at(&self.path, "open")?;
        let mut reader = body.into_reader();
        let (mut done, mut buffer) = (self.length(), vec![0; 1 << 16]);
        loop {
            let read = reader.read(&mut buffer).map_err(|error| {
                FetchError::Broken(format!("the connection broke after {done} bytes: {error}"))
            })?;
            if read == 0 {
                return Ok(());
            }
            file.write_all(&buffer[..read]).at(&self.path, "write")?;
            done += read as u64;
            watch(done);
        }
    }

    fn forget(&self) -> Result<(), files::Error> {
        for path in [&self.path, &self.mark] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).at(path, "remove");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives the file its name.
    fn finish(&self, to: &Path) -> Result<(), files::Error> {
        File::open(&self.path).and_then(|file| file.sync_all()).at(&self.path, "sync")?;
        fs::rename(&self.path, to).at(to, "write")?;
        self.forget()
    }
}
