//! Conditions and scales: what the papers compare, and how large.
//!
//! A scale says how large everything is; a condition says what is changed. They compose: any
//! condition at any scale. Layers to separate are given for the papers' eight and follow the depth.

use encoder::{ConfigError, EncoderConfig};
use toml::{Table, Value};

use super::config::{PretrainConfig, overlay};

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
    let embeddings = "[encoder]\nseparate = \"embeddings\"\n";
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
        "sep-emb" | "same-language" => apart("disjoint") + embeddings + own,
        // Which layers are separate is filled in when it is known how many there are.
        "sep-emb-l1-3" | "sep-emb-l1-6" => apart("disjoint") + own,
        "sep-l1-3" | "sep-l1-6" => apart("union") + own,
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

/// What a condition separates where some layers are among it, in an encoder of so many.
fn lower_layers(condition: &str, layers: i64) -> Option<String> {
    let (before, of_eight) = match condition {
        "sep-emb-l1-3" => ("embeddings, ", 3),
        "sep-emb-l1-6" => ("embeddings, ", 6),
        "sep-l1-3" => ("", 3),
        "sep-l1-6" => ("", 6),
        _ => return None,
    };
    // No flag may come to more than a number can count.
    Some(match (layers.clamp(0, 1 << 32) * of_eight + 4) / 8 {
        0 | 1 => format!("{before}1"),
        last => format!("{before}1-{last}"),
    })
}

/// The layers of the encoder of a configuration, if it says how many.
fn layers(table: &Table) -> Option<i64> {
    table.get("encoder")?.get("layers")?.as_integer()
}

/// What the condition of a configuration separates, if that depends on its layers.
fn separated(table: &Table, layers: i64) -> Option<Value> {
    let condition = table.get("preset")?.as_str()?;
    lower_layers(condition, layers).map(Value::from)
}

/// Fills in the layers to separate, unless they are given.
pub(super) fn complete_separate(table: &mut Table) {
    let depth = layers(table).unwrap_or(EncoderConfig::default().layers as i64);
    let separated = separated(table, depth);
    let encoder = table.get_mut("encoder").and_then(Value::as_table_mut);
    if let (Some(separated), Some(encoder)) = (separated, encoder) {
        encoder.entry("separate").or_insert(separated);
    }
}

/// Forgets what [`complete_separate`] filled in, because the layers are to be others.
pub(super) fn loosen_separate(file: &mut Table) {
    let filled_in = layers(file).and_then(|layers| separated(file, layers));
    let Some(Value::Table(encoder)) = file.get_mut("encoder") else { return };
    if filled_in.is_some() && encoder.get("separate") == filled_in.as_ref() {
        encoder.remove("separate");
    }
}

/// Whether a configuration still is what its condition says.
pub(super) fn check_condition(config: &PretrainConfig) -> Result<(), ConfigError> {
    let PretrainConfig { preset, steps, encoder, .. } = config;
    if preset == "random" && *steps > 0 {
        let reason = format!(
            "is {steps}, and preset `random` is no training at all; leave it out, or begin from another \
             --preset"
        );
        return Err(ConfigError::new("steps", reason));
    }
    let all = (1..=encoder.layers).all(|layer| encoder.separate.layers.contains(&layer));
    if all && lower_layers(preset, 8).is_some() {
        let reason = format!(
            "'{}' of encoder.layers = {} leaves no layer that languages share, and preset `{preset}` \
             separates only the lower ones; give more layers, or begin from another --preset with \
             --encoder.separate '{}'",
            encoder.separate, encoder.layers, encoder.separate
        );
        return Err(ConfigError::new("encoder.separate", reason));
    }
    Ok(())
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
        let of = |condition, scale, layers: Option<i64>| {
            let mut table = preset(condition, scale).unwrap();
            if let Some(layers) = layers {
                overlay(&mut table, parse(&format!("[encoder]\nlayers = {layers}\n")));
            }
            crate::pretrain::complete(&mut table);
            table
        };
        let separate = |condition, scale| {
            of(condition, scale, None)["encoder"]["separate"].as_str().unwrap().to_owned()
        };
        assert_eq!(separate("sep-l1-3", "paper"), "1-3");
        assert_eq!(separate("sep-emb-l1-6", "small"), "embeddings, 1-6");
        assert_eq!(separate("same-language", "small"), "embeddings");
        assert_eq!(separate("sep-l1-3", "tiny"), "1-2");
        assert_eq!(separate("sep-emb-l1-6", "tiny"), "embeddings, 1-3");
        assert_eq!(of("sep-l1-3", "tiny", Some(12))["encoder"]["separate"].as_str(), Some("1-5"));
        assert_eq!(of("sep-l1-3", "tiny", Some(i64::MAX))["preset"].as_str(), Some("sep-l1-3"));
        // What was filled in for a depth is forgotten with it, what was given is not.
        let mut file = of("sep-emb-l1-3", "tiny", None);
        loosen_separate(&mut file);
        assert_eq!(file["encoder"].get("separate"), None);
        overlay(&mut file, parse("[encoder]\nseparate = \"4\"\n"));
        loosen_separate(&mut file);
        assert_eq!(file["encoder"]["separate"].as_str(), Some("4"));
        let error = preset("sep", "tiny").unwrap_err().to_string();
        assert!(error.contains("no 'sep'; there are default, "), "{error}");
    }
}
