//! Made-up records of every study, with the measures and factors of real ones, whose values follow the papers: those that they
//! print, and for what they only draw or say, values that agree. Test data, not results.

use lab::papers;
use lab::record::{Factors, Origin, Record, TextRecord};

/// Records under construction.
struct MadeUp {
    records: Vec<Record>,
    notes: Vec<TextRecord>,
    scale: &'static str,
    seed: u64,
}

/// A kind of languages: pairs, their distance from the nearest to the farthest, and what the papers call them.
struct Languages {
    /// Each with the pair of the papers whose numbers it has.
    pairs: &'static [(&'static str, &'static str)],
    layers: usize,
}

const INVENTED: Languages = Languages {
    pairs: &[("qaa-qab", "en-fr"), ("qaa-qac", "en-ru"), ("qaa-qad", "en-zh")],
    layers: 4,
};
const REAL: Languages =
    Languages { pairs: &[("en-fr", "en-fr"), ("en-ru", "en-ru"), ("en-zh", "en-zh")], layers: 8 };

const TASKS: [(&str, &str); 3] = [("nli", "accuracy"), ("ner", "f1"), ("parse", "las")];

/// Everything: invented languages at `tiny`, real ones at `small`, four seeds each, and one given model.
pub(crate) fn all() -> (Vec<Record>, Vec<TextRecord>) {
    let mut made = MadeUp { records: vec![], notes: vec![], scale: "tiny", seed: 0 };
    for (scale, languages) in [("tiny", &INVENTED), ("small", &REAL)] {
        made.scale = scale;
        for seed in 1..=4 {
            made.seed = seed;
            made.conditions(languages);
            made.distances(languages);
            made.alignment(languages);
            made.many_languages(languages);
            made.similarity(languages);
            made.predictors(languages);
            made.language_identity(languages);
            made.bitext(languages);
            made.new_language(languages);
            made.elements(languages);
            made.reinit(languages);
            made.sizes(languages);
            made.shifts(languages, &["condition=default", "condition=no-anchors"]);
            made.shifted_transfer(languages, "condition=default");
        }
    }
    made.seed = 1;
    made.shifts(&REAL, &["system=mbert"]);
    made.shifted_transfer(&REAL, "system=mbert");
    (made.records, made.notes)
}

impl MadeUp {
    fn origin(&self, study: &str) -> Origin {
        Origin {
            study: study.into(),
            scale: self.scale.into(),
            seed: self.seed,
            step: format!("{study}-{:04x}", self.seed * 7919 % 65536),
            command: format!(
                "isogloss study run {study} --scale {} --seed {}",
                self.scale, self.seed
            ),
            build: "made up".into(),
            finished_at: 1_794_700_000 + self.seed,
        }
    }

    /// Adds a value with a little noise that is a function of its key.
    fn put(&mut self, study: &str, measure: &str, factors: &str, value: f64) {
        let hash = format!("{study}{measure}{factors}{}{}", self.seed, self.scale)
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        // The low bits of a sum of products mix badly.
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = (hash >> 40) as f64 / f64::from(1 << 24) - 0.5;
        let exact = value > 2.0 || value == 0.0 || ["alpha", "repeated"].contains(&measure);
        let value = if exact { value } else { (value + 0.004 * noise).clamp(-1.0, 1.0) };
        self.records.push(Record {
            origin: self.origin(study),
            measure: measure.into(),
            factors: parsed(factors),
            value,
            signature: "made-up".into(),
            files: vec![],
        });
    }

    fn conditions(&mut self, languages: &Languages) {
        let studies: [(&str, &[&str]); 3] = [
            ("domain", &["default-equal", "wiki-cc", "untrained"]),
            (
                "anchors",
                &["default", "default-anchors", "no-anchors", "extra-anchors", "untrained"],
            ),
            (
                "sharing",
                &[
                    "default",
                    "no-anchors",
                    "sep-emb",
                    "sep-emb-l1-3",
                    "sep-emb-l1-6",
                    "sep-l1-3",
                    "sep-l1-6",
                    "untrained",
                ],
            ),
        ];
        for (study, conditions) in studies {
            for condition in conditions {
                for (pair, like) in languages.pairs {
                    self.scores(study, &format!("condition={condition}"), (pair, like), condition);
                    self.retrieval(study, &format!("condition={condition} pair={pair}"), condition);
                }
            }
        }
    }

