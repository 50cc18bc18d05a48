//! HTTP downloads, whole or not at all, resumed where an earlier attempt stopped.
//!
//! What has arrived so far is beside the target (`.part`), with the server's ETag or date of the file
//! (`.mark`). The rest is requested under that validator (`If-Range`), so that the server starts over
//! where the file has changed.
//!
//! A server is not trusted with more than the file: it may send the client to another host only over TLS, and never from
//! TLS to plain HTTP; what it does not announce is bounded ([`limits::most_unannounced`]), what it announces must fit on
//! the disk, and one that sends a few bytes now and then is given up on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use files::{At, limits};
use ureq::http::response::Parts;
use ureq::http::{HeaderMap, StatusCode, Uri};
use ureq::{Agent, Body};

use crate::DownloadObserver;

/// Consecutive attempts without progress before a download fails.
const ATTEMPTS: u32 = 4;
/// Attempts in all, however much each of them brings.
const MOST_ATTEMPTS: u32 = 200;
/// An attempt that brings less has made no progress.
const PROGRESS: u64 = 64 << 10;
/// How often a server may send the client on.
const MOST_REDIRECTS: u32 = 5;
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) enum FetchError {
    /// No server was reached.
    Unreachable(String),
    /// The server said no.
    Status(u16),
    /// The server answered, and then something else went wrong, again and again.
    Broken(String),
    /// The server did what none may.
    Refused(String),
    /// It arrived, and could not be written.
    Files(files::Error),
}

impl From<files::Error> for FetchError {
    fn from(error: files::Error) -> Self {
        FetchError::Files(error)
    }
}

pub(crate) struct Client {
    agent: Agent,
    /// How long to wait after a first failure; each further one doubles it.
    pause: Duration,
    /// How long [`PROGRESS`] bytes may take.
    patience: Duration,
    /// The most that may come of what was not announced.
    most_unannounced: u64,
    /// A host, and the token that it alone is sent.
    token: Option<(String, String)>,
}

impl Client {
    pub(crate) fn new(pause: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .user_agent(concat!("isogloss/", env!("CARGO_PKG_VERSION")))
            // Sizes and ranges are of the file as it lies there.
            .accept_encoding("identity")
            // Where a server sends the client is looked at first.
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .timeout_per_read(Some(Duration::from_secs(60)));
        let most_unannounced = limits::most_unannounced();
        // As slow as a modem, and no slower.
        let patience = Duration::from_secs(120);
        Self { agent: config.build().into(), pause, patience, most_unannounced, token: None }
    }

    /// The same with a token for the host of an address: others that it may send the client to do not see it.
    pub(crate) fn with_token(self, url: &str, token: Option<String>) -> Self {
        Self { token: host_of(url).zip(token), ..self }
    }

