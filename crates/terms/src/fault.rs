//! What the surface needs to know of an error: whether the request itself was wrong, and which
//! configuration key is to blame.
//!
//! A library names keys and never flags; the command line and the Python package say how to set a key.

use std::error::Error;

/// An error that ends a command.
pub trait Fault: Error + Send + Sync + 'static {
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
