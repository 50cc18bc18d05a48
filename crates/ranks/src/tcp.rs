//! Ranks over TCP: every rank has one connection, to rank 0.
//!
//! A thread for each connection reads what comes, so that nobody waits for a reader, and a death is noticed whatever this process does
//! just then. Every rank says every other second that it lives; a machine that has vanished says nothing. Whoever comes
//! is a stranger until its [`greeting`] is done: strangers are dropped, and end nothing.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use tensor::Tensor;
use terms::strangers::Strangers;

use crate::greeting::{self, Greeting, Newcomer, introduce};
use crate::secret::{Secret, SecretSource};
use crate::{OnLoss, Placement, RankError, local};

/// How long ranks wait for each other to arrive: jobs do not begin on all machines at once.
const ARRIVAL: Duration = Duration::from_secs(300);
/// How often a rank says that it lives.
const BEAT: Duration = Duration::from_secs(2);
/// A rank that has said nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a process that has lost a rank may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);
/// How long the end of the others is waited for.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often a wait looks whether something else has happened.
const LOOK: Duration = Duration::from_millis(50);
/// Who may be at the port at once without having said who it is.
const STRANGERS: usize = 64;
const LARGEST: u64 = 1 << 34;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Frame {
    /// It lives.
    Beat = 0,
    /// A message, or numbers.
    Data = 1,
    /// It leaves, and all is well.
    Bye = 2,
    /// It has failed, and says why.
    Failed = 3,
    /// From rank 0: another rank is lost.
    Lost = 4,
}

impl Frame {
    fn of(byte: u8) -> Option<Self> {
        [Self::Beat, Self::Data, Self::Bye, Self::Failed, Self::Lost]
            .into_iter()
            .find(|frame| *frame as u8 == byte)
    }
}

fn write_frame(stream: &mut TcpStream, frame: Frame, content: &[u8]) -> io::Result<()> {
    let mut head = [0; 9];
    head[0] = frame as u8;
    head[1..].copy_from_slice(&(content.len() as u64).to_le_bytes());
    stream.write_all(&head)?;
    stream.write_all(content)
}

