//! Inference labels follow from the meaning of both sentences, and not from one of them.

mod common;

use std::collections::{HashMap, HashSet};

use common::{Generated, small};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use world::SplitSizes;

/// A noun phrase as read from text.
#[derive(Clone, Debug, PartialEq)]
struct Phrase {
    adposition: Option<usize>,
    determiner: Option<usize>,
    adjective: Option<usize>,
    /// A noun, or the words of a name.
    core: Vec<usize>,
}

/// A sentence of the fragment as read from text in subject, verb, object order.
#[derive(Clone, Debug)]
struct Claim {
    subject: Phrase,
    negated: bool,
    verb: usize,
    rest: Vec<Phrase>,
}

struct Reader<'a> {
    world: &'a Generated,
    meanings: HashMap<String, usize>,
}

/// Ids of function words.
const ALL: usize = 2;
const SOME: usize = 3;
const NO: usize = 4;

impl Reader<'_> {
    fn claim(&self, text: &str) -> Claim {
        let mut words = text.split(' ').map(|word| self.meanings[word]).peekable();
        let subject = self.phrase(&mut words);
        let negated = words.next_if(|&id| self.world.upos(id) == "PART").is_some();
        let verb = words.next().unwrap();
        assert_eq!(self.world.upos(verb), "VERB", "{text}");
        let mut rest = Vec::new();
        while words.peek().is_some() {
            rest.push(self.phrase(&mut words));
        }
        Claim { subject, negated, verb, rest }
    }

    fn phrase(&self, words: &mut std::iter::Peekable<impl Iterator<Item = usize>>) -> Phrase {
        let mut take = |upos: &str| words.next_if(|&id| self.world.upos(id) == upos);
        let (adposition, determiner, adjective) = (take("ADP"), take("DET"), take("ADJ"));
        let mut core: Vec<usize> = take("NOUN").into_iter().collect();
        while core.is_empty() || determiner.is_none() {
            let Some(part) = take("PROPN") else { break };
            core.push(part);
        }
        assert!(!core.is_empty());
        Phrase { adposition, determiner, adjective, core }
    }

    fn narrower(&self, a: &Phrase, b: &Phrase) -> bool {
        let nouns = match (a.determiner, b.determiner) {
            (Some(_), Some(_)) => self.world.ancestry(a.core[0]).contains(&b.core[0]),
            _ => a.core == b.core,
        };
        a.adposition == b.adposition
            && nouns
            && (b.adjective.is_none() || a.adjective == b.adjective)
    }

    /// Every argument of the wider deed is there in the narrower one; arguments come before adjuncts.
    fn deed_narrower(&self, a: &Claim, b: &Claim) -> bool {
        a.rest.len() >= b.rest.len() && a.rest.iter().zip(&b.rest).all(|(a, b)| self.narrower(a, b))
    }

    /// The oracle: positions that a quantifier or a negation turns around are compared the other way.
    fn label(&self, premise: &Claim, hypothesis: &Claim) -> &'static str {
        assert_eq!(premise.verb, hypothesis.verb);
        let forth = self.deed_narrower(premise, hypothesis);
        let back = self.deed_narrower(hypothesis, premise);
        let (a, b) = (&premise.subject, &hypothesis.subject);
        let (a_in_b, b_in_a) = (self.narrower(a, b), self.narrower(b, a));
        let entails = match (a.determiner, b.determiner) {
            (None, None) if premise.negated && hypothesis.negated => a == b && back,
            (None, None) if !premise.negated && !hypothesis.negated => a == b && forth,
            (Some(ALL), Some(ALL)) => b_in_a && forth,
            (Some(SOME), Some(SOME)) => a_in_b && forth,
            (Some(NO), Some(NO)) => b_in_a && back,
            (Some(ALL), Some(SOME)) => (a_in_b || b_in_a) && forth,
            _ => false,
        };
        let excludes = match (a.determiner, b.determiner) {
            (None, None) if premise.negated && !hypothesis.negated => a == b && back,
            (None, None) if !premise.negated && hypothesis.negated => a == b && forth,
            (Some(SOME), Some(NO)) => a_in_b && forth,
            (Some(NO), Some(SOME)) => b_in_a && back,
            (Some(ALL), Some(NO)) => (a_in_b || b_in_a) && forth,
            (Some(NO), Some(ALL)) => (a_in_b || b_in_a) && back,
            _ => false,
        };
        match (entails, excludes) {
            (true, _) => "entailment",
            (_, true) => "contradiction",
            _ => "neutral",
        }
    }
}

