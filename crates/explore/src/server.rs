//! A small synchronous server around an [`Explorer`]: a few threads that answer, and a few more for pages that follow a run.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use files::At;
use tiny_http::{Header, Method, Request, Response, Server};

use crate::error::{ApiFailure, ApiResult, ExploreError};
use crate::explorer::Explorer;
use crate::guard::{Access, Guard, HEADERS, LONGEST_BODY, RequestHeaders};
use crate::page;
use crate::request::{ApiAnswer, ApiRequest, PLAIN};

/// Threads that answer requests.
const THREADS: usize = 4;
/// Pages that follow a run at once, each with a thread.
const MOST_FOLLOWERS: usize = 8;
/// How often a run that is followed is looked at, and how often a follower hears that the server is there.
const LOOK: Duration = Duration::from_millis(700);
const SIGN: Duration = Duration::from_secs(10);
/// How long a thread waits for a request before it looks whether it is to stop.
const WAIT: Duration = Duration::from_millis(200);

/// A server on the loopback interface.
pub struct ExploreServer {
    explorer: Arc<Explorer>,
    server: Server,
    guard: Guard,
    port: u16,
    followers: Arc<AtomicUsize>,
    /// Whether it no longer answers; followers look at it.
    stopped: Arc<AtomicBool>,
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
        let server = Server::from_listener(listener, None).map_err(|e| failed(e.to_string()))?;
        let guard = Guard::new(port).map_err(|error| failed(error.to_string()))?;
        let (followers, stopped) = (Arc::default(), Arc::default());
        Ok(Self { explorer: Arc::new(explorer), server, guard, port, followers, stopped })
    }

    /// The address to open, with its token.
    pub fn address(&self) -> String {
        self.guard.address()
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What was opened.
    pub fn explorer(&self) -> &Explorer {
        &self.explorer
    }

    /// Answers until `stop` is set.
    pub fn serve(&self, stop: &AtomicBool) {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        if let Ok(Some(request)) = self.server.recv_timeout(WAIT) {
                            self.handle(request);
                        }
                    }
                });
            }
        });
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn handle(&self, mut request: Request) {
        let access = self.access(&request);
        let answer = match access {
            Access::Refused(reason) => ApiAnswer::of(PLAIN, reason).status(403),
            Access::Enter { set_cookie } => {
                let mut answer = ApiAnswer::of(PLAIN, "").status(303);
                answer.headers = vec![("Set-Cookie", set_cookie), ("Location", "/".to_owned())];
                answer
            }
            Access::Granted => {
                let asked = ApiRequest::of_address(request.url());
                if asked.path == "/api/live" && *request.method() == Method::Get {
                    return self.follow(request, &asked);
                }
                self.granted(&mut request).unwrap_or_else(ApiAnswer::from)
            }
        };
        let mut response = Response::from_data(answer.body)
            .with_status_code(answer.status)
            .with_chunked_threshold(usize::MAX);
        let own = answer.headers.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in HEADERS.into_iter().chain([("Content-Type", answer.kind)]).chain(own) {
            if let Ok(header) = Header::from_bytes(name, value) {
                response.add_header(header);
            }
        }
        // A reader that went away is no failure.
        let _ = request.respond(response);
    }

    fn access(&self, request: &Request) -> Access {
        let header = |name: &'static str| {
            let mut all = request.headers().iter().filter(|header| header.field.equiv(name));
            let first = all.next().map(|header| header.value.as_str());
            // Two of them are none.
            first.filter(|_| all.next().is_none())
        };
        let has = |name: &'static str| request.headers().iter().any(|h| h.field.equiv(name));
        let headers = RequestHeaders {
            host: header("Host"),
            origin: has("Origin").then(|| header("Origin").unwrap_or("two origins")),
            cookie: header("Cookie"),
        };
        self.guard.check(headers, &ApiRequest::of_address(request.url()))
    }

    fn granted(&self, request: &mut Request) -> ApiResult<ApiAnswer> {
        let asked = match request.method() {
            Method::Get => ApiRequest::of_address(request.url()),
            Method::Post => {
                let too_long = || ApiFailure {
                    status: 413,
                    message: format!("the body is longer than {LONGEST_BODY} bytes"),
                };
                if request.body_length().is_some_and(|length| length > LONGEST_BODY) {
                    return Err(too_long());
                }
                let mut body = Vec::new();
                let mut reader = request.as_reader().take(LONGEST_BODY as u64 + 1);
                reader.read_to_end(&mut body).at("the request", "read")?;
                if body.len() > LONGEST_BODY {
                    return Err(too_long());
                }
                ApiRequest::of_body(request.url(), &body)?
            }
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

    /// Tells a page how far a run is, whenever that changes, on a thread of its own.
    fn follow(&self, request: Request, asked: &ApiRequest) {
        let refuse = |request: Request, failure: ApiFailure| {
            let answer = ApiAnswer::from(failure);
            let response = Response::from_data(answer.body).with_status_code(answer.status);
            let _ = request.respond(response);
        };
        let entry = match self.explorer.progress(asked) {
            Ok((entry, _)) => entry,
            Err(failure) => return refuse(request, failure),
        };
        if self.followers.fetch_add(1, Ordering::Relaxed) >= MOST_FOLLOWERS {
            self.followers.fetch_sub(1, Ordering::Relaxed);
            let message = "too many pages follow runs; close some".to_owned();
            return refuse(request, ApiFailure { status: 503, message });
        }
        let (explorer, followers) = (Arc::clone(&self.explorer), Arc::clone(&self.followers));
        let asked = ApiRequest::new("/api/live", [("run", entry.id)]);
        let stopped = Arc::clone(&self.stopped);
        std::thread::spawn(move || {
            let _ = events(request.into_writer(), &explorer, &asked, &stopped);
            followers.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Writes server-sent events until the page goes away, or the run does.
fn events(
    mut out: Box<dyn Write + Send>,
    explorer: &Explorer,
    asked: &ApiRequest,
    stopped: &AtomicBool,
) -> std::io::Result<()> {
    let mut head = String::from("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n");
    for (name, value) in HEADERS.into_iter().chain([("Connection", "close")]) {
        head += &format!("{name}: {value}\r\n");
    }
    out.write_all(head.as_bytes())?;
    out.write_all(b"\r\n")?;
    out.flush()?;
    let mut before = None;
    let mut sign = Instant::now();
    while !stopped.load(Ordering::Relaxed) {
        let now = match explorer.progress(asked) {
            Ok((_, progress)) => progress,
            Err(_) => {
                out.write_all(b"event: gone\ndata: {}\n\n")?;
                return out.flush();
            }
        };
        if before.as_ref() != Some(&now) {
            let data = serde_json::to_string(&now).unwrap_or_default();
            write!(out, "event: progress\ndata: {data}\n\n")?;
            out.flush()?;
            before = Some(now);
        } else if sign.elapsed() > SIGN {
            out.write_all(b": still here\n\n")?;
            out.flush()?;
            sign = Instant::now();
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