fn read_frame(stream: &mut TcpStream) -> io::Result<(Frame, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u64::from_le_bytes(head[1..].try_into().expect("eight bytes"));
    let Some(frame) = Frame::of(head[0]).filter(|_| length <= LARGEST) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it sent what no rank sends"));
    };
    // Memory is taken as bytes come, not as they are announced.
    let mut content = Vec::new();
    stream.take(length).read_to_end(&mut content)?;
    match content.len() as u64 == length {
        true => Ok((frame, content)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

struct Peer {
    rank: usize,
    writer: Mutex<TcpStream>,
    inbox: Mutex<Receiver<Vec<u8>>>,
}

struct LinkState {
    rank: usize,
    lost: Mutex<Option<RankError>>,
    leaving: AtomicBool,
    /// Connections that are still read.
    read: AtomicUsize,
    on_loss: OnLoss,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections of this rank: of rank 0 to all others, of another to rank 0.
pub(crate) struct TcpLink {
    rank: usize,
    count: usize,
    peers: Arc<Vec<Peer>>,
    state: Arc<LinkState>,
    /// Dropped, it ends the beats.
    _beats: Sender<()>,
}

impl TcpLink {
    /// Meets the others. `check` is called while rank 0 waits for them.
    pub(crate) fn meet(
        placement: &Placement,
        listener: Option<TcpListener>,
        secret: &SecretSource,
        check: &mut dyn FnMut() -> Result<(), RankError>,
        on_loss: OnLoss,
    ) -> Result<Self, RankError> {
        let streams = match placement {
            Placement { count: 1, .. } => Vec::new(),
            Placement { rank: 0, .. } => {
                let listener = listener.map_or_else(|| listen(placement), Ok)?;
                accept_all(&listener, placement, &secret.publish()?.secret, check)?
            }
            _ => vec![connect(placement, secret)?],
        };
        let state = Arc::new(LinkState {
            rank: placement.rank,
            lost: Mutex::default(),
            leaving: AtomicBool::new(false),
            read: AtomicUsize::new(streams.len()),
            on_loss,
        });
        let mut readers = Vec::new();
        let mut peers = Vec::new();
        for Arrival { rank, stream, whereabouts } in streams {
            let (sender, inbox) = channel();
            let reading = stream.try_clone().map_err(|error| unready(&error))?;
            reading.set_read_timeout(Some(SILENCE)).map_err(|error| unready(&error))?;
            readers.push((rank, whereabouts, reading, sender));
            peers.push(Peer { rank, writer: Mutex::new(stream), inbox: Mutex::new(inbox) });
        }
        let peers = Arc::new(peers);
        for (rank, whereabouts, stream, sender) in readers {
            let (state, peers) = (Arc::clone(&state), Arc::clone(&peers));
            let name = format!("rank {rank} ({whereabouts})");
            thread::spawn(move || read_all(rank, &name, stream, &sender, &state, &peers));
        }
        let (beats, ended) = channel::<()>();
        let beating = Arc::clone(&peers);
        thread::spawn(move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                for peer in beating.iter() {
                    let _ = write_frame(&mut lock(&peer.writer), Frame::Beat, &[]);
                }
            }
        });
        let (rank, count) = (placement.rank, placement.count);
        Ok(Self { rank, count, peers, state, _beats: beats })
    }

    /// Sends to a rank. That it is gone, its reader says.
    fn send(&self, peer: &Peer, content: &[u8]) -> Result<(), RankError> {
        let sent = write_frame(&mut lock(&peer.writer), Frame::Data, content);
        sent.or_else(|_| self.receive(peer).map(drop))
    }

    fn receive(&self, peer: &Peer) -> Result<Vec<u8>, RankError> {
        let inbox = lock(&peer.inbox);
        loop {
            match inbox.recv_timeout(LOOK) {
                Ok(content) => return Ok(content),
                Err(reason) => {
                    if let Some(lost) = lock(&self.state.lost).clone() {
                        return Err(lost);
                    }
                    if reason == RecvTimeoutError::Disconnected {
                        return Err(self.ended(peer));
                    }
                }
            }
        }
    }

    /// A rank has left although it is still needed, or rank 0 because all is done.
    fn ended(&self, peer: &Peer) -> RankError {
        match peer.rank {
            0 => RankError::Over,
            rank => RankError::Lost {
                message: format!("rank {rank} has ended before rank {}", self.rank),
                ours_to_report: true,
            },
        }
    }

    pub(crate) fn gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, RankError> {
        if self.rank != 0 {
            self.send(&self.peers[0], message)?;
            return split(&self.receive(&self.peers[0])?, self.count);
        }
        let own = [Ok(message.to_vec())];
        let others = self.peers.iter().map(|peer| self.receive(peer));
        let all: Vec<Vec<u8>> = own.into_iter().chain(others).collect::<Result<_, _>>()?;
        let mut joined = Vec::new();
        for message in &all {
            joined.extend_from_slice(&(message.len() as u64).to_le_bytes());
            joined.extend_from_slice(message);
        }
        self.peers.iter().try_for_each(|peer| self.send(peer, &joined))?;
        Ok(all)
    }

    /// Rank 0 adds up in the order of the ranks, and sends the sums to all.
    pub(crate) fn sum(&self, matrices: &mut [&mut Tensor]) -> Result<(), RankError> {
        let own = || matrices.iter().flat_map(|matrix| matrix.as_slice()).copied();
        let sums: Vec<f32> = match self.rank {
            _ if self.count == 1 => return Ok(()),
            0 => {
                let mut sums: Vec<f32> = own().collect();
                for peer in self.peers.iter() {
                    let other = numbers(&self.receive(peer)?, sums.len(), peer.rank)?;
                    sums.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
                }
                let bytes: &[u8] = bytemuck::cast_slice(&sums);
                self.peers.iter().try_for_each(|peer| self.send(peer, bytes))?;
                sums
            }
            _ => {
                let values: Vec<f32> = own().collect();
                self.send(&self.peers[0], bytemuck::cast_slice(&values))?;
                numbers(&self.receive(&self.peers[0])?, values.len(), 0)?
            }
        };
        let mut rest = &sums[..];
        for matrix in matrices {
            let (these, others) = rest.split_at(matrix.len());
            matrix.as_mut_slice().copy_from_slice(these);
            rest = others;
        }
        Ok(())
    }

    pub(crate) fn leave(&self, failure: Option<&str>) -> bool {
        if self.state.leaving.swap(true, Ordering::SeqCst) {
            return false;
        }
        let (frame, text) = match failure {
            None => (Frame::Bye, ""),
            Some(text) => (Frame::Failed, text),
        };
        let mut sent = false;
        for peer in self.peers.iter() {
            let mut writer = lock(&peer.writer);
            sent |= write_frame(&mut writer, frame, text.as_bytes()).is_ok();
            let _ = writer.shutdown(Shutdown::Write);
        }
        // What was sent is lost where a process ends with something unread: readers go on for a moment.
        let until = Instant::now() + FAREWELL;
        while self.state.read.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            sleep(Duration::from_millis(5));
        }
        sent && self.rank != 0 && lock(&self.state.lost).is_none()
    }
}