fn items(world: &Generated, split: &str, code: &str) -> Vec<[String; 3]> {
    let lines = world.lines(format!("xnli/{split}-{code}.tsv")).into_iter();
    let item = |line: String| {
        let columns: Vec<String> = line.split('\t').map(str::to_owned).collect();
        columns.try_into().unwrap_or_else(|_| panic!("not three columns: {line}"))
    };
    lines.map(item).collect()
}

fn large() -> Generated {
    let mut config = small();
    config.nli = SplitSizes { train: 12_000, dev: 300, test: 3000 };
    Generated::new(config)
}

#[test]
fn an_oracle_that_reads_both_sentences_is_always_right() {
    let world = large();
    let reader = Reader { meanings: world.meanings_of("qaa"), world: &world };
    let mut counts: HashMap<String, usize> = HashMap::new();
    for [premise, hypothesis, label] in items(&world, "test", "qaa") {
        assert_ne!(premise, hypothesis);
        let found = reader.label(&reader.claim(&premise), &reader.claim(&hypothesis));
        assert_eq!(found, label, "{premise} / {hypothesis}");
        *counts.entry(label).or_default() += 1;
    }
    assert!(counts.values().all(|&count| count == 1000), "{counts:?}");
}

/// A small situation in which a claim is true or not: some things, and who did the deed to what.
struct Situation {
    /// What each thing is and what it is like.
    things: Vec<(Vec<usize>, HashSet<usize>)>,
    deeds: Vec<Deed>,
}

/// Who did it, and to or at what, each with its adposition.
struct Deed {
    agent: Being,
    places: Vec<(Option<usize>, Being)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Being {
    Thing(usize),
    Named(Vec<usize>),
}

impl Situation {
    /// At random, but with a thing for each phrase, and deeds that often fit.
    fn random(reader: &Reader<'_>, claims: [&Claim; 2], rng: &mut ChaCha8Rng) -> Self {
        let phrases = || claims.into_iter().flat_map(|c| c.rest.iter().chain([&c.subject]));
        let kinds: Vec<&Phrase> = phrases().filter(|phrase| phrase.determiner.is_some()).collect();
        let mut things: Vec<(Vec<usize>, HashSet<usize>)> = Vec::new();
        for phrase in &kinds {
            let nature = reader.world.ancestry(phrase.core[0]);
            let qualities = kinds.iter().filter_map(|kind| kind.adjective);
            let chance: f64 = rng.random();
            let mut own: HashSet<usize> =
                qualities.filter(|_| rng.random::<f64>() < chance).collect();
            own.extend(phrase.adjective);
            things.push((nature, own));
        }
        let mut beings: Vec<Being> = (0..things.len()).map(Being::Thing).collect();
        let names = phrases().filter(|phrase| phrase.determiner.is_none());
        beings.extend(names.map(|name| Being::Named(name.core.clone())));
        let density: f64 = rng.random();
        let mut deeds = Vec::new();
        for agent in &beings {
            while rng.random::<f64>() < density * 0.8 {
                let pattern = &claims[rng.random_range(0..2)].rest;
                let place = |phrase: &Phrase| {
                    (phrase.adposition, beings[rng.random_range(0..beings.len())].clone())
                };
                let places = pattern.iter().map(place).collect();
                deeds.push(Deed { agent: agent.clone(), places });
            }
        }
        Self { things, deeds }
    }