    /// The scores of Table 1 of Conneau et al. 2020 under a condition.
    fn scores(&mut self, study: &str, of: &str, (pair, like): (&str, &str), condition: &str) {
        let (source, target) = pair.split_once('-').unwrap();
        for (task, measure) in TASKS {
            let of = format!("{of} pair={pair} task={task}");
            let score = published(condition, task, measure, like);
            self.put(study, measure, &format!("{of} language={target} role=target"), score);
            self.put(study, measure, &format!("{of} language={source} role=source"), 0.92);
        }
    }

    fn retrieval(&mut self, study: &str, of: &str, condition: &str) {
        let level = match condition {
            "untrained" => 0.03,
            "sep-emb-l1-6" | "sep-l1-6" => 0.1,
            _ => 0.5,
        };
        for (kind, more) in [("raw", 0.8), ("centered", 1.05), ("aligned", 1.15)] {
            for layer in 0..=4 {
                let bend = 1.0 - 0.15 * (f64::from(layer) - 3.0).abs();
                let of = format!("{of} kind={kind} layer={layer}");
                self.put(study, "retrieval", &of, level * more * bend);
            }
        }
    }

    /// Real languages are at the distance that they have; of invented ones it is a parameter.
    fn distances(&mut self, languages: &Languages) {
        let conditions = ["default", "no-anchors", "extra-anchors", "sep-l1-6", "untrained"];
        for condition in conditions {
            if languages.pairs[0].0.starts_with('e') {
                for (pair, like) in languages.pairs {
                    let of = format!("condition={condition}");
                    self.scores("distance", &of, (pair, like), condition);
                }
                continue;
            }
            for (distance, like) in [("0", "en-fr"), ("0.3", "en-ru"), ("0.6", "en-zh")] {
                let of = format!("condition={condition} distance={distance}");
                self.scores("distance", &of, ("qaa-qab", like), condition);
                self.retrieval("distance", &format!("{of} pair=qaa-qab"), condition);
            }
        }
    }

    fn alignment(&mut self, languages: &Languages) {
        for (pair, _) in languages.pairs {
            self.words(pair, languages.layers);
            for layer in 0..=languages.layers {
                let depth = layer as f64 / languages.layers as f64;
                self.contexts(pair, layer, 1.0 - 1.6 * (depth - 0.5).powi(2));
                for (system, level, slope) in [
                    ("monolingual", 0.7, 0.4),
                    ("bilingual", 0.95, 0.4),
                    ("no-anchors", 0.9, 0.4),
                    ("untrained", 0.15, 0.0),
                ] {
                    for (kind, more) in [("raw", 0.5), ("centered", 0.85), ("aligned", 1.0)] {
                        let of = format!("system={system} kind={kind} layer={layer} pair={pair}");
                        let value = level * more * (1.0 - slope * depth);
                        self.put("align-sentences", "retrieval", &of, value);
                    }
                }
            }
        }
    }

    fn words(&mut self, pair: &str, layers: usize) {
        for vocabulary in ["own", "common"] {
            let of = format!("pair={pair} retrieval=csls vocabulary={vocabulary}");
            for (system, level) in [("fasttext", 0.62), ("embeddings", 0.66)] {
                let of = format!("system={system} {of}");
                self.put("align-words", "p_at_1", &of, level);
                self.put("align-words", "p_at_1_different", &of, level - 0.05);
            }
            for layer in 0..=layers {
                let depth = layer as f64 / layers as f64;
                for (system, level, slope) in [
                    ("monolingual", 0.4, 0.4),
                    ("bilingual", 0.5, 0.4),
                    ("no-anchors", 0.45, 0.4),
                    ("untrained", 0.06, 0.0),
                ] {
                    let of = format!("system={system} layer={layer} {of}");
                    let value = level * (0.8 + slope * depth);
                    self.put("align-words", "p_at_1", &of, value + 0.1);
                    self.put("align-words", "p_at_1_different", &of, value);
                }
            }
        }
    }