fn unready(error: &io::Error) -> RankError {
    RankError::Failed(format!("a connection to another rank cannot be used: {error}"))
}

fn split(mut joined: &[u8], count: usize) -> Result<Vec<Vec<u8>>, RankError> {
    let mut messages = Vec::with_capacity(count);
    while let Some((length, rest)) = joined.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let Some((message, rest)) = rest.split_at_checked(length) else { break };
        messages.push(message.to_vec());
        joined = rest;
    }
    match messages.len() == count && joined.is_empty() {
        true => Ok(messages),
        false => Err(out_of_step(0)),
    }
}

fn numbers(bytes: &[u8], expected: usize, rank: usize) -> Result<Vec<f32>, RankError> {
    match bytes.len() == 4 * expected {
        true => Ok(bytemuck::pod_collect_to_vec(bytes)),
        false => Err(out_of_step(rank)),
    }
}

fn out_of_step(rank: usize) -> RankError {
    let message =
        format!("rank {rank} adds up other matrices than this one; give all ranks the same flags");
    RankError::Failed(message)
}

/// Listens where rank 0 is expected, and nowhere else.
fn listen(placement: &Placement) -> Result<TcpListener, RankError> {
    let Placement { host, port, .. } = placement;
    let failed = |error: io::Error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => "set MASTER_PORT to a free one",
            _ => "set MASTER_ADDR to an address of this machine, where rank 0 is",
        };
        RankError::Failed(format!("rank 0 cannot listen at {host}:{port}: {error}; {remedy}"))
    };
    let found: Vec<SocketAddr> =
        (host.as_str(), *port).to_socket_addrs().map_err(failed)?.collect();
    // Many a machine knows itself by a loopback address that others cannot reach.
    let own_name = found.iter().all(|address| address.ip().is_loopback());
    match own_name && placement.count > placement.local_count {
        true => TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).map_err(failed),
        false => TcpListener::bind(&found[..]).map_err(failed),
    }
}

/// A rank that has come, and where it is.
struct Arrival {
    rank: usize,
    stream: TcpStream,
    whereabouts: String,
}

/// Waits for all other ranks; gives them in their order, with where they are.
fn accept_all(
    listener: &TcpListener,
    placement: &Placement,
    secret: &Secret,
    check: &mut dyn FnMut() -> Result<(), RankError>,
) -> Result<Vec<Arrival>, RankError> {
    listener.set_nonblocking(true).map_err(|error| unready(&error))?;
    let until = Instant::now() + ARRIVAL;
    let strangers = Strangers::new(STRANGERS, greeting::PATIENCE);
    let (sender, newcomers) = channel();
    let mut arrived: Vec<Option<Arrival>> = Vec::new();
    arrived.resize_with(placement.count, || None);
    while arrived.iter().skip(1).any(Option::is_none) {
        let mut wait = Duration::from_millis(20);
        if let Ok((stream, _)) = listener.accept() {
            wait = Duration::ZERO;
            ask(stream, &strangers, secret, &sender);
        }
        if let Ok(newcomer) = newcomers.recv_timeout(wait)
            && let Some(arrival) = welcome(newcomer, placement, secret, &arrived)?
        {
            let rank = arrival.rank;
            arrived[rank] = Some(arrival);
        }
        check()?;
        if Instant::now() > until {
            let missing = (1..placement.count).filter(|&rank| arrived[rank].is_none());
            let missing: Vec<String> = missing.map(|rank| rank.to_string()).collect();
            return Err(RankError::Failed(format!(
                "of {} ranks, these have not come to {}:{} within {} s: {}",
                placement.count,
                placement.host,
                placement.port,
                ARRIVAL.as_secs(),
                missing.join(", ")
            )));
        }
    }
    Ok(arrived.into_iter().flatten().collect())
}

