//! `torment`: goes through everything that Isogloss must survive, and prints what it found as a table.

// The table and the progress are this program's whole surface.
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod artefacts;
mod board;
mod cases;
mod changes;
mod materials;
mod mutated;
mod peers;
mod process;
mod recipes;
mod rot;
mod server;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use torment::readers::READERS;

use crate::board::{Board, Kind};
use crate::cases::Bench;
use crate::mutated::Batch;
use crate::process::Binary;
use crate::recipes::Place;

/// Kills, full disks, races, flipped bits, files that change while they are read and hostile files, against the real binary and its readers.
///
/// Every case is drawn from the seed, its kind and its number, and can be done again by `--case KIND:NUMBER`.
#[derive(Parser)]
#[command(
    name = "torment",
    after_help = "Examples:\n  cargo build --release --workspace && target/release/torment --seconds 60\n  torment \
                  --isogloss ./isogloss --seconds 540 --jobs 16 --out torment.json\n  torment --kinds files --seconds \
                  600\n  torment --case kills:17"
)]
struct Arguments {
    /// The binary under test [default: `isogloss` beside this one].
    #[arg(long, value_name = "PATH")]
    isogloss: Option<PathBuf>,

    /// How long to go on; it ends earlier where all figures are reached.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,

    /// The seed of every case.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Cases at once [default: one for each core].
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,

    /// Which kinds of cases.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KIND,KIND")]
    kinds: Vec<Kind>,

    /// Only one reader of mutated files.
    #[arg(long, value_name = "NAME")]
    reader: Option<String>,

    /// Do one case again, and keep its folder.
    #[arg(long, value_name = "KIND:NUMBER")]
    case: Option<String>,

    /// Write the results as JSON.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// A folder for everything that is made [default: in memory, where /dev/shm is].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Only make the samples of all readers, here, and end: what fuzzing starts from.
    #[arg(long, value_name = "DIR")]
    make_samples: Option<PathBuf>,

    /// Print the names of all readers.
    #[arg(long)]
    list_readers: bool,

    /// Print the file of the samples that a reader reads.
    #[arg(long, value_name = "READER", requires = "samples")]
    show_sample: Option<String>,

    /// The process of a batch: this reader.
    #[arg(long, hide = true)]
    worker: Option<String>,
    #[arg(long, hide = true)]
    samples: Option<PathBuf>,
    #[arg(long, hide = true, default_value_t = 0)]
    from: u64,
    #[arg(long, hide = true, default_value_t = 1)]
    count: u64,
    /// Write the changed file of a batch of one here.
    #[arg(long, hide = true)]
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments {
        Arguments { worker: Some(reader), .. } => work(&arguments, reader).map(|()| true),
        Arguments { list_readers: true, .. } => {
            READERS.iter().for_each(|reader| println!("{}", reader.name));
            Ok(true)
        }
        Arguments { show_sample: Some(name), samples: Some(folder), .. } => {
            let reader = READERS.iter().find(|reader| reader.name == *name);
            let path = reader.and_then(|reader| reader.target(&folder.join(reader.sample)));
            path.iter().for_each(|path| println!("{}", path.display()));
            Ok(path.is_some())
        }
        _ => torment(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn work(arguments: &Arguments, reader: &str) -> Result<(), String> {
    let needed = |path: &Option<PathBuf>| path.clone().ok_or("a worker needs its folders");
    let batch = Batch {
        samples: needed(&arguments.samples)?,
        scratch: needed(&arguments.scratch)?,
        reader: reader.to_owned(),
        seed: arguments.seed,
        from: arguments.from,
        count: arguments.count,
    };
    mutated::work(&batch, arguments.keep.as_deref())
}

/// Whether nothing was found.
fn torment(arguments: &Arguments) -> Result<bool, String> {
    let begun = Instant::now();
    let binary = match &arguments.isogloss {
        Some(path) => path.clone(),
        None => {
            std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("isogloss")
        }
    };
    let binary = std::path::absolute(&binary).map_err(|error| error.to_string())?;
    if !binary.is_file() {
        return Err(format!(
            "{} is not there; build it, or name it by --isogloss",
            binary.display()
        ));
    }
    let memory = PathBuf::from("/dev/shm");
    let root = arguments.scratch.clone().unwrap_or(if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    });
    let scratch = tempfile::Builder::new().prefix("torment-").tempdir_in(&root);
    let scratch = scratch.map_err(|error| format!("{}: {error}", root.display()))?;
    let logs = scratch.path().join("logs");
    std::fs::create_dir(&logs).map_err(|error| error.to_string())?;
    let binary = Binary { path: binary, logs };
    let server = server::start().map_err(|error| error.to_string())?;
    let base = match &arguments.make_samples {
        Some(folder) => std::path::absolute(folder).map_err(|error| error.to_string())?,
        None => scratch.path().join("base"),
    };
    let place = Place { base: &base, server: &server };
    materials::make(&binary, &place)?;
    if arguments.make_samples.is_some() {
        return Ok(true);
    }
    let references = recipes::references(&binary, &place, scratch.path())?;
    let mounts = cases::can_mount(scratch.path());
    let (seed, folder) = (arguments.seed, scratch.path().to_owned());
    let bench = Bench { binary, place, references, scratch: folder, seed, mounts };
    let mut kinds = match &arguments.kinds[..] {
        [] => Kind::value_variants().to_vec(),
        kinds => kinds.to_vec(),
    };
    if let Some(reason) = changes::hindrance().filter(|_| kinds.contains(&Kind::Changes)) {
        eprintln!("LEFT OUT: files changed while being read: reads cannot be held here: {reason}");
        kinds.retain(|&kind| kind != Kind::Changes);
    }
    let harmed = [Kind::Rot, Kind::Changes].iter().any(|kind| kinds.contains(kind));
    let artefacts = match harmed || arguments.case.is_some() {
        true => bench.artefact_references()?,
        false => Vec::new(),
    };
    let known = bench.record_greeting()?;
    let run = |kind: Kind, index: u64| match kind {
        Kind::Kills | Kind::Early | Kind::Ranks => vec![bench.kill(index, kind)],
        Kind::Races => vec![bench.race(index)],
        Kind::Disks => vec![bench.full_disk(index)],
        Kind::Rot => vec![bench.rot(index, &artefacts)],
        Kind::Changes => vec![bench.change(index, &artefacts)],
        Kind::Others => vec![bench.others(index)],
        Kind::Greetings => vec![bench.greetings(index, &known)],
        Kind::Requests => vec![bench.requests(index)],
        Kind::Files => board::files(&bench, index, arguments.reader.as_deref()),
    };
    if let Some(case) = &arguments.case {
        let (kind, index) = board::parse_case(case)?;
        let results = run(kind, index);
        let kept = scratch.keep();
        results.iter().for_each(|result| println!("{}: {:?}", result.name, result.fault));
        println!("{}", kept.display());
        return Ok(results.iter().all(|result| result.fault.is_none()));
    }
    let board = Board::new(&kinds);
    let end = begun + Duration::from_secs(arguments.seconds);
    let jobs =
        arguments.jobs.or(std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| board.work(end, &run));
        }
    });
    let report = board.report(seed, jobs, mounts, begun.elapsed().as_secs_f64());
    print!("{}", report.table());
    if let Some(out) = &arguments.out {
        let json = serde_json::to_string_pretty(&report).expect("plain data");
        std::fs::write(out, json + "\n").map_err(|error| format!("{}: {error}", out.display()))?;
    }
    Ok(report.is_clean())
}
