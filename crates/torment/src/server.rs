//! A server of files for `data get`: slow enough that a kill hits a download, honest about ranges and marks.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Starts a server that ends with the process, and gives its address.
pub(crate) fn start() -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that was killed is what this is for.
            thread::spawn(move || answer(&stream));
        }
    });
    Ok(address)
}

/// A file of 40 KB that depends on its name alone.
fn body(path: &str) -> Vec<u8> {
    let word = path.rsplit('.').next().unwrap_or("x");
    (0..1000)
        .map(|line| format!("{word} sentence number {line} of these\n"))
        .collect::<String>()
        .into()
}

fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut from = 0;
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
            from = range.split('-').next().and_then(|from| from.parse().ok()).unwrap_or(0);
        }
    }
    let body = body(&path);
    let from = if from < body.len() { from } else { 0 };
    let status = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let range = match from {
        0 => String::new(),
        from => format!("Content-Range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"mark\"\r\n{range}Connection: close\r\n\r\n",
        body.len() - from
    )?;
    for chunk in body[from..].chunks(4096) {
        stream.write_all(chunk)?;
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
