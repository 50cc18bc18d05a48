//! The tokenizer's files, and how the pieces of an exported model are numbered.

use encoder::EncoderConfig;
use serde_json::{Value, json};
use text::{Kind, Result, Vocabulary};

/// From ids of the vocabulary to rows of the exported table, and from these to the encoder's.
pub(super) struct Numbers {
    /// For each id, its row; those of other languages have that of the unknown.
    rows: Vec<u32>,
    /// For each id, the encoder's row.
    encoder: Vec<u32>,
    /// For each row, the encoder's; none where the language has no such piece.
    sources: Vec<Option<usize>>,
    /// The encoder's row of the unknown.
    pub(super) unknown: usize,
    renumbered: bool,
}

impl Numbers {
    /// Where embeddings are separate, a language's pieces alone are exported: under new numbers where
    /// the language has a tokenizer of its own, else under those of the common one, which cannot
    /// leave a piece out.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        language: Option<usize>,
        config: &EncoderConfig,
    ) -> Self {
        let all: Vec<u32> = (0..vocabulary.len() as u32).collect();
        let separate = language.filter(|_| config.separate.tokens);
        let Some(language) = separate else {
            let sources = all.iter().map(|&id| Some(id as usize)).collect();
            let unknown = vocabulary.specials().unknown as usize;
            return Self { rows: all.clone(), encoder: all, sources, unknown, renumbered: false };
        };
        let own = vocabulary.own(language);
        let place = |id: u32| own.binary_search(&id).ok();
        let unknown = place(vocabulary.specials().unknown).unwrap_or(0);
        let encoder: Vec<u32> = all.iter().map(|&id| place(id).unwrap_or(unknown) as u32).collect();
        if matches!(vocabulary.kind(), Kind::Union | Kind::Disjoint) {
            let sources = (0..own.len()).map(Some).collect();
            return Self { rows: encoder.clone(), encoder, sources, unknown, renumbered: true };
        }
        let sources = all.iter().map(|&id| place(id)).collect();
        Self { rows: all, encoder, sources, unknown, renumbered: false }
    }

    /// The row of an id.
    pub(super) fn of(&self, id: u32) -> u32 {
        self.rows[id as usize]
    }

    /// The encoder's row of an id.
    pub(super) fn encoder(&self, id: u32) -> u32 {
        self.encoder[id as usize]
    }

    /// The encoder's row behind a row of the table.
    pub(super) fn row(&self, row: usize) -> Option<usize> {
        self.sources[row]
    }

    /// Rows of the table.
    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Gives every number in a tokenizer's description its new value.
    fn renumber(&self, tokenizer: &mut Value) {
        let new = |id: &mut Value| {
            if let Some(old) = id.as_u64() {
                *id = json!(self.rows[old as usize]);
            }
        };
        if let Some(vocab) = tokenizer["model"]["vocab"].as_object_mut() {
            vocab.values_mut().for_each(new);
        }
        for token in tokenizer["added_tokens"].as_array_mut().into_iter().flatten() {
            new(&mut token["id"]);
        }
        let specials = tokenizer["post_processor"]["special_tokens"].as_object_mut();
        for token in specials.into_iter().flat_map(|specials| specials.values_mut()) {
            token["ids"].as_array_mut().into_iter().flatten().for_each(new);
        }
    }
}

/// The files that `AutoTokenizer` reads, by name.
pub(super) fn files(
    vocabulary: &Vocabulary,
    language: Option<usize>,
    numbers: &Numbers,
    longest: usize,
) -> Result<Vec<(&'static str, String)>> {
    let text = vocabulary.tokenizer_json(language.unwrap_or(0))?;
    let text = if numbers.renumbered {
        let mut tokenizer: Value = serde_json::from_str(&text).expect("a tokenizer is valid JSON");
        numbers.renumber(&mut tokenizer);
        tokenizer.to_string()
    } else {
        text
    };
    let specials = vocabulary.specials();
    let name = |id: u32| vocabulary.piece(id).unwrap_or_default();
    let (start, end) = vocabulary.frame();
    let tokens = json!({
        "bos_token": name(specials.start),
        "eos_token": name(specials.end),
        "cls_token": name(start),
        "sep_token": name(end),
        "unk_token": name(specials.unknown),
        "pad_token": name(specials.pad),
        "mask_token": name(specials.mask),
    });
    let mut settings = tokens.clone();
    settings["tokenizer_class"] = json!("PreTrainedTokenizerFast");
    settings["model_max_length"] = json!(longest);
    settings["clean_up_tokenization_spaces"] = json!(false);
    Ok(vec![
        ("tokenizer.json", text),
        ("tokenizer_config.json", super::pretty(&settings)),
        ("special_tokens_map.json", super::pretty(&tokens)),
    ])
}