    /// Brings what lies at an address to `to`.
    pub(crate) fn fetch(
        &self,
        url: &str,
        to: &Path,
        watch: &mut DownloadObserver,
    ) -> Result<(), FetchError> {
        let part = Part::of(to);
        let (mut failures, mut attempts, mut pause) = (0, 0, self.pause);
        loop {
            let before = part.length();
            let trouble = match self.attempt(url, &part, watch) {
                Ok(()) => return Ok(part.finish(to)?),
                Err(trouble) => trouble,
            };
            if let FetchError::Refused(_) = trouble {
                part.forget()?;
            }
            if !trouble.may_pass() {
                return Err(trouble);
            }
            attempts += 1;
            // As long as something comes, it is worth going on.
            let more = part.length().saturating_sub(before) >= PROGRESS;
            failures = if more { 1 } else { failures + 1 };
            if failures >= ATTEMPTS || attempts >= MOST_ATTEMPTS {
                return Err(trouble);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
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
        let mark = mark.filter(|_| have > 0);
        let rest = mark
            .as_deref()
            .map(|mark| [("Range", format!("bytes={have}-")), ("If-Range", mark.to_owned())]);
        let (mut heads, body) = self.ask(url, rest.as_ref().map_or(&[], |rest| rest.as_slice()))?;
        let head = heads.pop().expect("an answer has a head");
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
        if begins > 0 && mark_of(&head.headers).is_some_and(|now| mark.as_deref() != Some(now)) {
            part.forget()?;
            return Err(FetchError::Broken("the file has changed on the server meanwhile".into()));
        }
        let total = range(&head.headers).and_then(|(_, total)| total);
        let total = total.or(length(&head.headers).map(|length| begins + length));
        let name = url.rsplit('/').next().unwrap_or(url);
        part.begin(begins, &head.headers)?;
        self.check_room(part, total.unwrap_or(0).saturating_sub(begins))?;
        let most = total.unwrap_or(self.most_unannounced);
        self.add(part, body, most, |done| watch(name, done, total))?;
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

impl Client {
    /// What a server says of a file: the heads of its answers to a request for the first byte, from that of the address
    /// to that of the place where the file lies.
    pub(crate) fn describe(&self, url: &str) -> Result<Vec<Parts>, FetchError> {
        let (mut failures, mut pause) = (0, self.pause);
        loop {
            let answer = self.ask(url, &[("Range", "bytes=0-0".to_owned())]);
            let trouble = match answer {
                Ok((heads, _)) => match heads.last().map(|head| head.status) {
                    Some(status) if !status.is_success() => FetchError::Status(status.as_u16()),
                    _ => return Ok(heads),
                },
                Err(trouble) => trouble,
            };
            failures += 1;
            if !trouble.may_pass() || failures >= ATTEMPTS {
                return Err(trouble);
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Asks for a file with some headers, and follows the server where it may send the client. The last head is that of
    /// the body.
    fn ask(&self, url: &str, headers: &[(&str, String)]) -> Result<(Vec<Parts>, Body), FetchError> {
        let (mut url, mut heads) = (url.to_owned(), Vec::new());
        for _ in 0..=MOST_REDIRECTS {
            let mut request = self.agent.get(&url);
            if let Some((host, token)) = &self.token
                && host_of(&url).as_ref() == Some(host)
            {
                request = request.header("Authorization", format!("Bearer {token}"));
            }
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let (head, body) = request.call().map_err(|error| classify(&error))?.into_parts();
            if !matches!(head.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                heads.push(head);
                return Ok((heads, body));
            }
            let to = head.headers.get("location").and_then(|to| to.to_str().ok());
            url = redirected(&url, to.unwrap_or_default()).map_err(FetchError::Refused)?;
            heads.push(head);
        }
        let reason = format!("the server sends the client on more than {MOST_REDIRECTS} times");
        Err(FetchError::Refused(reason))
    }

    /// Refuses, before anything is written, what the disk has no room for.
    fn check_room(&self, part: &Part, bytes: u64) -> Result<(), FetchError> {
        #[cfg(unix)]
        if let Ok(disk) = rustix::fs::statvfs(&part.path) {
            let room = disk.f_bavail.saturating_mul(disk.f_frsize);
            if bytes > room {
                let [bytes, room] = [bytes, room].map(|bytes| bytes >> 20);
                let reason = format!("it has {bytes} MB, and the disk has room for {room} MB");
                return Err(FetchError::Refused(reason));
            }
        }
        let _ = (part, bytes);
        Ok(())
    }

    /// Adds what comes to a part, which may have `most` bytes in the end.
    fn add(
        &self,
        part: &Part,
        body: Body,
        most: u64,
        mut watch: impl FnMut(u64),
    ) -> Result<(), FetchError> {
        let mut file = part.open(OpenOptions::new().append(true)).at(&part.path, "open")?;
        let mut reader = body.into_reader();
        let (mut done, mut buffer) = (part.length(), vec![0; 1 << 16]);
        let (mut since, mut from) = (Instant::now(), done);
        loop {
            let read = reader.read(&mut buffer).map_err(|error| {
                FetchError::Broken(format!("the connection broke after {done} bytes: {error}"))
            })?;
            if read == 0 {
                return Ok(());
            }
            done += read as u64;
            if done > most {
                let reason = format!(
                    "more than {most} bytes came, the most that is taken; {} raises that where the server does not \
                     say how much it will send",
                    limits::MAX_BYTES
                );
                return Err(FetchError::Refused(reason));
            }
            file.write_all(&buffer[..read]).at(&part.path, "write")?;
            watch(done);
            if done - from >= PROGRESS {
                (since, from) = (Instant::now(), done);
            } else if since.elapsed() > self.patience {
                let seconds = self.patience.as_secs_f64();
                let reason = format!("only {} bytes came within {seconds} s", done - from);
                return Err(FetchError::Broken(reason));
            }
        }
    }
}

/// The scheme, host and port of an address.
fn host_of(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    Some(format!("{}://{}", url.scheme_str()?, url.authority()?))
}

/// Where a server may send the client: on the same host, or from TLS to TLS.
fn redirected(from: &str, to: &str) -> Result<String, String> {
    let parse = |url: &str| url.parse::<Uri>().ok().filter(|uri| uri.host().is_some());
    let old = parse(from).ok_or_else(|| format!("{from} is no address"))?;
    let scheme = old.scheme_str().unwrap_or_default();
    if to.starts_with('/') && !to.starts_with("//") {
        let authority = old.authority().map_or("", |authority| authority.as_str());
        return Ok(format!("{scheme}://{authority}{to}"));
    }
    let shown: String = to.chars().take(200).collect();
    let refuse = |why: &str| Err(format!("the server sends the client to `{shown}`, {why}"));
    let Some(new) = parse(to) else { return refuse("which is no address") };
    match (scheme, new.scheme_str().unwrap_or_default()) {
        ("https" | "http", "https") => Ok(to.to_owned()),
        ("http", "http") if old.authority() == new.authority() => Ok(to.to_owned()),
        ("http", "http") => refuse("another host, without TLS"),
        ("https", "http") => refuse("from TLS to none"),
        _ => refuse("which is neither HTTP nor HTTPS"),
    }
}

impl FetchError {
    fn may_pass(&self) -> bool {
        match self {
            FetchError::Status(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            FetchError::Broken(_) => true,
            FetchError::Unreachable(_) | FetchError::Files(_) | FetchError::Refused(_) => false,
        }
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            FetchError::Unreachable(why) => format!("no network, or no way to that server ({why})"),
            FetchError::Status(401 | 403) => "the server refuses access".into(),
            FetchError::Status(404 | 410) => "the server has no such file".into(),
            FetchError::Status(status) => format!("the server answers with status {status}"),
            FetchError::Broken(why) => format!("{why}, and trying again did not help"),
            FetchError::Refused(why) => why.clone(),
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
pub(crate) fn range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let text = headers.get("content-range")?.to_str().ok()?.strip_prefix("bytes ")?;
    let (part, total) = text.split_once('/')?;
    Some((part.split_once('-')?.0.trim().parse().ok()?, total.trim().parse().ok()))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get("content-length")?.to_str().ok()?.trim().parse().ok()
}

/// What tells a file from a changed one.
fn mark_of(headers: &HeaderMap) -> Option<&str> {
    // A weak mark does not promise the same bytes.
    let strong = |mark: &&str| !mark.starts_with("W/");
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    header("etag").filter(strong).or(header("last-modified"))
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

    /// Opens the file; a link in its place is refused, since what comes would be written wherever it points.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        }
        options.open(&self.path)
    }

    /// Cuts to what the server goes on from, and notes the file's mark.
    fn begin(&self, from: u64, headers: &HeaderMap) -> Result<(), files::Error> {
        let file = self.open(OpenOptions::new().write(true).create(true).truncate(false));
        file.and_then(|file| file.set_len(from)).at(&self.path, "write")?;
        files::write(&self.mark, mark_of(headers).unwrap_or_default())
    }

    fn forget(&self) -> Result<(), files::Error> {
        files::remove(&self.path)?;
        files::remove(&self.mark)
    }

    fn finish(&self, to: &Path) -> Result<(), files::Error> {
        File::open(&self.path).and_then(|file| file.sync_all()).at(&self.path, "sync")?;
        fs::rename(&self.path, to).at(to, "write")?;
        self.forget()
    }
}

#[cfg(test)]
mod tests;
