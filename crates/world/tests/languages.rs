//! Languages are what was asked for: order, shared words, morphology, distance, frequencies.

mod common;

use std::collections::{HashMap, HashSet};

use common::{Generated, Word, conllu, small};
use world::{
    DependentSide, Language, LanguageDistance, Script, VerbOrder, WordOrder, World, WorldConfig,
};

fn treebank(world: &Generated, code: &str) -> Vec<Vec<Word>> {
    conllu(&world.read(format!("ud/{code}_world-ud-train.conllu")))
}

/// How often a relation stands before its head, among verbs or other heads, and how often at all.
fn before(trees: &[Vec<Word>], relation: &str, under_verb: bool) -> (usize, usize) {
    let mut counts = (0, 0);
    for tree in trees {
        for (at, word) in (1..).zip(tree).filter(|(_, word)| word.relation == relation) {
            let head = &tree[word.head - 1];
            // A relative pronoun is placed by its clause, not as other subjects are.
            let relative = word.upos == "PRON" && head.relation == "acl:relcl";
            if (head.upos == "VERB") == under_verb && !relative {
                counts.0 += usize::from(at < word.head);
                counts.1 += 1;
            }
        }
    }
    counts
}

#[test]
fn every_word_order_is_as_asked() {
    let verbs = [
        (VerbOrder::Svo, true, false),
        (VerbOrder::Sov, true, true),
        (VerbOrder::Vso, false, false),
        (VerbOrder::Vos, false, false),
        (VerbOrder::Ovs, false, true),
        (VerbOrder::Osv, true, true),
    ];
    for (verb, subject_before, object_before) in verbs {
        for side in [DependentSide::Before, DependentSide::After] {
            let mut config = small();
            let order = &mut config.language[1].order;
            order.verb = Some(verb);
            order.adjective = Some(side);
            order.adposition = Some(side);
            order.determiner = Some(side);
            order.genitive = Some(side);
            order.relative = Some(side);
            order.negation = Some(side);
            let trees = treebank(&Generated::new(config), "qab");
            let is = |relation, under_verb, wanted: bool| {
                let (count, all) = before(&trees, relation, under_verb);
                assert!(all >= 5, "{relation} is too rare to tell");
                assert_eq!(count, if wanted { all } else { 0 }, "{relation} in {verb:?}, {side:?}");
            };
            is("nsubj", true, subject_before);
            is("obj", true, object_before);
            is("obl:arg", true, object_before);
            is("obl", true, object_before);
            is("advmod", true, side == DependentSide::Before);
            for relation in ["amod", "case", "det", "nmod", "acl:relcl"] {
                is(relation, false, side == DependentSide::Before);
            }
            // Subject and object on the same side of the verb: which is the outer one.
            let outer = trees.iter().flat_map(|tree| {
                let find = |relation| {
                    tree.iter().position(|word| {
                        word.relation == relation && word.head > 0 && tree[word.head - 1].head == 0
                    })
                };
                find("nsubj").zip(find("obj"))
            });
            let subject_first = matches!(verb, VerbOrder::Svo | VerbOrder::Sov | VerbOrder::Vso);
            assert!(outer.into_iter().all(|(s, o)| (s < o) == subject_first), "{verb:?}");
        }
    }
}

fn languages(config: WorldConfig) -> (World, Vec<Language>) {
    let plan = config.resolve().unwrap();
    let world = World::new(&plan);
    let languages = Language::invent(&plan, &world);
    (world, languages)
}

fn vocabulary(world: &World, language: &Language) -> HashMap<String, u32> {
    let forms = |(id, _): (u32, &world::Meaning)| {
        let forms = language.forms(id).into_iter();
        forms.map(move |form| (form.to_owned(), id)).collect::<Vec<_>>()
    };
    (0..).zip(world.meanings()).filter(|(_, m)| m.gloss != ".").flat_map(forms).collect()
}

