//! Training one direction by expectation-maximisation (Dempster et al. 1977).

use serde::{Deserialize, Serialize};

use crate::bitext::Bitext;
use crate::compat;
use crate::diagonal::{Diagonal, LEAST_TENSION, solve_tension};
use crate::lexicon::{BestLinks, DirectionModel, EmStatistics, LikelihoodSums, ParameterEstimate};
use crate::links::WordLinks;
use crate::table::CountTable;
use crate::view::{AlignmentDirection, DirectionView};
use crate::{Error, Result};

/// The configuration of training.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignmentConfig {
    /// Iterations of expectation-maximisation; the last one only links.
    pub iterations: usize,
    /// The probability of the null alignment.
    pub p_null: f64,
    /// The initial tension (λ), how strongly links favour the diagonal. 0 is IBM model 1.
    pub tension: f64,
    /// Train the tension, from the second iteration on.
    pub learn_tension: bool,
    /// The largest tension. The likelihood of real text often increases far beyond it, but links get
    /// worse: positions then explain what words should.
    pub max_tension: f64,
    /// The Dirichlet prior of variational Bayes; without one, plain expectation-maximisation.
    pub prior: Option<f64>,
    /// Reproduce the arithmetic of fast_align, with its faults.
    pub fast_align_compat: bool,
}

impl Default for AlignmentConfig {
    fn default() -> Self {
        Self {
            iterations: 5,
            p_null: 0.08,
            tension: 2.0,
            learn_tension: true,
            max_tension: 4.0,
            prior: Some(0.01),
            fast_align_compat: false,
        }
    }
}

impl AlignmentConfig {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<()> {
        let refuse = |key: &'static str, value: f64, remedy: &str| {
            Err(Error::setting(key, format!("{key} is {value}"), remedy))
        };
        if self.iterations == 0 {
            return refuse("iterations", 0.0, "give at least 1 (5 is usual)");
        }
        if !(0.0..1.0).contains(&self.p_null) {
            return refuse("p_null", self.p_null, "give 0 or more, less than 1");
        }
        if !(0.0..=100.0).contains(&self.tension) {
            return refuse("tension", self.tension, "give a number from 0 to 100 (2 is usual)");
        }
        if !(LEAST_TENSION..=100.0).contains(&self.max_tension) {
            return refuse("max_tension", self.max_tension, "give 0.1 to 100 (4 is usual)");
        }
        let learned = LEAST_TENSION..=self.max_tension;
        let learned = if self.fast_align_compat { LEAST_TENSION..=100.0 } else { learned };
        if self.learn_tension && !learned.contains(&self.tension) {
            let remedy = "begin between 0.1 and max_tension, or keep it fixed";
            return refuse("tension", self.tension, remedy);
        }
        match self.prior {
            Some(alpha) if !(1e-3..=1e3).contains(&alpha) => {
                refuse("prior", alpha, "give a number from 0.001 to 1000 (0.01 is usual)")
            }
            _ => Ok(()),
        }
    }
}

impl AlignmentConfig {
    pub(crate) fn signature(&self) -> String {
        let compat = if self.fast_align_compat { "|compat:fast_align" } else { "" };
        let prior = self.prior.map_or("none".to_owned(), |alpha| alpha.to_string());
        let tension = match self.learn_tension {
            true => format!("{}..{}", self.tension, self.max_tension),
            false => self.tension.to_string(),
        };
        format!(
            "iterations:{}|p_null:{}|tension:{tension}|prior:{prior}{compat}",
            self.iterations, self.p_null
        )
    }
}

/// One iteration of expectation-maximisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmIteration {
    /// Its number, from 1.
    pub iteration: usize,
    /// The natural logarithm of the probability of the explained words.
    pub log_likelihood: f64,
    /// That per word, as a perplexity.
    pub perplexity: f64,
    /// The expected share of words aligned to null.
    pub null: f64,
    /// The tension of the iteration.
    pub tension: f64,
}

/// Links of a whole text in one direction.
pub struct DirectionalLinks {
    best: BestLinks,
    direction: AlignmentDirection,
}

