//! Progress on standard error: a bar on a terminal, a plain line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::host;
use crate::say::is_quiet;

/// How often a line is written where there is no terminal to draw on.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Whether bars are drawn; elsewhere lines are written, which `say!` suppresses under `--quiet`.
fn draws_bars() -> bool {
    std::io::stderr().is_terminal() && !is_quiet() && host::current().is_none()
}

/// Counts work done against work to do.
pub struct Progress {
    bar: ProgressBar,
    label: String,
    total: u64,
    done: u64,
    last_line: Option<Instant>,
}

impl Progress {
    /// Starts counting to `total`; `label` says what is being done.
    pub fn new(label: &str, total: u64) -> Self {
        let terminal = draws_bars();
        let bar = if terminal { ProgressBar::new(total) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template(
            "{prefix} [{bar:30}] {pos}/{len} {per_sec} {eta} left {msg}",
        );
        bar.set_style(style.expect("a fixed template").progress_chars("=> "));
        bar.set_prefix(label.to_owned());
        let last_line = (!terminal).then(Instant::now);
        Self { bar, label: label.to_owned(), total, done: 0, last_line }
    }

    /// A line that stays, above the bar.
    pub fn line(&self, text: &str) {
        self.bar.suspend(|| say!("{text}"));
    }

    /// One more step done; `note` is what to show beside the count.
    pub fn step(&mut self, note: &str) {
        self.done += 1;
        self.bar.set_message(terms::printable(note).into_owned());
        self.bar.inc(1);
        if let Some(host) = host::current() {
            host.progress(&self.label, self.done, self.total, note);
        } else if self.last_line.is_some_and(|at| at.elapsed() >= LINE_EVERY) {
            say!("{}: {}/{} {note}", self.label, self.done, self.total);
            self.last_line = Some(Instant::now());
        }
    }

    /// So many steps done in all.
    pub fn reach(&mut self, done: u64, note: &str) {
        (self.done..done).for_each(|_| self.step(note));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Counts work that many threads do, from when the first of it is done.
pub fn counted(label: &str) -> impl Fn(u64, u64) + Sync {
    let (label, shown) = (label.to_owned(), Mutex::new(None));
    move |_, total| {
        let mut shown = shown.lock().expect("drawing does not panic");
        shown.get_or_insert_with(|| Progress::new(&label, total)).step("");
    }
}

/// Shows how much of one file after another has come.
#[derive(Default)]
pub struct Coming {
    shown: Option<(String, ProgressBar)>,
    last_line: Option<Instant>,
}

impl Coming {
    /// So much of `name` has come, of so much where that is known.
    pub fn show(&mut self, name: &str, done: u64, total: Option<u64>) {
        if !draws_bars() {
            if self.last_line.get_or_insert_with(Instant::now).elapsed() >= LINE_EVERY {
                let of = total.map_or(String::new(), |total| format!(" of {total}"));
                say!("{name}: {done}{of}");
                self.last_line = Some(Instant::now());
            }
            return;
        }
        if self.shown.as_ref().is_none_or(|(shown, _)| shown != name) {
            self.shown = Some((name.to_owned(), Self::bar(name, total)));
        }
        let (_, bar) = self.shown.as_ref().expect("it was just made");
        bar.set_position(done);
    }

    fn bar(name: &str, total: Option<u64>) -> ProgressBar {
        let (bar, template) = match total {
            Some(total) => {
                let known = "{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta} left";
                (ProgressBar::new(total), known)
            }
            None => (ProgressBar::new_spinner(), "{spinner} {prefix} {pos} {elapsed}"),
        };
        let style = ProgressStyle::with_template(template).expect("a fixed template");
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(name.to_owned());
        bar
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some((_, bar)) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

/// Shows that something is under way whose end cannot be told.
pub struct Waiting {
    bar: ProgressBar,
}

impl Waiting {
    /// Starts to wait; `label` says for what.
    pub fn new(label: &str) -> Self {
        if !draws_bars() {
            say!("{label}");
            return Self { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        bar.set_style(style.expect("a fixed template"));
        bar.set_message(terms::printable(label).into_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