#[test]
fn exactly_the_anchors_are_shared_and_more_of_them_include_fewer() {
    let mut before = HashSet::new();
    for share in [0.0, 0.1, 0.3, 1.0] {
        let mut config = small();
        config.language = WorldConfig::plain_languages(3);
        config.capitals = true;
        config.language[1].anchors = Some(share);
        config.language[1].script = Some(Script::Han);
        config.language[1].morphology.number = Some(true);
        let (world, languages) = languages(config);
        let [first, second, third] = [0, 1, 2].map(|i| vocabulary(&world, &languages[i]));
        let shared: HashSet<u32> = second
            .iter()
            .filter(|(form, id)| first.get(*form) == Some(id))
            .map(|(_, id)| *id)
            .collect();
        assert_eq!(shared.len(), (share * 180.0) as usize);
        assert!(shared.is_superset(&before));
        assert!(shared.iter().all(|&id| languages[1].is_anchor(id)));
        let accident = |form: &String, id: &u32| first.get(form).is_some_and(|other| other != id);
        assert!(second.iter().all(|(form, id)| !accident(form, id)), "a form with two meanings");
        assert!(third.keys().all(|form| !first.contains_key(form) && !second.contains_key(form)));
        before = shared;
    }
}

#[test]
fn languages_in_two_scripts_share_no_character() {
    for script in [Script::Cyrillic, Script::Greek, Script::Hangul, Script::Han] {
        let mut config = small();
        config.punctuation = true;
        config.language[1].script = Some(script);
        let world = Generated::new(config);
        let letters = |code: &str| -> HashSet<char> {
            world
                .read(format!("text/{code}.base.txt"))
                .chars()
                .filter(|c| !c.is_whitespace())
                .collect()
        };
        assert!(letters("qaa").is_disjoint(&letters("qab")), "{script:?}");
    }
}

/// How much of the first language's two-letter sequences the word for the same meaning keeps.
fn likeness(world: &World, languages: &[Language]) -> f64 {
    let pairs =
        |word: &str| -> HashSet<(char, char)> { word.chars().zip(word.chars().skip(1)).collect() };
    let one = |id: u32| {
        let [a, b] = [0, 1].map(|i: usize| pairs(languages[i].lemma(id)));
        a.intersection(&b).count() as f64 / a.union(&b).count().max(1) as f64
    };
    (0..world.meanings().len() as u32).map(one).sum::<f64>() / world.meanings().len() as f64
}

#[test]
fn distance_moves_everything_one_way() {
    let mut last: Option<(f64, f64, usize, usize)> = None;
    for tenths in 0..=10 {
        let distance = f64::from(tenths) / 10.0;
        let mut config = small();
        config.language[1].distance = Some(distance);
        let (world, pair) = languages(config.clone());
        let anchors =
            (0..world.meanings().len() as u32).filter(|&id| pair[1].is_anchor(id)).count();
        let alike = likeness(&world, &pair);
        let generated = Generated::new(config);
        let [first, second] = ["qaa", "qab"]
            .map(|code| conllu(&generated.read(format!("ud/{code}_pud-ud-test.conllu"))));
        let flipped: usize =
            ["nsubj", "obj", "obl", "amod", "case", "det", "nmod", "acl:relcl", "advmod"]
                .iter()
                .map(|relation| {
                    [false, true].map(|v| {
                        before(&first, relation, v).0.abs_diff(before(&second, relation, v).0)
                    })
                })
                .map(|[a, b]| a + b)
                .sum();
        let forms = vocabulary(&world, &pair[1]).len();
        if let Some((more_anchors, more_alike, fewer_flipped, fewer_forms)) = last {
            assert!(anchors as f64 <= more_anchors, "anchors at {distance}");
            assert!(
                alike <= more_alike + 0.01,
                "likeness at {distance}: {alike} after {more_alike}"
            );
            assert!(
                flipped >= fewer_flipped,
                "order at {distance}: {flipped} after {fewer_flipped}"
            );
            assert!(forms >= fewer_forms, "morphology at {distance}");
        }
        last = Some((anchors as f64, alike, flipped, forms));
        if tenths == 0 {
            assert_eq!((anchors, flipped), (180, 0));
            assert!(alike > 0.9, "{alike}");
        }
        if tenths == 10 {
            assert_eq!((anchors, alike), (0, 0.0));
            assert!(flipped > 300, "{flipped}");
        }
    }
}

#[test]
fn every_key_wins_over_the_dial() {
    let mut config = small();
    config.language[1].distance = Some(1.0);
    config.language[1].anchors = Some(0.2);
    config.language[1].script = Some(Script::Latin);
    config.language[1].order.adjective = Some(DependentSide::Before);
    config.language[1].morphology.case = Some(false);
    let plan = config.resolve().unwrap();
    let own = &plan.languages()[1];
    assert_eq!((own.anchors, own.script), (0.2, Script::Latin));
    let far = LanguageDistance::new(1.0);
    assert_eq!(
        own.order,
        WordOrder { adjective: DependentSide::Before, ..far.order(WordOrder::default()) }
    );
    assert!(!own.morphology.case && own.morphology.number);
}

