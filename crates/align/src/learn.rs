//! Learning one direction: expectation and maximisation, pass after pass.

use serde::Serialize;

use crate::bitext::Bitext;
use crate::compat;
use crate::diagonal::{Diagonal, LEAST_TENSION, solve_tension};
use crate::error::{Error, Result};
use crate::lexicon::{BestLinks, DirectionModel, EmStatistics, LikelihoodSums, ParameterEstimate};
use crate::links::WordLinks;
use crate::table::CountTable;
use crate::view::{AlignmentDirection, DirectionView};

/// How alignment is learned.
#[derive(Clone, Debug, PartialEq)]
pub struct AlignmentConfig {
    /// Passes through the text; the last one only links.
    pub passes: usize,
    /// The probability that a word is linked to nothing, whatever it is.
    pub null: f64,
    /// How strongly links keep to the diagonal, at first. 0 is model 1: every place alike.
    pub tension: f64,
    /// Learn the tension, from the second pass on.
    pub learn_tension: bool,
    /// The most that it grows to. The likelihood of real text often grows far beyond, but links get
    /// worse: places then stand for what words should tell.
    pub most_tension: f64,
    /// The Dirichlet prior of variational Bayes; without one, plain expectation-maximisation.
    pub prior: Option<f64>,
    /// Reproduce the original program's arithmetic, with its faults.
    pub like_fast_align: bool,
}

impl Default for AlignmentConfig {
    fn default() -> Self {
        Self {
            passes: 5,
            null: 0.08,
            tension: 2.0,
            learn_tension: true,
            most_tension: 4.0,
            prior: Some(0.01),
            like_fast_align: false,
        }
    }
}

impl AlignmentConfig {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<()> {
        let refuse = |key, value, remedy| Err(Error::Setting { key, value, remedy });
        if self.passes == 0 {
            return refuse("the number of passes", 0.0, "give at least 1 (5 is usual)");
        }
        if !(0.0..1.0).contains(&self.null) {
            return refuse("the probability of no link", self.null, "give 0 or more, less than 1");
        }
        if !(0.0..=100.0).contains(&self.tension) {
            return refuse("the tension", self.tension, "give a number from 0 to 100 (2 is usual)");
        }
        if !(LEAST_TENSION..=100.0).contains(&self.most_tension) {
            return refuse(
                "the greatest tension",
                self.most_tension,
                "give 0.1 to 100 (4 is usual)",
            );
        }
        let learned = LEAST_TENSION..=self.most_tension;
        let learned = if self.like_fast_align { LEAST_TENSION..=100.0 } else { learned };
        if self.learn_tension && !learned.contains(&self.tension) {
            let remedy = "begin between 0.1 and the greatest tension, or keep it fixed";
            return refuse("the tension to begin with", self.tension, remedy);
        }
        match self.prior {
            Some(alpha) if !(1e-3..=1e3).contains(&alpha) => {
                refuse("the prior", alpha, "give a number from 0.001 to 1000 (0.01 is usual)")
            }
            _ => Ok(()),
        }
    }
}

/// What one pass through the text found.
#[derive(Clone, Debug, Serialize)]
pub struct EmIteration {
    /// Its number, from 1.
    pub pass: usize,
    /// The natural logarithm of the probability of the explained words.
    pub log_likelihood: f64,
    /// That per word, as a perplexity.
    pub perplexity: f64,
    /// The expected share of words that are linked to nothing.
    pub null: f64,
    /// The tension that the pass went by.
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

/// Learns one direction and links the text by it; `watch` hears of every pass.
pub fn train_direction(
    bitext: &Bitext,
    direction: AlignmentDirection,
    config: &AlignmentConfig,
    watch: &mut dyn FnMut(&EmIteration),
) -> Result<(DirectionModel, DirectionalLinks)> {
    config.check()?;
    let view = DirectionView::new(bitext, direction);
    let first = match config.like_fast_align {
        true => compat::FIRST,
        false => 1.0 / view.explained_words().max(1) as f64,
    };
    let mut lexicon = DirectionModel {
        table: CountTable::new(&view),
        estimate: ParameterEstimate::First(first),
        null: config.null,
        tension: config.tension,
    };
    for pass in 1..config.passes {
        let learned = lexicon.learn(&view, if config.like_fast_align { 1.0 } else { 0.0 });
        watch(&EmIteration::new(pass, &learned.sums, &lexicon, &view));
        if config.learn_tension && pass > 1 {
            lexicon.tension = next_tension(&lexicon, &learned, &view, config);
        }
        lexicon.estimate(view.given_ids(), config.prior);
    }
    let (best, sums) = lexicon.best(&view);
    watch(&EmIteration::new(config.passes, &sums, &lexicon, &view));
    Ok((lexicon, DirectionalLinks { best, direction }))
}

/// Links a text by what was learned before.
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
        pass: usize,
        sums: &LikelihoodSums,
        lexicon: &DirectionModel,
        view: &DirectionView,
    ) -> Self {
        let tokens = view.tokens().max(1) as f64;
        Self {
            pass,
            log_likelihood: sums.log,
            perplexity: (-sums.log / tokens).exp(),
            null: sums.null / tokens,
            tension: lexicon.tension,
        }
    }
}

/// The tension under which links are as far from the diagonal as they were seen to be.
fn next_tension(
    lexicon: &DirectionModel,
    learned: &EmStatistics,
    view: &DirectionView,
    config: &AlignmentConfig,
) -> f64 {
    if config.like_fast_align {
        let observed = learned.sums.feature / view.tokens() as f64;
        return compat::step_tension(lexicon.tension, observed, view.shapes());
    }
    let linked: f64 = learned.linked.iter().sum();
    // Nothing is linked, where there is nothing but the empty word.
    if linked <= 0.0 {
        return lexicon.tension;
    }
    solve_tension(learned.sums.feature / linked, config.most_tension, |tension| {
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