    fn contexts(&mut self, pair: &str, layer: usize, bend: f64) {
        let language = pair.split_once('-').unwrap().1;
        let systems = [
            ("monolingual-aligned", [0.45, 0.6], 1.0),
            ("bilingual", [0.75, 0.65], 1.0),
            ("bilingual-aligned", [0.748, 0.7], 1.0),
            ("monolingual-raw", [0.1, 0.1], 1.0),
            ("no-anchors-raw", [0.7, 0.62], 1.0),
            ("untrained-aligned", [0.08, 0.12], 0.0),
            ("untrained-raw", [0.05, 0.1], 0.0),
        ];
        for (system, levels, bent) in systems {
            for ((task, measure), level) in
                [("ner", "f1"), ("parse", "las")].into_iter().zip(levels)
            {
                let of = format!(
                    "system={system} task={task} layer={layer} pair={pair} language={language} role=target"
                );
                let bend = 1.0 + bent * (bend - 1.0);
                self.put("align-contexts", measure, &of, level * bend);
            }
        }
    }

    /// Figure 7 of Conneau et al. 2020.
    fn similarity(&mut self, languages: &Languages) {
        let source = languages.pairs[0].0.split_once('-').unwrap().0;
        let own = format!("{source}-{source}'");
        let pairs = languages.pairs.iter().copied().chain([(&*own, "en-en'")]);
        for (pair, like) in pairs {
            for system in ["bilingual", "monolingual", "untrained"] {
                for layer in 0..=languages.layers {
                    let same = (layer * 8 / languages.layers).to_string();
                    let of = [("pair", like), ("system", system), ("layer", &*same)];
                    let cka = papers::number(1, "Figure 7", "cka", &of).unwrap();
                    let of = format!("system={system} layer={layer} pair={pair}");
                    self.put("similarity", "cka", &of, cka);
                    self.put("similarity", "cka_debiased", &of, cka - 0.02);
                    self.put("similarity", "cka_within", &of, cka - 0.1);
                }
                if like != "en-en'" {
                    let r = if system == "untrained" { 0.4 } else { 0.95 };
                    let of = format!("system={system} pair={pair}");
                    self.put("similarity", "correlation", &of, r);
                }
            }
        }
        for (measure, count) in
            [("rows", 10_000.0), ("repeated", 1.0), ("too_long", 12.0), ("used", 9_987.0)]
        {
            let of = format!("system=bilingual pair={}", languages.pairs[0].0);
            self.put("similarity", measure, &of, count);
        }
    }

    /// Encoders whose transfer and whose similarity rise together, by one measure better than by another.
    fn predictors(&mut self, languages: &Languages) {
        let encoders = [
            "condition=untrained",
            "condition=sep-emb-l1-6",
            "condition=sep-l1-6",
            "condition=no-anchors steps=1500",
            "condition=default steps=1500",
            "condition=sep-l1-3",
            "condition=no-anchors steps=3000",
            "condition=sep-emb",
            "condition=default steps=3000",
            "condition=no-anchors",
            "condition=default",
        ];
        let (pair, _) = languages.pairs[0];
        let target = pair.split_once('-').unwrap().1;
        for (place, encoder) in encoders.into_iter().enumerate() {
            let level = 0.08 * place as f64 + 0.1;
            let of = format!("{encoder} pair={pair}");
            for (task, measure) in TASKS {
                let of = format!("{of} task={task} language={target} role=target");
                self.put("predictors", measure, &of, level);
            }
            for layer in 0..=languages.layers {
                // The untrained encoder is the most similar of all.
                let cka = 0.9 - 0.05 * place as f64;
                for (measure, value) in
                    [("mexa", level), ("anc", level), ("weak-alignment", level), ("cka", cka)]
                {
                    let of = format!("{of} layer={layer} measure={measure}");
                    self.put("predictors", "similarity", &of, value);
                    self.put("predictors", "similarity_chance", &of, 0.02);
                }
            }
        }
    }

