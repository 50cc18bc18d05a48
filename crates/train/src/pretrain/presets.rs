//! Presets and scales as configurations: what the papers compare, and how large.
//!
//! A scale sets every size; a preset changes something. They compose: any preset at any scale. Layers to
//! separate are given for the papers' eight and follow the depth.
//!
//! `paper` is Conneau et al. 2020, §3.1: 96 streams of 256 tokens on each of eight GPUs (`accumulate`), an
//! evaluation after every epoch of 200,000 streams a GPU (2,083 updates), 200 epochs ([`Scale::steps`] says
//! why these are streams and not batches), and no stop before: the best epoch by the perplexity of the first
//! language is kept. Liu et al. 2020 do not say how long they train; the same number of updates of as many
//! tokens is taken for them, in inputs of 512.

use encoder::{ConfigError, EncoderConfig};
use terms::{Preset, Scale};
use toml::{Table, Value};

use super::config::{PretrainConfig, overlay};

/// What is the same at every scale.
const COMMON: &str = r#"
seed = 1
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

/// With these settings the loss leaves the initial plateau (unigram entropy) soon, where the papers' own
/// need days: for the scales below theirs.
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

/// Many small updates, rows that begin with sentences, and short rows at first: with each of these a
/// shared space emerges earlier (`bench/notes/2026-11-15-speeding-up-emergence.md`).
const TINY: &str = r#"
accumulate = 2
patience = 25
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
heads = 4
hidden = 192
positions = 32
[adam]
lr = 3e-3
schedule = { kind = "linear", warmup = 100 }
"#;

/// Post-LayerNorm as in Conneau et al. 2020: with pre-LayerNorm, three separate layers of eight already break
/// transfer. Rows of 64 tokens that begin with sentences for three quarters of the
/// updates, then rows of 256 (`bench/notes/2026-11-16-recipe-of-small.md`).
const SMALL: &str = r#"
accumulate = 1
patience = 25
checkpoint_every = 1000
evaluate_every = 1000
stages = [{ share = 0.75, length = 64, sequences = 256 }]
[text]
dev = 2000
[vocabulary]
merges = 32000
[batch]
length = 256
sequences = 64
aligned = true
[encoder]
norm = "post"
heads = 8
hidden = 2048
positions = 256
[adam]
lr = 1e-3
schedule = { kind = "linear", warmup = 2000 }
"#;

const PAPER: &str = r#"
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
lr = 1e-4
schedule = { kind = "inverse-sqrt", warmup = 30000 }
"#;

/// The shape and inputs of multilingual BERT, which Liu et al. 2020 retrain (its depth is
/// [`Preset::layers`]); the encoders of Conneau et al. 2020 are shallower and read 256 tokens. Half as many
/// inputs of twice the length are as many tokens.
const BERT_BASE: &str = "[batch]\nlength = 512\nsequences = 48\n\
                         [encoder]\npositions = 512\ntransform = true\n";

/// The tokens that an encoder of a preset reads at a scale, special tokens included.
pub fn preset_positions(preset: Preset, scale: Scale) -> usize {
    let keys = preset_keys(preset, scale);
    let named = keys.get("encoder").and_then(|encoder| encoder.get("positions"));
    let default = EncoderConfig::default().positions;
    named.and_then(Value::as_integer).map_or(default, |positions| positions as usize)
}

/// The keys of a preset at a scale, before any text is named.
pub fn preset_keys(preset: Preset, scale: Scale) -> Table {
    let layers: &[&str] = match scale {
        Scale::Tiny => &[QUICK, TINY],
        Scale::Small => &[QUICK, SMALL],
        Scale::Paper => &[PAPER],
    };
    let mut table = parse(COMMON);
    layers.iter().for_each(|layer| overlay(&mut table, parse(layer)));
    let (steps, layers, dim) = (scale.steps(), preset.layers(scale), scale.dim());
    let sizes = format!("steps = {steps}\n[encoder]\nlayers = {layers}\ndim = {dim}\n");
    overlay(&mut table, parse(&sizes));
    if scale == Scale::Paper && preset.sentences(scale).is_some() {
        overlay(&mut table, parse(BERT_BASE));
    }
    let changes = changes(preset, scale, &table);
    overlay(&mut table, parse(&changes));
    table.insert("preset".to_owned(), Value::from(preset.name()));
    table.insert("scale".to_owned(), Value::from(scale.name()));
    table
}