/// Asks a stranger who it is, in a thread of its own: those who say nothing hold nobody up.
fn ask(stream: TcpStream, strangers: &Arc<Strangers>, secret: &Secret, known: &Sender<Newcomer>) {
    let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true));
    let Ok((stream, seat)) = prepared.and_then(|()| strangers.admit(stream)) else { return };
    let (secret, known) = (secret.clone(), known.clone());
    // Where there is no thread to be had, the stranger is dropped.
    let _ = thread::Builder::new().spawn(move || {
        if let Ok(newcomer) = Newcomer::ask(stream, seat, &secret) {
            let _ = known.send(newcomer);
        }
    });
}

/// Takes a rank in whose place is free; none where it is taken.
fn welcome(
    newcomer: Newcomer,
    placement: &Placement,
    secret: &Secret,
    arrived: &[Option<Arrival>],
) -> Result<Option<Arrival>, RankError> {
    let own = Greeting::of(placement);
    let Greeting { rank, count, whereabouts, version } = &newcomer.greeting;
    let (rank, whereabouts) = (*rank, whereabouts.clone());
    let differs = if *version != own.version {
        Some(format!(
            "rank {rank} ({whereabouts}) is isogloss {version}, and rank 0 is {}",
            own.version
        ))
    } else if *count != own.count || rank == 0 || rank >= *count {
        Some(format!(
            "rank {rank} of {count} ({whereabouts}) has come to rank 0 of {}: two runs share port {} and their \
             secret; give one another MASTER_PORT",
            own.count, placement.port
        ))
    } else {
        None
    };
    if let Some(reason) = differs {
        let _ = newcomer.answer(Err(&reason), secret);
        return Err(RankError::Failed(reason));
    }
    if let Some(first) = arrived[rank].as_ref().filter(|first| is_open(&first.stream)) {
        let reason = format!("rank {rank} is taken by {}", first.whereabouts);
        let _ = newcomer.answer(Err(&reason), secret);
        return Ok(None);
    }
    let stream = newcomer.answer(Ok(&own), secret);
    Ok(stream.ok().map(|stream| Arrival { rank, stream, whereabouts }))
}

/// Whether the other side has not gone again: a rank that was not answered in time comes anew.
fn is_open(stream: &TcpStream) -> bool {
    let looked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let _ = stream.set_nonblocking(false);
    match looked {
        Ok(bytes) => bytes > 0,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

fn connect(placement: &Placement, secret: &SecretSource) -> Result<Arrival, RankError> {
    let Placement { host, port, rank, .. } = placement;
    let until = Instant::now() + ARRIVAL;
    loop {
        let error = match greet(placement, secret) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(reason)) => return Err(RankError::Failed(format!("rank 0 says: {reason}"))),
            Err(error) => error,
        };
        if let Some(parent) = local::lost_parent() {
            return Err(RankError::Failed(format!(
                "{parent}, which started rank {rank}, has ended"
            )));
        }
        if Instant::now() > until {
            return Err(RankError::Failed(format!(
                "rank {rank} does not reach rank 0 at {host}:{port}: {error}; MASTER_ADDR and MASTER_PORT say where it is"
            )));
        }
        sleep(Duration::from_millis(100));
    }
}

