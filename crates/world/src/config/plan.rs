//! From a configuration to a plan: defaults filled in, values checked.

use super::{
    DomainConfig, LanguageConfig, LanguageDistance, MorphologyConfig, WordOrderConfig, WorldConfig,
};
use crate::error::Error;
use crate::language::{Morphology, Script, WordOrder};

/// A valid configuration with every key filled in.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    config: WorldConfig,
    languages: Vec<LanguagePlan>,
}

/// One language of a [`WorldPlan`].
#[derive(Clone, Debug, PartialEq)]
pub struct LanguagePlan {
    /// Its code.
    pub code: String,
    /// Its script.
    pub script: Script,
    /// The share of content words written as in the first language.
    pub anchors: f64,
    /// The share of the other words that come from the first language's.
    pub cognates: f64,
    /// Sentences in its corpus.
    pub sentences: usize,
    /// The domains of its corpus, as indices.
    pub domains: Vec<usize>,
    /// Its word order.
    pub order: WordOrder,
    /// Its morphology.
    pub morphology: Morphology,
}

impl WorldPlan {
    /// The configuration with every key filled in; resolving it again gives the same plan.
    pub fn config(&self) -> &WorldConfig {
        &self.config
    }

    /// The languages, the one the others are compared with first.
    pub fn languages(&self) -> &[LanguagePlan] {
        &self.languages
    }
}

impl WorldConfig {
    /// `count` languages without any key of their own, coded `qaa`, `qab` and so on.
    pub fn plain_languages(count: usize) -> Vec<LanguageConfig> {
        let code = |i: usize| format!("q{}{}", letter(i / 26), letter(i % 26));
        (0..count).map(|i| LanguageConfig { code: code(i), ..Default::default() }).collect()
    }

    /// Two languages and one domain where none are given.
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        if self.language.is_empty() {
            self.language = Self::plain_languages(2);
        }
        if self.domain.is_empty() {
            self.domain.push(DomainConfig::default());
        }
        self
    }

    /// Fills in every key and checks every value.
    pub fn resolve(self) -> Result<WorldPlan, Error> {
        let mut config = self.with_defaults();
        config.check()?;
        let mut languages: Vec<LanguagePlan> = Vec::new();
        for language in &config.language {
            let plan = config.language(language, languages.first());
            languages.push(plan);
        }
        for (language, plan) in config.language.iter_mut().zip(&languages) {
            let names = plan.domains.iter().map(|&d| config.domain[d].name.clone()).collect();
            language.domains = Some(names);
            language.script = Some(plan.script);
            language.anchors = Some(plan.anchors);
            language.cognates = Some(plan.cognates);
            language.sentences = Some(plan.sentences);
            language.order = plan.order.into();
            language.morphology = plan.morphology.into();
        }
        Ok(WorldPlan { config, languages })
    }

    fn language(&self, own: &LanguageConfig, first: Option<&LanguagePlan>) -> LanguagePlan {
        let base_order = first.map_or(WordOrder::default(), |first| first.order);
        let base_morphology = first.map_or(Morphology::default(), |first| first.morphology);
        let base_script = first.map_or(Script::Latin, |first| first.script);
        let dial = own.distance.filter(|_| first.is_some()).map(LanguageDistance::new);
        let index = |name: &String| self.domain.iter().position(|domain| domain.name == *name);
        let domains = own.domains.iter().flatten().filter_map(index).collect::<Vec<_>>();
        LanguagePlan {
            code: own.code.clone(),
            script: own.script.unwrap_or(dial.map_or(base_script, |d| d.script(base_script))),
            anchors: own.anchors.unwrap_or(dial.map_or(0.0, LanguageDistance::anchors)),
            cognates: own.cognates.unwrap_or(dial.map_or(0.0, LanguageDistance::cognates)),
            sentences: own.sentences.unwrap_or(self.sentences),
            domains: if domains.is_empty() { vec![0] } else { domains },
            order: own.order.over(dial.map_or(base_order, |d| d.order(base_order))),
            morphology: own
                .morphology
                .over(dial.map_or(base_morphology, |d| d.morphology(base_morphology))),
        }
    }
}

impl WordOrderConfig {
    fn over(self, base: WordOrder) -> WordOrder {
        WordOrder {
            verb: self.verb.unwrap_or(base.verb),
            adjective: self.adjective.unwrap_or(base.adjective),
            adposition: self.adposition.unwrap_or(base.adposition),
            determiner: self.determiner.unwrap_or(base.determiner),
            genitive: self.genitive.unwrap_or(base.genitive),
            relative: self.relative.unwrap_or(base.relative),
            negation: self.negation.unwrap_or(base.negation),
        }
    }
}

impl From<WordOrder> for WordOrderConfig {
    fn from(order: WordOrder) -> Self {
        Self {
            verb: Some(order.verb),
            adjective: Some(order.adjective),
            adposition: Some(order.adposition),
            determiner: Some(order.determiner),
            genitive: Some(order.genitive),
            relative: Some(order.relative),
            negation: Some(order.negation),
        }
    }
}

impl MorphologyConfig {
    fn over(self, base: Morphology) -> Morphology {
        Morphology {
            number: self.number.unwrap_or(base.number),
            tense: self.tense.unwrap_or(base.tense),
            agreement: self.agreement.unwrap_or(base.agreement),
            case: self.case.unwrap_or(base.case),
            affix: self.affix.unwrap_or(base.affix),
        }
    }
}

impl From<Morphology> for MorphologyConfig {
    fn from(morphology: Morphology) -> Self {
        Self {
            number: Some(morphology.number),
            tense: Some(morphology.tense),
            agreement: Some(morphology.agreement),
            case: Some(morphology.case),
            affix: Some(morphology.affix),
        }
    }
}

fn letter(index: usize) -> char {
    char::from(b'a' + (index % 26) as u8)
}
