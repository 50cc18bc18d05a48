//! The model card: what the model is, how it was trained, what it scored, how to load it.

use std::fmt::Write as _;

use encoder::EncoderConfig;
use serde_json::Value;
use text::{Preparation, Words};

use crate::config::Family;

/// What a model card is written from, beside the model.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// What the model is called.
    pub name: String,
    /// The configuration of the run, as it stands in its folder.
    pub config: Option<String>,
    /// What the run came to.
    pub summary: Option<Value>,
}

impl Card {
    pub(super) fn text(
        &self,
        family: Family,
        config: &EncoderConfig,
        languages: &[String],
        prepared: Preparation,
        guesses: bool,
    ) -> String {
        let mut text = String::from("---\nlibrary_name: transformers\npipeline_tag: fill-mask\n");
        let named = |name: &&String| *name != crate::config::ANY;
        if languages.iter().any(|name| named(&name)) {
            text += "language:\n";
            languages.iter().filter(named).for_each(|name| _ = writeln!(text, "- {name}"));
        }
        text += "tags:\n- isogloss\n---\n\n";
        let _ = writeln!(text, "# {}\n", self.name);
        let class = match family {
            Family::Xlm => "XLMWithLMHeadModel",
            Family::XlmRobertaXl => "XLMRobertaXLForMaskedLM",
            _ => "BertForMaskedLM",
        };
        let _ = writeln!(
            text,
            "A masked language model of {} layers, {} dimensions and {} heads, for inputs of up to {} \
             tokens. It was trained with Isogloss and exported as `{class}`; its scores are those of the \
             original up to rounding.\n",
            config.layers, config.dim, config.heads, config.positions
        );
        if !guesses {
            text += "It has no trained head for masked tokens: use its hidden states alone.\n\n";
        }
        text += "```python\nfrom transformers import AutoModelForMaskedLM, AutoTokenizer\n\n\
                 tokenizer = AutoTokenizer.from_pretrained(\".\")\n\
                 model = AutoModelForMaskedLM.from_pretrained(\".\")\n```\n\n";
        text += &preparation(prepared);
        text += &self.scores();
        text += &self.training();
        text
    }

    fn scores(&self) -> String {
        let Some(summary) = &self.summary else { return String::new() };
        let mut text = String::from("## What it scored\n\n");
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
        format!(
            "## How it was trained\n\n`isogloss pretrain` with\n\n```toml\n{}\n```\n",
            config.trim()
        )
    }
}

/// What has to be done to text before the tokenizer takes it.
fn preparation(prepared: Preparation) -> String {
    let words = match prepared.words {
        Words::Raw => return String::new(),
        Words::Spaces => "The tokenizer cuts words at spaces",
        Words::Moses => {
            "The tokenizer expects words that were cut by rules like those of Moses, with a space between \
             any two (`Hello , world .`)"
        }
        Words::Jieba => {
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
