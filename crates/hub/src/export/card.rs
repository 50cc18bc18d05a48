//! The model card: what the model is, how it was trained, what it scored, how to load it.

use std::fmt::Write as _;

use encoder::EncoderConfig;
use serde_json::Value;
use text::{Preparation, WordTokenizer};

/// What a model card is written from, beside the model.
#[derive(Clone, Debug, Default)]
pub struct ModelCard {
    /// What the model is called.
    pub name: String,
    /// What it was imported from, where it was not trained here.
    pub imported: Option<String>,
    /// The configuration of the run, as it stands in its folder.
    pub config: Option<String>,
    /// The summary of the run.
    pub summary: Option<Value>,
}

impl ModelCard {
    pub(super) fn text(
        &self,
        class: &str,
        config: &EncoderConfig,
        languages: &[String],
        prepared: Option<Preparation>,
        has_mlm_head: bool,
    ) -> String {
        let task = if has_mlm_head { "fill-mask" } else { "feature-extraction" };
        let mut text = format!("---\nlibrary_name: transformers\npipeline_tag: {task}\n");
        let named = |name: &&String| *name != crate::config::ANY;
        if languages.iter().any(|name| named(&name)) {
            text += "language:\n";
            languages.iter().filter(named).for_each(|name| _ = writeln!(text, "- {name}"));
        }
        text += "tags:\n- isogloss\n---\n\n";
        let _ = writeln!(text, "# {}\n", self.name);
        let (what, same) = match has_mlm_head {
            true => ("A masked language model", "logits"),
            false => ("An encoder", "hidden states"),
        };
        let _ = writeln!(
            text,
            "{what} of {} layers, {} dimensions and {} heads, for inputs of up to {} tokens. {} It was \
             exported with Isogloss as `{class}`; its {same} are those of the encoder that it was exported \
             from, up to rounding.\n",
            config.layers,
            config.dim,
            config.heads,
            config.positions,
            self.origin(),
        );
        if !has_mlm_head {
            text += "It has no MLM head, since the model that was imported had none. Nor has \
                     it a pooler: use its hidden states, and not `pooler_output`.\n\n";
        }
        let auto = if has_mlm_head { "AutoModelForMaskedLM" } else { "AutoModel" };
        let _ = writeln!(
            text,
            "```python\nfrom transformers import {auto}, AutoTokenizer\n\n\
             tokenizer = AutoTokenizer.from_pretrained(\".\")\n\
             model = {auto}.from_pretrained(\".\")\n```\n"
        );
        text += &prepared.map_or_else(|| RAW.to_owned(), preparation);
        text += &self.scores();
        text += &self.training();
        text
    }

    /// Where the encoder comes from, in a sentence.
    fn origin(&self) -> String {
        match &self.imported {
            None => "It was trained with Isogloss.".to_owned(),
            Some(name) => {
                format!("It was not trained with Isogloss, but imported from `{name}`.")
            }
        }
    }

    fn scores(&self) -> String {
        let Some(summary) = &self.summary else { return String::new() };
        let mut text = String::from("## Evaluation\n\n");
        for (language, perplexity) in summary["perplexity"].as_object().into_iter().flatten() {
            let perplexity = perplexity.as_f64().unwrap_or(f64::NAN);
            let _ = writeln!(text, "- perplexity on held-out text of {language}: {perplexity:.2}");
        }
        let _ = writeln!(
            text,
            "\nThe whole summary of the run:\n\n```json\n{}\n```\n",
            super::pretty(summary)
        );
        text
    }

    fn training(&self) -> String {
        let Some(config) = &self.config else { return String::new() };
        format!("## Training\n\n`isogloss pretrain` with\n\n```toml\n{}\n```\n", config.trim())
    }
}

const RAW: &str = "## Text\n\nThe tokenizer takes raw text: it cuts words and punctuation as text was cut for training.\n\n";

/// What has to be done to text before it is tokenized.
fn preparation(prepared: Preparation) -> String {
    let words = match prepared.words {
        WordTokenizer::Raw => return String::new(),
        WordTokenizer::Whitespace => "The tokenizer cuts words at spaces",
        WordTokenizer::Moses => {
            "The tokenizer expects words that were cut by rules like those of Moses, with a space between \
             any two (`Hello , world .`)"
        }
        WordTokenizer::Jieba => {
            "The tokenizer expects words that were cut by `jieba`, with a space between any two"
        }
    };
    let letters = match (prepared.lowercase, prepared.strip_accents) {
        (false, false) => "",
        (true, false) => ", and lowers letters",
        (false, true) => ", and takes accents off",
        (true, true) => ", lowers letters and takes accents off",
    };
    format!("## Text\n\n{words}{letters}.\n\n")
}
