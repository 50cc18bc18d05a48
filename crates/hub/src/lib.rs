//! Checkpoints of Hugging Face's `transformers`: BERT, DistilBERT, RoBERTa, XLM-R, CamemBERT, XLM and XLM-R XL, imported and
//! exported; ModernBERT, EuroBERT, GPT-2, BLOOM, XGLM, Llama, Mistral, Qwen 2 and 3, Gemma, Gemma 2 and 3, imported.
//!
//! [`open`] turns a folder into an encoder, its weights and its vocabulary: `config` reads the family and
//! the architecture, `weights` maps the files and finds the tensors, `layout` has each family's names for
//! weights, `tokenizer` reads the vocabulary, and `import` puts it all together. [`export()`] writes a
//! folder that `transformers` loads; [`sentence_modules`] reads what sentence-transformers puts beside one. A GGUF file (`gguf`) is read as if it were such a folder.
//!
//! Nothing that a file contains is executed, and no memory is allocated on a file's word alone: every
//! tensor is found in the file, with its size, before the model is made.
//!
//! ```
//! # let folder = std::path::Path::new("tests/fixtures/bert");
//! let device = tensor::Device::cpu(1).unwrap();
//! let checkpoint = hub::open(folder, &device)?;
//! assert_eq!(checkpoint.summary.family, hub::Family::Bert);
//! assert!(checkpoint.summary.has_mlm_head);
//! let mut reader = checkpoint.vocabulary.reader("en", 12)?;
//! assert_eq!(reader.sentence("the cat").ids.len(), 4, "two words, [CLS] and [SEP]");
//! # Ok::<(), text::Error>(())
//! ```

mod cache;
mod config;
mod export;
mod gguf;
mod import;
mod layout;
mod modern;
mod read;
mod sentence;
mod tokenizer;
pub mod weights;

pub use cache::{cached, hub_name};
pub use config::{Family, architecture, is_checkpoint};
pub use export::{ExportResult, ExportSource, ModelCard, export};
pub use import::{Checkpoint, CheckpointSummary, ImportResult, open, vocabulary};
pub use sentence::{SentenceModules, SentenceStep, TokenPooling, sentence_modules};
