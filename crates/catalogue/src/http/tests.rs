//! A server that lies, stalls and never ends: what it does is refused or bounded, and nothing of it stays.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

type Serve = dyn Fn(usize, &[String], &mut TcpStream) -> io::Result<()> + Send + Sync;

/// Starts a server; `serve` is given the number of the request and its lines.
fn server(
    serve: impl Fn(usize, &[String], &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> String {
    let serve: &'static Serve = Box::leak(Box::new(serve));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            thread::spawn(move || {
                let mut stream = stream;
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                // A client that goes away is what is wanted here.
                let _ = serve(number, &lines, &mut stream);
            });
        }
    });
    address
}

fn client() -> Client {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_recv_response(Some(Duration::from_millis(400)))
        .timeout_per_read(Some(Duration::from_millis(400)));
    Client {
        agent: config.build().into(),
        pause: Duration::from_millis(1),
        patience: Duration::from_millis(300),
        most_unannounced: 1 << 20,
        token: None,
    }
}

/// What came of a download, the file if there is one, and what else lies in the folder.
struct Fetched {
    result: Result<(), FetchError>,
    file: Option<Vec<u8>>,
    left: Vec<PathBuf>,
    requests: usize,
}

fn fetch(
    serve: impl Fn(usize, &[String], &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> Fetched {
    fetch_after(None, serve)
}

/// A download that finds the part of an earlier one.
fn fetch_after(
    part: Option<(&[u8], &str)>,
    serve: impl Fn(usize, &[String], &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> Fetched {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("file");
    if let Some((bytes, mark)) = part {
        fs::write(folder.path().join("file.part"), bytes).unwrap();
        fs::write(folder.path().join("file.mark"), mark).unwrap();
    }
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    let address = server(move |number, lines, stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        serve(number, lines, stream)
    });
    let result = client().fetch(&format!("{address}/data/file"), &to, &mut |_, _, _| ());
    let file = fs::read(&to).ok();
    let left = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path());
    let left = left.filter(|path| *path != to).collect();
    Fetched { result, file, left, requests: count.load(Ordering::Relaxed) }
}

#[track_caller]
fn refused(fetched: &Fetched, expected: &str) {
    let error = fetched.result.as_ref().unwrap_err();
    assert!(error.reason().contains(expected), "{}", error.reason());
    assert!(fetched.file.is_none(), "there is a file");
    assert!(fetched.left.is_empty(), "left behind: {:?}", fetched.left);
}

fn head(length: usize) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nETag: \"a\"\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn an_honest_server_is_believed() {
    let fetched = fetch(|_, _, stream| write!(stream, "{}hello", head(5)));
    fetched.result.as_ref().unwrap();
    assert_eq!(fetched.file.as_deref(), Some(&b"hello"[..]));
    assert!(fetched.left.is_empty() && fetched.requests == 1);
}

#[test]
fn a_length_that_is_too_long_is_given_up_on_and_what_is_more_is_not_taken() {
    let fetched = fetch(|_, _, stream| write!(stream, "{}hello", head(500)));
    assert!(fetched.result.is_err() && fetched.file.is_none());
    assert!(fetched.requests <= ATTEMPTS as usize + 1, "{} requests", fetched.requests);
    let fetched = fetch(|_, _, stream| write!(stream, "{}hello, and much more", head(5)));
    assert_eq!(fetched.file.as_deref(), Some(&b"hello"[..]));
    // More than any disk holds.
    let fetched = fetch(|_, _, stream| write!(stream, "{}x", head(usize::MAX / 4)));
    refused(&fetched, "and the disk has room for");
}

#[test]
fn a_body_without_an_end_is_bounded() {
    let endless = |stream: &mut TcpStream| -> io::Result<()> {
        loop {
            stream.write_all(&[b'x'; 4096])?;
        }
    };
    let fetched = fetch(move |_, _, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        endless(stream)
    });
    refused(
        &fetched,
        "more than 1048576 bytes came, the most that is taken; ISOGLOSS_MAX_BYTES raises that",
    );
    let fetched = fetch(move |_, _, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        loop {
            write!(stream, "1000\r\n")?;
            stream.write_all(&[b'x'; 4096])?;
            write!(stream, "\r\n")?;
        }
    });
    refused(&fetched, "the most that is taken");
}

#[test]
fn a_gzip_bomb_is_bounded() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    io::copy(&mut io::repeat(0).take(64 << 20), &mut gzip).unwrap();
    let bomb = gzip.finish().unwrap();
    let fetched = fetch(move |_, _, stream| {
        let length = bomb.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        )?;
        stream.write_all(&bomb)
    });
    refused(&fetched, "the most that is taken");
}