impl DirectionalLinks {
    /// A sentence pair's links.
    pub fn links(&self, bitext: &Bitext, sentence: usize) -> WordLinks {
        let side = match self.direction {
            AlignmentDirection::Forward => bitext.target(),
            AlignmentDirection::Reverse => bitext.source(),
        };
        let (start, length) = (side.start(sentence), side.length(sentence));
        let linked = (0..length).filter_map(|at| Some((self.best.place(start + at)?, at as u16)));
        WordLinks::new(match self.direction {
            AlignmentDirection::Forward => linked.collect(),
            AlignmentDirection::Reverse => {
                linked.map(|(given, explained)| (explained, given)).collect()
            }
        })
    }
}

/// Trains one direction and links the text by it; `watch` is called after every iteration.
pub fn train_direction(
    bitext: &Bitext,
    direction: AlignmentDirection,
    config: &AlignmentConfig,
    watch: &mut dyn FnMut(&EmIteration),
) -> Result<(DirectionModel, DirectionalLinks)> {
    config.check()?;
    let view = DirectionView::new(bitext, direction);
    let first = match config.fast_align_compat {
        true => compat::FIRST,
        false => 1.0 / view.explained_words().max(1) as f64,
    };
    let mut lexicon = DirectionModel {
        table: CountTable::new(&view),
        estimate: ParameterEstimate::First(first),
        null: config.p_null,
        tension: config.tension,
    };
    for iteration in 1..config.iterations {
        let learned = lexicon.learn(&view, if config.fast_align_compat { 1.0 } else { 0.0 });
        watch(&EmIteration::new(iteration, &learned.sums, &lexicon, &view));
        if config.learn_tension && iteration > 1 {
            lexicon.tension = next_tension(&lexicon, &learned, &view, config);
        }
        lexicon.estimate(view.given_ids(), config.prior);
    }
    let (best, sums) = lexicon.best(&view);
    watch(&EmIteration::new(config.iterations, &sums, &lexicon, &view));
    Ok((lexicon, DirectionalLinks { best, direction }))
}

/// Links a text by a trained direction.
pub(crate) fn link(
    lexicon: &DirectionModel,
    bitext: &Bitext,
    direction: AlignmentDirection,
) -> DirectionalLinks {
    let view = DirectionView::new(bitext, direction);
    DirectionalLinks { best: lexicon.best(&view).0, direction }
}

impl EmIteration {
    fn new(
        iteration: usize,
        sums: &LikelihoodSums,
        lexicon: &DirectionModel,
        view: &DirectionView,
    ) -> Self {
        let tokens = view.tokens().max(1) as f64;
        Self {
            iteration,
            log_likelihood: sums.log,
            perplexity: (-sums.log / tokens).exp(),
            null: sums.null / tokens,
            tension: lexicon.tension,
        }
    }
}

/// The tension whose expected distance from the diagonal is the observed one.
fn next_tension(
    lexicon: &DirectionModel,
    learned: &EmStatistics,
    view: &DirectionView,
    config: &AlignmentConfig,
) -> f64 {
    if config.fast_align_compat {
        let observed = learned.sums.feature / view.tokens() as f64;
        return compat::step_tension(lexicon.tension, observed, view.shapes());
    }
    let linked: f64 = learned.linked.iter().sum();
    // Nothing is linked, where there is nothing but the empty word.
    if linked <= 0.0 {
        return lexicon.tension;
    }
    solve_tension(learned.sums.feature / linked, config.max_tension, |tension| {
        let diagonal = Diagonal::new(tension, view.shapes().iter().map(|shape| shape.n));
        let of_shape = |shape: &crate::view::LengthPair| {
            let linked = &learned.linked[shape.base..][..shape.m];
            let term =
                |(j, linked): (usize, &f64)| linked * diagonal.mean_feature(j, shape.m, shape.n);
            (1..).zip(linked).map(term).sum::<f64>()
        };
        view.shapes().iter().map(of_shape).sum::<f64>() / linked
    })
}
