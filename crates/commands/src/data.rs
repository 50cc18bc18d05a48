//! `isogloss data`: download the data sets of the papers, in the formats that other commands read.

use std::fmt::Write as _;
use std::path::PathBuf;

use catalogue::{Catalogue, DatasetEntry, DownloadOrigin, DownloadRequest, DownloadResult};
use clap::Args;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Coming;

const EXAMPLES: &str = "Examples:
  isogloss data list
  isogloss data get xnli --lang fr,de --accept";

subcommands! {
    /// Download the data sets of the papers.
    #[command(after_help = EXAMPLES)]
    pub enum DataCommand {
        /// List the data sets, what uses them, and their licences.
        #[command(after_help = LIST_EXAMPLES)]
        List(List),

        /// Download a data set, verify it, and convert it to the format that other commands read.
        #[command(after_help = GET_EXAMPLES)]
        Get(Get),
    }
}

const LIST_EXAMPLES: &str = "Examples:
  isogloss data list
  isogloss data list xnli";

const GET_EXAMPLES: &str = "Examples:
  The development and test sets of XNLI in two languages:
    isogloss data get xnli --lang fr,de --accept
  An archive that was downloaded by hand:
    isogloss data get multinli --from multinli_1.0.zip
  Wikipedia as plain text, a paragraph a line:
    isogloss data get wikipedia --lang sw --out data
Archives stay in DIR/downloads, so that other languages can be extracted later;
DIR/receipts records what was downloaded when, from where, under which licence.";

#[derive(Args)]
pub struct List {
    /// Only this one, with its addresses and files.
    name: Option<String>,
}

#[derive(Args)]
pub struct Get {
    /// The data set, as `isogloss data list` names it.
    name: String,

    /// Its languages [default: all].
    #[arg(long = "lang", value_name = "LANG", value_delimiter = ',')]
    languages: Vec<String>,

    /// The folder to download it to.
    #[arg(long, short, value_name = "DIR", default_value = "data")]
    out: PathBuf,

    /// Use what was downloaded by hand: a file, or a folder of files.
    #[arg(long, value_name = "FILE", conflicts_with = "mirror")]
    from: Vec<PathBuf>,

    /// Download from a mirror, which has the same paths.
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,

    /// Accept a licence that asks for more than attribution.
    #[arg(long)]
    accept: bool,
}

impl List {
    fn run(self) -> Result<Outcome, Failure> {
        let catalogue = Catalogue::read();
        let entries = match &self.name {
            Some(name) => vec![catalogue.entry(name)?],
            None => catalogue.entries.iter().collect(),
        };
        let whole = self.name.is_some();
        let text: String = entries.iter().map(|entry| describe(entry, whole)).collect();
        let entries = entries.into_iter().cloned().collect();
        Ok(Outcome::new(text, &Catalogue { entries }))
    }
}

fn describe(entry: &DatasetEntry, whole: bool) -> String {
    let languages: Vec<&str> = entry.languages.keys().map(String::as_str).collect();
    let others = if entry.others { ", and others" } else { "" };
    let mut text = format!("{}\n  {}\n  for {}\n", entry.name, entry.what, entry.used_by);
    let _ = writeln!(text, "  languages: {}{others}", languages.join(" "));
    let _ = writeln!(text, "  licence: {}", terms(entry));
    if whole {
        let _ = writeln!(text, "  home: {}", entry.home);
        if let Some(how) = &entry.by_hand {
            let _ = writeln!(text, "  by hand (--from FILE): {how}");
        }
        for source in &entry.sources {
            let size = source.size.as_ref().map_or(String::new(), |size| format!(" ({size})"));
            let _ = writeln!(text, "  {}{size}", source.url);
            for file in &source.files {
                let _ = writeln!(text, "    -> {}", file.to);
            }
        }
    }
    text
}

fn terms(entry: &DatasetEntry) -> String {
    let asks = entry.licence.asks.as_ref().map_or(String::new(), |asks| format!(" ({asks})"));
    format!("{}{asks}", entry.licence.name)
}

impl Get {
    fn run(self) -> Result<Outcome, Failure> {
        let catalogue = Catalogue::read();
        let entry = catalogue.entry(&self.name)?;
        let languages = entry.choose(&self.languages)?;
        say!("{}: {}; see {}", entry.name, terms(entry), entry.home);
        if entry.licence.asks.is_some() && !self.accept {
            let message = format!(
                "the licence of {} is {}; if you keep to that, add --accept",
                entry.name,
                terms(entry)
            );
            return Err(Failure::Usage(message));
        }
        let origin = match self.from.is_empty() {
            true => DownloadOrigin::Network { mirror: self.mirror },
            false => DownloadOrigin::Hand(self.from),
        };
        let request = DownloadRequest { entry, languages: &languages, out: &self.out, origin };
        let mut coming = Coming::default();
        let mut watch = |name: &str, done, total| coming.show(name, done, total);
        let got = catalogue::get(&request, &mut watch);
        drop(coming);
        let got = got.map_err(|error| by_hand(error, &request))?;
        Ok(Outcome::new(in_words(&got), &got))
    }
}

/// Adds the command that goes on with what was downloaded by hand.
fn by_hand(error: catalogue::Error, request: &DownloadRequest) -> Failure {
    if !matches!(error, catalogue::Error::Fetch { .. }) {
        return error.into();
    }
    let DownloadRequest { entry, languages, out, .. } = request;
    let accept = if entry.licence.asks.is_some() { " --accept" } else { "" };
    let command = format!(
        "{error}: `isogloss data get {}{accept} --lang {} --out {} --from FOLDER`",
        entry.name,
        languages.join(","),
        out.display(),
    );
    Failure::Failed(command)
}

fn in_words(got: &DownloadResult) -> String {
    let mut text: String =
        got.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    for file in &got.files {
        let found = if file.found { " (found)" } else { "" };
        let _ = write!(text, "{:>15}  {}{found}", file.bytes, file.path.display());
        if let Some([kept, left_out]) = file.lines {
            let _ = write!(text, ", {kept} lines, {left_out} left out");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "receipt: {}", got.receipt.display());
    text
}