#[test]
fn a_server_cannot_send_the_client_anywhere() {
    for (to, why) in [
        ("file:///etc/passwd", "which is no address"),
        ("ftp://127.0.0.1/x", "which is neither HTTP nor HTTPS"),
        ("http://169.254.169.254/latest/meta-data", "another host, without TLS"),
        ("http://localhost:1/x", "another host, without TLS"),
        ("//127.0.0.1/x", "which is no address"),
        ("", "which is no address"),
        ("javascript:x", "which is neither HTTP nor HTTPS"),
    ] {
        let fetched = fetch(move |_, _, stream| {
            write!(
                stream,
                "HTTP/1.1 302 x\r\nConnection: close\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
            )
        });
        refused(&fetched, why);
        assert_eq!(fetched.requests, 1, "{to}");
    }
    assert!(redirected("https://a.b/c", "http://a.b/c").unwrap_err().contains("from TLS to none"));
    assert_eq!(redirected("https://a.b/c", "https://cdn.x/y").unwrap(), "https://cdn.x/y");
    assert_eq!(redirected("https://a.b:8/c?d", "/e").unwrap(), "https://a.b:8/e");
}

#[test]
fn a_way_on_the_same_host_is_followed_and_a_circle_is_not() {
    let fetched = fetch(|_, lines, stream| match lines[0].contains("/there") {
        true => write!(stream, "{}hello", head(5)),
        false => write!(
            stream,
            "HTTP/1.1 302 x\r\nConnection: close\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
        ),
    });
    assert_eq!(fetched.file.as_deref(), Some(&b"hello"[..]));
    let fetched = fetch(|_, _, stream| {
        write!(
            stream,
            "HTTP/1.1 302 x\r\nConnection: close\r\nLocation: /data/file\r\nContent-Length: 0\r\n\r\n"
        )
    });
    refused(&fetched, "sends the client on more than 5 times");
}

#[test]
fn a_file_that_changed_meanwhile_is_fetched_from_its_beginning() {
    let fetched = fetch_after(Some((b"old be", "\"a\"")), |_, lines, stream| {
        let resumed = lines.iter().any(|line| line.to_lowercase().starts_with("range:"));
        match resumed {
            // A server that does not care for If-Range, and gives the rest of another file.
            true => write!(
                stream,
                "HTTP/1.1 206 x\r\nContent-Range: bytes 6-10/11\r\nETag: \"b\"\r\nContent-Length: 5\r\n\r\nthing"
            ),
            false => {
                write!(stream, "HTTP/1.1 200 x\r\nETag: \"b\"\r\nContent-Length: 8\r\n\r\nnew file")
            }
        }
    });
    fetched.result.as_ref().unwrap();
    assert_eq!(fetched.file.as_deref(), Some(&b"new file"[..]));
    assert!(fetched.left.is_empty(), "{:?}", fetched.left);
    // A part that nobody asked for.
    let fetched = fetch(|_, _, stream| {
        write!(
            stream,
            "HTTP/1.1 206 x\r\nContent-Range: bytes 99-103/104\r\nContent-Length: 5\r\n\r\nother"
        )
    });
    assert!(fetched.result.is_err() && fetched.file.is_none() && fetched.left.is_empty());
}

/// A byte now and then, for as long as anybody listens; and a byte for every request.
#[test]
fn a_server_that_keeps_one_waiting_is_given_up_on() {
    let drip = |stream: &mut TcpStream| -> io::Result<()> {
        loop {
            stream.write_all(b"x")?;
            thread::sleep(Duration::from_millis(20));
        }
    };
    let begun = Instant::now();
    let fetched = fetch(move |_, _, stream| {
        write!(stream, "{}", head(1 << 20))?;
        drip(stream)
    });
    assert!(fetched.result.unwrap_err().reason().contains("bytes came within 0.3 s"));
    assert!(fetched.file.is_none() && begun.elapsed() < Duration::from_secs(20));
    // The head itself, a byte at a time.
    let fetched = fetch(move |_, _, stream| drip(stream));
    assert!(fetched.result.is_err() && fetched.file.is_none());
    let fetched = fetch(|_, _, stream| write!(stream, "{}x", head(1 << 20)));
    assert!(fetched.result.is_err(), "one byte for each request is no progress");
    assert!(fetched.requests <= ATTEMPTS as usize + 1, "{} requests", fetched.requests);
}

#[test]
fn nonsense_is_no_answer() {
    for answer in
        ["", "hello", "HTTP/1.1 999999 x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx"]
    {
        let fetched = fetch(move |_, _, stream| write!(stream, "{answer}"));
        assert!(fetched.result.is_err() && fetched.file.is_none(), "{answer}");
    }
}