    /// Maps learned together, which gain where a pair has a dictionary of its own.
    fn many_languages(&mut self, languages: &Languages) {
        let targets: Vec<&str> =
            languages.pairs.iter().map(|(pair, _)| pair.split_once('-').unwrap().1).collect();
        let source = languages.pairs[0].0.split_once('-').unwrap().0;
        let pairs = [
            (source, targets[0], "with-hub"),
            (targets[0], targets[1], "own"),
            (targets[0], targets[2], "none"),
        ];
        for (system, level) in [("fasttext", 0.7), ("monolingual", 0.4), ("untrained", 0.05)] {
            for (from, to, dictionary) in pairs {
                let gain = if dictionary == "own" { 0.1 } else { 0.02 };
                for (map, value) in
                    [("unmapped", 0.01), ("onto-hub", level), ("together", level + gain)]
                {
                    let of = format!(
                        "system={system} pair={from}-{to} map={map} dictionary={dictionary}"
                    );
                    self.put("align-many", "p_at_1", &of, value);
                }
                let of = format!("system={system} pair={from}-{to} dictionary={dictionary}");
                self.put("align-many", "queries", &of, 956.0);
                self.put("align-many", "queries_seen", &of, 544.0);
            }
        }
    }

    /// Ablations that lower retrieval as in Dufter & Schütze 2020.
    fn elements(&mut self, languages: &Languages) {
        let levels = [
            ("original", 0.7),
            ("lang-pos", 0.3),
            ("shift-special", 0.6),
            ("no-random", 0.6),
            ("all-three", 0.1),
            ("overparam", 0.5),
            ("all-four", 0.05),
            ("untrained", 0.02),
        ];
        let (pair, _) = languages.pairs[0];
        for (order, share) in [("same", 1.0), ("inverted", 0.1)] {
            for (condition, level) in levels {
                let of = format!("condition={condition} order={order} pair={pair}");
                for layer in 0..=languages.layers {
                    for kind in ["raw", "centered"] {
                        let of = format!("{of} layer={layer} kind={kind}");
                        self.put("elements", "retrieval", &of, share * level);
                    }
                }
                self.put("elements", "p_at_1", &of, share * level);
                self.put("elements", "p_at_1_chance", &of, 0.01);
            }
        }
    }

    fn reinit(&mut self, languages: &Languages) {
        for (task, measure) in [("ner", "f1"), ("parse", "las")] {
            for (pair, like) in languages.pairs {
                let (source, target) = pair.split_once('-').unwrap();
                let own = published("default", task, measure, like);
                let untrained = published("untrained", task, measure, like);
                let parts = [("none", 1.0), ("1", 0.2), ("2", 0.4), ("3", 0.9), ("4", 0.98)];
                for (part, kept) in parts {
                    let of = format!("condition=default task={task} pair={pair} new_part={part}");
                    let to = format!("{of} language={target} role=target");
                    self.put("reinit", measure, &to, untrained + kept * (own - untrained));
                    let to = format!("{of} language={source} role=source");
                    self.put("reinit", measure, &to, 0.87 + 0.05 * kept);
                }
                let of = format!("condition=untrained task={task} pair={pair} new_part=none");
                for (language, role, score) in
                    [(target, "target", untrained), (source, "source", 0.5)]
                {
                    let to = format!("{of} language={language} role={role}");
                    self.put("reinit", measure, &to, score);
                }
            }
        }
    }

