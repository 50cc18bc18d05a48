//! `isogloss explore`: a run, a laboratory or a model as a page in the browser.

use std::path::PathBuf;

use clap::Args;
use explore::{ExploreConfig, ExploreServer, Explorer, export};
use models::parallel::RowSelection;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop;
use commands::models::Compute;
use commands::progress::Waiting;
use commands::texts::parse_text;

const EXAMPLES: &str = "Examples:
  What there is in this folder (a run, a laboratory, what `isogloss demo` made):
    isogloss explore
  A run, also while it is trained:
    isogloss explore run
  A Hugging Face model on sentences of two languages, line by line translations:
    isogloss explore mbert --parallel en=en.txt --parallel fr=fr.txt --limit 1000
  On a server without a browser, with the line for one's own machine printed:
    isogloss explore lab --port 8123
  Two runs beside each other, on one scrubber:
    isogloss explore run-shared run-separate
  One run as a file that opens anywhere:
    isogloss explore run --export run.html

The page is served on this machine's loopback interface alone, at an address with a token; it changes nothing and loads
nothing from elsewhere. Each view gives the command that prints its numbers. Ctrl-C ends it.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explore {
    /// A run, a laboratory, a Hugging Face folder, or a folder with some of these [default: this folder]; a second one is
    /// shown beside the first.
    #[arg(value_name = "DIR", num_args = 0..=2, help_heading = "Input")]
    places: Vec<PathBuf>,

    /// Sentences, one a line, with their language, to look at a model with; repeat for more languages.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text,
        conflicts_with = "parallel", help_heading = "Input")]
    texts: Vec<(String, String)>,

    /// The same where line i says the same in every language: translations are joined by lines, and retrieval is
    /// measured.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, help_heading = "Input")]
    parallel: Vec<(String, String)>,

    /// Of --text and --parallel, show the first N sentences of each language.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "sample_size", help_heading = "Input",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=100_000))]
    limit: Option<usize>,

    /// Of more sentences than N, show a random sample of N: of every language the same lines.
    #[arg(long, value_name = "N", default_value_t = 2000, help_heading = "Input",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..=100_000))]
    sample_size: usize,

    /// Seed of the sample.
    #[arg(long, default_value_t = 1, help_heading = "Input")]
    seed: u64,

    /// The port to listen on; 0 takes any that is free.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Output")]
    port: u16,

    /// Write the page with one run inside, and the studies of a laboratory, in place of serving it.
    #[arg(long, value_name = "FILE.html", conflicts_with = "port", help_heading = "Output")]
    export: Option<PathBuf>,

    /// Replace a file that exists.
    #[arg(short, long, requires = "export", help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    compute: Compute,
}

impl Explore {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let config = ExploreConfig {
            places: self.places,
            texts: self.texts,
            parallel: self.parallel,
            selection: match self.limit {
                Some(first) => RowSelection::First(first),
                None => RowSelection::Sample { size: self.sample_size, seed: self.seed },
            },
        };
        if let Some(path) = &self.export {
            files::check_new_file(path, self.force)?;
        }
        let explorer = Explorer::open(config, self.compute.device()?)?;
        if let Some(path) = self.export {
            let waiting = Waiting::new("asking everything that the page may ask");
            let result = export(&explorer, &path)?;
            drop(waiting);
            if let Some(first) = &result.first_failure {
                return Err(Failure::Failed(format!(
                    "{}: {} of {} answers failed, and the page shows why; the first, {first}",
                    path.display(),
                    result.failed,
                    result.answers
                )));
            }
            let mut text =
                format!("{}: {}, {} kB", path.display(), result.run, result.bytes / 1000);
            if result.figures_left_out > 0 {
                let count = result.figures_left_out;
                text += &format!(
                    "; {count} figures of studies are left out (`isogloss report` has them)"
                );
            }
            return Ok(Outcome::new(text, &result));
        }
        let server = ExploreServer::bind(explorer, self.port)?;
        let (address, port) = (server.address(), server.port());
        // Before it serves, since it serves until it is interrupted.
        let opened = server.explorer().describe();
        let forward = format!("ssh -N -L {port}:127.0.0.1:{port} HOST");
        say!("{opened}");
        complain!("  {address}");
        say!("from another machine, first there: {forward}");
        say!("Ctrl-C ends it");
        server.serve(stop::listen());
        Ok(Outcome::silent())
    }
}
