//! The vocabulary of a checkpoint: `tokenizer.json`, WordPiece's `vocab.txt`, or BPE's `vocab.json`
//! with `merges.txt`.
//!
//! `tokenizer.json` says everything and goes before the others, whose rules are those of the family:
//! BERT's normaliser, RoBERTa's bytes, or XLM's words and endings. XLM cuts words by the rules of
//! Moses, which is what is done here to any text of such a model.

use std::path::Path;

use files::At;
use serde_json::Value;
use text::{Error, ImportedTokenizer, Preparation, Result, SpecialTokens, Vocabulary};
use tokenizers::Tokenizer;
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::bert::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;

use crate::config::{Family, ModelConfig};
use crate::gguf;

/// Rows of the embedding table that may have no subword: some models pad it to a round number.
const MOST_FILLED: usize = 128;
const SAVE_ANEW: &str =
    "save the tokenizer anew with `AutoTokenizer.from_pretrained(…).save_pretrained(…)`";
/// What the vocabulary of a GGUF file is called.
const GGUF: &str = "the GGUF file";
const TOGETHER: &str = "give the model and the tokenizer that belong together";

/// Reads the vocabulary of a model, and says from which file.
pub(crate) fn read(folder: &Path, config: &ModelConfig) -> Result<(Vocabulary, &'static str)> {
    let of_gguf = gguf::gguf_file(folder).map(|path| gguf::tokenizer(&path)).transpose()?;
    let family = config.family;
    let (settings, files) = match of_gguf {
        Some((tokenizer, settings)) => (Settings([settings, Value::Null]), Some((tokenizer, GGUF))),
        None => (Settings::read(folder)?, None),
    };
    let (tokenizer, file) = if let Some(files) = files {
        files
    } else if folder.join("tokenizer.json").is_file() {
        (whole(&folder.join("tokenizer.json"))?, "tokenizer.json")
    } else if folder.join("vocab.txt").is_file() {
        (wordpiece(&folder.join("vocab.txt"), &settings)?, "vocab.txt")
    } else if folder.join("vocab.json").is_file() && folder.join("merges.txt").is_file() {
        (pairs(folder, family)?, "vocab.json")
    } else {
        let reason = "has no tokenizer.json, no vocab.txt, and no vocab.json with merges.txt";
        return Err(Error::file(folder, reason, SAVE_ANEW));
    };
    let path = if file == GGUF { folder.to_owned() } else { folder.join(file) };
    let encoder::VocabularySize::Size(size) = config.encoder.vocabulary else {
        unreachable!("an imported model has one table");
    };
    check_size(&path, &tokenizer, size)?;
    let specials = specials(&path, &tokenizer, &settings, config)?;
    let by_words = family == Family::Xlm && file == "vocab.json";
    let preparation = |name: &String| {
        let preparation = if by_words { settings.words_of_xlm(name) } else { Preparation::raw() };
        (name.clone(), preparation)
    };
    let languages = config.encoder.languages.iter().map(preparation).collect();
    // A file that says everything says what stands around a text; in the years of BERT not all did.
    let says_all = family.is_modern() && (file == "tokenizer.json" || file == GGUF);
    let frame = (!says_all).then_some((specials.start, specials.end));
    let imported = ImportedTokenizer::of(&tokenizer, frame, !config.lists_languages);
    Ok((Vocabulary::imported(tokenizer, languages, specials, size, imported)?, file))
}

/// The tokenizer's settings: `tokenizer_config.json` and `special_tokens_map.json`.
struct Settings([Value; 2]);

impl Settings {
    fn read(folder: &Path) -> Result<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            if !path.is_file() {
                return Ok(Value::Null);
            }
            let text = std::fs::read_to_string(&path).at(&path, "read")?;
            serde_json::from_str(&text)
                .map_err(|error| Error::file(&path, error.to_string(), SAVE_ANEW))
        };
        Ok(Self([read("tokenizer_config.json")?, read("special_tokens_map.json")?]))
    }

    fn is(&self, key: &str) -> Option<bool> {
        self.0.iter().find_map(|settings| settings[key].as_bool())
    }

    /// The text of a special token.
    fn token(&self, key: &str) -> Option<&str> {
        self.0.iter().find_map(|settings| match &settings[key] {
            Value::String(text) => Some(text.as_str()),
            other => other["content"].as_str(),
        })
    }

    /// How XLM prepares text.
    fn words_of_xlm(&self, language: &str) -> Preparation {
        let plain = self.is("do_lowercase_and_remove_accent").unwrap_or(true);
        let preparation = Preparation::for_language(language);
        Preparation { lowercase: plain, strip_accents: plain, ..preparation }
    }
}

fn whole(path: &Path) -> Result<Tokenizer> {
    let mut tokenizer = text::read_tokenizer(path, SAVE_ANEW)?;
    // Length is our business: nothing is cut or filled up unseen.
    tokenizer.with_padding(None);
    tokenizer
        .with_truncation(None)
        .map_err(|error| Error::file(path, error.to_string(), SAVE_ANEW))?;
    Ok(tokenizer)
}

