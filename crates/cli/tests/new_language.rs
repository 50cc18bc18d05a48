//! Pretraining from a checkpoint: a model that there is, continued on text of some of its languages, or given one that it
//! does not know.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use models::PretrainedModel;
use serde_json::Value;
use tensor::Device;

use crate::common::{Folder, done, json, refused};

/// A folder with a world of three languages, the third of which no model knows yet.
fn with_three_languages() -> Folder {
    let folder = Folder::new();
    let sizes = "--set nli={train=3,dev=3,test=3} --set ner={train=40,dev=9,test=9} \
                 --set treebank.train=9 --set parallel.train=9 --set tatoeba=40";
    done(&folder, &format!("world generate --out world --languages 3 --sentences 2000 {sizes}"));
    folder
}

fn opened(name: &Path) -> PretrainedModel {
    PretrainedModel::open(name, &Device::cpu(1).unwrap()).unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Every weight of a model is in the other, to the bit; of tables with new rows, the first rows. Gives how many
/// numbers the other has beyond these.
fn assert_kept(before: &PretrainedModel, after: &PretrainedModel) -> usize {
    for id in before.params.ids() {
        let name = before.params.name(id);
        let other = after.params.find(name).unwrap_or_else(|| panic!("{name} is gone"));
        let old = before.params.value(id).to_vec();
        let new = after.params.value(other).to_vec();
        assert!(bits(&new[..old.len()]) == bits(&old), "{name} has changed");
    }
    after.params.count() - before.params.count()
}

/// The weights that a model has beyond those of another.
fn new_weights(before: &PretrainedModel, after: &PretrainedModel) -> Vec<f32> {
    let of = |id| {
        let known = before.params.find(after.params.name(id));
        let known = known.map_or(0, |id| before.params.value(id).len());
        after.params.value(id).to_vec()[known..].to_vec()
    };
    after.params.ids().flat_map(of).collect()
}

/// How many subwords lines of text become.
fn subwords(model: &PretrainedModel, language: &str, lines: &str) -> usize {
    let mut reader = model.reader(language).unwrap();
    lines.lines().map(|line| reader.sentence(line).ids.len()).sum()
}

const OLD: &str = "--text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";
const NEW: &str = "--add-language qac=world/text/qac.base.txt";
const SMALL: &str = "--text.dev 100 --vocabulary.merges 200";

/// A run of two languages.
fn base(folder: &Path, preset: &str, out: &str) {
    done(
        folder,
        &format!(
            "pretrain --preset {preset} {OLD} {SMALL} --text.prepared true --steps 30 --out {out}"
        ),
    );
}

#[test]
fn only_what_is_new_is_trained_and_the_rest_stays_to_the_bit() {
    let folder: &Path = &with_three_languages();
    let sentences = fs::read_to_string(folder.join("world/tatoeba/tatoeba.qac-qaa.qac")).unwrap();
    let old_sentences = "world/tatoeba/tatoeba.qac-qaa.qaa";
    let encode = |model: &str| {
        done(
            folder,
            &format!("encode --model {model} --text qaa={old_sentences} --out {model}.npy"),
        );
        fs::read(folder.join(format!("{model}.npy"))).unwrap()
    };
    for preset in ["default", "no-anchors", "sep-emb-l1-3"] {
        base(folder, preset, preset);
        let out = format!("{preset}-new");
        let flags = format!("pretrain --from {preset} {NEW} {SMALL} --trainable new --steps 6");
        let summary = done(folder, &format!("{flags} --checkpoint-every 3 --out {out}"));
        assert_eq!(summary["perplexity"].as_object().unwrap().len(), 1, "only qac has text");
        let before = opened(&folder.join(preset));
        let start = opened(&folder.join(format!("{out}@0")));
        let after = opened(&folder.join(format!("{out}@6")));
        let new = assert_kept(&before, &after);
        let dim = after.encoder.config().dim;
        assert!(new > 100 * dim, "{preset}: {new} new weights");
        assert_eq!(new_weights(&before, &after).len(), new);
        let changed = new_weights(&before, &start)
            .iter()
            .zip(&new_weights(&before, &after))
            .filter(|(a, b)| a != b)
            .count();
        assert!(changed > new / 2, "{preset}: {changed} of {new} were trained");
        assert_eq!(
            encode(preset),
            encode(&out),
            "{preset}: text of old languages has the same states"
        );
        // The old segmentation knows nothing of the new language.
        let (by_old, by_new) =
            (subwords(&before, "qaa", &sentences), subwords(&after, "qac", &sentences));
        assert!(by_new < by_old, "{preset}: {by_new} subwords, {by_old} before");
    }
    // The model that it began with is not needed any more, and what is frozen stays so.
    let before = opened(&folder.join("no-anchors"));
    fs::rename(folder.join("no-anchors"), folder.join("gone")).unwrap();
    let more = done(folder, "pretrain --resume --out no-anchors-new --steps 9");
    assert_eq!(more["steps"], 9);
    assert_kept(&before, &opened(&folder.join("no-anchors-new")));
    let scored = done(
        folder,
        "transfer --task ner --world world --model no-anchors-new --quick --epochs 1 --out ner",
    );
    assert!(scored.to_string().contains("qac"), "{scored}");
}

#[test]
fn everything_is_trained_together_with_old_text() {
    let folder: &Path = &with_three_languages();
    base(folder, "default", "base");
    let flags = format!("pretrain --from base {OLD} {NEW} {SMALL} --steps 6 --out more");
    let summary = done(folder, &flags);
    let languages: Vec<&String> = summary["perplexity"].as_object().unwrap().keys().collect();
    assert_eq!(languages, ["qaa", "qab", "qac"]);
    let config = fs::read_to_string(folder.join("more/config.toml")).unwrap();
    assert!(config.contains("select_by = \"qac\""), "{config}");
    let (before, start, after) = (
        opened(&folder.join("base")),
        opened(&folder.join("more@0")),
        opened(&folder.join("more@6")),
    );
    assert_kept(&before, &start);
    let id = after.params.find("layers.1.query.weight").unwrap();
    let old = before.params.value(before.params.find("layers.1.query.weight").unwrap()).to_vec();
    assert_ne!(after.params.value(id).to_vec(), old, "layers are trained too");
    // A run goes on with text of one of its languages, from the same weights.
    let best = summary["best"]["perplexity"].as_f64().unwrap();
    done(
        folder,
        "pretrain --from more --text qac=world/text/qac.base.txt --text.dev 100 --steps 2 --lr 1e-9 --out one",
    );
    let lines = fs::read_to_string(folder.join("one/metrics.jsonl")).unwrap();
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let perplexity = first["perplexity"]["qac"].as_f64().unwrap();
    assert!((perplexity / best - 1.0).abs() < 1e-6, "{perplexity}, {best}");
    // With a world, retrieval of the new language is measured while it is trained.
    let measured = done(
        folder,
        &format!("pretrain --from base --world world {NEW} {SMALL} --steps 2 --out probed"),
    );
    let pairs = measured["retrieval"].to_string();
    assert!(pairs.contains("qac"), "{pairs}");
    for (flags, reason) in [
        (
            format!("--from base {OLD} --add-language qaa=world/text/qac.base.txt"),
            "the model knows qaa, qab already",
        ),
        (
            "--from base --add-language qab=world/text/qac.base.txt".to_owned(),
            "the model knows qaa, qab already",
        ),
        (format!("{OLD} {NEW}"), "add.languages: languages are added to a model that there is"),
        (format!("--from base {OLD} --trainable new"), "add.trainable: "),
        (
            "--from base --text qac=world/text/qac.base.txt".to_owned(),
            "is a model of qaa, qab, and not of qac",
        ),
    ] {
        let flags = format!("pretrain {flags} {SMALL} --out refused");
        refused(folder, &flags, 2, reason);
        assert!(!folder.join("refused").exists(), "{flags}");
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures").join(name)
}

/// WordPiece, byte-level BPE, unigram, and BPE with word endings.
#[test]
fn imported_models_of_every_tokenizer_are_given_a_language() {
    let folder: &Path = &Folder::new();
    let sentence = "mtoto mdogo anakula chakula kizuri";
    let text: String = (0..400).map(|at| format!("{sentence} na paka{}\n", at % 7)).collect();
    fs::write(folder.join("sw.txt"), &text).unwrap();
    fs::write(folder.join("en.txt"), "the cat\nle chat sur\nкошка 42\n").unwrap();
    for name in ["bert", "distilbert", "roberta", "xlm-roberta", "xlm", "xlm-roberta-xl"] {
        let model = fixture(name);
        let flags = format!(
            "pretrain --from {} --add-language sw=sw.txt --trainable new --steps 4 --text.dev 20 \
             --set stages=[] --batch.length 12 --vocabulary.merges 60 --out {name}",
            model.display()
        );
        let summary = done(folder, &flags);
        assert!(summary["perplexity"]["sw"].as_f64().unwrap() > 1.0);
        let (before, after) = (opened(&model), opened(&folder.join(name)));
        assert!(assert_kept(&before, &after) > 0, "{name}");
        let known = before.vocabulary.languages().next().unwrap().to_owned();
        let known = if known == "any" { "en".to_owned() } else { known };
        let (old, new) = (subwords(&before, &known, sentence), subwords(&after, "sw", sentence));
        assert!(new < old, "{name}: {new} subwords, {old} before");
        let encode = |model: &str, text: &str, out: &str| {
            done(folder, &format!("encode --model {model} --text {text} --force --out {out}.npy"));
            arrays::npy::read::<f32>(&folder.join(format!("{out}.npy"))).unwrap().values
        };
        let theirs = encode(&model.display().to_string(), &format!("{known}=en.txt"), "theirs");
        let ours = encode(name, &format!("{known}=en.txt"), "ours");
        assert_eq!(bits(&theirs), bits(&ours), "{name}: what it knew it reads as before");
        let hf = format!("{name}-hf");
        done(folder, &format!("hub export --model {name} --lang sw --out {hf}"));
        let language =
            if opened(&folder.join(&hf)).vocabulary.takes_any_language() { "any" } else { "sw" };
        let exported = encode(&hf, &format!("{language}=sw.txt"), "exported");
        let own = encode(name, "sw=sw.txt", "own");
        let far = exported.iter().zip(&own).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(exported.len() == own.len() && far < 1e-3, "{name}: {far}");
        // Special tokens are in the file: `transformers` adds none by itself.
        let json = |file: String| -> serde_json::Value { json(&folder.join(file)) };
        let tokenizer = json(format!("{hf}/tokenizer.json"));
        assert!(!tokenizer["post_processor"].is_null(), "{name}");
        // The language that it knew is exported as it was, without the rows of the new one.
        let old_hf = format!("{name}-old-hf");
        let first = after.vocabulary.languages().next().unwrap();
        done(folder, &format!("hub export --model {name} --lang {first} --out {old_hf}"));
        let exported = encode(&old_hf, &format!("{known}=en.txt"), "old");
        let far = exported.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(exported.len() == theirs.len() && far < 1e-3, "{name}, what it knew: {far}");
    }
}
