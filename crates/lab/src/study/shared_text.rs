//! Vocabularies and tokenised corpora of real text as steps of their own.
//!
//! Learning a vocabulary and tokenising some 60 MB of text a language take most of a minute, which every pretraining
//! would repeat. Conditions and seeds that read the same sentences and have the same kind of vocabulary share both: the
//! pretraining is given the folders that `vocab train` and `corpus prepare` made, and trains as if it had made them
//! itself. The sentences that are held out are then the same for all seeds (`text.seed` is 1), unless a preset samples
//! its text: there, seeds draw samples of their own.

use commands::corpus::Prepare;
use commands::pretrain::Pretrain;
use commands::request::Request as _;
use commands::texts::TextFlags;
use commands::vocab::{KindFlag, Train};
use terms::Preset;
use text::check_language;
use toml::{Table, Value};
use train::pretrain::preset_keys;

use super::error::Result;
use super::plan::StudyPlanner;
use super::step::{CommandArg, StepDraft, StepList};

/// Seeds the choice of held-out sentences where all sentences are read.
const TEXT_SEED: u64 = 1;

/// The key that samples text, with its value.
const SAMPLE: &str = "text.sample=";

/// What decides the vocabulary and the sentences of a pretraining.
#[derive(Debug, PartialEq, Eq)]
struct TextSettings {
    kind: KindFlag,
    merges: usize,
    dev: u64,
    sample: Option<usize>,
    seed: u64,
}

/// Gives a pretraining the vocabulary and the corpora of steps of their own, where its text is real and known to be
/// read as those commands read it; else leaves it as it is. What is asked of it stands before a study's flags, which are
/// words, and the rest after them.
pub(super) fn share_text(
    planner: &mut StudyPlanner<'_>,
    (asked, flags): (&Pretrain, &[String]),
    rest: &mut Pretrain,
) -> Result<()> {
    let seed = rest.seed.unwrap_or_default().unsigned_abs();
    let settings = TextSettings::of(asked, flags, seed).filter(|_| !asked.texts.is_empty());
    let Some(TextSettings { kind, merges, dev, sample, seed }) = settings else { return Ok(()) };
    let mut languages: Vec<&str> =
        asked.texts.iter().map(|(language, _)| language.as_str()).collect();
    languages.dedup();
    if languages.iter().any(|language| check_language(language).is_err()) {
        return Ok(());
    }
    let languages = languages.join(", ");
    let read = |text: &mut TextFlags| {
        text.texts.clone_from(&asked.texts);
        text.dev = dev;
        text.sentences.rows.sample_size = sample;
        text.seed = seed;
    };
    let sampled = sample.map_or(String::new(), |sample| format!(" from {sample} sentences each"));
    let name = format!("{} vocabulary of {languages}{sampled}", format!("{kind:?}").to_lowercase());
    let out = CommandArg::here("vocabulary").path();
    let mut learn = Train { kind, merges: Some(merges), out, ..Train::unset() };
    read(&mut learn.text);
    let learned = planner.add(StepDraft::of(&learn, name.as_str()))?;
    let vocab = StepList::made(learned, "vocabulary").path();
    let out = CommandArg::here("corpora").path();
    let mut prepare = Prepare { vocab: vocab.clone(), out, ..Prepare::unset() };
    read(&mut prepare.text);
    let tokenised = StepDraft::of(&prepare, format!("tokenise {languages}: {name}"));
    let corpora = StepList::made(planner.add(tokenised)?, "corpora").held();
    rest.vocab = Some(vocab);
    rest.set = vec![format!("text.corpora={corpora}"), format!("text.seed={seed}")];
    Ok(())
}

impl TextSettings {
    /// Of a pretraining; none where its flags say more of text or vocabulary than is known here, or the preset reads a
    /// language twice.
    fn of(asked: &Pretrain, flags: &[String], seed: u64) -> Option<Self> {
        let (preset, scale) = (asked.preset?, asked.scale?);
        let words = || asked.set.iter().chain(flags).map(String::as_str);
        let foreign = words().any(|word| {
            let key = word.strip_prefix("--").unwrap_or(word);
            let of_text = key.starts_with("text.") || key.starts_with("vocabulary.");
            (of_text && !key.starts_with(SAMPLE)) || key == "vocab" || key.ends_with(".toml")
        });
        if foreign || preset == Preset::SameLanguage {
            return None;
        }
        let keys = preset_keys(preset, scale);
        let key = |table: &str, key: &str| -> Option<Value> {
            keys.get(table)
                .and_then(Value::as_table)
                .and_then(|table: &Table| table.get(key))
                .cloned()
        };
        let number = |table: &str, name: &str| u64::try_from(key(table, name)?.as_integer()?).ok();
        let sample = words().filter_map(|word| word.strip_prefix(SAMPLE)).next_back();
        let sample = match sample {
            Some(sample) => Some(sample.parse().ok()?),
            None => number("text", "sample"),
        };
        Some(Self {
            kind: KindFlag::named(key("vocabulary", "kind")?.as_str()?)?,
            merges: number("vocabulary", "merges")? as usize,
            dev: number("text", "dev")?,
            sample: sample.map(|sample| sample as usize),
            seed: if sample.is_some() { seed } else { TEXT_SEED },
        })
    }
}

#[cfg(test)]
mod tests {
    use terms::Scale;

    use super::*;

    fn settings(preset: &str, more: &[&str]) -> Option<TextSettings> {
        let preset = preset.parse().ok();
        let asked = Pretrain { preset, scale: Some(Scale::Small), ..Pretrain::unset() };
        let flags: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        TextSettings::of(&asked, &flags, 7)
    }

    #[test]
    fn conditions_that_read_the_same_have_the_same_settings() {
        let default = settings("default", &[]).unwrap();
        assert_eq!((default.kind, default.merges, default.seed), (KindFlag::Joint, 32_000, 1));
        for same in ["extra-anchors", "untrained", "wiki-cc", "monolingual"] {
            assert_eq!(settings(same, &["--steps", "20"]).as_ref(), Some(&default), "{same}");
        }
        let union = settings("default-anchors", &[]).unwrap();
        assert_eq!((union.kind, union.merges), (KindFlag::Union, 16_000));
        assert_eq!(settings("sep-l1-3", &[]).as_ref(), Some(&union));
        assert_eq!(settings("sep-emb", &[]), settings("no-anchors", &[]));
        assert_ne!(settings("no-anchors", &[]), Some(union));
    }

    #[test]
    fn samples_are_of_the_seed_and_what_is_not_known_is_not_shared() {
        let sampled = settings("sentences-200k", &[]).unwrap();
        assert_eq!(sampled.seed, 7);
        assert!(sampled.sample.is_some());
        let fewer = settings("sentences-200k", &["--set", "text.sample=123"]).unwrap();
        assert_eq!(fewer.sample, Some(123));
        for flags in [
            &["--text.dev", "9"][..],
            &["--set", "text.sample_of.fr=5"],
            &["--vocabulary.merges=9"],
            &["--vocab", "mbert"],
            &["mine.toml"],
        ] {
            assert_eq!(settings("default", flags), None, "{flags:?}");
        }
        assert_eq!(settings("same-language", &[]), None);
    }
}