/// Knocks once: finds rank 0, or why it wants nothing of this rank.
fn greet(placement: &Placement, secret: &SecretSource) -> io::Result<Result<Arrival, String>> {
    let addresses = (placement.host.as_str(), placement.port).to_socket_addrs()?;
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in addresses {
        match TcpStream::connect_timeout(&address, Duration::from_secs(5)) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                // It is there once rank 0 listens, and read anew each time: that of a killed run may lie there first.
                let secret = secret.read()?;
                let found = introduce(stream, &Greeting::of(placement), &secret)?;
                return Ok(found.map(|(other, stream)| Arrival {
                    rank: 0,
                    stream,
                    whereabouts: other.whereabouts,
                }));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads what a rank sends until it leaves or is lost.
fn read_all(
    rank: usize,
    name: &str,
    mut stream: TcpStream,
    sender: &Sender<Vec<u8>>,
    state: &Arc<LinkState>,
    peers: &[Peer],
) {
    let lost = loop {
        match read_frame(&mut stream) {
            Ok((Frame::Beat, _)) => {}
            Ok((Frame::Data, content)) => _ = sender.send(content),
            Ok((Frame::Bye, _)) => break None,
            Ok((Frame::Failed, text)) => {
                let text = String::from_utf8_lossy(&text);
                // Rank 0 has printed its own failure.
                break Some((format!("{name} has failed: {text}"), rank != 0));
            }
            Ok((Frame::Lost, text)) => break Some((String::from_utf8_lossy(&text).into(), false)),
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        format!("has said nothing for {} s", SILENCE.as_secs())
                    }
                    io::ErrorKind::InvalidData => format!("cannot be understood: {error}"),
                    _ => {
                        "has ended without a word: it was killed, or its machine is gone".to_owned()
                    }
                };
                // Where rank 0 is gone itself, the next one reports.
                break Some((format!("{name} {why}"), rank != 0 || state.rank == 1));
            }
        }
    };
    state.read.fetch_sub(1, Ordering::SeqCst);
    let Some((message, ours_to_report)) = lost else { return };
    if state.leaving.load(Ordering::SeqCst) {
        return;
    }
    let error = RankError::Lost { message: message.clone(), ours_to_report };
    if lock(&state.lost).replace(error.clone()).is_some() {
        return;
    }
    if state.rank == 0 {
        for peer in peers.iter().filter(|peer| peer.rank != rank) {
            let _ = write_frame(&mut lock(&peer.writer), Frame::Lost, message.as_bytes());
        }
    }
    let until = Instant::now() + GRACE;
    while Instant::now() < until {
        if state.leaving.load(Ordering::SeqCst) {
            return;
        }
        sleep(LOOK);
    }
    (state.on_loss)(&error);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensor::Device;

    fn placement(rank: usize, count: usize, port: u16) -> Placement {
        let host = "127.0.0.1".to_owned();
        Placement { rank, count, local_rank: rank, local_count: count, host, port }
    }

    fn secret() -> Secret {
        Secret::of("a secret of ranks in tests, which is long enough")
    }

    /// Runs so many ranks as threads.
    fn with_ranks<R: Send>(count: usize, work: impl Fn(&TcpLink) -> R + Sync) -> Vec<R> {
        with_ranks_and(count, &|_| {}, work)
    }

    /// The same, while `others` do something to the port.
    fn with_ranks_and<R: Send>(
        count: usize,
        others: &(dyn Fn(u16) + Sync),
        work: impl Fn(&TcpLink) -> R + Sync,
    ) -> Vec<R> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let work = &work;
        thread::scope(|scope| {
            let mut listener = Some(listener);
            let ranks: Vec<_> = (0..count)
                .map(|rank| {
                    let listener = if rank == 0 { listener.take() } else { None };
                    let placement = placement(rank, count, port);
                    scope.spawn(move || {
                        if rank > 0 {
                            others(port);
                        }
                        let (secret, check) = (SecretSource::Known(secret()), &mut || Ok(()));
                        let on_loss: OnLoss = Box::new(|_| {});
                        let link = TcpLink::meet(&placement, listener, &secret, check, on_loss);
                        work(&link.unwrap())
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn messages_and_sums_reach_all_in_the_order_of_ranks() {
        let results = with_ranks(3, |link| {
            let messages = link.gather(format!("from {}", link.rank).as_bytes()).unwrap();
            let device = Device::cpu(1).unwrap();
            // In f32, (1e8 - 1e8) + 1 is 1 and 1e8 + (-1e8 + 1) is 0: the order shows.
            let first = [1e8, -1e8, 1.0][link.rank];
            let mut a = device.tensor(1, 2, &[first, link.rank as f32]);
            let mut b = device.tensor(2, 1, &[10.0, 20.0]);
            link.sum(&mut [&mut a, &mut b]).unwrap();
            link.leave(None);
            (messages, a.to_vec(), b.to_vec())
        });
        for (messages, a, b) in results {
            assert_eq!(messages, [b"from 0", b"from 1", b"from 2"]);
            assert_eq!((a, b), (vec![1.0, 3.0], vec![30.0, 60.0]));
        }
    }

    #[test]
    fn a_failure_reaches_all_and_one_reports_it() {
        let results = with_ranks(3, |link| match link.rank {
            1 => {
                assert!(link.leave(Some("its disk is full")), "rank 0 reports it");
                None
            }
            _ => {
                let error = link.gather(b"").unwrap_err();
                // Until all have seen it.
                sleep(Duration::from_millis(300));
                link.leave(Some("as rank 1"));
                Some(error)
            }
        });
        for (rank, error) in results.into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let Some(RankError::Lost { message, ours_to_report }) = error else { panic!() };
            assert!(message.starts_with("rank 1 (process "), "{message}");
            assert!(message.ends_with("has failed: its disk is full"), "{message}");
            assert_eq!(ours_to_report, rank == 0);
        }
    }

    #[test]
    fn ranks_that_add_up_different_things_are_refused() {
        let results = with_ranks(2, |link| {
            let device = Device::cpu(1).unwrap();
            let mut a = device.zeros(1, 1 + link.rank);
            let result = link.sum(&mut [&mut a]);
            link.leave(result.as_ref().err().map(|_| "other matrices"));
            result
        });
        assert!(results[0].as_ref().unwrap_err().to_string().contains("rank 1 adds up other"));
        assert!(results[1].is_err());
    }
    fn knock(port: u16) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port)).unwrap()
    }

    fn messages_of_two(others: &(dyn Fn(u16) + Sync)) {
        let begun = Instant::now();
        let results = with_ranks_and(2, others, |link| {
            let messages = link.gather(format!("from {}", link.rank).as_bytes()).unwrap();
            link.leave(None);
            messages
        });
        assert!(results.iter().all(|messages| *messages == [b"from 0", b"from 1"]));
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }

    /// What ended a run, held rank 0's memory or kept ranks waiting when strangers did it.
    #[test]
    fn strangers_end_nothing_and_hold_nobody_up() {
        messages_of_two(&|port| {
            // Ranks of the release before, of another version and of another number of ranks.
            for text in ["isogloss rank\n0.1.0\n1\n2\nhere", "isogloss rank\n0.2.0\n7\n9\nhere"] {
                write_frame(&mut knock(port), Frame::Data, text.as_bytes()).unwrap();
            }
            // One that knows the form of today and not the secret.
            let own = Greeting::of(&placement(1, 2, port));
            introduce(knock(port), &own, &Secret::of("another")).err().unwrap();
            // Sixteen GiB, announced and begun: rank 0 reads no more than a greeting of them.
            let mut large = knock(port);
            large.write_all(&[1, 0, 0, 0, 0, 4, 0, 0, 0]).unwrap();
            let sent = (0..1000).take_while(|_| large.write_all(&[0; 1 << 16]).is_ok()).count();
            assert!(sent < 1000, "it took {} MiB of a stranger", sent / 16);
            // Silent ones and dripping ones, more than are let in at a time.
            for number in 0..2 * STRANGERS {
                let mut silent = knock(port);
                thread::spawn(move || {
                    let drips = (0..10).take_while(|_| silent.write_all(b"x").is_ok());
                    drips.for_each(|_| sleep(Duration::from_secs(1 + number as u64 % 3)));
                });
            }
        });
    }

    #[test]
    fn a_thousand_hostile_greetings_end_nothing() {
        messages_of_two(&|port| {
            let mut state = 1_u64;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize
            };
            for _ in 0..1000 {
                let mut bytes: Vec<u8> = (0..random() % 200).map(|_| random() as u8).collect();
                // Some have a length that is true, as ranks' have.
                if bytes.len() > 2 && random() % 2 == 0 {
                    bytes[1] = 0;
                    bytes[0] = (bytes.len() - 2) as u8;
                }
                let _ = knock(port).write_all(&bytes);
            }
        });
    }

    #[test]
    fn a_rank_that_is_taken_is_refused_and_the_first_stays() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::scope(|scope| {
            let arrived = scope.spawn(move || {
                accept_all(&listener, &placement(0, 3, port), &secret(), &mut || Ok(()))
                    .map(|all| all.into_iter().map(|arrival| arrival.stream).collect::<Vec<_>>())
            });
            let source = SecretSource::Known(secret());
            let come = |rank| greet(&placement(rank, 3, port), &source).unwrap();
            let mut first = come(1).unwrap();
            let refused = come(1).err().unwrap();
            assert!(refused.contains("rank 1 is taken by process"), "{refused}");
            let second = come(2).unwrap();
            let mut streams = arrived.join().unwrap().unwrap();
            write_frame(&mut first.stream, Frame::Data, b"of the first").unwrap();
            assert_eq!(read_frame(&mut streams[0]).unwrap().1, b"of the first");
            drop(second);
        });
    }

    #[test]
    fn rank_0_listens_where_it_is_expected_alone() {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let listener = listen(&placement(0, 2, free)).unwrap();
        assert_eq!(listener.local_addr().unwrap().ip(), Ipv4Addr::LOCALHOST);
        let elsewhere = Placement { host: "192.0.2.1".to_owned(), ..placement(0, 2, 0) };
        assert!(listen(&elsewhere).unwrap_err().to_string().contains("set MASTER_ADDR"));
    }
}
