//! Connections of those who have not said yet who they are: everybody who can reach a port may knock at it.
//!
//! A time limit of a socket is no bound, since it begins anew with every byte; here one deadline holds for all that a
//! stranger says. A table of strangers that is full turns away the oldest, so that silent ones keep nobody out.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What a stranger has at least, however many others come.
const LEAST: Duration = Duration::from_millis(250);

/// The strangers at a port.
pub struct Strangers {
    most: usize,
    patience: Duration,
    waiting: Mutex<VecDeque<(Instant, Arc<TcpStream>)>>,
}

/// A stranger's place in the table; dropped when it is known who it is, or when it is gone.
pub struct Seat {
    table: Arc<Strangers>,
    stream: Arc<TcpStream>,
}

/// A connection that is read until a deadline.
pub struct TimedStream {
    stream: TcpStream,
    until: Instant,
}

impl Strangers {
    /// So many at once, each for so long.
    pub fn new(most: usize, patience: Duration) -> Arc<Self> {
        Arc::new(Self { most, patience, waiting: Mutex::default() })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Instant, Arc<TcpStream>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in. Where the table is full, the oldest goes, once it has had a quarter of a second.
    ///
    /// # Errors
    /// Where the connection is gone.
    pub fn admit(self: &Arc<Self>, stream: TcpStream) -> io::Result<(TimedStream, Seat)> {
        let now = Instant::now();
        let handle = Arc::new(stream.try_clone()?);
        loop {
            let mut waiting = self.waiting();
            match waiting.front() {
                Some((since, oldest)) if waiting.len() >= self.most => {
                    let early = LEAST.saturating_sub(since.elapsed());
                    if early.is_zero() {
                        let _ = oldest.shutdown(Shutdown::Both);
                        waiting.pop_front();
                    } else {
                        drop(waiting);
                        sleep(early.min(Duration::from_millis(5)));
                    }
                }
                _ => {
                    waiting.push_back((now, Arc::clone(&handle)));
                    break;
                }
            }
        }
        let seat = Seat { table: Arc::clone(self), stream: handle };
        Ok((TimedStream { stream, until: Instant::now() + self.patience }, seat))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.waiting().retain(|(_, stream)| !Arc::ptr_eq(stream, &self.stream));
    }
}

impl TimedStream {
    /// A connection that is read for so long.
    pub fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, until: Instant::now() + patience }
    }

    /// To write to it.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// The connection, without the deadline.
    ///
    /// # Errors
    /// Where the system does not take the deadline away.
    pub fn into_stream(self) -> io::Result<TcpStream> {
        self.stream.set_read_timeout(None)?;
        Ok(self.stream)
    }
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (ours, listener.accept().unwrap().0)
    }

    #[test]
    fn a_byte_now_and_then_does_not_move_the_deadline() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (mut dripping, accepted) = pair(&listener);
        let (mut timed, _seat) =
            Strangers::new(2, Duration::from_millis(300)).admit(accepted).unwrap();
        let drip = std::thread::spawn(move || {
            while dripping.write_all(b"x").is_ok() {
                sleep(Duration::from_millis(50));
            }
        });
        let begun = Instant::now();
        timed.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        drop(timed);
        drop(_seat);
        drip.join().unwrap();
    }

    #[test]
    fn the_oldest_goes_where_the_table_is_full_and_who_is_known_stays() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let table = Strangers::new(2, Duration::from_secs(20));
        let admitted: Vec<_> = (0..3)
            .map(|number| {
                let (ours, accepted) = pair(&listener);
                let (timed, seat) = table.admit(accepted).unwrap();
                // The very first has said who it is.
                (ours, timed, (number > 0).then_some(seat))
            })
            .collect();
        let [mut known, mut oldest, _third] = admitted.try_into().ok().unwrap();
        let (_new, accepted) = pair(&listener);
        let begun = Instant::now();
        let _seat = table.admit(accepted).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(2), "it waited for a silent one");
        assert_eq!(oldest.1.read(&mut [0]).unwrap(), 0, "turned away");
        known.0.write_all(b"!").unwrap();
        assert_eq!(known.1.read(&mut [0]).unwrap(), 1);
        assert_eq!(table.waiting().len(), 2);
    }
}