    fn is(&self, being: &Being, phrase: &Phrase) -> bool {
        match being {
            Being::Named(name) => phrase.determiner.is_none() && *name == phrase.core,
            Being::Thing(at) => {
                let (nature, qualities) = &self.things[*at];
                phrase.determiner.is_some()
                    && nature.contains(&phrase.core[0])
                    && phrase.adjective.is_none_or(|adjective| qualities.contains(&adjective))
            }
        }
    }

    fn did(&self, being: &Being, claim: &Claim) -> bool {
        self.deeds.iter().any(|Deed { agent, places }| {
            let fits = |((adposition, thing), phrase): (&(Option<usize>, Being), &Phrase)| {
                *adposition == phrase.adposition && self.is(thing, phrase)
            };
            agent == being
                && places.len() >= claim.rest.len()
                && places.iter().zip(&claim.rest).all(fits)
        })
    }

    fn makes_true(&self, claim: &Claim) -> bool {
        let subject = &claim.subject;
        let all = (0..self.things.len()).map(Being::Thing);
        let mut them = all.filter(|being| self.is(being, subject));
        match subject.determiner {
            None => self.did(&Being::Named(subject.core.clone()), claim) != claim.negated,
            Some(ALL) => them.all(|being| self.did(&being, claim)),
            Some(SOME) => them.any(|being| self.did(&being, claim)),
            Some(NO) => !them.any(|being| self.did(&being, claim)),
            Some(other) => panic!("{other} is no quantifier"),
        }
    }
}

/// Independent of any rule of inference: what a label says must hold in thousands of situations.
#[test]
fn labels_hold_in_every_situation() {
    let world = large();
    let reader = Reader { meanings: world.meanings_of("qaa"), world: &world };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut told_apart, mut all) = (0, 0);
    for [premise, hypothesis, label] in items(&world, "dev", "qaa") {
        let [p, h] = [&premise, &hypothesis].map(|text| reader.claim(text));
        let (mut both, mut only_premise) = (0, 0);
        for _ in 0..2000 {
            let situation = Situation::random(&reader, [&p, &h], &mut rng);
            if situation.makes_true(&p) {
                *if situation.makes_true(&h) { &mut both } else { &mut only_premise } += 1;
            }
        }
        let fits = match label.as_str() {
            "entailment" => only_premise == 0,
            "contradiction" => both == 0,
            _ => true,
        };
        assert!(fits, "{label}: {premise} / {hypothesis}: {both} {only_premise}");
        let seen = match label.as_str() {
            "entailment" => both > 0,
            "contradiction" => only_premise > 0,
            _ => both > 0 && only_premise > 0,
        };
        told_apart += usize::from(seen);
        all += 1;
    }
    assert!(told_apart * 100 >= all * 97, "{told_apart} of {all} labels have a witness");
}

#[test]
fn line_i_is_the_same_item_in_every_language_and_no_hypothesis_is_in_two_parts() {
    let mut config = small();
    config.language[1].distance = Some(0.8);
    let world = Generated::new(config);
    let sorted = |code: &str, text: &str, meanings: &HashMap<String, usize>| -> Vec<usize> {
        let mut ids: Vec<usize> = text.split(' ').map(|word| meanings[word]).collect();
        ids.sort_unstable();
        assert!(!ids.is_empty(), "{code}");
        ids
    };
    let (first, second) = (world.meanings_of("qaa"), world.meanings_of("qab"));
    let mut hypotheses = HashSet::new();
    for (split, size) in [("train", 300), ("dev", 30), ("test", 60)] {
        let (a, b) = (items(&world, split, "qaa"), items(&world, split, "qab"));
        assert_eq!((a.len(), b.len()), (size, size));
        for (a, b) in a.iter().zip(&b) {
            assert_eq!(a[2], b[2]);
            for side in 0..2 {
                assert_eq!(sorted("qaa", &a[side], &first), sorted("qab", &b[side], &second));
            }
            assert!(hypotheses.insert(a[1].clone()));
        }
    }
}