fn wordpiece(path: &Path, settings: &Settings) -> Result<Tokenizer> {
    let text = std::fs::read_to_string(path).at(path, "read the subwords")?;
    let vocab: Vocab = text.lines().map(str::to_owned).zip(0..).collect();
    let unknown = settings.token("unk_token").unwrap_or("[UNK]").to_owned();
    text::tokenizer_of(path, SAVE_ANEW, || {
        let model = WordPiece::builder().vocab(vocab).unk_token(unknown).build()?;
        let mut tokenizer = Tokenizer::new(model);
        let lowercase = settings.is("do_lower_case").unwrap_or(true);
        let chinese = settings.is("tokenize_chinese_chars").unwrap_or(true);
        let accents = settings.is("strip_accents");
        let normalizer = BertNormalizer::new(true, chinese, accents, lowercase);
        tokenizer.with_normalizer(Some(normalizer))?;
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        Ok(tokenizer)
    })
}

/// BPE merges (Sennrich et al. 2016): RoBERTa's of bytes, XLM's of letters.
fn pairs(folder: &Path, family: Family) -> Result<Tokenizer> {
    let (path, merges) = (folder.join("vocab.json"), folder.join("merges.txt"));
    let text = std::fs::read_to_string(&path).at(&path, "read the subwords")?;
    let vocab: std::collections::HashMap<String, u32> = serde_json::from_str(&text)
        .map_err(|error| Error::file(&path, error.to_string(), SAVE_ANEW))?;
    let merges = read_merges(&merges, &vocab)?;
    let builder = BPE::builder().vocab_and_merges(vocab.into_iter().collect::<Vocab>(), merges);
    let builder = builder.unk_token("<unk>".into());
    let words = family == Family::Xlm;
    let builder = if words { builder.end_of_word_suffix("</w>".into()) } else { builder };
    text::tokenizer_of(&path, SAVE_ANEW, || {
        let mut tokenizer = Tokenizer::new(builder.build()?);
        if words {
            tokenizer.with_pre_tokenizer(Some(WhitespaceSplit));
        } else {
            tokenizer.with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(false)));
            tokenizer.with_decoder(Some(ByteLevel::default()));
        }
        Ok(tokenizer)
    })
}

/// Merges, one a line; a third column counts something, and a pair whose concatenation is no subword is passed
/// over, as it is there.
fn read_merges(path: &Path, vocab: &std::collections::HashMap<String, u32>) -> Result<Merges> {
    let text = std::fs::read_to_string(path).at(path, "read the merges")?;
    let mut merges = Merges::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("#version") || line.is_empty() {
            continue;
        }
        let mut sides = line.split(' ');
        let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
            return Err(Error::line(
                path,
                number,
                "not two subwords with a space between",
                SAVE_ANEW,
            ));
        };
        let sides =
            [left, right, &format!("{left}{right}")].map(|subword| vocab.contains_key(subword));
        if sides == [true; 3] {
            merges.push((left.to_owned(), right.to_owned()));
        }
    }
    Ok(merges)
}

/// Every subword needs a row, and all but a few rows a subword.
fn check_size(path: &Path, tokenizer: &Tokenizer, rows: usize) -> Result<()> {
    let largest = tokenizer.get_vocab(true).into_values().max();
    let subwords = largest.map_or(0, |largest| largest as usize + 1);
    if subwords > rows {
        let reason = format!("has {subwords} subwords, but the embedding table has {rows} rows");
        return Err(Error::file(path, reason, TOGETHER));
    }
    if rows - subwords >= MOST_FILLED {
        let reason = format!(
            "has {subwords} subwords, and the embedding table {rows} rows: too many would have no subword"
        );
        return Err(Error::file(path, reason, TOGETHER));
    }
    Ok(())
}

fn specials(
    path: &Path,
    tokenizer: &Tokenizer,
    settings: &Settings,
    config: &ModelConfig,
) -> Result<SpecialTokens> {
    let (family, masked) = (config.family, config.masked);
    let find = |keys: &[&str], names: &[&str]| {
        let said = keys.iter().filter_map(|key| settings.token(key));
        let mut names = said.chain(names.iter().copied());
        names.find_map(|name| tokenizer.token_to_id(name))
    };
    let need = |what: &str, keys: &[&str], names: &[&str]| {
        find(keys, names).ok_or_else(|| {
            Error::file(
                path,
                format!("has no token {what}: none of {}", names.join(", ")),
                SAVE_ANEW,
            )
        })
    };
    let (first, last) = match family {
        Family::Xlm => (["bos_token", "cls_token"], ["sep_token", "eos_token"]),
        _ => (["cls_token", "bos_token"], ["sep_token", "eos_token"]),
    };
    let ends = ["[SEP]", "</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>"];
    let end = need("that ends a sentence", &last, &ends)?;
    let unknown = find(&["unk_token"], &["[UNK]", "<unk>"]).unwrap_or(end);
    Ok(SpecialTokens {
        // What a decoder does not have is never asked for.
        start: match masked {
            true => need("that starts a text", &first, &["[CLS]", "<s>"])?,
            false => find(&first, &["<s>", "<bos>", "<|begin_of_text|>"]).unwrap_or(end),
        },
        end,
        pad: find(&["pad_token"], &["[PAD]", "<pad>"]).unwrap_or(unknown),
        unknown,
        mask: match masked {
            true => {
                need("that hides another", &["mask_token"], &["[MASK]", "<mask>", "<special1>"])?
            }
            false => unknown,
        },
    })
}
