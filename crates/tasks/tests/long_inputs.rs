//! Inputs that are too long, and inputs that are nothing at all.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tasks::conllu::Treebank;
use tasks::features::{StaticVectors, TokenSource};
use tasks::labelled_text::{LabelledTexts, TextColumns};
use tasks::ner::{NerFile, Repair};
use tasks::parse::{ParseFile, RelationLabels, is_tree};
use tasks::pos::PosFile;
use tasks::{Annotation, LabelSet, LabelledFile, ScoreResult};
use tempfile::TempDir;
use tensor::Device;
use vectors::WordVectors;

/// Vectors of three words, which take inputs of 256.
fn source() -> StaticVectors {
    let device = Device::cpu(1).unwrap();
    let words = ["a", "b", "c"].map(str::to_owned).to_vec();
    let values = (0..36).map(|at| at as f32 / 10.0).collect();
    let table = WordVectors::new(words, 12, values).unwrap();
    StaticVectors::new(vec![("xx".to_owned(), table)], &device).unwrap()
}

fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn labels(set: &dyn LabelledFile) -> LabelSet {
    let labels = set.labels();
    LabelSet::new(labels.iter().map(|(label, _)| label.as_str()))
}

/// The annotations of each segment, put together.
fn joined(
    set: &dyn LabelledFile,
    labels: &LabelSet,
    segments: &[Vec<Annotation>],
) -> Vec<Annotation> {
    let segments: Vec<&[Annotation]> = segments.iter().map(Vec::as_slice).collect();
    set.join(labels, &segments)
}

#[test]
fn a_long_sentence_of_entities_is_read_in_segments() {
    let line = |at: usize| format!("{}\t{}\n", ["a", "b", "c"][at % 3], ["O", "B-X"][at % 2]);
    let (_folder, path) = written(&(0..600).map(line).collect::<String>());
    let set = NerFile::read(&path, "xx", Repair::Paper).unwrap();
    let (source, labels) = (source(), labels(&set));
    let prepared = set.prepare(&source, 0, &labels);
    assert_eq!((prepared.split, prepared.truncated, prepared.examples.len()), (1, 0, 3));
    assert!(prepared.examples.iter().all(|example| example.tokens.len() <= source.longest()));
    let segments: Vec<Vec<Annotation>> =
        prepared.examples.iter().map(|example| example.gold.clone()).collect();
    let predictions = joined(&set, &labels, &segments);
    assert_eq!(predictions.len(), 600);
    assert_eq!(set.score(&labels, std::slice::from_ref(&predictions)).value(), 1.0);
    assert_eq!(
        set.render(&labels, &[predictions]).trim(),
        fs::read_to_string(&path).unwrap().trim()
    );
}

#[test]
fn a_long_sentence_is_parsed_in_segments_that_make_one_tree() {
    // The head of every word is the one before it.
    let label = |at: usize| if at == 1 { "root" } else { "parataxis" };
    let line = |at: usize| format!("{at}\ta\t_\tX\t_\t_\t{}\t{}\t_\t_\n", at - 1, label(at));
    let (_folder, path) = written(&(1..=600).map(line).collect::<String>());
    let set = ParseFile::read(&path, RelationLabels::Universal).unwrap();
    let (source, labels) = (source(), labels(&set));
    let prepared = set.prepare(&source, 0, &labels);
    assert_eq!((prepared.split, prepared.examples.len()), (1, 3));
    let outside = |example: &tasks::Example| {
        example.gold.iter().filter(|gold| gold.head == tasks::NONE).count()
    };
    assert_eq!(prepared.examples.iter().map(outside).collect::<Vec<_>>(), [0, 1, 1]);
    // A segment whose head lies elsewhere has a root of its own when it is parsed.
    let rooted = |gold: &Annotation| Annotation {
        head: if gold.head == tasks::NONE { 0 } else { gold.head },
        ..*gold
    };
    let segments: Vec<Vec<Annotation>> =
        prepared.examples.iter().map(|e| e.gold.iter().map(rooted).collect()).collect();
    let predictions = joined(&set, &labels, &segments);
    assert!(is_tree(&predictions.iter().map(|word| word.head).collect::<Vec<_>>()));
    let ScoreResult::Parse(score) = set.score(&labels, std::slice::from_ref(&predictions)) else {
        panic!("a parse is scored as one");
    };
    assert_eq!(score.all.las, 598.0 / 600.0, "only the two roots of later segments are wrong");
    let (_folder, again) = written(&set.render(&labels, &[predictions]));
    Treebank::read(&again).unwrap();
}

#[test]
fn a_long_pair_is_truncated_and_counted() {
    let long = "a ".repeat(400);
    let (_folder, path) = written(&format!("{long}\tb c\tyes\na\tb\tno\n"));
    let set = LabelledTexts::read(&path, TextColumns::Pair).unwrap();
    let (source, labels) = (source(), labels(&set));
    let prepared = set.prepare(&source, 0, &labels);
    assert_eq!((prepared.truncated, prepared.split), (1, 0));
    let tokens = &prepared.examples[0].tokens;
    assert_eq!(tokens.len(), source.longest());
    // The hypothesis, which is shorter, is whole: b, c, and the end.
    assert_eq!(tokens[tokens.len() - 4..], [1, 4, 5, 1]);
    assert_eq!(prepared.examples[1].tokens, [0, 3, 1, 4, 1]);
}

#[test]
fn parts_of_speech_are_read_in_segments_and_sentences_are_truncated() {
    let line = |at: usize| format!("{}\t{}\n", ["a", "b", "c"][at % 3], ["DET", "NOUN"][at % 2]);
    let text = (0..600).map(line).collect::<String>() + "\n";
    let (_folder, path) = written(&text);
    let set = PosFile::read(&path).unwrap();
    let (source, of_words) = (source(), labels(&set));
    let prepared = set.prepare(&source, 0, &of_words);
    assert_eq!((prepared.split, prepared.truncated, prepared.examples.len()), (1, 0, 3));
    let segments: Vec<Vec<Annotation>> =
        prepared.examples.iter().map(|example| example.gold.clone()).collect();
    let predictions = [joined(&set, &of_words, &segments)];
    assert_eq!(set.score(&of_words, &predictions).value(), 1.0);
    assert_eq!(set.render(&of_words, &predictions), text);

    let (_folder, path) = written(&format!("{}\tlong\nb c\tshort\n", "a ".repeat(400)));
    let set = LabelledTexts::read(&path, TextColumns::Sentence).unwrap();
    let prepared = set.prepare(&source, 0, &labels(&set));
    assert_eq!((prepared.truncated, prepared.split), (1, 0));
    assert_eq!(prepared.examples[0].tokens.len(), source.longest());
    let short = &prepared.examples[1];
    assert_eq!((&short.tokens[..], &short.positions[..]), (&[0, 4, 5, 1][..], &[0][..]));
    assert_eq!(short.gold, [Annotation::of_label(1)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn readers_take_anything_or_say_why_not(text in "([a-zO\\-0-9.#\\t \\n_]|B-X|1\\t|\\t_){0,80}") {
        let (_folder, path) = written(&text);
        for error in [
            Treebank::read(&path).err(),
            NerFile::read(&path, "zh", Repair::Paper).err(),
            LabelledTexts::read(&path, TextColumns::Pair).err(),
            PosFile::read(&path).err(),
            LabelledTexts::read(&path, TextColumns::Sentence).err(),
        ].into_iter().flatten() {
            let message = error.to_string();
            prop_assert!(message.contains("file") && message.contains("; "), "{}", message);
        }
    }
}