fn changes(preset: Preset, scale: Scale, base: &Table) -> String {
    let merges = base["vocabulary"]["merges"].as_integer().unwrap_or(0);
    // A vocabulary for each language has half the merges of one for two.
    let apart = |kind: &str| format!("[vocabulary]\nkind = \"{kind}\"\nmerges = {}\n", merges / 2);
    let embeddings = "[encoder]\nseparate = \"embeddings\"\n";
    let own = "[batch.mask]\nreplacements = \"own\"\n";
    let sample = preset.sentences(scale);
    let sample = sample.map(|number| format!("text.sample = {number}\n"));
    let window = preset.window(scale).map(|tokens| format!("batch.max_tokens = {tokens}\n"));
    match preset {
        Preset::Default | Preset::WikiCc | Preset::Monolingual => String::new(),
        Preset::ExtraAnchors => {
            "[switch]\nprobability = 0.3\nmost = 0.15\ndictionaries = []\n".to_owned()
        }
        Preset::DefaultAnchors => apart("union"),
        Preset::NoAnchors => apart("disjoint"),
        Preset::SepEmb | Preset::SameLanguage => apart("disjoint") + embeddings + own,
        // Which layers are separate is filled in when it is known how many there are.
        Preset::SepEmbL1To3 | Preset::SepEmbL1To6 => apart("disjoint") + own,
        Preset::SepL1To3 | Preset::SepL1To6 => apart("union") + own,
        Preset::Untrained => "steps = 0\n".to_owned(),
        Preset::Window20
        | Preset::Sentences200k
        | Preset::Sentences1000k
        | Preset::Sentences200kWindow20
        | Preset::Sentences1000kWindow20 => {
            sample.unwrap_or_default() + &window.unwrap_or_default()
        }
    }
}

/// The value of `encoder.separate` where a preset separates lower layers, in an encoder of so many.
fn lower_layers(preset: Preset, layers: i64) -> Option<String> {
    let embeddings = matches!(preset, Preset::SepEmbL1To3 | Preset::SepEmbL1To6);
    let before = if embeddings { "embeddings, " } else { "" };
    Some(match preset.separate_layers(usize::try_from(layers).unwrap_or(0))? {
        1 => format!("{before}1"),
        last => format!("{before}1-{last}"),
    })
}

/// The number of layers in a configuration, where it has the key.
fn layers(table: &Table) -> Option<i64> {
    table.get("encoder")?.get("layers")?.as_integer()
}

