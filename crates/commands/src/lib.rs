//! The commands of the laboratory, one file each: what a command is asked (its flags), the checks of that, its run, its result
//! in words, and its revision.
//!
//! Surfaces parse and print: the command line, the studies, whose steps are these commands, and Python. What a command does is
//! computed by the libraries below; what it says on the way goes through [`progress`] and [`say`](mod@say) to standard error or to a [`host`].

#![allow(missing_docs, reason = "only surfaces import it; what a flag is stands in its help")]

/// The subcommands of a command: their summaries, their types, and how they are run.
#[macro_export]
macro_rules! subcommands {
    ($(#[$meta:meta])* $visibility:vis enum $group:ident {
        $($(#[$summary:meta])* $name:ident($command:ty)),+ $(,)?
    }) => {
        #[derive(clap::Subcommand)]
        $(#[$meta])*
        $visibility enum $group { $($(#[$summary])* $name($command)),+ }

        impl $group {
            $visibility fn run(self) -> Result<$crate::outcome::Outcome, $crate::failure::Failure> {
                match self { $(Self::$name(command) => command.run()),+ }
            }
        }
    };
}

/// The values of a flag, each that of the same name in a library.
#[macro_export]
macro_rules! flag_values {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident => $library:ty {
        $($(#[$summary:meta])* $value:ident),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
        #[serde(rename_all = "kebab-case")]
        $visibility enum $name { $($(#[$summary])* $value),+ }

        impl From<$name> for $library {
            fn from(value: $name) -> Self {
                match value { $($name::$value => Self::$value),+ }
            }
        }
    };
}

#[macro_use]
pub mod say;

pub mod align;
pub mod bench;
pub mod cka;
pub mod corpus;
pub mod corpus_alter;
pub mod corpus_exclude;
pub mod corpus_filter;
pub mod data;
pub mod encode;
pub mod failure;
pub mod host;
pub mod hub;
pub mod invocation;
pub mod language_id;
pub mod language_neurons;
pub mod map;
pub mod measured;
pub mod mine;
pub mod models;
pub mod neighbours;
pub mod outcome;
pub mod pretrain;
pub mod progress;
pub mod record;
pub mod request;
pub mod retrieve;
pub mod score;
pub mod shift;
pub mod similarity;
pub mod stop;
pub mod texts;
mod training_view;
pub mod transfer;
pub mod vectors;
pub mod vocab;
pub mod word_align;
pub mod words;
pub mod world;
