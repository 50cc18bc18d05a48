//! Vocabularies and tokenised corpora of real text as steps of their own.
//!
//! Learning a vocabulary and tokenising some 60 MB of text a language take most of a minute, which every pretraining
//! would repeat. Conditions and seeds that read the same sentences and have the same kind of vocabulary share both: the
//! pretraining is given the folders that `vocab train` and `corpus prepare` made, and trains as if it had made them
//! itself. The sentences that are held out are then the same for all seeds (`text.seed` is 1), unless a preset samples
//! its text: there, seeds draw samples of their own.

use terms::{Preset, Scale};
use text::check_language;
use toml::{Table, Value};
use train::pretrain::preset_keys;

use super::error::Result;
use super::plan::StudyPlanner;
use super::step::{CommandArg, StepDraft, StepList};

/// Seeds the choice of held-out sentences where all sentences are read.
const TEXT_SEED: &str = "1";

/// What decides the vocabulary and the sentences of a pretraining.
#[derive(Debug, PartialEq, Eq)]
struct TextSettings {
    kind: String,
    merges: String,
    dev: String,
    sample: Option<String>,
    seed: String,
}

/// Gives a pretraining the vocabulary and the corpora of steps of their own, where its text is real and known to be
/// read as those commands read it; else leaves it as it is.
pub(super) fn share_text(planner: &mut StudyPlanner<'_>, draft: StepDraft) -> Result<StepDraft> {
    let texts = draft.values("--text");
    let Some(settings) = TextSettings::of(&draft).filter(|_| !texts.is_empty()) else {
        return Ok(draft);
    };
    let mut languages: Vec<&str> =
        texts.iter().filter_map(|text| text.text().strip_suffix('=')).collect();
    languages.dedup();
    if languages.iter().any(|language| check_language(language).is_err()) {
        return Ok(draft);
    }
    let languages = languages.join(", ");
    let read = |step: StepDraft| {
        let step = texts.iter().fold(step, |step, text| step.flag("--text", (*text).clone()));
        let step = step.flag("--dev", &*settings.dev);
        let step = match &settings.sample {
            Some(sample) => step.flag("--sample-size", &**sample),
            None => step,
        };
        step.flag("--seed", &*settings.seed)
    };
    let (kind, merges) = (&*settings.kind, &*settings.merges);
    let sampled = settings.sample.as_ref().map(|sample| format!(" from {sample} sentences each"));
    let name = format!("{kind} vocabulary of {languages}{}", sampled.as_deref().unwrap_or(""));
    let vocabulary =
        StepDraft::new("vocab train", name.clone()).flag("--kind", kind).flag("--merges", merges);
    let vocabulary = read(vocabulary).flag("--out", CommandArg::here("vocabulary"));
    let vocabulary = StepList::made(planner.add(vocabulary)?, "vocabulary");
    let corpora = StepDraft::new("corpus prepare", format!("tokenise {languages}: {name}"))
        .flag("--vocab", vocabulary.clone());
    let corpora = read(corpora).flag("--out", CommandArg::here("corpora"));
    let corpora = StepList::made(planner.add(corpora)?, "corpora");
    Ok(draft
        .flag("--vocab", vocabulary)
        .flag("--set", corpora.after("text.corpora="))
        .flag("--set", format!("text.seed={}", settings.seed)))
}

impl TextSettings {
    /// Of a pretraining; none where its flags say more of text or vocabulary than is known here, or the preset reads a
    /// language twice.
    fn of(draft: &StepDraft) -> Option<Self> {
        let last = |flag: &str| draft.values(flag).last().map(|arg| arg.text().to_owned());
        let preset: Preset = last("--preset")?.parse().ok()?;
        let scale: Scale = last("--scale")?.parse().ok()?;
        let sets = draft.values("--set");
        let mut latest_first = sets.iter().rev();
        let sample = latest_first.find_map(|set| set.text().strip_prefix("text.sample="));
        let foreign = draft.texts().any(|word| {
            let key = word.strip_prefix("--").unwrap_or(word);
            let of_text = key.starts_with("text.") || key.starts_with("vocabulary.");
            (of_text && !key.starts_with("text.sample="))
                || key == "vocab"
                || key.ends_with(".toml")
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
        let sample = sample.map(str::to_owned);
        let sample = sample.or_else(|| key("text", "sample").map(|number| number.to_string()));
        let seed = match sample {
            Some(_) => last("--seed")?,
            None => TEXT_SEED.to_owned(),
        };
        Some(Self {
            kind: key("vocabulary", "kind")?.as_str()?.to_owned(),
            merges: key("vocabulary", "merges")?.to_string(),
            dev: key("text", "dev")?.to_string(),
            sample,
            seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(preset: &str, more: &[&str]) -> Option<TextSettings> {
        let draft = StepDraft::new("pretrain", "p")
            .flag("--preset", preset)
            .flag("--scale", "small")
            .flag("--text", CommandArg::file("en.txt").after("en="))
            .args(more.iter().copied())
            .flag("--seed", "7");
        TextSettings::of(&draft)
    }

    #[test]
    fn conditions_that_read_the_same_have_the_same_settings() {
        let default = settings("default", &[]).unwrap();
        assert_eq!((&*default.kind, &*default.merges, &*default.seed), ("joint", "32000", "1"));
        for same in ["extra-anchors", "untrained", "wiki-cc", "monolingual"] {
            assert_eq!(settings(same, &["--steps", "20"]).as_ref(), Some(&default), "{same}");
        }
        let union = settings("default-anchors", &[]).unwrap();
        assert_eq!((&*union.kind, &*union.merges), ("union", "16000"));
        assert_eq!(settings("sep-l1-3", &[]).as_ref(), Some(&union));
        assert_eq!(settings("sep-emb", &[]), settings("no-anchors", &[]));
        assert_ne!(settings("no-anchors", &[]), Some(union));
    }

    #[test]
    fn samples_are_of_the_seed_and_what_is_not_known_is_not_shared() {
        let sampled = settings("sentences-200k", &[]).unwrap();
        assert_eq!(sampled.seed, "7");
        assert!(sampled.sample.is_some());
        let fewer = settings("sentences-200k", &["--set", "text.sample=123"]).unwrap();
        assert_eq!(fewer.sample.as_deref(), Some("123"));
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