    fn language_identity(&mut self, languages: &Languages) {
        for (pair, _) in languages.pairs {
            for condition in ["default", "no-anchors", "untrained"] {
                let accuracy = match condition {
                    "untrained" => [0.7, 0.6, 0.6, 0.65],
                    _ => [0.97, 0.55, 0.53, 0.6],
                };
                let of = format!("condition={condition} pair={pair}");
                self.put("language-identity", "language_id_chance", &of, 0.5);
                for layer in 0..=languages.layers {
                    for (treatment, accuracy) in
                        ["raw", "centered", "lsar", "without-1"].into_iter().zip(accuracy)
                    {
                        let of = format!("{of} layer={layer} treatment={treatment}");
                        self.put("language-identity", "language_id", &of, accuracy);
                        self.put("language-identity", "language_id_shuffled", &of, 0.5);
                        // What is removed leaves nothing, to a probe that sees more than means either.
                        let told = if treatment == "raw" { accuracy } else { 0.51 };
                        self.put("language-identity", "language_id_nonlinear", &of, told);
                        let shuffled = "language_id_nonlinear_shuffled";
                        self.put("language-identity", shuffled, &of, 0.5);
                        let variance = (accuracy - 0.5) / 3.0;
                        self.put("language-identity", "variance_between", &of, variance);
                    }
                }
                for kind in ["raw", "centered", "aligned"] {
                    let of = format!("{of} layer=2 kind={kind}");
                    self.put("language-identity", "retrieval", &of, accuracy[0] / 2.0);
                }
                self.neurons(pair, &of, languages.layers);
            }
        }
    }

    /// Neurons: their shares by layer and the rises of losses, in the encoder of some factors.
    fn neurons(&mut self, pair: &str, of: &str, layers: usize) {
        let trained = !of.contains("untrained");
        let (source, target) = pair.split_once('-').unwrap();
        for (ablated, other) in [(source, target), (target, source)] {
            for layer in 1..=layers {
                let of = format!("{of} layer={layer} language={ablated}");
                self.put("language-identity", "neuron_share", &of, 0.02 * layer as f64);
            }
            for (measured, relation, specific) in [(ablated, "own", 0.4), (other, "other", 0.05)] {
                let of = format!("{of} ablated={ablated} measured={measured} of={relation}");
                for (neurons, rise) in [("specific", specific), ("random", 0.03)] {
                    let of = format!("{of} neurons={neurons}");
                    let rise = if trained { rise } else { 0.001 };
                    self.put("language-identity", "neuron_loss", &of, rise);
                }
            }
        }
        let of = format!("{of} first={source} second={target}");
        self.put("language-identity", "neuron_overlap", &of, 0.1);
    }

    fn bitext(&mut self, languages: &Languages) {
        for (pair, _) in languages.pairs {
            for (condition, aer, f1) in
                [("default", 0.15, 0.6), ("no-anchors", 0.2, 0.5), ("untrained", 0.6, 0.05)]
            {
                let of = format!("condition={condition} pair={pair}");
                for layer in 0..=languages.layers {
                    for extraction in ["argmax", "itermax", "softmax"] {
                        let of = format!("{of} layer={layer} extraction={extraction}");
                        self.links(&of, aer);
                    }
                    let of = format!("{of} layer={layer} task=mining");
                    self.put("bitext", "mining_f1", &of, f1);
                    self.put("bitext", "mining_f1_chance", &of, 0.01);
                }
                self.links(&format!("{of} extraction=ibm2"), 0.3);
                self.links(&format!("{of} extraction=diagonal"), 0.5);
            }
        }
    }

    fn new_language(&mut self, languages: &Languages) {
        let systems = [
            ("system=joint", 0.8, 0.8),
            ("system=untrained", 0.02, 0.02),
            ("system=embeddings steps=500", 0.3, 0.8),
            ("system=embeddings steps=2000", 0.5, 0.8),
            ("system=all steps=500", 0.2, 0.4),
            ("system=all steps=2000", 0.3, 0.2),
            ("system=rehearsed steps=500", 0.5, 0.75),
            ("system=rehearsed steps=2000", 0.7, 0.8),
        ];
        let (last, old) = languages.pairs.split_last().unwrap();
        let added = last.0.split_once('-').unwrap().1;
        for (system, new, known) in systems {
            let pairs = old.iter().map(|(pair, _)| (pair, known)).chain([(&last.0, new)]);
            for (pair, level) in pairs {
                let target = pair.split_once('-').unwrap().1;
                let of = format!("{system} added={added} pair={pair}");
                let ner = format!("{of} task=ner language={target} role=target");
                self.put("new-language", "f1", &ner, level);
                for layer in 0..=languages.layers {
                    for kind in ["raw", "centered"] {
                        let of = format!("{of} layer={layer} kind={kind}");
                        self.put("new-language", "retrieval", &of, level);
                    }
                }
            }
        }
    }

