//! What the surface needs to know of an error: whether the request itself was wrong, and which
//! configuration key is to blame.
//!
//! A library names keys and never flags; the command line and the Python package say how to set a key.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::Path;

/// An error that ends a command.
pub trait Fault: std::error::Error + Send + Sync + 'static {
    /// Whether the request was wrong whatever the files hold: exit code 2.
    fn is_usage(&self) -> bool {
        false
    }

    /// The configuration key that would have to change, such as `adam.lr`.
    fn key(&self) -> Option<&str> {
        None
    }
}

impl Fault for std::io::Error {}
impl Fault for std::fmt::Error {}
impl Fault for serde_json::Error {}

/// Results of libraries that complain as [`struct@Error`] does.
pub type Result<T> = std::result::Result<T, Error>;

/// A complaint that a person can follow: where, what, and what to do about it.
#[derive(Debug)]
pub struct Error(Box<Complaint>);

type Key = Cow<'static, str>;

#[derive(Debug)]
enum Complaint {
    Said { message: String, usage: bool, key: Option<Key>, source: Option<io::Error> },
    Of(Box<dyn Fault>),
}

impl Error {
    fn said(message: String, usage: bool, key: Option<Key>) -> Self {
        Self(Box::new(Complaint::Said { message, usage, key, source: None }))
    }

    /// What was given is not what it should be; the place is a file, with the line, row or word in it.
    pub fn input(place: impl Display, reason: impl Display, remedy: impl Display) -> Self {
        Self::said(format!("{place}: {reason}; {remedy}"), false, None)
    }

    /// A line of a file, from 1, is not what it should be.
    pub fn line(
        file: impl AsRef<Path>,
        line: u64,
        reason: impl Display,
        remedy: impl Display,
    ) -> Self {
        Self::input(format!("{}:{line}", display_name(file.as_ref())), reason, remedy)
    }

    /// A file as a whole is not what it should be.
    pub fn file(file: impl AsRef<Path>, reason: impl Display, remedy: impl Display) -> Self {
        Self::input(display_name(file.as_ref()), reason, remedy)
    }

    /// The request cannot be met, whatever the files hold.
    pub fn request(reason: impl Display, remedy: impl Display) -> Self {
        Self::usage(format!("{reason}; {remedy}"))
    }

    /// The same, where the reason says what to ask for instead.
    pub fn usage(reason: impl Into<String>) -> Self {
        Self::said(reason.into(), true, None)
    }

    /// The value of a configuration key makes no sense.
    pub fn setting(key: impl Into<Key>, reason: impl Display, remedy: impl Display) -> Self {
        Self::of_key(key, format!("{reason}; {remedy}"))
    }

    /// The same, where the reason says what to ask for instead.
    pub fn of_key(key: impl Into<Key>, reason: impl Into<String>) -> Self {
        Self::said(reason.into(), true, Some(key.into()))
    }

    /// A message with the system's own behind it.
    pub fn caused(message: String, source: io::Error) -> Self {
        let source = Some(source);
        Self(Box::new(Complaint::Said { message, usage: false, key: None, source }))
    }

    /// Another library's error, said in its words.
    pub fn of(fault: impl Fault) -> Self {
        Self(Box::new(Complaint::Of(Box::new(fault))))
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Complaint::Said { message, .. } => f.write_str(message),
            Complaint::Of(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Complaint::Said { source, .. } => Some(source.as_ref()?),
            Complaint::Of(fault) => fault.source(),
        }
    }
}

impl Fault for Error {
    fn is_usage(&self) -> bool {
        match &*self.0 {
            Complaint::Said { usage, .. } => *usage,
            Complaint::Of(fault) => fault.is_usage(),
        }
    }

    fn key(&self) -> Option<&str> {
        match &*self.0 {
            Complaint::Said { key, .. } => key.as_deref(),
            Complaint::Of(fault) => fault.key(),
        }
    }
}

/// A file's name for messages.
pub fn display_name(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => file.display().to_string(),
    }
}
