//! Conditions and scales: what the papers compare, and how large.
//!
//! A scale says how large everything is; a condition says what is changed. They compose: any
//! condition at any scale. Layers to separate are given for the papers' eight and follow the depth.

use encoder::ConfigError;
use toml::{Table, Value};

use super::config::overlay;

/// The scales by name, and what they are for.
pub const SCALES: [(&str, &str); 3] = [
    ("tiny", "invented languages, minutes on two CPU cores"),
    ("small", "real text; sized for a GPU, slow on a CPU"),
    ("paper", "the papers' own numbers: days on eight GPUs"),
];

/// The conditions by name, and what they change.
pub const CONDITIONS: [(&str, &str); 18] = [
    ("default", "one vocabulary learned from all languages together, everything shared"),
    ("wiki-cc", "as default, each language's text from another domain"),
    ("default-anchors", "a vocabulary for each language, equal pieces shared"),
    ("no-anchors", "a vocabulary for each language, nothing shared"),
    ("extra-anchors", "words replaced by translations from a dictionary"),
    ("sep-emb", "embeddings and softmax separate"),
    ("sep-emb-l1-3", "embeddings, softmax and the lower 3 of 8 layers separate"),
    ("sep-emb-l1-6", "embeddings, softmax and the lower 6 of 8 layers separate"),
    ("sep-l1-3", "the lower 3 of 8 layers separate"),
    ("sep-l1-6", "the lower 6 of 8 layers separate"),
    ("monolingual", "the first language alone"),
    ("same-language", "the first language twice, embeddings and softmax separate"),
    ("random", "no training at all"),
    ("window-20", "inputs cut to 20 tokens"),
    ("sentences-200k", "200k sentences of every language (paper 2: of 15)"),
    ("sentences-1000k", "1,000k sentences of every language"),
    ("sentences-200k-window-20", "200k sentences, inputs cut to 20 tokens"),
    ("sentences-1000k-window-20", "1,000k sentences, inputs cut to 20 tokens"),
];

/// What is the same at every scale.
const COMMON: &str = r#"
seed = 1
patience = 25
languages = []
[files]
[text]
[vocabulary]
kind = "joint"
[batch]
share_power = 0.7
mask = { rate = 0.15, alpha = 0.0, hide = 0.8, keep = 0.1, replacements = "all" }
[encoder]
[adam]
"#;

/// What leaves the plateau soon, where the papers' own arrangement needs days: for the scales below
/// theirs.
const QUICK: &str = r#"
[encoder]
dropout = 0.0
attention_dropout = 0.0
norm = "pre"
epsilon = 1e-5
scale_outputs = true
start_positions = "sinusoid"
[adam]
beta2 = 0.98
clip = 1.0
"#;

/// Many small updates, rows that begin with sentences, and short rows at first: each brings the
/// shared space forward (`bench/RESULTS.md`).
const TINY: &str = r#"
steps = 6000
accumulate = 2
checkpoint_every = 1000
evaluate_every = 500
stages = [{ steps = 600, length = 16, sequences = 32 }]
[text]
dev = 500
[vocabulary]
merges = 2000
[batch]
length = 32
sequences = 16
aligned = true
mask = { rate = 0.25 }
[encoder]
layers = 4
heads = 4
dim = 48
hidden = 192
positions = 32
[adam]
rate = 3e-3
schedule = { kind = "linear", warmup = 100 }
"#;

const SMALL: &str = r#"
steps = 24000
accumulate = 1
checkpoint_every = 1000
evaluate_every = 1000
[text]
dev = 2000
[vocabulary]
merges = 32000
[batch]
length = 256
sequences = 64
[encoder]
layers = 8
heads = 8
dim = 512
hidden = 2048
positions = 256
[adam]
rate = 1e-3
schedule = { kind = "linear", warmup = 1000 }
"#;

const PAPER: &str = r#"
steps = 417000
accumulate = 8
checkpoint_every = 2083
evaluate_every = 2083
[text]
dev = 5000
[vocabulary]
merges = 80000
[batch]
length = 256
sequences = 96
[encoder]
[adam]
rate = 1e-4
schedule = { kind = "inverse-sqrt", warmup = 30000 }
"#;

/// Inputs as short as paper 2 cuts them.
const WINDOW_20: &str = "[batch]\nmax_tokens = 20\n";

/// The shape of multilingual BERT, which paper 2 trains anew; paper 1's is shallower.
const BERT_BASE: &str = "[encoder]\nlayers = 12\npositions = 512\ntransform = true\n";

/// The settings of a condition at a scale, before any text is named.
pub fn preset(condition: &str, scale: &str) -> Result<Table, ConfigError> {
    let layers: &[&str] = match scale {
        "tiny" => &[QUICK, TINY],
        "small" => &[QUICK, SMALL],
        "paper" => &[PAPER],
        _ => return Err(unknown("scale", scale, SCALES.map(|(name, _)| name).as_slice())),
    };
    let mut table = parse(COMMON);
    layers.iter().for_each(|layer| overlay(&mut table, parse(layer)));
    let changes = changes(condition, scale, &table)?;
    overlay(&mut table, changes);
    table.insert("preset".to_owned(), Value::from(condition));
    table.insert("scale".to_owned(), Value::from(scale));
    Ok(table)
}