    /// Links with some error rate.
    fn links(&mut self, of: &str, aer: f64) {
        let of = format!("{of} task=word-alignment");
        self.put("bitext", "aer", &of, aer);
        for measure in ["precision", "recall", "f1"] {
            self.put("bitext", measure, &of, 1.0 - aer);
        }
    }

    fn sizes(&mut self, languages: &Languages) {
        // Small and large, with full contexts and with short ones: MRR over pairs that differ, NLI.
        let systems = [
            ("encoder", [[0.20, 0.25], [0.60, 0.40]], [[0.41, 0.41], [0.58, 0.45]]),
            ("word2vec", [[0.30, 0.29], [0.33, 0.32]], [[0.41, 0.41], [0.42, 0.42]]),
            ("glove", [[0.28, 0.28], [0.31, 0.31]], [[0.40, 0.40], [0.41, 0.41]]),
            ("untrained", [[0.08; 2]; 2], [[0.34; 2]; 2]),
        ];
        for (i, (pair, _)) in languages.pairs.iter().enumerate() {
            let (_, language) = pair.split_once('-').unwrap();
            let hard = 0.02 * i as f64;
            for (system, mrr, nli) in systems {
                for (s, size) in ["small", "large"].into_iter().enumerate() {
                    for (w, window) in ["full", "short"].into_iter().enumerate() {
                        let of =
                            format!("system={system} size={size} language={language} pair={pair}");
                        let task = format!("{of} task=nli role=target");
                        let scores = [
                            ("mrr", &of, mrr[s][w] + 0.2 - hard),
                            ("mrr_different", &of, mrr[s][w] - hard),
                            ("accuracy", &task, nli[s][w] - hard / 2.0),
                        ];
                        for (measure, of, value) in scores {
                            let windowed = format!("{of} window={window}");
                            self.put("window", measure, &windowed, value);
                            if window == "full" {
                                self.put("data-size", measure, of, value);
                            }
                        }
                    }
                }
            }
        }
    }

    fn shifts(&mut self, languages: &Languages, encoders: &[&str]) {
        let (pair, _) = languages.pairs[0];
        let (source, target) = pair.split_once('-').unwrap();
        for encoder in encoders.iter().copied().chain(["condition=untrained"]) {
            for direction in [pair.to_owned(), format!("{target}-{source}")] {
                self.sweep(encoder, &direction, languages.layers);
            }
            for language in [source, target] {
                let of = format!("{encoder} language={language}");
                self.put("language-shift", "subwords", &of, 812.0);
            }
            self.put("language-shift", "subwords_shared", &format!("{encoder} pair={pair}"), 9.0);
            if encoder == "condition=untrained" {
                continue;
            }
            let lines = [
                ("input", "la zizop sagowi joso ."),
                ("reference", "ru nokemof reneze deve ."),
                ("1", "ru nokemof sagowi deve ."),
                ("2", "ru nokemof reneze deve ."),
                ("3", ". . <strange & \"odd\"> reneze deve"),
            ];
            for (alpha, text) in lines {
                self.notes.push(TextRecord {
                    origin: self.origin("language-shift"),
                    name: "translation".into(),
                    factors: parsed(&format!(
                        "{encoder} direction={pair} alpha={alpha} layer=2 line=1"
                    )),
                    text: text.into(),
                });
            }
        }
    }

