//! Every command that steps run gives the results of its revision.
//!
//! A small study runs all of them through the real binary, and a few numbers of each are compared with [`GOLDEN`]. When
//! they differ, either something broke, or the command's results were meant to change: then its revision must be
//! raised, or laboratories would take old results for new ones. The failure prints the rows to paste.
//!
//! Floating-point results differ between processors (AVX2, AVX-512 and other kernels add up in different orders), and
//! training amplifies that. So numbers are compared to four digits on processors of the kind that they were recorded
//! on, and loosely on others.

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use lab::store::{FILE, RecordFilter, Store};
use lab::study::{COMMANDS, REPEATABLE};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{done, isogloss};

/// Few sentences and updates, but enough that none of the values is 0 or 1 throughout.
const STUDY: &str = r#"
question = "Does every command give the results of its revision?"
evaluate = ["ner", "parse", "retrieval", "align-words", "align-contexts", "similarity",
  "similarity-measures", "language-id", "language-neurons", "word-retrieval", "shift", "mining", "word-alignment"]

[[systems]]
factors = { system = "bilingual" }

[[systems]]
factors = { system = "word2vec" }
model = "word2vec"
flags = ["--epochs", "1"]

[[systems]]
factors = { system = "glove" }
model = "glove"
flags = ["--epochs", "2"]

[[worlds]]
flags = ["--sentences", "2000", "--set", "tatoeba=50", "--set", "parallel={train=200,dev=10,test=10}",
  "--set", "nli={train=9,dev=9,test=9}", "--set", "ner={train=300,dev=20,test=20}",
  "--set", "treebank={train=200,dev=20,test=20,parallel=20}"]

[scales.tiny]
pretrain = ["--steps", "200", "--text.dev", "100", "--adam.lr", "0.005"]
transfer = ["--quick", "--epochs", "4"]
layers = [2]
"#;

