//! The commands, of which those about studies and about this program itself stand here, and the others in their own crate.

mod completions;
mod demo;
mod explore;
mod inspect;
mod man;
mod markdown;
mod report;
mod results;
mod study;
mod study_cluster;
mod study_list;
mod study_pack;
mod study_view;

use ::commands::{
    align, bench, cka, corpus, data, encode, hub, language_id, language_neurons, map, mine,
    neighbours, pretrain, retrieve, score, shift, similarity, transfer, vectors, vocab, word_align,
    words, world,
};
pub(crate) use study_view::this_build;

subcommands! {
    /// What can be asked of the laboratory.
    pub(crate) enum Command {
        /// See the papers' main finding on invented languages.
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

        /// Align the words of parallel text.
        ///
        /// `align words` aligns spaces of vectors instead.
        WordAlign(word_align::WordAlign),

        /// Fine-tune on one language, and score the others zero-shot.
        Transfer(Box<transfer::Transfer>),

        /// Score predictions against gold annotations.
        Score(score::Score),

        /// Write the hidden states of sentences, at any layer.
        Encode(encode::Encode),

        /// Write vectors of words: embeddings, or means over contexts.
        Words(words::Words),

        /// Map spaces of vectors onto each other (Procrustes).
        #[command(subcommand)]
        Align(align::Align),

        /// Retrieve translations: raw, mean-centred, aligned, by layer.
        Retrieve(retrieve::Retrieve),

        /// Mine translation pairs between two texts, by margins.
        Mine(Box<mine::Mine>),

        /// List nearest neighbours across languages, layer by layer.
        #[command(alias = "neighbors")]
        Neighbours(neighbours::Neighbours),

        /// Draw spaces: how one emerged, what layers do, on a plane.
        Map(Box<map::MapCommand>),

        /// Compare sets of vectors by linear CKA, biased and debiased.
        Cka(cka::Cka),

        /// Compare two sets of vectors by many measures, by layer.
        ///
        /// Each measure stands beside its chance level.
        Similarity(similarity::Similarity),

        /// Tell the language of sentences by a probe, and remove it.
        LanguageId(language_id::LanguageId),

        /// Find neurons that are active in one language alone (LAPE).
        ///
        /// Predictions without them are measured too.
        LanguageNeurons(language_neurons::LanguageNeurons),

        /// Language mean vectors, and translation by shifting states.
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

        /// Say what a file or folder holds.
        ///
        /// It may be a run, a laboratory, a model, a vocabulary, arrays, word vectors or language mean vectors.
        Inspect(inspect::Inspect),

        /// Show, filter and export the results of studies.
        Results(results::Results),

        /// Draw the papers' tables and figures from one's own results.
        Report(report::Report),

        /// Look at a run, a laboratory or any model in the browser.
        Explore(explore::Explore),

        /// Measure the speed of the engine on this machine.
        #[command(subcommand)]
        Bench(bench::Bench),

        /// Print shell completions.
        Completions(completions::Completions),

        /// Print the man page, or write one for each command.
        Man(man::Man),
    }
}

/// The commands as `--help` lists them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start", &["demo", "explore", "inspect"]),
    ("Text and models", &["world", "corpus", "vocab", "data", "hub"]),
    ("Train", &["pretrain", "transfer", "score", "vectors"]),
    (
        "Measure",
        &[
            "encode",
            "words",
            "retrieve",
            "neighbours",
            "map",
            "cka",
            "similarity",
            "align",
            "word-align",
            "mine",
            "language-id",
            "language-neurons",
            "shift",
        ],
    ),
    ("Study", &["study", "results", "report"]),
    ("This program", &["bench", "completions", "man"]),
];

/// What stands below the flags of every command, with a line for each paragraph: clap wraps it, and would wrap lines that are wrapped in the source
/// a second time. Examples, which are indented, stay as they are.
fn with_paragraphs(command: clap::Command) -> clap::Command {
    let lines = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
    let mut help = String::new();
    for line in lines.lines() {
        let goes_on = |text: &str| !text.is_empty() && !text.starts_with(' ');
        let before = help.rsplit('\n').next().unwrap_or_default();
        let separator = if goes_on(before) && goes_on(line) { " " } else { "\n" };
        help += if help.is_empty() { "" } else { separator };
        help += line;
    }
    let command = if help.is_empty() { command } else { command.after_help(help) };
    command.mut_subcommands(with_paragraphs)
}

/// The definition with its commands in groups: thirty in one list are not read.
pub(crate) fn grouped(root: clap::Command) -> clap::Command {
    let root = with_paragraphs(root);
    let header = *root.get_styles().get_header();
    let name = *root.get_styles().get_literal();
    let mut help = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, commands) in GROUPS {
        help += &format!("\n{header}{group}:{header:#}\n");
        for command in commands.iter().filter_map(|command| root.find_subcommand(command)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            help += &format!("  {name}{:<16}{name:#}  {about}\n", command.get_name());
        }
    }
    // Not `{all-args}`, which lists the commands once more.
    root.help_template(help + &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Subcommand as _;

    use super::*;

    /// Every command stands in one group, and its line fits into 80 columns.
    #[test]
    fn help_lists_every_command_once() {
        let root = Command::augment_subcommands(clap::Command::new("isogloss"));
        let defined = root.get_subcommands().map(clap::Command::get_name).collect::<BTreeSet<_>>();
        let listed = GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied());
        assert_eq!(listed.clone().count(), defined.len());
        assert_eq!(listed.collect::<BTreeSet<_>>(), defined);
        let help = grouped(root.clone()).render_help().to_string();
        for command in root.get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            assert!(about.len() <= 60, "{}: {about}", command.get_name());
            assert_eq!(help.matches(&about).count(), 1, "{about} in {help}");
        }
    }
}
