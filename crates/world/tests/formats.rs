//! Every file parses as the real one of its kind does, and agrees with the truth.

mod common;

use std::collections::{HashMap, HashSet};

use common::{Generated, conllu, small, tagged, words};
use world::{CorpusLayout, Script, WorldConfig};

fn rich() -> WorldConfig {
    let mut config = small();
    config.language = WorldConfig::plain_languages(3);
    config.language[1].distance = Some(0.7);
    config.language[2].script = Some(Script::Han);
    config.punctuation = true;
    config.capitals = true;
    config
}

#[test]
fn treebanks_are_valid_and_in_the_words_of_their_language() {
    for config in [small(), rich()] {
        let world = Generated::new(config);
        for code in world.codes() {
            let meanings = world.meanings_of(&code);
            for (part, size) in [
                ("world-ud-train", 300),
                ("world-ud-dev", 50),
                ("world-ud-test", 50),
                ("pud-ud-test", 100),
            ] {
                let sentences = conllu(&world.read(format!("ud/{code}_{part}.conllu")));
                assert_eq!(sentences.len(), size);
                for word in sentences.iter().flatten() {
                    assert_eq!(meanings[&word.form], meanings[&word.lemma]);
                    assert_eq!(world.upos(meanings[&word.form]), word.upos);
                }
            }
        }
    }
}

#[test]
fn the_parallel_treebank_is_one_tree_in_every_language() {
    let world = Generated::new(rich());
    let arcs = |code: &str| -> Vec<Vec<(usize, Option<usize>, String)>> {
        let meanings = world.meanings_of(code);
        let tree = |words: Vec<common::Word>| {
            let id = |n: usize| meanings[&words[n].form];
            let arc =
                |n: usize| (id(n), words[n].head.checked_sub(1).map(id), words[n].relation.clone());
            let mut arcs: Vec<_> = (0..words.len()).map(arc).collect();
            arcs.sort();
            arcs
        };
        let text = world.read(format!("ud/{code}_pud-ud-test.conllu"));
        conllu(&text).into_iter().map(tree).collect()
    };
    let [first, second, third] = ["qaa", "qab", "qac"].map(arcs);
    assert_eq!(first, second);
    assert_eq!(first, third);
}

#[test]
fn entities_are_tagged_as_the_truth_names_them() {
    let world = Generated::new(rich());
    for code in world.codes() {
        let meanings = world.meanings_of(&code);
        let truth = &world.manifest["gold"]["entities"];
        let mut found = HashMap::new();
        for path in ["train", "dev", "test"].map(|split| format!("ner/panx-{split}-{code}.tsv")) {
            for sentence in tagged(&world.read(path)) {
                let mut spans: Vec<(String, Vec<usize>)> = Vec::new();
                for (word, tag) in &sentence {
                    let id = meanings[word];
                    assert_eq!(tag == "O", world.upos(id) != "PROPN", "{word} {tag}");
                    match tag.split_once('-') {
                        Some(("B", kind)) => spans.push((kind.to_owned(), vec![id])),
                        Some((_, _)) => spans.last_mut().unwrap().1.push(id),
                        None => {}
                    }
                }
                for (kind, span) in spans {
                    let known = truth[&kind].as_array().unwrap().iter().any(|name| {
                        let name: Vec<usize> = name
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|id| id.as_u64().unwrap() as usize)
                            .collect();
                        name == span || (kind == "PER" && name[1..] == span[..])
                    });
                    assert!(known, "{kind} {span:?}");
                    *found.entry(kind).or_insert(0) += 1;
                }
            }
        }
        assert!(["PER", "LOC", "ORG"].iter().all(|kind| found[*kind] > 20), "{found:?}");
    }
}

