//! Runs, laboratories and models as a page in the browser, served on this machine.
//!
//! A picture in a report shows what somebody chose to draw. Here a reader looks by hand: at the space of a run while it emerges,
//! at the neighbours of a sentence, at what a shift does to it, at layers and at verdicts.
//!
//! - [`Explorer`] is what was opened, and answers the page's requests ([`Explorer::answer`]). It computes nothing of its own: every number
//!   comes from the function that the command of the same name calls, and each view gives that command.
//! - [`ExploreServer`] is a small synchronous server around it, on the loopback interface alone. `guard` has the rules by which it refuses.
//! - [`export()`] writes the page as one file, with the answers for one run inside.
//! - The page itself is TypeScript, under `page/`; its bundle is committed, so that cargo alone builds the program.

#![allow(missing_docs, reason = "a surface: a name says what it is")]

mod catalogue;
mod command;
mod engine;
mod error;
mod explorer;
mod export;
mod guard;
mod live;
mod page;
mod request;
mod server;
mod space;
mod studies;

pub use error::ExploreError;
pub use explorer::{ExploreConfig, Explorer};
pub use export::{ExploreExport, export};
pub use request::{ApiAnswer, ApiRequest};
pub use server::ExploreServer;