/// Command, revision, what was measured, and its value on an x86-64 processor with AVX-512.
#[rustfmt::skip]
const GOLDEN: &[(&str, u32, &str, f64)] = &[
    ("align contexts", 2, "magnitude", 0.1116318789406598),
    ("align many", 2, "loss_hub", 0.03065873460778089),
    ("align many", 2, "onto_hub", 0.9444444444444443),
    ("align many", 2, "together", 0.9555555555555556),
    ("align many", 2, "unmapped", 0.011111111111111112),
    ("align words", 2, "mrr", 0.18954675456759482),
    ("align words", 2, "mrr_chance", 0.09721729189747708),
    ("align words", 2, "mrr_different", 0.18954675456759482),
    ("align words", 2, "p_at_1", 0.07632575757575757),
    ("align words", 2, "p_at_1_chance", 0.01032342590217093),
    ("align words", 2, "p_at_1_different", 0.07632575757575757),
    ("align words", 2, "p_at_5", 0.3417207792207792),
    ("cka", 2, "cka", 0.4916139641134408),
    ("cka", 2, "cka_debiased", 0.47830376389778684),
    ("cka", 2, "cka_within", 0.6174336397422857),
    ("cka", 2, "correlation", 0.9503495415660398),
    ("cka", 2, "repeated", 0.0),
    ("cka", 2, "rows", 50.0),
    ("cka", 2, "too_long", 0.0),
    ("cka", 2, "used", 50.0),
    ("corpus alter", 1, "digest of text", 933172209745.0),
    ("corpus alter", 1, "words", 17.0),
    ("corpus exclude", 1, "digest of text", 263617901368.0),
    ("corpus exclude", 1, "in_tests", 5.0),
    ("corpus filter", 1, "digest of text", 934811063309.0),
    ("corpus filter", 1, "used", 5.0),
    ("corpus paraphrases", 1, "digest of pairs", 1000107884945.0),
    ("corpus paraphrases", 1, "pairs", 2.0),
    ("corpus prepare", 1, "digest of tokens", 367619695701.5),
    ("corpus prepare", 1, "tokens", 14569.0),
    ("language-id", 3, "language_id", 0.7073529411764705),
    ("language-id", 3, "language_id_chance", 0.5),
    ("language-id", 3, "language_id_nonlinear", 0.8161764705882352),
    ("language-id", 3, "language_id_nonlinear_shuffled", 0.4647058823529412),
    ("language-id", 3, "language_id_shuffled", 0.5458823529411764),
    ("language-id", 3, "variance_between", 0.25837254384492614),
    ("language-neurons", 1, "neuron_loss", 0.0006286547734184467),
    ("language-neurons", 1, "neuron_overlap", 0.0),
    ("language-neurons", 1, "neuron_share", 0.005208333333333334),
    ("mine", 2, "mining_f1", 0.08391608391608392),
    ("mine", 2, "mining_f1_best", 0.05574912891986063),
    ("mine", 2, "mining_f1_chance", 0.0027274312988598707),
    ("pretrain", 2, "perplexity", 101.22400885010576),
    ("retrieve", 2, "repeated", 0.0),
    ("retrieve", 2, "retrieval", 0.232),
    ("retrieve", 2, "rows", 125.0),
    ("retrieve", 2, "too_long", 0.0),
    ("retrieve", 2, "used", 125.0),
    ("shift means", 1, "magnitude", 3.8663958859047214),
    ("shift sweep", 3, "bleu1", 0.11032196969696963),
    ("shift sweep", 3, "bleu1_frequent", 0.3560606060606061),
    ("shift sweep", 3, "bleu1_permuted", 0.10735558712121215),
    ("shift sweep", 3, "conversion_rate", 0.436020359848485),
    ("shift sweep", 3, "copied", 0.08972537878787888),
    ("shift sweep", 3, "dictionary_accuracy", 0.09719460227272723),
    ("shift sweep", 3, "dictionary_accuracy_different", 0.09719460227272723),
    ("shift sweep", 3, "dictionary_accuracy_shuffled", 0.03340970070018365),
    ("shift sweep", 3, "masked_accuracy", 0.109375),
    ("shift sweep", 3, "masked_foreign_rate", 0.0),
    ("shift sweep", 3, "masked_own_rate", 0.65625),
    ("shift sweep", 3, "masked_unigram_accuracy", 0.046875),
    ("shift sweep", 3, "other_rate", 0.23365293560606046),
    ("shift sweep", 3, "repeated", 0.0),
    ("shift sweep", 3, "rows", 50.0),
    ("shift sweep", 3, "too_long", 0.0),
    ("shift sweep", 3, "used", 50.0),
    ("shift translate", 1, "characters", 28.466666666666665),
    ("similarity", 2, "repeated", 0.0),
    ("similarity", 2, "rows", 50.0),
    ("similarity", 2, "similarity", 0.3797950605901576),
    ("similarity", 2, "similarity_chance", 0.17951732915716098),
    ("similarity", 2, "too_long", 0.0),
    ("similarity", 2, "used", 50.0),
    ("transfer", 4, "f1", 0.04940711462450592),
    ("transfer", 4, "las", 0.33522988505747126),
    ("vectors glove", 2, "magnitude", 0.007165786097126774),
    ("vectors word2vec", 2, "magnitude", 0.13622093415968348),
    ("vocab stats", 1, "subwords", 193.5),
    ("vocab stats", 1, "subwords_shared", 0.0),
    ("vocab train", 1, "digest of the vocabulary", 755430730939.0),
    ("vocab train", 1, "subwords", 640.0),
    ("word-align", 1, "aer", 0.24240429084096907),
    ("word-align", 1, "digest of links", 985163450467.0),
    ("word-align", 1, "f1", 0.757595709159031),
    ("word-align", 1, "precision", 0.8599199692506695),
    ("word-align", 1, "recall", 0.7312405731523379),
    ("words", 1, "magnitude", 0.5720869638198665),
    ("world generate", 2, "digest of text", 1085921844838.0),
];