#[test]
fn parallel_lines_translate_word_by_word() {
    let world = Generated::new(rich());
    let codes = world.codes();
    let stops = [Some("."), Some("."), Some("。")];
    let first = world.meanings_of("qaa");
    for (code, stop) in codes.iter().zip(stops).skip(1) {
        let meanings = world.meanings_of(code);
        let pairs = world.lines(format!("bitext/bitext.qaa-{code}.tsv"));
        let aligned = world.lines(format!("bitext/bitext.qaa-{code}.align"));
        assert_eq!(pairs.len(), 300);
        assert_eq!(aligned.len(), 300);
        for (pair, links) in pairs.iter().zip(&aligned) {
            let (a, b) = pair.split_once('\t').unwrap();
            let (a, b) = (words(a, stops[0]), words(b, stop));
            let mut reached = HashSet::new();
            for (at, link) in links.split(' ').enumerate() {
                let (i, j) = link.split_once('-').unwrap();
                let (i, j): (usize, usize) = (i.parse().unwrap(), j.parse().unwrap());
                assert_eq!(i, at);
                assert_eq!(first[&a[i]], meanings[&b[j]]);
                assert!(reached.insert(j));
            }
            assert_eq!((reached.len(), a.len()), (b.len(), b.len()));
        }
        let from_lines = |code: &str| world.lines(format!("parallel/train.{code}.txt"));
        let both = from_lines("qaa").into_iter().zip(from_lines(code));
        assert!(both.zip(&pairs).all(|((a, b), pair)| format!("{a}\t{b}") == *pair));
    }
}

#[test]
fn retrieval_sets_hold_no_sentence_twice_and_nothing_of_the_parallel_text() {
    let world = Generated::new(rich());
    for code in ["qaa", "qab"] {
        let mut seen = HashSet::new();
        let parts = ["train", "dev", "test"].map(|split| format!("parallel/{split}.{code}.txt"));
        for path in parts.into_iter().chain([format!("tatoeba/tatoeba.qab-qaa.{code}")]) {
            for line in world.lines(path) {
                assert!(line.split(' ').count() >= 4);
                assert!(seen.insert(line.clone()), "{line} occurs twice");
            }
        }
        assert_eq!(seen.len(), 500);
        let test = world.lines(format!("tatoeba/tatoeba.qab-qaa.{code}")).into_iter();
        let test: HashSet<String> =
            test.chain(world.lines(format!("parallel/test.{code}.txt"))).collect();
        let text = world.lines(format!("text/{code}.base.txt"));
        assert!(text.iter().all(|line| !test.contains(line)), "a test sentence is in the corpus");
    }
}

/// Another wording of the same meaning: the same words but for articles and first names, and few lines in
/// which nothing is optional.
#[test]
fn paraphrases_say_the_same_in_other_words() {
    for config in [small(), rich()] {
        let world = Generated::new(config);
        let codes = world.codes();
        for code in &codes {
            let meanings: HashMap<String, usize> = world.meanings_of(code).into_iter().collect();
            let other = if *code == codes[0] { &codes[1] } else { code };
            let test = format!("tatoeba/tatoeba.{other}-{}.{code}", codes[0]);
            for (first, second) in
                [(test, "paraphrase"), (format!("parallel/train.{code}.txt"), "paraphrase-train")]
            {
                let (first, second) =
                    (world.lines(first), world.lines(format!("parallel/{second}.{code}.txt")));
                assert_eq!(first.len(), second.len());
                let mut changed = 0;
                for (first, second) in first.iter().zip(&second) {
                    let of = |line: &str| -> HashSet<usize> {
                        line.split([' ', '.', '。'])
                            .filter_map(|word| meanings.get(word))
                            .copied()
                            .collect()
                    };
                    let (first_meanings, second_meanings) = (of(first), of(second));
                    // The first two meanings are the articles.
                    assert!(
                        second_meanings
                            .iter()
                            .all(|meaning| *meaning < 2 || first_meanings.contains(meaning))
                    );
                    let lost =
                        first_meanings.difference(&second_meanings).filter(|&&meaning| meaning > 1);
                    assert!(lost.count() <= 2, "{first} / {second}");
                    changed += usize::from(first != second);
                }
                assert!(10 * changed > 8 * first.len(), "{changed} of {} differ", first.len());
            }
        }
    }
}

