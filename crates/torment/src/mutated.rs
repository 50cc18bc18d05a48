//! Files that lie, a batch at a time in a process of its own: in it a panic is caught, memory is counted, and a reader
//! that hangs or dies takes nothing but its batch along.

use std::fs;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use torment::mutation::mutate;
use torment::readers::{READERS, Reader};

use crate::cases::ReadingCost;

/// Counts what readers hold.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most that a reader may hold beyond the size of its file.
const MOST_MEMORY: u64 = 512 << 20;
/// The longest that a reader may compute.
const LONGEST: Duration = Duration::from_secs(2);
/// The longest that it may wait, without computing: far longer than a machine is ever that busy.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// What a process may map at all: an allocation beyond it fails, and the process with it.
const ADDRESS_SPACE: u64 = 16 << 30;

/// A batch of files for one reader.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) samples: PathBuf,
    pub(crate) scratch: PathBuf,
    pub(crate) reader: String,
    pub(crate) seed: u64,
    pub(crate) from: u64,
    pub(crate) count: u64,
}

/// What came of a batch.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct BatchResult {
    pub(crate) files: u64,
    /// Files that were read to their end in spite of the change.
    pub(crate) read: u64,
    pub(crate) faults: Vec<String>,
    pub(crate) cost: ReadingCost,
}

impl BatchResult {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.read += other.read;
        self.faults.extend(other.faults);
        self.cost = self.cost.max(other.cost);
    }
}

/// Runs a batch in processes of their own, a new one after each that dies.
pub(crate) fn run(batch: &Batch) -> Result<BatchResult, String> {
    let mut all = BatchResult::default();
    let (mut from, end) = (batch.from, batch.from + batch.count);
    let _ = fs::remove_dir_all(&batch.scratch);
    fs::create_dir_all(&batch.scratch).map_err(|error| error.to_string())?;
    while from < end {
        let output = Command::new(std::env::current_exe().map_err(|error| error.to_string())?)
            .args(["--worker", &batch.reader, "--seed", &batch.seed.to_string()])
            .args(["--from", &from.to_string(), "--count", &(end - from).to_string()])
            .arg("--samples")
            .arg(&batch.samples)
            .arg("--scratch")
            .arg(&batch.scratch)
            .env("RAYON_NUM_THREADS", "1")
            .env("TMPDIR", &batch.scratch)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let result: Option<BatchResult> = output
            .stdout
            .split(|&byte| byte == b'\n')
            .find_map(|line| serde_json::from_slice(line).ok());
        match result {
            Some(result) => {
                from += result.files;
                let ended = output.status.success();
                all.add(result);
                if ended {
                    break;
                }
            }
            None if output.status.code() == Some(2) => {
                return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
            }
            None => {
                let at = fs::read_to_string(batch.scratch.join("case")).unwrap_or_default();
                let at: u64 = at.trim().parse().unwrap_or(from);
                let words = String::from_utf8_lossy(&output.stderr);
                let words =
                    words.lines().rev().find(|line| !line.is_empty()).unwrap_or("").to_owned();
                all.faults
                    .push(format!("{}:{at}: ended by {}: {words}", batch.reader, output.status));
                all.files += at + 1 - from;
                from = at + 1;
            }
        }
    }
    let _ = fs::remove_dir_all(&batch.scratch);
    Ok(all)
}

