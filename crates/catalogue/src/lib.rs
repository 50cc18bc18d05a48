//! Where data sets and models come from, and how they get here.
//!
//! `catalogue.toml` names what the papers used: addresses, licences, and which part of an archive
//! becomes which file. [`get()`] brings an [`DatasetEntry`] into a folder, in the form that the rest of the
//! laboratory reads, and leaves a [`DownloadReceipt`]; [`hub`] brings a model of the Hugging Face hub.
//! [`wiki`] turns a dump of Wikipedia into plain text.

mod convert;
mod digest;
mod entries;
mod error;
mod get;
mod http;
pub mod hub;
mod plan;
mod receipt;
mod unpack;
pub mod wiki;

pub use entries::{Catalogue, DatasetEntry, DownloadSource, Licence, SourceFile};
pub use error::{Error, Result};
pub use get::{DatasetFile, DownloadOrigin, DownloadRequest, DownloadResult, get};
pub use receipt::{DownloadReceipt, FetchRecord, FileRecord};

/// How far something has come: bytes so far, and of how many where that is known.
pub type DownloadObserver<'a> = dyn FnMut(&str, u64, Option<u64>) + 'a;