/// Softmax regression over bags of features, trained by plain stochastic gradient descent.
struct Regression {
    index: HashMap<String, usize>,
    weights: Vec<[f64; 3]>,
}

impl Regression {
    fn train(data: &[(Vec<String>, usize)]) -> Self {
        let mut index = HashMap::new();
        for feature in data.iter().flat_map(|(features, _)| features) {
            let next = index.len();
            index.entry(feature.clone()).or_insert(next);
        }
        let mut model = Self { weights: vec![[0.0; 3]; index.len()], index };
        for epoch in 0..8 {
            let rate = 0.2 / f64::from(1 + epoch);
            for (features, label) in data {
                let chances = model.chances(features);
                for at in features.iter().filter_map(|feature| model.index.get(feature)) {
                    for (class, weight) in model.weights[*at].iter_mut().enumerate() {
                        let target = if class == *label { 1.0 } else { 0.0 };
                        *weight += rate * (target - chances[class]) - rate * 1e-4 * *weight;
                    }
                }
            }
        }
        model
    }

    fn chances(&self, features: &[String]) -> [f64; 3] {
        let mut scores = [0.0; 3];
        for at in features.iter().filter_map(|feature| self.index.get(feature)) {
            scores.iter_mut().zip(&self.weights[*at]).for_each(|(score, weight)| *score += weight);
        }
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let powers = scores.map(|score| (score - top).exp());
        powers.map(|power| power / powers.iter().sum::<f64>())
    }

    fn accuracy(&self, data: &[(Vec<String>, usize)]) -> f64 {
        let right = |(features, label): &&(Vec<String>, usize)| {
            let chances = self.chances(features);
            (0..3).all(|class| chances[class] <= chances[*label])
        };
        data.iter().filter(right).count() as f64 / data.len() as f64
    }
}

fn bag(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let pairs = words.windows(2).map(|pair| pair.join("_"));
    words.iter().map(|word| (*word).to_owned()).chain(pairs).chain(["bias".into()]).collect()
}

/// What was added and what was taken away, with the words around it: enough to learn something from.
fn difference(premise: &str, hypothesis: &str) -> Vec<String> {
    let set = |text: &str| -> HashSet<String> { text.split(' ').map(str::to_owned).collect() };
    let (p, h) = (set(premise), set(hypothesis));
    let gone = p.difference(&h).map(|word| format!("-{word}"));
    let new = h.difference(&p).map(|word| format!("+{word}"));
    gone.chain(new).chain(["bias".into()]).collect()
}

#[test]
fn the_hypothesis_alone_says_nothing() {
    let world = large();
    let class =
        |label: &str| ["entailment", "neutral", "contradiction"].iter().position(|l| *l == label);
    let accuracy = |features: &dyn Fn(&[String; 3]) -> Vec<String>| {
        let data = |split: &str| -> Vec<(Vec<String>, usize)> {
            let items = items(&world, split, "qaa");
            items.iter().map(|item| (features(item), class(&item[2]).unwrap())).collect()
        };
        Regression::train(&data("train")).accuracy(&data("test"))
    };
    let hypothesis = accuracy(&|item| bag(&item[1]));
    let premise = accuracy(&|item| bag(&item[0]));
    let both = accuracy(&|item| difference(&item[0], &item[1]));
    println!("hypothesis {hypothesis:.3}, premise {premise:.3}, difference of both {both:.3}");
    assert!(hypothesis < 0.37, "hypothesis alone: {hypothesis}");
    assert!(premise < 0.50, "premise alone: {premise}");
    assert!(both > 0.55, "the learner learns nothing at all: {both}");
}
