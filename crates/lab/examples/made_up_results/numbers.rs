//! Made-up records of every study, with the measures and factors of real ones: test data, not results.

use lab::record::{Factors, Origin, Record, TextRecord};

/// Records under construction.
struct MadeUp {
    records: Vec<Record>,
    notes: Vec<TextRecord>,
    scale: &'static str,
    seed: u64,
}

/// Everything: invented languages at `tiny` with four seeds, real ones at `small` with three.
pub(crate) fn all() -> (Vec<Record>, Vec<TextRecord>) {
    let mut made = MadeUp { records: vec![], notes: vec![], scale: "tiny", seed: 0 };
    for seed in 1..=4 {
        made.seed = seed;
        made.conditions(&["qaa-qab"]);
        made.distances();
        made.alignment("qaa-qab", 4);
        made.similarity("qaa-qab", 4);
        made.sizes();
        made.shifts("qaa-qab", 4);
        made.shifts("qab-qaa", 4);
        made.shifted_transfer();
    }
    made.scale = "small";
    for seed in 1..=3 {
        made.seed = seed;
        made.conditions(&["en-fr", "en-ru", "en-zh"]);
        made.similarity("en-fr", 8);
        made.similarity("en-zh", 8);
    }
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

    /// Adds a value with noise that is a function of its key.
    fn put(&mut self, study: &str, measure: &str, factors: &str, value: f64) {
        let hash = format!("{study}{measure}{factors}{}{}", self.seed, self.scale)
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let noise = (hash >> 40) as f64 / f64::from(1 << 24) - 0.5;
        let exact = value > 2.0 || measure == "alpha";
        let value = if exact { value } else { (value + 0.05 * noise).clamp(-1.0, 1.0) };
        self.records.push(Record {
            origin: self.origin(study),
            measure: measure.into(),
            factors: parsed(factors),
            value,
            signature: "made-up".into(),
            files: vec![],
        });
    }

    fn conditions(&mut self, pairs: &[&str]) {
        let studies: [(&str, &[(&str, f64)]); 3] = [
            ("domain", &[("default", 0.80), ("wiki-cc", 0.76)]),
            (
                "anchors",
                &[
                    ("default", 0.80),
                    ("default-anchors", 0.79),
                    ("no-anchors", 0.77),
                    ("extra-anchors", 0.83),
                ],
            ),
            (
                "sharing",
                &[
                    ("default", 0.80),
                    ("sep-emb", 0.72),
                    ("sep-emb-l1-3", 0.35),
                    ("sep-emb-l1-6", 0.08),
                    ("sep-l1-3", 0.55),
                    ("sep-l1-6", 0.20),
                ],
            ),
        ];
        for (study, conditions) in studies {
            for (condition, level) in conditions {
                for (far, pair) in pairs.iter().enumerate() {
                    let (source, target) = pair.split_once('-').unwrap();
                    let level = level - 0.12 * far as f64;
                    for (task, measure, floor) in
                        [("nli", "accuracy", 0.33), ("ner", "f1", 0.0), ("parse", "las", 0.0)]
                    {
                        let of = format!("condition={condition} pair={pair} task={task}");
                        let score = (floor + (0.95 - floor) * level).max(floor);
                        self.put(
                            study,
                            measure,
                            &format!("{of} language={target} role=target"),
                            score,
                        );
                        self.put(
                            study,
                            measure,
                            &format!("{of} language={source} role=source"),
                            0.92,
                        );
                    }
                    for (kind, more) in [("raw", 0.8), ("centered", 1.05), ("aligned", 1.15)] {
                        for layer in ["0", "1", "2", "3", "4", "best"] {
                            let bend =
                                layer.parse().map_or(1.0, |l: f64| 1.0 - 0.15 * (l - 3.0).abs());
                            let of = format!(
                                "condition={condition} pair={pair} kind={kind} layer={layer}"
                            );
                            self.put(
                                study,
                                "retrieval",
                                &of,
                                (level * more * bend).clamp(0.0, 1.0),
                            );
                        }
                    }
                }
            }
        }
    }

    fn distances(&mut self) {
        for (distance, level) in [("0", 0.78), ("0.15", 0.66), ("0.3", 0.45), ("0.6", 0.18)] {
            let of = format!("condition=no-anchors pair=qaa-qab distance={distance}");
            for (task, measure) in [("nli", "accuracy"), ("ner", "f1"), ("parse", "las")] {
                self.put(
                    "distance",
                    measure,
                    &format!("{of} task={task} language=qab role=target"),
                    level,
                );
            }
            for kind in ["raw", "centered"] {
                self.put("distance", "retrieval", &format!("{of} kind={kind} layer=best"), level);
            }
        }
    }

    fn alignment(&mut self, pair: &str, layers: usize) {
        for (system, level) in [("fasttext", 0.62), ("embeddings", 0.66)] {
            self.put(
                "align-words",
                "p_at_1",
                &format!("system={system} pair={pair} retrieval=csls"),
                level,
            );
        }
        for layer in 0..=layers {
            let depth = layer as f64 / layers as f64;
            for (system, level) in [("monolingual", 0.4), ("bilingual", 0.55), ("untrained", 0.06)]
            {
                let of = format!("system={system} layer={layer} pair={pair} retrieval=csls");
                self.put("align-words", "p_at_1", &of, level * (0.8 + 0.4 * depth));
            }
            let bend = 1.0 - 1.6 * (depth - 0.5).powi(2);
            let systems = [
                ("monolingual-aligned", 0.6),
                ("bilingual", 0.78),
                ("bilingual-aligned", 0.8),
                ("monolingual-raw", 0.1),
            ];
            for (system, level) in systems {
                for (task, measure) in [("ner", "f1"), ("parse", "las")] {
                    let of = format!(
                        "system={system} task={task} layer={layer} pair={pair} language=qab role=target"
                    );
                    self.put("align-contexts", measure, &of, level * bend);
                }
            }
            for (system, level) in [("monolingual", 0.7), ("bilingual", 0.95), ("untrained", 0.15)]
            {
                for (kind, more) in [("raw", 0.5), ("centered", 0.85), ("aligned", 1.0)] {
                    let of = format!("system={system} kind={kind} layer={layer} pair={pair}");
                    self.put(
                        "align-sentences",
                        "retrieval",
                        &of,
                        level * more * (1.0 - 0.4 * (depth - 0.3).abs()),
                    );
                }
            }
        }
    }

    fn similarity(&mut self, pair: &str, layers: usize) {
        for layer in 0..=layers {
            let depth = layer as f64 / layers as f64;
            for (system, level) in [
                ("bilingual", 0.8),
                ("monolingual", 0.7),
                ("untrained", 0.45),
                ("same-language", 0.85),
            ] {
                let of = format!("system={system} layer={layer} pair={pair}");
                self.put("similarity", "cka", &of, level - 0.3 * depth);
                self.put("similarity", "cka_debiased", &of, level - 0.35 * depth - 0.05);
            }
        }
        for system in ["bilingual", "monolingual"] {
            self.put("similarity", "correlation", &format!("system={system}"), 0.88);
        }
    }

    fn sizes(&mut self) {
        let systems = [
            ("encoder", [0.25, 0.7], [0.42, 0.6]),
            ("word2vec", [0.35, 0.38], [0.40, 0.41]),
            ("glove", [0.32, 0.36], [0.39, 0.40]),
            ("untrained", [0.12, 0.12], [0.34, 0.34]),
        ];
        for (language, hard) in [("qab", 0.0), ("qac", 0.04), ("qad", 0.1)] {
            for (system, mrr, accuracy) in systems {
                for (i, (size, sentences)) in
                    [("small", 20_000), ("large", 100_000)].into_iter().enumerate()
                {
                    let of = format!(
                        "system={system} size={size} language={language} sentences={sentences}"
                    );
                    self.put("data-size", "mrr", &of, mrr[i] - hard);
                    self.put(
                        "data-size",
                        "accuracy",
                        &format!("{of} task=nli"),
                        accuracy[i] - hard / 2.0,
                    );
                }
            }
            for (window, mrr, accuracy) in [("full", 0.7, 0.6), ("short", 0.45, 0.53)] {
                let of = format!(
                    "system=encoder size=large window={window} language={language} sentences=100000"
                );
                self.put("window", "mrr", &of, mrr - hard);
                self.put("window", "accuracy", &format!("{of} task=nli"), accuracy - hard);
            }
        }
    }

    fn shifts(&mut self, direction: &str, layers: usize) {
        for layer in 0..=layers {
            for alpha in ["-1", "0", "0.5", "1", "1.5", "2", "3"] {
                let weight: f64 = alpha.parse().unwrap();
                let depth = layer as f64 / layers as f64;
                let of = format!(
                    "condition=default direction={direction} layer={layer} alpha={alpha} kind=mean"
                );
                let rate =
                    if weight <= 0.0 { -0.2 } else { (weight * (0.4 + 0.3 * depth)).min(0.98) };
                self.put("language-shift", "conversion_rate", &of, rate.max(0.0));
                let hit = (-(weight - 1.2_f64).powi(2)).exp() * (0.3 + 0.4 * depth);
                self.put("language-shift", "bleu1", &of, if weight <= 0.0 { 0.02 } else { hit });
                self.put(
                    "language-shift",
                    "dictionary_accuracy",
                    &of,
                    if weight <= 0.0 { 0.0 } else { hit * 0.9 },
                );
                self.put("language-shift", "copied", &of, if weight == 0.0 { 0.85 } else { 0.2 });
            }
        }
        for (language, size) in [("qaa", 812.0), ("qab", 833.0)] {
            let of = format!("condition=default language={language}");
            self.put("language-shift", "subwords", &of, size);
        }
        self.put("language-shift", "subwords_shared", "condition=default pair=qaa-qab", 9.0);
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
                    "condition=default direction={direction} alpha={alpha} layer=2 line=1"
                )),
                text: text.into(),
            });
        }
    }

    fn shifted_transfer(&mut self) {
        for (language, role, hard) in
            [("qaa", "source", -0.2), ("qab", "target", 0.0), ("qac", "target", 0.08)]
        {
            for (row, level) in [("all-layers", 0.58), ("last-n", 0.62), ("last-n-shift", 0.624)] {
                for (task, measure) in [("nli", "accuracy"), ("ner", "f1"), ("parse", "las")] {
                    let shifted = row == "last-n-shift";
                    if shifted && role == "source" {
                        continue;
                    }
                    let of = format!("row={row} task={task} language={language} role={role}");
                    self.put("shifted-transfer", measure, &of, level - hard);
                    if shifted {
                        self.put("shifted-transfer", "alpha", &of, 0.5);
                    }
                }
            }
        }
    }
}

fn parsed(factors: &str) -> Factors {
    let pair =
        |text: &str| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    factors.split(' ').filter_map(pair).collect()
}
