//! Strangers on the network: at the port where ranks meet, and at the explorer's server. The run ends as if nobody had come, and
//! the page is there for those who have its token.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use torment::mutation::{Packing, mutate};

use crate::board::Kind;
use crate::cases::{Bench, CaseResult, text};
use crate::process::Running;
use crate::recipes::recipe;
use crate::tree::leftovers;

/// How long anything may take to be there, or to answer.
const PATIENCE: Duration = Duration::from_secs(20);
const SECRET: &str = "00112233445566778899aabbccddeeff";
/// Requests of a case.
pub(crate) const REQUESTS: u64 = 1000;
/// The most memory of the explorer's server, in kilobytes: it has opened a model of a few.
const MEMORY: u64 = 600 << 10;

fn within<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(found) = look() {
            return Ok(found);
        }
        sleep(Duration::from_millis(2));
    }
    Err(format!("{what} within {} s", PATIENCE.as_secs()))
}

fn knock(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    Some(stream)
}

fn random_bytes(most: usize, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.random_range(0..most)];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// What a stranger says to rank 0, who asked who he is; `known` is what a rank has said in another run with the same secret.
fn false_greeting(known: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    match rng.random_range(0..6) {
        0 => random_bytes(300, rng),
        1 => Vec::new(),
        2 => known[..rng.random_range(0..known.len())].to_vec(),
        3 => known.to_vec(),
        4 => mutate(known, known, Packing::Plain, rng),
        _ => [&[0xff, 0xff][..], &random_bytes(70_000, rng)].concat(),
    }
}

