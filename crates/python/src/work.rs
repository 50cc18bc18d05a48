//! Long work without the interpreter's lock: on a thread of its own, while the calling thread shows progress and looks for Ctrl-C.
//!
//! A computation is stopped at its next point of interruption ([`terms::interrupt`]), which comes within a second; one
//! that has not stopped by then is left to end by itself, and its result is dropped. So work owns what it reads. Work that
//! asks whether it is to stop, as training does, is not unwound: it is waited for while it writes its checkpoint, until a second Ctrl-C.

use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tensor::Device;
use terms::interrupt;

use crate::errors::Failure;

/// How often the calling thread looks for Ctrl-C and draws.
const TICK: Duration = Duration::from_millis(50);
/// How long work may take to stop before it is left alone.
const PATIENCE: Duration = Duration::from_millis(900);
/// Numbers to compute with below which a thread would cost more than the work.
const SMALL: usize = 1 << 15;

/// What work and the thread that waits for it share.
#[derive(Clone, Default)]
pub(crate) struct Watched {
    stop: Arc<AtomicBool>,
    /// The flag of [`terms::interrupt`], which is set with `stop` unless the work stops by itself.
    unwind: Arc<AtomicBool>,
    stops_itself: Arc<AtomicBool>,
    progress: Arc<Mutex<Option<Progress>>>,
}

#[derive(Clone)]
struct Progress {
    label: String,
    done: u64,
    total: u64,
    note: String,
}

impl Watched {
    pub(crate) fn show(&self, label: &str, done: u64, total: u64, note: &str) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        *progress = Some(Progress { label: label.to_owned(), done, total, note: note.to_owned() });
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// From now on the work is asked to stop, and not unwound.
    pub(crate) fn stops_itself(&self) {
        self.stops_itself.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if !self.stops_itself.load(Ordering::Relaxed) {
            self.unwind.store(true, Ordering::Relaxed);
        }
    }

    fn progress(&self) -> Option<Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Refuses to compute in a process that was forked from one that has: the threads of its pools are not in it, and what waits
/// for them waits for ever.
pub(crate) fn check_process() -> Result<(), Failure> {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    match *PROCESS.get_or_init(|| own) {
        first if first == own => Ok(()),
        first => Err(Failure::Failed {
            message: format!(
                "isogloss has computed in process {first}, of which this one is a fork, and its threads do not survive \
                 a fork; start processes with multiprocessing.get_context(\"spawn\") (of PyTorch's DataLoader: \
                 multiprocessing_context=\"spawn\"), or compute in the first process after the fork alone"
            ),
            key: None,
        }),
    }
}

/// Runs work that reads about `size` numbers, with the interpreter's lock released.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce(&Watched) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    check_process()?;
    let watched = Watched::default();
    let shared = watched.clone();
    let guarded = move || {
        let unwind = Arc::clone(&shared.unwind);
        let run = AssertUnwindSafe(|| interrupt::with(unwind, || work(&shared)));
        panic::catch_unwind(run).unwrap_or_else(|payload| Err(Failure::of_panic(payload)))
    };
    if size < SMALL {
        return Ok(py.detach(guarded)?);
    }
    let (sender, mut receiver) = channel();
    thread::Builder::new().name("isogloss".to_owned()).spawn(move || sender.send(guarded()))?;
    let mut bar = Bar::default();
    let mut stopping: Option<(Instant, PyErr)> = None;
    let result = loop {
        let waiting = &mut receiver;
        match py.detach(move || waiting.recv_timeout(TICK)) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Disconnected) => {
                break Err(Failure::Internal("a thread was lost".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(error) = py.check_signals() {
            watched.stop();
            if stopping.is_some() {
                break Err(Failure::Interrupted);
            }
            stopping = Some((Instant::now(), error));
        }
        let is_unwound = watched.unwind.load(Ordering::Relaxed);
        match &stopping {
            Some((since, _)) if is_unwound && since.elapsed() > PATIENCE => {
                break Err(Failure::Interrupted);
            }
            Some(_) => {}
            None => bar.draw(py, &watched),
        }
    };
    bar.close(py);
    match (stopping, result) {
        // Whatever the work made of being stopped.
        (Some((_, error)), _) => Err(error),
        (None, result) => Ok(result?),
    }
}

/// Panics, so that tests can see what becomes of a panic.
#[pyfunction]
pub(crate) fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    run(py, usize::MAX, |_| panic!("on purpose"))
}

/// The bar that `isogloss._progress` draws.
#[derive(Default)]
struct Bar {
    drawn: Option<Py<PyAny>>,
}

impl Bar {
    /// Draws how far work has come. What goes wrong there stops no work.
    fn draw(&mut self, py: Python<'_>, watched: &Watched) {
        let Some(Progress { label, done, total, note }) = watched.progress() else { return };
        let drawn = (|| {
            if self.drawn.is_none() {
                static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
                let import = || py.import("isogloss._progress").map(Bound::unbind);
                let module = MODULE.get_or_try_init(py, import)?.bind(py);
                self.drawn = Some(module.getattr("Bar")?.call0()?.unbind());
            }
            let bar = self.drawn.as_ref().expect("it was just made").bind(py);
            bar.call_method1("update", (label, done, total, note)).map(|_| ())
        })();
        if let Err(error) = drawn {
            error.write_unraisable(py, None);
        }
    }

    fn close(self, py: Python<'_>) {
        if let Some(bar) = self.drawn
            && let Err(error) = bar.bind(py).call_method0("close")
        {
            error.write_unraisable(py, None);
        }
    }
}

/// The device of a name with so many threads, opened once in a process.
pub(crate) fn device(name: &str, threads: usize) -> Result<Device, Failure> {
    static OPENED: Mutex<Option<HashMap<(String, usize), Device>>> = Mutex::new(None);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let opened = opened.get_or_insert_default();
    if let Some(device) = opened.get(&(name.to_owned(), threads)) {
        return Ok(device.clone());
    }
    let device = Device::named(name, threads)?;
    opened.insert((name.to_owned(), threads), device.clone());
    Ok(device)
}

/// Where work runs: the device's name, and threads of the CPU.
pub(crate) type Place = (String, usize);

/// Threads of the CPU, and no other device.
pub(crate) fn on_cpu(threads: usize) -> Place {
    ("cpu".to_owned(), threads)
}

/// The same as [`run`] on the threads of a place, with the device that the work may use.
pub(crate) fn run_on<T: Send + 'static>(
    py: Python<'_>,
    size: usize,
    (name, threads): Place,
    work: impl FnOnce(&Device, &Watched) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    run(py, size, move |watched| {
        let chosen = device(&name, threads)?;
        let cpu = if chosen.is_gpu() { device("cpu", threads)? } else { chosen.clone() };
        let unwind = Arc::clone(&watched.unwind);
        cpu.run(|| interrupt::with(unwind, || work(&chosen, watched)))
    })
}