#[test]
fn dictionaries_agree_with_the_lexicon_and_split_cleanly() {
    for config in [small(), rich()] {
        let world = Generated::new(config);
        let codes = world.codes();
        for other in &codes[1..] {
            for (from, to) in [(&codes[0], other), (other, &codes[0])] {
                let lower = |code: &String| -> HashMap<String, usize> {
                    let meanings = world.meanings_of(code).into_iter();
                    meanings.map(|(form, id)| (form.to_lowercase(), id)).collect()
                };
                let (source, target) = (lower(from), lower(to));
                let read = |suffix: &str| -> Vec<(usize, String)> {
                    let lines = world.lines(format!("muse/{from}-{to}{suffix}.txt"));
                    let entry = |line: String| {
                        let (a, b) = line.split_once(' ').unwrap();
                        assert_eq!(line.to_lowercase(), line);
                        assert_eq!(source[a], target[b], "{line}");
                        (source[a], line)
                    };
                    lines.into_iter().map(entry).collect()
                };
                let (all, train, test) = (read(""), read(".0-5000"), read(".5000-6500"));
                let ids = |part: &[(usize, String)]| -> HashSet<usize> {
                    part.iter().map(|(id, _)| *id).collect()
                };
                assert!(ids(&train).is_disjoint(&ids(&test)));
                assert_eq!(ids(&train).len() + ids(&test).len(), ids(&all).len());
                assert_eq!(ids(&all).len(), 199, "all meanings but the full stop");
                assert!((ids(&test).len() as f64 / 199.0 - 0.25).abs() < 0.02);
                let unique: HashSet<&String> = all.iter().map(|(_, line)| line).collect();
                assert_eq!(unique.len(), all.len());
                assert_eq!(train.len() + test.len(), all.len());
                // Every form of the language can be looked up.
                let listed: HashSet<&str> =
                    all.iter().map(|(_, line)| line.split(' ').next().unwrap()).collect();
                assert_eq!(listed.len() + 1, source.len());
            }
        }
    }
}

#[test]
fn corpora_have_the_size_layout_and_words_asked_for() {
    let mut config = rich();
    config.sentences = 1003;
    config.domain.push(world::DomainConfig {
        name: "other".into(),
        shift: 1.0,
        hidden: 0.3,
        ..Default::default()
    });
    config.language[1].domains = Some(vec!["base".into(), "other".into()]);
    config.language[2].sentences = Some(17);
    let world = Generated::new(config.clone());
    let count = |path: &str| world.lines(path).len();
    assert_eq!(count("text/qaa.base.txt"), 1003);
    assert_eq!(count("text/qab.base.txt"), 502);
    assert_eq!(count("text/qab.other.txt"), 501);
    assert_eq!(count("text/qac.base.txt"), 17);
    let meanings = world.meanings_of("qab");
    for line in world.lines("text/qab.other.txt") {
        assert!(words(&line, Some(".")).iter().all(|word| meanings.contains_key(word)));
    }

    config.layout = CorpusLayout::Paragraphs;
    config.held_out = false;
    let world = Generated::new(config);
    let text = world.read("text/qaa.base.txt");
    assert_eq!(text.matches('.').count(), 1003);
    assert!(text.lines().all(|line| (1..=9).contains(&line.matches('.').count())));
    assert!(text.lines().rev().skip(1).all(|line| line.matches('.').count() >= 4));
}

#[test]
fn the_manifest_tells_the_truth_about_files() {
    let world = Generated::new(small());
    let files = world.manifest["files"].as_array().unwrap();
    for file in files {
        let text = world.read(file["path"].as_str().unwrap());
        assert_eq!(file["bytes"], text.len());
        assert_eq!(file["blake3"], blake3::hash(text.as_bytes()).to_hex().as_str());
        let items = match file["kind"].as_str().unwrap() {
            "treebank" | "ner" => text.matches("\n\n").count(),
            "config" => 0,
            _ => text.lines().count(),
        };
        assert_eq!(file["items"], items, "{file}");
    }
    let config = WorldConfig::from_toml(&world.read("world.toml"), "world.toml").unwrap();
    assert_eq!(&config, small().resolve().unwrap().config());
}
