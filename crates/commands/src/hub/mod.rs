//! `isogloss hub`: Hugging Face models, in and out.

mod download;
mod export;
mod import;

pub use self::import::in_words as checkpoint_in_words;

const EXAMPLES: &str = "Examples:
  isogloss hub download google-bert/bert-base-multilingual-cased
  isogloss hub import bert-base-multilingual-cased --out mbert
  isogloss hub export --model run --out run-hf";

subcommands! {
    /// What can be done with Hugging Face models.
    #[command(after_help = EXAMPLES)]
    pub enum Hub {
        /// Fetch a model into the cache that the hub's clients share, and say where it lies.
        #[command(after_help = download::EXAMPLES)]
        Download(download::Download),

        /// Make the folder of a run from a Hugging Face folder.
        Import(import::Import),

        /// Write a run as a folder that `transformers` loads with no code of its own.
        Export(export::Export),
    }
}