/// What a condition changes.
fn changes(condition: &str, scale: &str, base: &Table) -> Result<Table, ConfigError> {
    let merges = base["vocabulary"]["merges"].as_integer().unwrap_or(0);
    // A vocabulary for each language has half the merges of one for two.
    let apart = |kind: &str| format!("[vocabulary]\nkind = \"{kind}\"\nmerges = {}\n", merges / 2);
    let layers = base["encoder"].get("layers").and_then(Value::as_integer).unwrap_or(8);
    let lower = |of_eight: i64| match (of_eight * layers + 4) / 8 {
        0 | 1 => "1".to_owned(),
        last => format!("1-{last}"),
    };
    let separate = |parts: String| format!("[encoder]\nseparate = \"{parts}\"\n");
    // Invented languages say in a tenth of the sentences what there is to say.
    let divisor = if scale == "tiny" { 10 } else { 1 };
    let bert = if scale == "paper" { BERT_BASE } else { "" };
    let sentences = |number: u64| format!("{bert}[text]\nsample = {}\n", number / divisor);
    let own = "[batch.mask]\nreplacements = \"own\"\n";
    let text = match condition {
        "default" | "wiki-cc" | "monolingual" => String::new(),
        "extra-anchors" => {
            "[switch]\nprobability = 0.3\nmost = 0.15\ndictionaries = []\n".to_owned()
        }
        "default-anchors" => apart("union"),
        "no-anchors" => apart("disjoint"),
        "sep-emb" | "same-language" => apart("disjoint") + &separate("embeddings".to_owned()) + own,
        "sep-emb-l1-3" => apart("disjoint") + &separate(format!("embeddings, {}", lower(3))) + own,
        "sep-emb-l1-6" => apart("disjoint") + &separate(format!("embeddings, {}", lower(6))) + own,
        "sep-l1-3" => apart("union") + &separate(lower(3)) + own,
        "sep-l1-6" => apart("union") + &separate(lower(6)) + own,
        "random" => "steps = 0\n".to_owned(),
        "window-20" => WINDOW_20.to_owned(),
        "sentences-200k" => sentences(200_000),
        "sentences-1000k" => sentences(1_000_000),
        "sentences-200k-window-20" => sentences(200_000) + WINDOW_20,
        "sentences-1000k-window-20" => sentences(1_000_000) + WINDOW_20,
        _ => {
            let known = CONDITIONS.map(|(name, _)| name);
            return Err(unknown("preset", condition, &known));
        }
    };
    Ok(parse(&text))
}

fn unknown(key: &'static str, name: &str, known: &[&str]) -> ConfigError {
    ConfigError::new(key, format!("no '{name}'; there are {}", known.join(", ")))
}

fn parse(text: &str) -> Table {
    text.parse().expect("a preset is valid TOML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretrain::PretrainConfig;

    #[test]
    fn every_condition_composes_with_every_scale() {
        for (scale, _) in SCALES {
            for (condition, _) in CONDITIONS {
                let mut table = preset(condition, scale).unwrap();
                let text = "languages = [\"en\", \"fr\"]\n[files]\nen = [\"a\"]\nfr = [\"b\"]\n";
                overlay(&mut table, parse(text));
                crate::pretrain::complete(&mut table);
                if condition == "extra-anchors" {
                    let error = PretrainConfig::from_table(table.clone()).unwrap_err().to_string();
                    assert!(error.contains("--dictionary"), "{error}");
                    let entry = "{ from = \"en\", to = \"fr\", file = \"d\" }";
                    overlay(&mut table, parse(&format!("[switch]\ndictionaries = [{entry}]\n")));
                }
                let config = PretrainConfig::from_table(table).unwrap();
                assert_eq!((config.preset.as_str(), config.scale.as_str()), (condition, scale));
                let again: Table = config.to_toml().parse().unwrap();
                assert_eq!(PretrainConfig::from_table(again).unwrap(), config);
            }
        }
    }

    #[test]
    fn layers_to_separate_follow_the_depth() {
        let separate = |condition, scale| {
            preset(condition, scale).unwrap()["encoder"]["separate"].as_str().unwrap().to_owned()
        };
        assert_eq!(separate("sep-l1-3", "paper"), "1-3");
        assert_eq!(separate("sep-emb-l1-6", "small"), "embeddings, 1-6");
        assert_eq!(separate("same-language", "small"), "embeddings");
        assert_eq!(separate("sep-l1-3", "tiny"), "1-2");
        assert_eq!(separate("sep-emb-l1-6", "tiny"), "embeddings, 1-3");
        let error = preset("sep", "tiny").unwrap_err().to_string();
        assert!(error.contains("no 'sep'; there are default, "), "{error}");
    }
}
