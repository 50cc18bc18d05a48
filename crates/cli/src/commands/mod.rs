//! The commands, one file each.

mod align;
mod bench;
mod cka;
mod completions;
mod corpus;
mod corpus_alter;
mod corpus_filter;
mod data;
mod demo;
mod encode;
mod explore;
mod hub;
mod inspect;
mod language_id;
mod language_neurons;
mod man;
mod map;
mod markdown;
mod mine;
mod models;
mod neighbours;
mod pretrain;
mod record;
mod report;
mod results;
mod retrieve;
mod score;
mod shift;
mod similarity;
mod study;
mod study_cluster;
mod study_list;
mod study_pack;
mod study_view;
mod texts;
mod training_view;
mod transfer;
mod vectors;
mod vocab;
mod word_align;
mod words;
mod world;

use clap::Subcommand;

use crate::failure::Failure;
use crate::outcome::Outcome;

/// What can be asked of the laboratory.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Reproduce the papers' main finding on invented languages, in minutes.
    Demo(demo::Demo),

    /// Invent languages with gold annotations for every task.
    #[command(subcommand)]
    World(world::World),

    /// Learn vocabularies, and see what languages share of them.
    #[command(subcommand)]
    Vocab(vocab::Vocab),

    /// Tokenise text into the form that training reads.
    #[command(subcommand)]
    Corpus(corpus::CorpusCommand),

    /// Pretrain an encoder under a condition of the papers.
    Pretrain(pretrain::Pretrain),

    /// Align the words of parallel text (see `align words` for spaces of vectors).
    WordAlign(word_align::WordAlign),

    /// Fine-tune on one language, and score the others with no further training.
    Transfer(Box<transfer::Transfer>),

    /// Score predictions against gold annotations.
    Score(score::Score),

    /// Write the hidden states of sentences, at any layer.
    Encode(encode::Encode),

    /// Write the vectors of words: embeddings, or means over contexts.
    Words(words::Words),

    /// Learn orthogonal maps between spaces of vectors (Procrustes), and evaluate them.
    #[command(subcommand)]
    Align(align::Align),

    /// Retrieve translations among sentences: raw, mean-centred and aligned, layer by layer.
    Retrieve(retrieve::Retrieve),

    /// Mine translation pairs between two texts of unequal size, by margins.
    Mine(Box<mine::Mine>),

    /// List the nearest neighbours of words or sentences across languages, layer by layer.
    #[command(alias = "neighbors")]
    Neighbours(neighbours::Neighbours),

    /// Draw representation spaces: how one emerged, what layers do, words and sentences on a plane.
    Map(Box<map::MapCommand>),

    /// Compare two sets of vectors by linear CKA, biased and debiased.
    Cka(cka::Cka),

    /// Compare two sets of vectors by nine measures, layer by layer, beside their chance levels.
    Similarity(similarity::Similarity),

    /// Tell the language of sentences from their vectors by a linear probe, before and after removing it.
    LanguageId(language_id::LanguageId),

    /// Find the neurons that are active in one language alone (LAPE), and measure predictions without them.
    LanguageNeurons(language_neurons::LanguageNeurons),

    /// Language mean vectors, and token translation by shifting hidden states.
    #[command(subcommand)]
    Shift(shift::Shift),

    /// Learn static word vectors, and convert files of them.
    #[command(subcommand)]
    Vectors(vectors::VectorsCommand),

    /// Plan, run and resume the papers' experiments, or your own.
    #[command(subcommand)]
    Study(study::Study),

    /// Download the data sets of the papers.
    #[command(subcommand)]
    Data(data::DataCommand),

    /// Hugging Face models: download, import, export.
    #[command(subcommand)]
    Hub(hub::Hub),

    /// Say what a file or folder holds: a model, a vocabulary, arrays, word vectors, language mean vectors.
    Inspect(inspect::Inspect),

    /// Show, filter and export the results of studies.
    Results(results::Results),

    /// Draw the papers' tables and figures from one's own results, as one HTML page.
    Report(report::Report),

    /// Look at a run, a laboratory or any model in the browser: the space as it emerges, neighbours, shifts.
    Explore(explore::Explore),

    /// Measure the speed of the engine on this machine.
    #[command(subcommand)]
    Bench(bench::Bench),

    /// Print shell completions for bash, zsh, fish, elvish or PowerShell.
    Completions(completions::Completions),

    /// Print the man page, or write one page for each command into a folder.
    Man(man::Man),
}

impl Command {
    /// Runs the command to its end.
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Command::Demo(command) => command.run(),
            Command::World(command) => command.run(),
            Command::Vocab(command) => command.run(),
            Command::Corpus(command) => command.run(),
            Command::Pretrain(command) => command.run(),
            Command::WordAlign(command) => command.run(),
            Command::Transfer(command) => command.run(),
            Command::Score(command) => command.run(),
            Command::Encode(command) => command.run(),
            Command::Words(command) => command.run(),
            Command::Align(command) => command.run(),
            Command::Retrieve(command) => command.run(),
            Command::Mine(command) => command.run(),
            Command::Neighbours(command) => command.run(),
            Command::Map(command) => command.run(),
            Command::Cka(command) => command.run(),
            Command::Similarity(command) => command.run(),
            Command::LanguageId(command) => command.run(),
            Command::LanguageNeurons(command) => command.run(),
            Command::Shift(command) => command.run(),
            Command::Vectors(command) => command.run(),
            Command::Study(command) => command.run(),
            Command::Data(command) => command.run(),
            Command::Hub(command) => command.run(),
            Command::Inspect(command) => command.run(),
            Command::Results(command) => command.run(),
            Command::Report(command) => command.run(),
            Command::Explore(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}