/// The process of a batch: goes through its files and prints one line of JSON.
pub(crate) fn work(batch: &Batch, keep: Option<&Path>) -> Result<(), String> {
    let limit = Rlimit { current: Some(ADDRESS_SPACE), maximum: Some(ADDRESS_SPACE) };
    let _ = setrlimit(Resource::As, limit);
    panic::set_hook(Box::new(|_| ()));
    let reader = READERS.iter().find(|reader| reader.name == batch.reader);
    let reader = reader.ok_or_else(|| format!("no reader is called {}", batch.reader))?;
    let copied = reader.copy_sample(&batch.samples, &batch.scratch);
    let (own, target) = copied.map_err(|error| format!("{}: {error}", reader.sample))?;
    let sound = fs::read(&target).map_err(|error| error.to_string())?;
    // A sample of another reader, for splices.
    let other = &READERS[(batch.seed + batch.from) as usize % READERS.len()];
    let other =
        other.target(&batch.samples.join(other.sample)).and_then(|path| fs::read(path).ok());
    let other = other.unwrap_or_default();
    if let Err(error) = (reader.read)(&own) {
        return Err(format!("{}: the sample itself is refused: {error}", reader.name));
    }
    let current = Arc::new(AtomicU64::new(batch.from));
    let result = Arc::new(std::sync::Mutex::new(BatchResult::default()));
    watch_over(reader, &current, &result, batch.scratch.clone());
    for case in batch.from..batch.from + batch.count {
        let mut rng = ChaCha8Rng::seed_from_u64(batch.seed);
        rng.set_stream(case);
        let bytes = mutate(&sound, &other, reader.packing, &mut rng);
        let _ = fs::write(batch.scratch.join("case"), case.to_string());
        fs::write(&target, &bytes).map_err(|error| error.to_string())?;
        if let Some(keep) = keep {
            fs::write(keep, &bytes).map_err(|error| error.to_string())?;
        }
        current.store(case, Ordering::Relaxed);
        let (read, held, mut took) = measured(reader, &own);
        // A busy machine's caches lengthen processor time too: what is slow is slow each time.
        for _ in 0..2 {
            if took > LONGEST && read.is_ok() {
                took = took.min(measured(reader, &own).2);
            }
        }
        let mut result = result.lock().expect("nothing panics while it is held");
        result.files += 1;
        result.read += u64::from(matches!(read, Ok(true)));
        let beyond = held.saturating_sub(bytes.len() as u64);
        let cost = ReadingCost { milliseconds: took.as_millis() as u64, memory: beyond };
        result.cost = result.cost.max(cost);
        if let Err(panicked) = read {
            result.faults.push(format!("{}:{case}: panicked: {panicked}", reader.name));
        } else if beyond > MOST_MEMORY {
            result.faults.push(format!("{}:{case}: held {} MB", reader.name, beyond >> 20));
        } else if took > LONGEST {
            result.faults.push(format!("{}:{case}: took {:.1} s", reader.name, took.as_secs_f64()));
        }
    }
    let result = result.lock().expect("nothing panics while it is held");
    print(&result);
    Ok(())
}

fn print(result: &BatchResult) {
    let line = serde_json::to_string(result).expect("plain data");
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Whether a file was read (or the panic), the memory held, and the processor time taken.
fn measured(reader: &Reader, path: &Path) -> (Result<bool, String>, u64, Duration) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let begun = processor_time();
    let read = panic::catch_unwind(AssertUnwindSafe(|| (reader.read)(path).is_ok()));
    let took = processor_time().saturating_sub(begun);
    let held = MEMORY.peak_usage().saturating_sub(before) as u64;
    let read = read.map_err(|payload| {
        let words = payload.downcast_ref::<String>().cloned();
        words.or(payload.downcast_ref::<&str>().map(|&words| words.to_owned())).unwrap_or_default()
    });
    (read, held, took)
}

/// The time that this process has computed, on all its threads: a busy machine does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Ends the process where a file takes much longer than any may.
fn watch_over(
    reader: &'static Reader,
    current: &Arc<AtomicU64>,
    result: &Arc<std::sync::Mutex<BatchResult>>,
    scratch: PathBuf,
) {
    let (current, result) = (Arc::clone(current), Arc::clone(result));
    std::thread::spawn(move || {
        let (mut last, mut since, mut begun) = (u64::MAX, processor_time(), Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(250));
            let case = current.load(Ordering::Relaxed);
            if case != last {
                (last, since, begun) = (case, processor_time(), Instant::now());
            }
            let hangs = processor_time().saturating_sub(since) > 8 * LONGEST
                || begun.elapsed() > LONGEST_WAIT;
            if hangs {
                let mut result = result.lock().expect("nothing panics while it is held");
                result.files += 1;
                result.faults.push(format!("{}:{case}: hangs", reader.name));
                print(&result);
                drop(scratch);
                std::process::exit(3);
            }
        }
    });
}
