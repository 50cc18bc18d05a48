//! Checkpoints of Hugging Face's `transformers`, read and written.
//!
//! [`open`] turns a folder of theirs into an encoder, its weights and its vocabulary: `config`
//! says which family the model is of and what it looks like, `weights` maps the files and finds
//! the tensors, `layout` knows what each family calls its weights, `tokenizer` reads the
//! vocabulary, and `import` puts it all together. [`export()`] goes the other way.
//!
//! Nothing that a file contains is executed, and no memory is set aside on a file's word alone:
//! every tensor is found in the file, with its size, before the model is made.

mod config;
mod export;
mod import;
mod layout;
mod read;
mod tokenizer;
pub mod weights;

pub use config::{Family, is_checkpoint};
pub use export::{Card, Exported, Source, export};
pub use import::{Checkpoint, Found, open};