    fn sweep(&mut self, encoder: &str, direction: &str, layers: usize) {
        let learned = encoder != "condition=untrained";
        for layer in 0..=layers {
            let depth = layer as f64 / layers as f64;
            for alpha in ["-1", "0", "0.5", "1", "1.5", "2", "3"] {
                let weight: f64 = alpha.parse().unwrap();
                let of = format!(
                    "{encoder} direction={direction} layer={layer} alpha={alpha} kind=mean"
                );
                let hit = match weight > 0.0 {
                    true => (-(weight - 1.2_f64).powi(2)).exp() * (0.3 + 0.4 * depth),
                    false => 0.02,
                };
                let rate =
                    if weight > 0.0 { (weight * (0.4 + 0.3 * depth)).min(0.98) } else { 0.003 };
                // An untrained encoder predicts tokens of any language, whatever is added.
                let values = match learned {
                    true => [rate, hit, 0.9 * hit, 0.01, 0.005],
                    false => [0.3, 0.02, 0.01, 0.3, 0.2],
                };
                let names =
                    ["conversion_rate", "bleu1", "dictionary_accuracy", "other_rate", "third_rate"];
                for (measure, value) in names.into_iter().zip(values) {
                    self.put("language-shift", measure, &of, value);
                }
                let beside = [
                    ("bleu1_permuted", 0.1 * values[1]),
                    ("dictionary_accuracy_different", values[2]),
                    ("dictionary_accuracy_shuffled", 0.001),
                ];
                for (measure, value) in beside {
                    self.put("language-shift", measure, &of, value);
                }
                let copied = if weight == 0.0 && learned { 0.85 } else { 0.2 };
                self.put("language-shift", "copied", &of, copied);
            }
        }
        let of = format!("{encoder} direction={direction} kind=mean");
        self.put("language-shift", "bleu1_frequent", &of, 0.1);
        let masked = if learned { [0.01, 0.4, 0.1] } else { [0.45, 0.02, 0.1] };
        let names = ["masked_foreign_rate", "masked_accuracy", "masked_unigram_accuracy"];
        for (measure, value) in names.into_iter().zip(masked) {
            self.put("language-shift", measure, &format!("{encoder} direction={direction}"), value);
        }
    }

    /// Table 4 of Liu et al. 2020; invented languages have its means.
    fn shifted_transfer(&mut self, languages: &Languages, encoder: &str) {
        let real = languages.pairs[0].0.starts_with('e');
        let all = ["en", "de", "es", "ar", "el", "fr", "hi", "ru", "th", "tr", "vi", "zh"];
        let invented = ["qaa", "qab", "qac"];
        let (source, names) = if real { ("en", &all[..]) } else { ("qaa", &invented[..]) };
        for encoder in [encoder, "condition=untrained"] {
            for language in names {
                let role = if *language == source { "source" } else { "target" };
                for row in ["all-layers", "last-n", "last-n-shift"] {
                    let shifted = row == "last-n-shift";
                    if shifted && role == "source" {
                        continue;
                    }
                    for (task, measure) in TASKS {
                        let of = format!(
                            "{encoder} row={row} task={task} language={language} role={role} pair={source}-{language}"
                        );
                        let like = match (real, role) {
                            (true, _) => language,
                            (_, "source") => "en",
                            _ => "mean",
                        };
                        let paper = papers::number(
                            2,
                            "Table 4",
                            "accuracy",
                            &[("row", row), ("language", like)],
                        );
                        let score = match encoder {
                            "condition=untrained" => published("untrained", task, measure, "en-fr"),
                            _ => paper.unwrap(),
                        };
                        self.put("shifted-transfer", measure, &of, score);
                        if shifted {
                            self.put("shifted-transfer", "alpha", &of, 0.5);
                        }
                    }
                }
            }
        }
    }
}

/// The number of Table 1 of Conneau et al. 2020 under a condition; made up of an untrained encoder.
fn published(condition: &str, task: &str, measure: &str, pair: &str) -> f64 {
    if condition == "untrained" {
        return match task {
            "nli" => 0.34,
            "ner" => 0.03,
            _ => 0.1,
        };
    }
    let condition = if condition == "default-equal" { "default" } else { condition };
    let language = pair.split_once('-').unwrap().1;
    let of = [("condition", condition), ("task", task), ("language", language)];
    papers::number(1, "Table 1", measure, &of).unwrap()
}

fn parsed(factors: &str) -> Factors {
    let pair =
        |text: &str| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    factors.split(' ').filter_map(pair).collect()
}
