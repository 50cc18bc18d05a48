//! How two ranks make sure that they are of one run, before either believes or keeps anything else that the other says.
//!
//! Rank 0 sends a nonce. The other answers with a nonce of its own, who it is, and a code that only the secret gives of all that;
//! rank 0 with its code of both nonces and of its verdict. Every part is short and all have one deadline. What follows is as
//! trustworthy as the network, and not encrypted.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use terms::strangers::{Seat, TimedStream};

use crate::Placement;
use crate::secret::{Secret, random};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The longest part of one, in bytes.
const LONGEST: usize = 4 << 10;
const NONCE: usize = 32;
const MAC: usize = 32;

/// What a rank says when it comes.
pub(crate) struct Greeting {
    pub(crate) rank: usize,
    pub(crate) count: usize,
    /// The machine and the process.
    pub(crate) whereabouts: String,
    pub(crate) version: String,
}

impl Greeting {
    pub(crate) fn of(placement: &Placement) -> Self {
        let uname = rustix::system::uname();
        let machine = uname.nodename().to_string_lossy();
        Self {
            rank: placement.rank,
            count: placement.count,
            whereabouts: format!("process {} on {machine}", std::process::id()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn text(&self) -> String {
        let Self { rank, count, whereabouts, version } = self;
        format!("isogloss rank\n{version}\n{rank}\n{count}\n{whereabouts}")
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.lines();
        (lines.next()? == "isogloss rank").then_some(())?;
        let version = lines.next()?.to_owned();
        let (rank, count) = (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?);
        Some(Self { rank, count, whereabouts: lines.next()?.to_owned(), version })
    }
}

fn write_part(stream: &mut TcpStream, part: &[u8]) -> io::Result<()> {
    let length = u16::try_from(part.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_le_bytes()[..], part].concat())
}

/// A part of a greeting: nothing is taken for it before it is known to be short.
fn read_part(stream: &mut TimedStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > LONGEST {
        return Err(foreign());
    }
    let mut part = vec![0; length];
    stream.read_exact(&mut part)?;
    Ok(part)
}

fn foreign() -> io::Error {
    io::Error::other(
        "something else answers there, or a rank of another run, which has another secret",
    )
}

/// The code of a part: `from` keeps what rank 0 says apart from what others say.
fn mac(secret: &Secret, from: u8, nonces: [&[u8]; 2], text: &[u8]) -> blake3::Hash {
    secret.mac(&[&[from], nonces[0], nonces[1], text].concat())
}

/// The text of a part that begins with its code, or nothing where the code is another.
fn authentic<'a>(
    secret: &Secret,
    from: u8,
    nonces: [&[u8]; 2],
    part: &'a [u8],
) -> io::Result<&'a [u8]> {
    let (code, text) = part.split_first_chunk::<MAC>().ok_or_else(foreign)?;
    match mac(secret, from, nonces, text) == *code {
        true => Ok(text),
        false => Err(foreign()),
    }
}

/// A rank that knows the secret, and waits for what rank 0 says.
pub(crate) struct Newcomer {
    pub(crate) greeting: Greeting,
    stream: TimedStream,
    nonces: [[u8; NONCE]; 2],
    _seat: Seat,
}

impl Newcomer {
    pub(crate) fn ask(mut stream: TimedStream, seat: Seat, secret: &Secret) -> io::Result<Self> {
        let own: [u8; NONCE] = random()?;
        write_part(stream.stream(), &own)?;
        let part = read_part(&mut stream)?;
        let (nonce, signed) = part.split_first_chunk::<NONCE>().ok_or_else(foreign)?;
        let text = authentic(secret, 1, [&own, nonce], signed)?;
        let greeting = Greeting::parse(text).ok_or_else(foreign)?;
        Ok(Self { greeting, nonces: [own, *nonce], stream, _seat: seat })
    }

    /// Takes it in, or says why not.
    pub(crate) fn answer(
        mut self,
        verdict: Result<&Greeting, &str>,
        secret: &Secret,
    ) -> io::Result<TcpStream> {
        let text = match verdict {
            Ok(own) => own.text(),
            Err(reason) => reason.to_owned(),
        };
        let code = mac(secret, 0, [&self.nonces[0], &self.nonces[1]], text.as_bytes());
        write_part(self.stream.stream(), &[code.as_bytes(), text.as_bytes()].concat())?;
        self.stream.into_stream()
    }
}

/// Tells rank 0 who this is: gives what it says of itself, or why it wants nothing of this rank.
pub(crate) fn introduce(
    stream: TcpStream,
    own: &Greeting,
    secret: &Secret,
) -> io::Result<Result<(Greeting, TcpStream), String>> {
    let mut stream = TimedStream::new(stream, PATIENCE);
    let other = read_part(&mut stream)?;
    let nonce: [u8; NONCE] = random()?;
    let text = own.text();
    let code = mac(secret, 1, [&other, &nonce], text.as_bytes());
    write_part(stream.stream(), &[&nonce[..], code.as_bytes(), text.as_bytes()].concat())?;
    // Rank 0 says nothing to those whose code is wrong.
    let part = read_part(&mut stream).map_err(|_| foreign())?;
    let text = authentic(secret, 0, [&other, &nonce], &part)?;
    match Greeting::parse(text) {
        Some(greeting) => Ok(Ok((greeting, stream.into_stream()?))),
        None => Ok(Err(String::from_utf8_lossy(text).into_owned())),
    }
}