impl Bench<'_> {
    /// Starts a rank as a launcher does.
    fn rank(&self, folder: &Path, rank: &str, port: u16, secret: &str) -> Result<Running, String> {
        let port = port.to_string();
        let environment = [
            ("RANK", rank),
            ("LOCAL_RANK", rank),
            ("WORLD_SIZE", "2"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", &port),
            ("ISOGLOSS_RANKS_SECRET", secret),
        ];
        let line = recipe("pretrain").begin(&self.place, 1);
        self.binary.start_in(folder, &line, &std::env::temp_dir(), &environment).map_err(text)
    }

    /// What rank 1 says to whoever claims to be rank 0.
    pub(crate) fn record_greeting(&self) -> Result<Vec<u8>, String> {
        let folder = self.folder("greeting", 0)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        listener.set_nonblocking(true).map_err(text)?;
        let port = listener.local_addr().map_err(text)?.port();
        let rank = self.rank(&folder, "1", port, SECRET)?;
        let heard =
            within("no rank came", || listener.accept().ok()).and_then(|(mut stream, _)| {
                stream.set_nonblocking(false).map_err(text)?;
                stream.write_all(&[&[32, 0][..], &[7; 32]].concat()).map_err(text)?;
                let mut part = vec![0; 2];
                stream.read_exact(&mut part).map_err(text)?;
                let length = usize::from(u16::from_le_bytes([part[0], part[1]]));
                part.resize(2 + length, 0);
                stream.read_exact(&mut part[2..]).map_err(text)?;
                Ok(part)
            });
        rank.kill();
        heard
    }

    /// Two ranks meet among strangers, and train the model that they train by themselves.
    pub(crate) fn greetings(&self, index: u64, known: &[u8]) -> CaseResult {
        let mut times = 0;
        let fault = self.folder("greetings", index).and_then(|folder| {
            let mut rng = self.random(Kind::Greetings.number(), index);
            let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
            let port = port.map_err(text)?.port();
            let mut first = self.rank(&folder, "0", port, SECRET)?;
            let mut held = Vec::new();
            within("rank 0 does not listen", || {
                held.extend(knock(port));
                (!held.is_empty() || first.has_ended()).then_some(())
            })?;
            // One that speaks as ranks do, and has another secret.
            let imposter = match rng.random_bool(0.3) {
                true => Some(self.rank(&folder, "1", port, "another secret, which is as long")?),
                false => None,
            };
            // As many as a flood has, or a few.
            let most = if rng.random_bool(0.25) { 300 } else { 40 };
            let (strangers, before) = (rng.random_range(10..most), rng.random_range(0..10));
            let mut second = None;
            for number in 0..strangers {
                if number == before {
                    second = Some(self.rank(&folder, "1", port, SECRET)?);
                }
                let Some(mut stream) = knock(port) else { break };
                let _ = stream.write_all(&false_greeting(known, &mut rng));
                times += 1;
                if rng.random_bool(0.5) {
                    held.push(stream);
                }
            }
            let second = second.map_or_else(|| self.rank(&folder, "1", port, SECRET), Ok)?;
            let ended = [first.wait(), second.wait()];
            drop(held);
            imposter.map(Running::kill);
            for (rank, ended) in ended.into_iter().enumerate() {
                let ended = ended?;
                ended.crash().map_or(Ok(()), Err)?;
                if !ended.success() {
                    return Err(format!("rank {rank}: {}", ended.message()));
                }
            }
            let left = leftovers(&folder);
            if !left.is_empty() {
                return Err(format!("left behind: {}", left.join(", ")));
            }
            let recipe = recipe("ranks");
            let found = recipe.outcome(&self.binary, &folder)?;
            found.difference(&self.reference(recipe).outcomes[0]).map_or(Ok(()), Err)?;
            std::fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: "ranks", times, fault: fault.err(), ..CaseResult::default() }
    }

    /// A server among strangers, and some who have the token and send what no page sends.
    pub(crate) fn requests(&self, index: u64) -> CaseResult {
        let mut times = 0;
        let fault = self.folder("requests", index).and_then(|folder| {
            let line = self.place.line("explore {base}/run --device cpu --threads 1", 1);
            let line: Vec<String> = line.into_iter().filter(|word| word != "-q").collect();
            let mut running =
                self.binary.start_in(&folder, &line, &std::env::temp_dir(), &[]).map_err(text)?;
            let served = self.besiege(&mut running, index, &mut times);
            running.terminate();
            let ended = running.wait()?;
            served.map_err(|fault| format!("{fault} ({})", ended.message()))?;
            ended.crash().map_or(Ok(()), Err)?;
            std::fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: "explore", times, fault: fault.err(), ..CaseResult::default() }
    }

    fn besiege(&self, running: &mut Running, index: u64, times: &mut u64) -> Result<(), String> {
        let page = within("no address was printed", || {
            let printed = running.messages();
            let (_, address) = printed.split_once("http://127.0.0.1:")?;
            let (address, _) = address.split_once('\n')?;
            let (port, token) = address.trim().split_once("/?token=")?;
            Some(Page { port: port.parse().ok()?, token: token.to_owned() })
        })?;
        let asked = page.get();
        let whole = asked.filter(|answer| answer.starts_with(b"HTTP/1.1 200")).ok_or("no page")?;
        const THREADS: u64 = 4;
        let all = std::thread::scope(|scope| {
            let strangers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let mut rng = self.random(Kind::Requests.number(), index * THREADS + thread);
                    let page = &page;
                    scope.spawn(move || page.flood(REQUESTS / THREADS, &mut rng))
                })
                .collect();
            // Whoever is turned away in the crowd comes again.
            let reached = within("the page cannot be reached in the crowd", || {
                page.get().filter(|answer| *answer == whole)
            });
            let floods = strangers.into_iter().map(|stranger| stranger.join());
            let floods = floods.map(|flood| flood.unwrap_or_else(|_| Err("panicked".into())));
            reached.and(floods.sum::<Result<u64, String>>())
        });
        *times = all?;
        if page.get() != Some(whole) {
            return Err("the page is another, or cannot be reached, once the crowd is gone".into());
        }
        match running.peak_memory() {
            peak if peak > MEMORY => Err(format!("it has held {} MB", peak >> 10)),
            _ => Ok(()),
        }
    }
}

/// Where the explorer is, for those who know.
struct Page {
    port: u16,
    token: String,
}

impl Page {
    /// The headers that the page's requests have.
    fn headers(&self) -> String {
        let Self { port, token } = self;
        format!("Host: 127.0.0.1:{port}\r\nCookie: isogloss-{port}={token}\r\n")
    }

