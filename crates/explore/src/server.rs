//! A small synchronous server around an [`Explorer`]: a thread for each request, and a connection for each.
//!
//! Browsers keep connections open and open some in advance, which would occupy threads; so every answer ends its connection, and a
//! connection has one deadline for all that it asks. Until it has shown the token it is a stranger's: of these there are few at a
//! time, the oldest makes room, and none counts among those that are answered.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use terms::strangers::{Seat, Strangers, TimedStream};

use crate::error::{ApiFailure, ApiResult, ExploreError};
use crate::explorer::Explorer;
use crate::guard::{Access, Guard, HEADERS, LONGEST_BODY, RequestHeaders};
use crate::page;
use crate::request::{ApiAnswer, ApiRequest, PLAIN};

/// Connections at once that have not shown the token, those that have, and of these the pages that follow a run.
const MOST_STRANGERS: usize = 8;
const MOST_CONNECTIONS: usize = 64;
const MOST_FOLLOWERS: usize = 8;
/// The longest head of a request, and its headers at most.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// How long a request may take to arrive, head and body, and an answer to be taken.
const ARRIVAL: Duration = Duration::from_secs(10);
const DEPARTURE: Duration = Duration::from_secs(60);
/// How long a connection is kept after its answer.
const LINGER: Duration = Duration::from_secs(1);
/// How often a run that is followed is looked at, and how often a follower receives a sign of life.
const LOOK: Duration = Duration::from_millis(700);
const SIGN: Duration = Duration::from_secs(10);
/// How soon the server notices that it is to stop.
const NOTICE: Duration = Duration::from_millis(100);

pub struct ExploreServer {
    listener: TcpListener,
    service: Arc<Service>,
    port: u16,
}

struct Service {
    explorer: Explorer,
    guard: Guard,
    strangers: Arc<Strangers>,
    connections: AtomicUsize,
    followers: AtomicUsize,
    /// Whether it no longer answers; followers look at it.
    stopped: AtomicBool,
}

#[derive(Default)]
struct RequestHead {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    /// What was read of the body along with it.
    rest: Vec<u8>,
}

impl ExploreServer {
    /// Listens on a port of 127.0.0.1; 0 takes any that is free.
    ///
    /// # Errors
    /// Where the port cannot be had.
    pub fn bind(explorer: Explorer, port: u16) -> Result<Self, ExploreError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |reason: String| ApiFailure {
            status: 500,
            message: format!("cannot listen on {address} ({reason}); name another --port, or none"),
        };
        let listener = TcpListener::bind(address).map_err(|error| failed(error.to_string()))?;
        let port = listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
        let guard = Guard::new(port).map_err(|error| failed(error.to_string()))?;
        let service = Service {
            explorer,
            guard,
            strangers: Strangers::new(MOST_STRANGERS, ARRIVAL),
            connections: AtomicUsize::new(0),
            followers: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        };
        Ok(Self { listener, service: Arc::new(service), port })
    }

    /// The address to open, with its token.
    pub fn address(&self) -> String {
        self.service.guard.address()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn explorer(&self) -> &Explorer {
        &self.service.explorer
    }

    pub fn serve(&self, stop: &AtomicBool) {
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(NOTICE);
                }
                // Wakes the loop below.
                let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
            });
            for stream in self.listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let service = Arc::clone(&self.service);
                let admitted = stream.and_then(|stream| service.strangers.admit(stream));
                let Ok((stream, seat)) = admitted else { continue };
                // A reader that went away is no failure, and one for whom there is no thread is dropped.
                let _ = thread::Builder::new().spawn(move || service.handle(stream, seat));
            }
        });
        self.service.stopped.store(true, Ordering::Relaxed);
    }
}

impl Service {
    fn handle(&self, mut stream: TimedStream, seat: Seat) -> io::Result<()> {
        stream.stream().set_write_timeout(Some(DEPARTURE))?;
        stream.stream().set_nodelay(true)?;
        let head = match read_head(&mut stream)? {
            Ok(head) => head,
            Err(failure) => return write_answer(stream, &ApiAnswer::from(failure)),
        };
        let asked = ApiRequest::of_address(&head.target);
        match self.guard.check(head.guarded(), &asked) {
            Access::Refused(reason) => {
                write_answer(stream, &ApiAnswer::of(PLAIN, reason).status(403))
            }
            Access::Enter { set_cookie } => {
                let mut answer = ApiAnswer::of(PLAIN, "").status(303);
                answer.headers = vec![("Set-Cookie", set_cookie), ("Location", "/".to_owned())];
                write_answer(stream, &answer)
            }
            Access::Granted => {
                drop(seat);
                let before = self.connections.fetch_add(1, Ordering::Relaxed);
                let answered = match before < MOST_CONNECTIONS {
                    true => self.answer(&head, &asked, stream),
                    false => write_answer(stream, &too_many("connections of this page are open")),
                };
                self.connections.fetch_sub(1, Ordering::Relaxed);
                answered
            }
        }
    }

    /// Answers somebody who has the token.
    fn answer(
        &self,
        head: &RequestHead,
        asked: &ApiRequest,
        mut stream: TimedStream,
    ) -> io::Result<()> {
        if asked.path == "/api/live" && head.method == "GET" {
            return self.follow(stream, asked);
        }
        let answer = self.granted(head, &mut stream).unwrap_or_else(ApiAnswer::from);
        write_answer(stream, &answer)
    }