#[test]
fn frequencies_fall_as_zipf_has_it() {
    let mut config = small();
    config.sentences = 20_000;
    let world = Generated::new(config);
    let mut counts: HashMap<&str, f64> = HashMap::new();
    let text = world.read("text/qaa.base.txt");
    text.split_whitespace().for_each(|word| *counts.entry(word).or_default() += 1.0);
    let mut counts: Vec<f64> = counts.into_values().collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    assert!(counts.len() > 180, "{}", counts.len());
    let points: Vec<(f64, f64)> = (1..)
        .zip(&counts)
        .take(120)
        .map(|(rank, count)| ((rank as f64).ln(), count.ln()))
        .collect();
    let mean =
        |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let slope = mean(&|p| (p.0 - x) * (p.1 - y)) / mean(&|p| (p.0 - x).powi(2));
    assert!((-1.3..-0.6).contains(&slope), "{slope}");
}

#[test]
fn corpora_are_independent_and_documents_keep_their_cast() {
    let mut config = small();
    config.sentences = 20_000;
    let world = Generated::new(config);
    let [first, second] = ["qaa", "qab"].map(|code| {
        let meanings = world.meanings_of(code);
        let line =
            |line: String| -> Vec<usize> { line.split(' ').map(|word| meanings[word]).collect() };
        let lines = world.lines(format!("text/{code}.base.txt"));
        lines.into_iter().map(line).collect::<Vec<_>>()
    });
    let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    assert!(same < 60, "{same} of 20000 lines say the same");
    let runs: HashSet<&[Vec<usize>]> = first.windows(3).collect();
    let common = second.windows(3).filter(|run| runs.contains(run)).count();
    assert!(common < 20, "{common} runs of three sentences are in both");

    // Neighbouring sentences share far more content words than distant ones.
    let content = |line: &Vec<usize>| -> HashSet<usize> {
        line.iter().copied().filter(|&id| ["NOUN", "PROPN"].contains(&world.upos(id))).collect()
    };
    let sets: Vec<HashSet<usize>> = first.iter().map(content).collect();
    let share = |gap: usize| {
        let pairs = sets.iter().zip(&sets[gap..]);
        pairs.filter(|(a, b)| !a.is_disjoint(b)).count() as f64 / (sets.len() - gap) as f64
    };
    assert!(share(1) > 1.5 * share(100), "{} {}", share(1), share(100));
}

#[test]
fn domains_differ_in_topics_words_and_style() {
    let mut config = small();
    config.sentences = 10_000;
    config.domain.push(world::DomainConfig {
        name: "other".into(),
        shift: 1.0,
        hidden: 0.3,
        adjuncts: 0.9,
        ..Default::default()
    });
    config.language[0].domains = Some(vec!["base".into(), "other".into()]);
    let world = Generated::new(config);
    let counts = |domain: &str| -> HashMap<String, f64> {
        let text = world.read(format!("text/qaa.{domain}.txt"));
        let mut counts = HashMap::new();
        text.split_whitespace().for_each(|word| *counts.entry(word.to_owned()).or_default() += 1.0);
        counts
    };
    let (base, other) = (counts("base"), counts("other"));
    assert!(other.values().sum::<f64>() > 1.15 * base.values().sum::<f64>(), "longer sentences");
    let gone = base.keys().filter(|word| !other.contains_key(*word)).count();
    assert!((20..90).contains(&gone), "{gone} of {} words are hidden", base.len());
}

/// A sentence can be read by its gloss: every meaning has an English lemma of its own, in worlds of any size.
#[test]
fn meanings_have_lemmas_of_their_own() {
    for (lemmas, classes, superclasses) in [(200, 12, 6), (3000, 60, 20), (120, 3, 2)] {
        let mut config = WorldConfig::default().with_defaults();
        (config.meaning.lemmas, config.meaning.classes) = (lemmas, classes);
        config.meaning.superclasses = superclasses;
        let world = World::new(&config.resolve().unwrap());
        let glosses: HashSet<&str> = world.meanings().iter().map(|m| m.gloss.as_str()).collect();
        assert_eq!(glosses.len(), world.meanings().len(), "{lemmas} lemmas");
        assert!(["fox", "see", "Oslo"].iter().all(|lemma| glosses.contains(lemma)), "{glosses:?}");
        assert!(glosses.iter().all(|gloss| !gloss.contains(char::is_whitespace)));
    }
}