    fn get(&self) -> Option<Vec<u8>> {
        let mut stream = knock(self.port)?;
        write!(stream, "GET / HTTP/1.1\r\n{}\r\n", self.headers()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(answer)
    }

    /// Sends so many requests, and judges every answer.
    fn flood(&self, times: u64, rng: &mut ChaCha8Rng) -> Result<u64, String> {
        let mut silent = Vec::new();
        for _ in 0..times {
            let mut stream = within("it does not listen", || knock(self.port))?;
            if rng.random_bool(0.02) {
                // Says a part, and then nothing until the end.
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0");
                silent.push(stream);
                continue;
            }
            let knows = rng.random_bool(0.5);
            let request = self.request(knows, rng);
            let _ = stream.write_all(&request);
            let _ = stream.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let begun = Instant::now();
            let _ = stream.read_to_end(&mut answer);
            let shown = || String::from_utf8_lossy(&request[..request.len().min(300)]).into_owned();
            if begun.elapsed() >= PATIENCE {
                return Err(format!("a request was not answered: {}", shown()));
            }
            let status = answer.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
            let right = match status.and_then(|code| code.parse::<u16>().ok()) {
                None => answer.is_empty(),
                Some(status) if knows => status < 500 || status == 503,
                Some(status) => (400..500).contains(&status),
            };
            if !right {
                let answer = String::from_utf8_lossy(&answer[..answer.len().min(200)]).into_owned();
                return Err(format!("{} was answered by {answer}", shown()));
            }
        }
        Ok(times)
    }

    /// A request that no page sends, by one who knows the token or does not.
    fn request(&self, knows: bool, rng: &mut ChaCha8Rng) -> Vec<u8> {
        const PATHS: [&str; 10] = [
            "/",
            "/api/runs",
            "/api/items?run=0&layer=1",
            "/api/points?run=0&layer=99999999999",
            "/api/neighbours",
            "/api/translate",
            "/api/live?run=0",
            "/../../etc/passwd",
            "/%00%ff%2e%2e/",
            "/?token=0123456789abcdef",
        ];
        // One that follows a run is answered for as long as it likes.
        let path = PATHS[rng.random_range(0..PATHS.len())];
        let path = if knows { path.replace("/api/live", "/api/run") } else { path.to_owned() };
        let (headers, port) = (self.headers(), self.port);
        let headers = match rng.random_range(0..3) {
            _ if knows => headers,
            0 => format!("Host: 127.0.0.1:{port}\r\n"),
            1 => format!("Host: 127.0.0.1:{port}\r\nCookie: isogloss-{port}=0123456789abcdef\r\n"),
            _ => headers.replace("127.0.0.1", "example.org"),
        };
        let long = |letter: &str, rng: &mut ChaCha8Rng| letter.repeat(rng.random_range(1..40_000));
        let line = format!("{} {path} HTTP/1.1\r\n", ["GET", "POST"][rng.random_range(0..2)]);
        let body = "{\"run\":\"0\",\"from\":\"qaa\",\"to\":\"qab\",\"layer\":1,\"alphas\":[1],\"text\":\"a\"}";
        let whole = match rng.random_range(0..8) {
            0 => format!("{line}{headers}X: {}\r\n\r\n", long("x", rng)),
            1 => format!("{line}{headers}{}\r\n", "A: b\r\n".repeat(rng.random_range(1..400))),
            2 => {
                let size = ["ffffffffffffffff", "-1", "zz", "5", "0"][rng.random_range(0..5)];
                format!(
                    "{line}{headers}Transfer-Encoding: chunked\r\n\r\n{size}\r\nabc\r\n{}",
                    long("0", rng)
                )
            }
            3 => {
                let length = ["99999999999999999999", "-5", "1e9", "65536", "0x10"];
                let length = length[rng.random_range(0..length.len())];
                format!("{line}{headers}Content-Length: {length}\r\n\r\n{body}")
            }
            4 => format!("{line}{headers}Content-Length: {}\r\n\r\n{}", 70_000, long("[", rng)),
            5 if !knows => return random_bytes(5000, rng),
            _ => {
                // Changed within the body, which leaves the token as it is, or is not.
                let body = mutate(body.as_bytes(), body.as_bytes(), Packing::Plain, rng);
                let head = format!("{line}{headers}Content-Length: {}\r\n\r\n", body.len());
                return [head.as_bytes(), &body].concat();
            }
        };
        whole.into_bytes()
    }
}