/// Whether this processor is of the kind that [`GOLDEN`] was recorded on.
fn is_reference() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn agrees(what: &str, value: f64, golden: f64) -> bool {
    let difference = (value - golden).abs();
    match (is_reference(), what.starts_with("digest")) {
        (true, true) => value == golden,
        (true, false) => difference <= 1e-4 * golden.abs().max(1e-3),
        // A digest of text that depends on rounding says nothing elsewhere.
        (false, true) => true,
        (false, false) => difference <= 0.1 * golden.abs() + 0.05,
    }
}

#[test]
fn results_change_with_revisions_alone() {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("golden.toml"), STUDY).unwrap();
    done(place.path(), &["study", "run", "golden.toml", "--device", "cpu", "--threads", "1"]);
    let measured = measured(place.path());
    let (mut rows, mut wrong) = (String::new(), Vec::new());
    for command in COMMANDS {
        let verb = command.verb;
        let own: Vec<_> = measured.iter().filter(|((of, _), _)| of == verb).collect();
        assert!(!own.is_empty(), "nothing of `{verb}` is compared: extend the study of this test");
        for ((_, what), value) in own {
            let _ = writeln!(rows, "    ({verb:?}, {}, {what:?}, {value:?}),", command.revision);
            let golden = GOLDEN.iter().find(|golden| golden.0 == verb && golden.2 == what);
            match golden {
                Some((_, revision, _, _)) if *revision != command.revision => {
                    wrong.push(format!(
                        "`{verb}` has revision {}, recorded {revision}",
                        command.revision
                    ));
                }
                Some((_, _, _, golden)) if agrees(what, *value, *golden) => {}
                Some((_, _, _, golden)) => {
                    wrong.push(format!("`{verb}`: {what} is {value}, recorded {golden}"));
                }
                None => wrong.push(format!("`{verb}`: {what} is {value}, not recorded")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "results differ from those of the recorded revisions:\n  {}\n\
         If a command gives other results on purpose, raise its revision by one in crates/lab/src/study/revision.rs \
         (not those of commands that only take its results as input), run this test again, and replace the rows of \
         GOLDEN in crates/cli/tests/revisions.rs by:\n{rows}",
        wrong.join("\n  ")
    );
}

/// A step that is run again is given `--force`.
#[test]
fn what_a_step_writes_can_be_replaced() {
    let place = TempDir::new().unwrap();
    for verb in COMMANDS.map(|command| command.verb).into_iter().filter(|&verb| verb != REPEATABLE)
    {
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = String::from_utf8(isogloss(place.path(), &words).stdout).unwrap();
        assert!(!help.contains("--out ") || help.contains("--force"), "{verb}");
    }
}

/// Numbers of each command, by verb and name: means of its records, and of what it wrote.
fn measured(folder: &Path) -> BTreeMap<(String, String), f64> {
    let mut values: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    let mut put = |command: &str, what: &str, value: f64| {
        let after = command.strip_prefix("isogloss ").unwrap();
        let verb = COMMANDS.iter().map(|one| one.verb).filter(|verb| after.starts_with(verb));
        let verb = verb.max_by_key(|verb| verb.len()).unwrap().to_owned();
        values.entry((verb, what.to_owned())).or_default().push(value);
    };
    let store = Store::existing(&folder.join("lab").join(FILE)).unwrap();
    for record in store.records(&RecordFilter::default()).unwrap() {
        put(&record.origin.command, &record.measure, record.value);
    }
    for text in store.texts(&RecordFilter::default()).unwrap() {
        put(&text.origin.command, "characters", text.text.chars().count() as f64);
    }
    let plan = done(folder, &["study", "plan", "golden.toml", "--device", "cpu"]);
    for step in plan["steps"].as_array().unwrap() {
        let command = step["command"].as_str().unwrap();
        let step = folder.join("lab/steps").join(step["key"].as_str().unwrap());
        let result: Value =
            serde_json::from_slice(&fs::read(step.join("result.json")).unwrap()).unwrap();
        for perplexity in result["perplexity"].as_object().into_iter().flat_map(|of| of.values()) {
            put(command, "perplexity", perplexity.as_f64().unwrap());
        }
        for (what, value) in written(&step) {
            put(command, &what, value);
        }
    }
    // Studies of real text alone run these.
    let text = ["qaa", "qab"].map(|language| {
        let steps = fs::read_dir(folder.join("lab/steps")).unwrap();
        let name = format!("world/text/{language}.base.txt");
        let mut files = steps.map(|step| step.unwrap().path().join(&name));
        format!("{language}={}", files.find(|file| file.is_file()).unwrap().display())
    });
    let text = ["--text", &text[0], "--text", &text[1], "--dev", "100"];
    let vocabulary =
        ["vocab", "train", "--kind", "union", "--merges", "300", "--out", "vocabulary"];
    let made = done(folder, &[&vocabulary[..], &text].concat());
    put("isogloss vocab train", "subwords", made["subwords"].as_f64().unwrap());
    let fingerprint = made["fingerprint"].as_str().unwrap().as_bytes();
    put("isogloss vocab train", "digest of the vocabulary", digest([fingerprint]));
    let corpora = ["corpus", "prepare", "--vocab", "vocabulary", "--out", "corpora"];
    let made = done(folder, &[&corpora[..], &text].concat());
    for corpus in made["corpora"].as_array().unwrap() {
        put("isogloss corpus prepare", "tokens", corpus["tokens"][0].as_f64().unwrap());
        let tokens = folder.join(corpus["folder"].as_str().unwrap()).join("train.bin");
        let tokens = fs::read(tokens).unwrap();
        put("isogloss corpus prepare", "digest of tokens", digest([tokens.as_slice()]));
    }
    let bitext = "the cat sleeps\tle chat dort\na cat is asleep\tle chat dort\nit rains\til pleut\n\
                  rain falls\til pleut\nit is raining\til pleut\nyes\toui\nyes .\toui\n";
    fs::write(folder.join("bitext.tsv"), bitext).unwrap();
    let paraphrases = ["corpus", "paraphrases", "--parallel", "en-fr=bitext.tsv", "--lang", "en"];
    let made = done(folder, &[&paraphrases[..], &["--out", "paraphrases.tsv"]].concat());
    put("isogloss corpus paraphrases", "pairs", made["pairs"].as_f64().unwrap());
    let found = fs::read(folder.join("paraphrases.tsv")).unwrap();
    put("isogloss corpus paraphrases", "digest of pairs", digest([found.as_slice()]));
    let alter =
        ["corpus", "alter", "--text", "en=bitext.tsv", "--order", "permuted", "--endings", "3"];
    let made = done(folder, &[&alter[..], &["--lines", "--out", "altered.txt"]].concat());
    put("isogloss corpus alter", "words", made["words"].as_f64().unwrap());
    let altered = fs::read(folder.join("altered.txt")).unwrap();
    put("isogloss corpus alter", "digest of text", digest([altered.as_slice()]));
    let filter = ["corpus", "filter", "--parallel", "en-fr=bitext.tsv", "--max-tokens", "8"];
    let made = done(folder, &[&filter[..], &["--out", "en.txt", "--out", "fr.txt"]].concat());
    put("isogloss corpus filter", "used", made["used"].as_f64().unwrap());
    let kept = fs::read(folder.join("en.txt")).unwrap();
    put("isogloss corpus filter", "digest of text", digest([kept.as_slice()]));
    let exclude = ["corpus", "exclude", "--text", "en=bitext.tsv", "--exclude", "en.txt"];
    let made = done(folder, &[&exclude[..], &["--out", "rest.txt"]].concat());
    put("isogloss corpus exclude", "in_tests", made["in_tests"].as_f64().unwrap());
    let rest = fs::read(folder.join("rest.txt")).unwrap();
    put("isogloss corpus exclude", "digest of text", digest([rest.as_slice()]));
    let many = aligned_at_once(folder);
    put("isogloss align many", "loss_hub", many["loss_hub"].as_f64().unwrap());
    for (place, map) in ["onto_hub", "together", "unmapped"].into_iter().enumerate() {
        put("isogloss align many", map, many["mean"][place].as_f64().unwrap());
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    values.into_iter().map(|(key, values)| (key, mean(values))).collect()
}

/// Three small spaces that are nearly rotations of one another, and dictionaries of every two.
fn aligned_at_once(folder: &Path) -> Value {
    const WORDS: usize = 30;
    let languages = ["a", "b", "c"];
    let mut flags = vec!["align".to_owned(), "many".to_owned()];
    for (number, language) in languages.iter().enumerate() {
        let mut vectors = format!("{WORDS} 4\n");
        for word in 0..WORDS {
            let _ = write!(vectors, "{language}{word}");
            for axis in 0..4 {
                // The axes of each language are another permutation of the same.
                let at = (word * 7 + (axis + number) % 4 * 13) as f64;
                let noise = ((word + 5 * axis + 11 * number) as f64).sin();
                let _ = write!(vectors, " {:.5}", at.sin() + 0.4 * noise);
            }
            vectors.push('\n');
        }
        fs::write(folder.join(format!("{language}.vec")), vectors).unwrap();
        flags.extend(["--vectors".to_owned(), format!("{language}={language}.vec")]);
    }
    for (first, second) in [("a", "b"), ("a", "c"), ("b", "c")] {
        for (flag, words) in [("--dictionary", 0..15), ("--test-dictionary", 15..WORDS)] {
            let file = format!("{first}-{second}{flag}.txt");
            let lines: String =
                words.map(|word| format!("{first}{word} {second}{word}\n")).collect();
            fs::write(folder.join(&file), lines).unwrap();
            flags.extend([flag.to_owned(), format!("{first}-{second}={file}")]);
        }
    }
    flags.extend(["--device", "cpu", "--threads", "1"].map(str::to_owned));
    done(folder, &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Numbers of the files that a step wrote.
fn written(step: &Path) -> Vec<(String, f64)> {
    let mut numbers = Vec::new();
    let mut files: Vec<_> =
        fs::read_dir(step).unwrap().map(|entry| entry.unwrap().path()).collect();
    for folder in ["words", "maps"].map(|name| step.join(name)) {
        files.extend(fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()));
    }
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        let bytes = fs::read(file).unwrap();
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("npy") => {
                let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
                let double = String::from_utf8_lossy(&bytes[10..start]).contains("<f8");
                let values =
                    if double { doubles(&bytes[start..]) } else { floats(&bytes[start..]) };
                numbers.push(("magnitude".to_owned(), magnitude(values)));
            }
            Some("safetensors") => {
                let tensors = SafeTensors::deserialize(&bytes).unwrap();
                let tensors = tensors.iter().filter(|(_, tensor)| tensor.dtype() == Dtype::F32);
                let values = tensors.flat_map(|(_, tensor)| floats(tensor.data())).collect();
                numbers.push(("magnitude".to_owned(), magnitude(values)));
            }
            Some("vec") => {
                let text = String::from_utf8(bytes).unwrap();
                let values = text.lines().skip(1).flat_map(|line| line.split(' ').skip(1));
                let values = values.map(|value| value.parse().unwrap()).collect();
                numbers.push(("magnitude".to_owned(), magnitude(values)));
            }
            _ if file.ends_with("links") => {
                numbers.push(("digest of links".to_owned(), digest([bytes.as_slice()])));
            }
            _ => {}
        }
    }
    let texts: Vec<Vec<u8>> = ["qaa", "qab"]
        .iter()
        .filter_map(|language| fs::read(step.join(format!("world/text/{language}.base.txt"))).ok())
        .collect();
    if !texts.is_empty() {
        numbers.push(("digest of text".to_owned(), digest(texts.iter().map(Vec::as_slice))));
    }
    numbers
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    bytes
        .chunks_exact(4)
        .map(|four| f64::from(f32::from_le_bytes(four.try_into().unwrap())))
        .collect()
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap())).collect()
}

/// The mean of absolute values.
fn magnitude(values: Vec<f64>) -> f64 {
    values.iter().map(|value| value.abs()).sum::<f64>() / values.len() as f64
}

/// FNV-1a, cut to what a float holds exactly.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> f64 {
    let bytes = parts.into_iter().flatten();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 24) as f64
}