    fn granted(&self, head: &RequestHead, stream: &mut TimedStream) -> ApiResult<ApiAnswer> {
        let asked = match head.method.as_str() {
            "GET" => ApiRequest::of_address(&head.target),
            "POST" => ApiRequest::of_body(&head.target, &head.body(stream)?)?,
            _ => {
                let message = "only GET and POST are answered".to_owned();
                return Err(ApiFailure { status: 405, message });
            }
        };
        Ok(match asked.path.as_str() {
            "/" | "/index.html" => ApiAnswer::of("text/html; charset=utf-8", page::MARKUP),
            "/page.css" => ApiAnswer::of("text/css; charset=utf-8", page::STYLE),
            "/page.js" => ApiAnswer::of("text/javascript; charset=utf-8", page::SCRIPT),
            _ => self.explorer.answer(&asked),
        })
    }

    /// Sends a page how far a run is, whenever that changes.
    fn follow(&self, stream: TimedStream, asked: &ApiRequest) -> io::Result<()> {
        if let Err(failure) = self.explorer.progress(asked) {
            return write_answer(stream, &ApiAnswer::from(failure));
        }
        let before = self.followers.fetch_add(1, Ordering::Relaxed);
        let followed = match before < MOST_FOLLOWERS {
            true => self.events(stream.into_stream()?, asked),
            false => write_answer(stream, &too_many("pages follow runs")),
        };
        self.followers.fetch_sub(1, Ordering::Relaxed);
        followed
    }

    /// Writes server-sent events until the page goes away, or the run does.
    fn events(&self, mut out: TcpStream, asked: &ApiRequest) -> io::Result<()> {
        out.write_all(head_of(200, "text/event-stream", &[]).as_bytes())?;
        out.write_all(b"\r\n")?;
        let mut before = None;
        let mut sign = Instant::now();
        while !self.stopped.load(Ordering::Relaxed) {
            let now = match self.explorer.progress(asked) {
                Ok((_, progress)) => progress,
                Err(_) => return out.write_all(b"event: gone\ndata: {}\n\n"),
            };
            if before.as_ref() != Some(&now) {
                let data = serde_json::to_string(&now).unwrap_or_default();
                out.write_all(format!("event: progress\ndata: {data}\n\n").as_bytes())?;
                before = Some(now);
            } else if sign.elapsed() > SIGN {
                out.write_all(b": still here\n\n")?;
                sign = Instant::now();
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl RequestHead {
    fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let first = all.next().map(|(_, value)| value.as_str());
        first.filter(|_| all.next().is_none())
    }

    fn guarded(&self) -> RequestHeaders<'_> {
        let has_origin = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Origin"));
        RequestHeaders {
            host: self.header("Host"),
            origin: has_origin.then(|| self.header("Origin").unwrap_or("several origins")),
            cookie: self.header("Cookie"),
        }
    }

    /// The body, which must say how long it is.
    fn body(&self, stream: &mut TimedStream) -> ApiResult<Vec<u8>> {
        let length = self.header("Content-Length").and_then(|length| length.parse::<usize>().ok());
        let Some(length) = length else {
            let message = "a body says how long it is, in Content-Length".to_owned();
            return Err(ApiFailure { status: 411, message });
        };
        if length > LONGEST_BODY {
            let message = format!("the body is longer than {LONGEST_BODY} bytes");
            return Err(ApiFailure { status: 413, message });
        }
        let mut body = self.rest.clone();
        body.truncate(length);
        let missing = length - body.len();
        stream.take(missing as u64).read_to_end(&mut body)?;
        Ok(body)
    }
}

/// Reads the head of a request, or why it is none.
fn read_head(stream: &mut TimedStream) -> io::Result<ApiResult<RequestHead>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..count]);
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let end = match request.parse(&bytes) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => continue,
            Ok(httparse::Status::Partial) => {
                let message = "the head of the request is too long".to_owned();
                return Ok(Err(ApiFailure { status: 431, message }));
            }
            Err(_) => return Ok(Err(ApiFailure::request("this is no request of HTTP"))),
        };
        let header = |header: &httparse::Header<'_>| {
            (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())
        };
        return Ok(Ok(RequestHead {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            headers: request.headers.iter().map(header).collect(),
            rest: bytes[end..].to_vec(),
        }));
    }
}

/// The head of an answer, but for its last line.
fn head_of(status: u16, kind: &str, headers: &[(&str, String)]) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    let own = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let all = HEADERS.into_iter().chain([("Content-Type", kind), ("Connection", "close")]);
    for (name, value) in all.chain(own) {
        head += &format!("{name}: {value}\r\n");
    }
    head
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        413 => "Content Too Large",
        500.. => "Server Error",
        _ => "Refused",
    }
}

fn too_many(what: &str) -> ApiAnswer {
    ApiAnswer::from(ApiFailure { status: 503, message: format!("too many {what}; close some") })
}

fn write_answer(mut timed: TimedStream, answer: &ApiAnswer) -> io::Result<()> {
    let stream = timed.stream();
    let mut bytes = head_of(answer.status, answer.kind, &answer.headers).into_bytes();
    bytes.extend(format!("Content-Length: {}\r\n\r\n", answer.body.len()).as_bytes());
    bytes.extend_from_slice(&answer.body);
    stream.write_all(&bytes)?;
    stream.shutdown(Shutdown::Write)?;
    // A connection that is closed while the other side still writes would take the answer with it.
    let rest = TimedStream::new(timed.into_stream()?, LINGER);
    io::copy(&mut rest.take(1 << 20), &mut io::sink())?;
    Ok(())
}