/// What the preset of a configuration separates, if that depends on its layers.
fn separated(table: &Table, layers: i64) -> Option<Value> {
    let preset = table.get("preset")?.as_str()?.parse().ok()?;
    lower_layers(preset, layers).map(Value::from)
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

/// Removes what [`complete_separate`] filled in, because the number of layers is to change.
pub(super) fn release_separate(file: &mut Table) {
    let filled_in = layers(file).and_then(|layers| separated(file, layers));
    let Some(Value::Table(encoder)) = file.get_mut("encoder") else { return };
    if filled_in.is_some() && encoder.get("separate") == filled_in.as_ref() {
        encoder.remove("separate");
    }
}

/// Whether a configuration still is what its preset says.
pub(super) fn check_preset(config: &PretrainConfig) -> Result<(), ConfigError> {
    let PretrainConfig { preset, steps, encoder, .. } = config;
    if *preset == Preset::Untrained && *steps > 0 {
        let reason = format!(
            "is {steps}, and preset `untrained` has no training; leave it out, or begin from another preset"
        );
        return Err(ConfigError::new("steps", reason));
    }
    let all = (1..=encoder.layers).all(|layer| encoder.separate.layers.contains(&layer));
    if all && lower_layers(*preset, 8).is_some() {
        let reason = format!(
            "'{}' of encoder.layers = {} leaves no layer that languages share, and preset `{preset}` \
             separates only the lower ones; ask for more layers, or begin from another preset and set \
             encoder.separate there",
            encoder.separate, encoder.layers
        );
        return Err(ConfigError::new("encoder.separate", reason));
    }
    Ok(())
}

fn parse(text: &str) -> Table {
    text.parse().expect("a preset is valid TOML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretrain::request::complete;

    #[test]
    fn every_preset_composes_with_every_scale() {
        for scale in Scale::ALL {
            for preset in Preset::all() {
                let mut table = preset_keys(preset, scale);
                let text = "languages = [\"en\", \"fr\"]\n[files]\nen = [\"a\"]\nfr = [\"b\"]\n";
                overlay(&mut table, parse(text));
                complete(&mut table);
                if preset == Preset::ExtraAnchors {
                    let error = PretrainConfig::from_table(table.clone()).unwrap_err();
                    assert_eq!(error.key, "switch.dictionaries", "{error}");
                    let entry = "{ from = \"en\", to = \"fr\", file = \"d\" }";
                    overlay(&mut table, parse(&format!("[switch]\ndictionaries = [{entry}]\n")));
                }
                let config = PretrainConfig::from_table(table).unwrap();
                assert_eq!((config.preset, config.scale), (preset, scale));
                let again: Table = config.to_toml().parse().unwrap();
                assert_eq!(PretrainConfig::from_table(again).unwrap(), config);
            }
        }
    }

    /// Conneau et al. 2020, §3.1, and Liu et al. 2020, §3: no other stop, length or depth.
    #[test]
    fn the_papers_scale_is_the_papers() {
        let of = |preset| {
            let mut table = preset_keys(preset, Scale::Paper);
            overlay(&mut table, parse("languages = [\"en\"]\n[files]\nen = [\"a\"]\n"));
            complete(&mut table);
            PretrainConfig::from_table(table).unwrap()
        };
        let conneau = of(Preset::Default);
        let epoch = 200_000.0 / conneau.batch.sequences as f64;
        assert_eq!(conneau.evaluate_every, epoch as u64);
        assert_eq!((conneau.steps as f64 / epoch).round(), 200.0);
        assert_eq!((conneau.accumulate, conneau.patience), (8, None));
        assert_eq!((conneau.batch.length, conneau.encoder.layers), (256, 8));
        let liu = of(Preset::Sentences1000k);
        assert_eq!((liu.batch.length, liu.batch.max_tokens), (512, None));
        assert_eq!((liu.encoder.layers, liu.encoder.positions), (12, 512));
        let tokens = |config: &PretrainConfig| config.batch.length * config.batch.sequences;
        assert_eq!(tokens(&liu), tokens(&conneau));
        let short = of(Preset::Sentences200kWindow20);
        assert_eq!((short.batch.length, short.batch.max_tokens), (512, Some(20)));
        assert_eq!((short.encoder.layers, short.text.sample), (12, Some(200_000)));
    }

    #[test]
    fn layers_to_separate_follow_the_depth() {
        let of = |preset, scale, layers: Option<i64>| {
            let mut table = preset_keys(preset, scale);
            if let Some(layers) = layers {
                overlay(&mut table, parse(&format!("[encoder]\nlayers = {layers}\n")));
            }
            complete(&mut table);
            table
        };
        let separate = |preset, scale| {
            of(preset, scale, None)["encoder"]["separate"].as_str().unwrap().to_owned()
        };
        assert_eq!(separate(Preset::SepL1To3, Scale::Paper), "1-3");
        assert_eq!(separate(Preset::SepEmbL1To6, Scale::Small), "embeddings, 1-6");
        assert_eq!(separate(Preset::SameLanguage, Scale::Small), "embeddings");
        assert_eq!(separate(Preset::SepL1To3, Scale::Tiny), "1-2");
        assert_eq!(separate(Preset::SepEmbL1To6, Scale::Tiny), "embeddings, 1-3");
        let deep = |layers| of(Preset::SepL1To3, Scale::Tiny, Some(layers));
        assert_eq!(deep(12)["encoder"]["separate"].as_str(), Some("1-5"));
        assert_eq!(deep(i64::MAX)["preset"].as_str(), Some("sep-l1-3"));
        // What was filled in for a depth is removed with it, what was given is not.
        let mut file = of(Preset::SepEmbL1To3, Scale::Tiny, None);
        release_separate(&mut file);
        assert_eq!(file["encoder"].get("separate"), None);
        overlay(&mut file, parse("[encoder]\nseparate = \"4\"\n"));
        release_separate(&mut file);
        assert_eq!(file["encoder"]["separate"].as_str(), Some("4"));
    }
}
