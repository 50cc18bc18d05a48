//! What a command hands back: the same result for a person and for a program.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::record::Recording;
use crate::stop;

/// A finished command's result, in words and as JSON.
pub struct Outcome {
    pub recording: Option<Recording>,
    text: String,
    json: Value,
    finished: bool,
    /// Whether standard output has the file that was asked for, so that the result goes elsewhere.
    output_taken: bool,
    /// Whether the text has colours of the command's own, which then has made the rest printable.
    coloured: bool,
}

impl Outcome {
    /// Pairs the lines a person reads with the object that `--json` prints.
    pub fn new(text: impl Into<String>, result: &impl Serialize) -> Self {
        let json = serde_json::to_value(result).expect("a result of ours is always valid JSON");
        Self {
            text: text.into(),
            json,
            recording: None,
            finished: true,
            output_taken: false,
            coloured: false,
        }
    }

    /// The same with what is to be recorded of it.
    pub(crate) fn with(self, recording: Recording) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// Of a command that wrote its result to standard output itself.
    pub fn silent() -> Self {
        Self {
            text: String::new(),
            json: Value::Null,
            recording: None,
            finished: true,
            output_taken: false,
            coloured: false,
        }
    }

    /// The same with colours in its text; what comes from files is printable already.
    pub fn coloured(self) -> Self {
        Self { coloured: true, ..self }
    }

    /// The same of a command that was asked to stop before its end: its caller must not go
    /// on as if it were done.
    pub fn stopped(self) -> Self {
        Self { finished: false, ..self }
    }

    /// The same of a command that wrote to `out`: where that is standard output, the result goes to standard
    /// error.
    pub fn beside(self, out: &Path) -> Self {
        let is_taken = files::is_standard(out) || out == Path::new("/dev/stdout");
        Self { output_taken: self.output_taken || is_taken, ..self }
    }

    pub fn json(&self) -> &Value {
        &self.json
    }

    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Prints to standard output. A reader that went away (`| head`) is no failure.
    pub fn print(self, as_json: bool) -> u8 {
        if self.json.is_null() && self.text.is_empty() {
            return 0;
        }
        // What comes from files and stores cannot command a terminal; JSON has escapes of its own.
        let text = match as_json {
            true => self.json.to_string(),
            false if self.coloured => self.text,
            false => terms::printable(&self.text).into_owned(),
        };
        if self.output_taken {
            match as_json {
                true => complain!("{text}"),
                false => say!("{}", text.trim_end()),
            }
            return if self.finished { 0 } else { stop::exit_code() };
        }
        let mut out = io::stdout().lock();
        match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                complain!(
                    "error: standard output: cannot write the result (what was asked for is done; \
                     check the room on the disk it goes to): {error}"
                );
                1
            }
            _ if self.finished => 0,
            _ => stop::exit_code(),
        }
    }
}
