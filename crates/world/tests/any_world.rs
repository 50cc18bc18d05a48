//! Whatever is asked for, a world is either refused with a reason or valid.

mod common;

use common::{Generated, conllu, small, tagged};
use proptest::prelude::*;
use terms::Fault;
use world::{
    Affix, DependentSide, DomainConfig, LanguageConfig, MeaningConfig, MorphologyConfig, Script,
    SplitSizes, TreebankSizes, VerbOrder, WordOrderConfig, WorldConfig,
};

fn side() -> impl Strategy<Value = Option<DependentSide>> {
    prop::option::of(prop::sample::select(vec![DependentSide::Before, DependentSide::After]))
}

fn order() -> impl Strategy<Value = WordOrderConfig> {
    let verbs = vec![
        VerbOrder::Svo,
        VerbOrder::Sov,
        VerbOrder::Vso,
        VerbOrder::Vos,
        VerbOrder::Ovs,
        VerbOrder::Osv,
    ];
    let verb = prop::option::of(prop::sample::select(verbs));
    (verb, side(), side(), side(), side(), side(), side()).prop_map(
        |(verb, adjective, adposition, determiner, genitive, relative, negation)| WordOrderConfig {
            verb,
            adjective,
            adposition,
            determiner,
            genitive,
            relative,
            negation,
        },
    )
}

fn morphology() -> impl Strategy<Value = MorphologyConfig> {
    let mark = || prop::option::of(any::<bool>());
    let affix = prop::option::of(prop::sample::select(vec![Affix::Suffix, Affix::Prefix]));
    (mark(), mark(), mark(), mark(), affix).prop_map(|(number, tense, agreement, case, affix)| {
        MorphologyConfig { number, tense, agreement, case, affix }
    })
}

fn language() -> impl Strategy<Value = LanguageConfig> {
    let share = || prop::option::of(-0.05..1.05f64);
    let script = prop::option::of(prop::sample::select(Script::ALL.to_vec()));
    (share(), share(), share(), script, order(), morphology()).prop_map(
        |(distance, anchors, cognates, script, order, morphology)| LanguageConfig {
            distance,
            anchors,
            cognates,
            script,
            order,
            morphology,
            ..Default::default()
        },
    )
}

fn meaning() -> impl Strategy<Value = MeaningConfig> {
    let shape = (60..600usize, 1..30usize, 1..9usize, 1..12usize);
    let dials = (0.0..3.1f64, 0.0..5.0f64, 0.0..1.0f64, 0.0..1.0f64, 0.0..3.0f64);
    (shape, dials).prop_map(|((lemmas, classes, superclasses, topics), dials)| MeaningConfig {
        lemmas,
        classes,
        superclasses,
        topics,
        zipf: dials.0,
        topic_contrast: dials.1,
        recurrence: dials.2,
        off_preference: dials.3,
        class_spread: dials.4,
        ..Default::default()
    })
}

fn domain() -> impl Strategy<Value = DomainConfig> {
    let dials =
        (0.0..=1.0f64, 0.0..=0.9f64, 0.0..=1.0f64, 0.0..=0.5f64, 0.0..=0.5f64, 0.0..=1.0f64);
    (dials, 1..5usize, 0..5usize).prop_map(|(d, least, more)| DomainConfig {
        shift: d.0,
        hidden: d.1,
        adjectives: d.2,
        relatives: d.3,
        genitives: d.4,
        negation: d.5,
        document: [least, least + more],
        ..Default::default()
    })
}

fn config() -> impl Strategy<Value = WorldConfig> {
    let marks = (any::<bool>(), any::<bool>());
    let languages = prop::collection::vec(language(), 1..4);
    (any::<u64>(), marks, meaning(), domain(), languages).prop_map(
        |(seed, (punctuation, capitals), meaning, domain, mut language)| {
            for (own, plain) in language.iter_mut().zip(WorldConfig::plain_languages(4)) {
                own.code = plain.code;
            }
            let first = &mut language[0];
            (first.distance, first.anchors, first.cognates) = (None, None, None);
            WorldConfig {
                seed,
                punctuation,
                capitals,
                meaning,
                domain: vec![domain],
                language,
                sentences: 100,
                tatoeba: 10,
                parallel: SplitSizes { train: 10, dev: 2, test: 0 },
                treebank: TreebankSizes { train: 40, dev: 0, test: 3, parallel: 5 },
                ner: SplitSizes { train: 40, dev: 0, test: 3 },
                nli: SplitSizes { train: 12, dev: 0, test: 3 },
                classify: SplitSizes { train: 12, dev: 0, test: 3 },
                ..small()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_world_is_valid_or_refused(config in config()) {
        let world = match Generated::try_new(config) {
            Ok(world) => world,
            Err(error) => {
                prop_assert!(error.key().is_some_and(|key| !key.is_empty()), "{}", error);
                prop_assert!(error.to_string().contains("; "), "{}", error);
                return Ok(());
            }
        };
        for code in world.codes() {
            let meanings = world.meanings_of(&code);
            let trees = conllu(&world.read(format!("ud/{code}_world-ud-train.conllu")));
            prop_assert_eq!(trees.len(), 40);
            for word in trees.iter().flatten() {
                prop_assert_eq!(meanings[&word.form], meanings[&word.lemma]);
            }
            prop_assert_eq!(tagged(&world.read(format!("ner/panx-train-{code}.tsv"))).len(), 40);
            prop_assert_eq!(world.lines(format!("text/{code}.base.txt")).len(), 100);
            let pairs = world.lines(format!("xnli/train-{code}.tsv"));
            prop_assert!(pairs.len() == 12 && pairs.iter().all(|line| line.split('\t').count() == 3));
            for path in world.paths("classify").iter().filter(|path| path.contains("train")) {
                prop_assert_eq!(world.lines(path).len(), 12);
            }
        }
    }
}
