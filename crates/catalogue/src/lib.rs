//! The catalogue of data sets, and downloads of them and of models.
//!
//! `catalogue.toml` lists the data sets of the papers: addresses, licences, and which member of an
//! archive becomes which file. [`get()`] downloads a [`DatasetEntry`] into a folder, converts it to the
//! formats that the other crates read, and leaves a [`DownloadReceipt`]; [`hub`] downloads a model of the
//! Hugging Face hub; [`wiki`] extracts plain text from a Wikipedia dump.
//!
//! ```
//! use catalogue::Catalogue;
//!
//! let catalogue = Catalogue::read();
//! let xnli = catalogue.entry("xnli")?;
//! let languages = xnli.choose(&["fr".into(), "de".into(), "fr".into()])?;
//! assert_eq!(languages, ["de", "fr"]);
//! assert!(xnli.choose(&["xx".into()]).unwrap_err().to_string().contains("has no `xx`"));
//! # Ok::<(), catalogue::Error>(())
//! ```

mod convert;
mod digest;
mod entries;
mod error;
mod get;
mod http;
pub mod hub;
mod panlex;
mod plan;
mod receipt;
mod unpack;
pub mod wiki;

pub use entries::{Catalogue, DatasetEntry, DownloadSource, Licence, SourceFile};
pub use error::{Error, Result};
pub use get::{DatasetFile, DownloadOrigin, DownloadRequest, DownloadResult, get};
pub use receipt::{DownloadReceipt, FetchRecord, FileRecord};

/// Is called with the name of a download, the bytes so far, and their total where that is known.
pub type DownloadObserver<'a> = dyn FnMut(&str, u64, Option<u64>) + 'a;
