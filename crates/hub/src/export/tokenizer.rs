//! The tokenizer's files, and the ids of an exported model's subwords.

use encoder::EncoderConfig;
use serde_json::{Value, json};
use text::{Vocabulary, VocabularyKind};

/// From ids of the vocabulary to rows of the exported table, and from these to the encoder's.
pub(super) struct ExportIds {
    /// For each id, its row; those of other languages have that of the unknown.
    rows: Vec<u32>,
    /// For each id, the encoder's row.
    encoder: Vec<u32>,
    /// For each row, the encoder's; none where the language has no such subword.
    sources: Vec<Option<usize>>,
    /// The encoder's row of the unknown.
    pub(super) unknown: usize,
    renumbered: bool,
}

impl ExportIds {
    /// Where a language has a tokenizer of its own, its subwords alone are exported, under new ids.
    /// Where it has only embeddings of its own, the ids stay: a common tokenizer cannot leave a
    /// subword out.
    pub(super) fn new(
        vocabulary: &Vocabulary,
        language: Option<usize>,
        config: &EncoderConfig,
    ) -> Self {
        let all: Vec<u32> = (0..vocabulary.len() as u32).collect();
        let own = vocabulary.language_ids(language.unwrap_or(0));
        let separate = language.is_some() && config.separate.tokens;
        let renumbered = language.is_some()
            && matches!(vocabulary.kind(), VocabularyKind::Union | VocabularyKind::Disjoint);
        let size = match language {
            // A tokenizer that later languages have not grown gives the first ids alone.
            Some(language) if !renumbered && !vocabulary.has_one_tokenizer() => {
                vocabulary.tokenizer_size(language)
            }
            _ => vocabulary.len(),
        };
        let unknown = vocabulary.specials().unknown;
        // The place of an id among the language's own, and its row of the encoder's table.
        let place = |id: u32| own.binary_search(&id).ok();
        let row = |id: u32| match separate {
            _ if id as usize >= size => None,
            true => place(id),
            false => Some(id as usize),
        };
        let unknown_row = row(unknown).unwrap_or(0);
        let unknown_place = place(unknown).unwrap_or(0) as u32;
        let encoder = all.iter().map(|&id| row(id).unwrap_or(unknown_row) as u32).collect();
        let (rows, sources) = if renumbered {
            let places = all.iter().map(|&id| place(id).map_or(unknown_place, |at| at as u32));
            (places.collect(), own.iter().map(|&id| row(id)).collect())
        } else {
            let within = |id: u32| if (id as usize) < size { id } else { unknown };
            let rows = all.iter().map(|&id| within(id)).collect();
            (rows, all[..size].iter().map(|&id| row(id)).collect())
        };
        Self { rows, encoder, sources, unknown: unknown_row, renumbered }
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

/// Special tokens around a sentence or a pair, for a tokenizer that adds none by itself: that of a model whose vocabulary
/// came as a list of subwords, where the family's code adds them.
fn special_tokens([(start, start_id), (end, end_id)]: [(&str, u32); 2]) -> Value {
    let special =
        |name: &str, segment: u32| json!({ "SpecialToken": { "id": name, "type_id": segment } });
    let sequence =
        |name: &str, segment: u32| json!({ "Sequence": { "id": name, "type_id": segment } });
    let single = json!([special(start, 0), sequence("A", 0), special(end, 0)]);
    let mut pair = single.clone();
    let second = [sequence("B", 1), special(end, 1)];
    pair.as_array_mut().expect("a list").extend(second);
    let token = |name: &str, id: u32| json!({ "id": name, "ids": [id], "tokens": [name] });
    json!({
        "type": "TemplateProcessing",
        "single": single,
        "pair": pair,
        "special_tokens": { start: token(start, start_id), end: token(end, end_id) },
    })
}

/// The files that `AutoTokenizer` reads, by name, from the tokenizer's description.
pub(super) fn files(
    vocabulary: &Vocabulary,
    tokenizer: &str,
    ids: &ExportIds,
    longest: usize,
) -> Vec<(&'static str, String)> {
    let specials = vocabulary.specials();
    let name = |id: u32| vocabulary.subword(id).unwrap_or_default();
    let (start, end) = vocabulary.bos_eos();
    let mut tokenizer: Value = serde_json::from_str(tokenizer).expect("a tokenizer is valid JSON");
    if tokenizer["post_processor"].is_null() {
        tokenizer["post_processor"] = special_tokens([(name(start), start), (name(end), end)]);
    }
    if ids.renumbered {
        ids.renumber(&mut tokenizer);
    }
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
    vec![
        ("tokenizer.json", tokenizer.to_string()),
        ("tokenizer_config.json", super::pretty(&settings)),
        ("special_tokens_map.json", super::pretty(&tokens)),
    ]
}
