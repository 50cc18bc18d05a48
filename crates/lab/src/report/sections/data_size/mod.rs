//! The amount of text and the length of contexts (Liu et al. 2020, §3): the claims.

mod exhibits;

use super::ReportSection;
use super::parts::{
    NOT_PRINTED, chosen, chosen_difference, difference, of_different, over_untrained,
};
use crate::draw::short;
use crate::report::data::{SettingView, StudyData};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, chosen_by_others};
use terms::Task;

const SIZES: [&str; 2] = ["small", "large"];
const WINDOWS: [&str; 2] = ["full", "short"];
const STATICS: [&str; 2] = ["word2vec", "glove"];

pub(in crate::report) const DATA_SIZE: ReportSection = ReportSection {
    id: "data-size",
    title: "How much text is needed?",
    place: "Liu et al. 2020, §3.2.1 and §3.2.2",
    studies: &["data-size"],
    method: "An encoder, Word2Vec and GloVe are trained on the same multilingual text, small (200,000 sentences of each \
             language in the paper) or large (1,000,000). Word retrieval is the mean reciprocal rank (MRR) of a word's \
             translation, without a map, judged over pairs whose strings differ; NLI is zero-shot transfer.",
    claims: &[
        PaperClaim {
            finding: "With little text, static vectors retrieve translations better than the encoder",
            place: "Liu et al. 2020, Figure 1",
            paper: &|| "in every language".to_owned(),
            quantity: "MRR of Word2Vec or GloVe, whichever is better in the other seeds, minus the encoder's, small",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = study(view, "data-size");
                let [statics, encoder] = both(&data, Ability::Words, "small");
                ClaimLine::new("", chosen_difference(&statics, &encoder))
                    .against(control(&data, Ability::Words, &statics))
                    .alone()
            },
        },
        PaperClaim {
            finding: "With little text, the encoder is no better at NLI than static vectors",
            place: "Liu et al. 2020, Figure 2",
            paper: &|| {
                "better in several languages by very small margins, and no better overall"
                    .to_owned()
            },
            quantity: "NLI accuracy of the encoder minus that of the static vectors that are better in the other seeds, small",
            criterion: Criterion::Below(0.02),
            measure: &|view| {
                let data = study(view, "data-size");
                let [statics, encoder] = both(&data, Ability::Nli, "small");
                ClaimLine::new("", chosen_difference(&encoder, &statics))
                    .against(control(&data, Ability::Nli, &statics))
                    .alone()
            },
        },
        PaperClaim {
            finding: "With more text, the encoder is better than static vectors",
            place: "Liu et al. 2020, Figures 3 and 4",
            paper: &|| "in every language".to_owned(),
            quantity: "the encoder minus Word2Vec or GloVe, whichever is better in the other seeds, large",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = study(view, "data-size");
                of_both(|ability| {
                    let [statics, encoder] = both(&data, ability, "large");
                    ClaimLine::new("", chosen_difference(&encoder, &statics))
                        .against(control(&data, ability, &encoder))
                })
            },
        },
        PaperClaim {
            finding: "More text helps the encoder more than static vectors",
            place: "Liu et al. 2020, §3.2.2",
            paper: &NOT_PRINTED,
            quantity: "gain from small to large, the encoder's minus that of the static vectors that are better in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = study(view, "data-size");
                of_both(|ability| {
                    let [large_statics, large] = both(&data, ability, "large");
                    let [small_statics, small] = both(&data, ability, "small");
                    let encoder = large[0].minus(&small[0]);
                    let gain =
                        chosen_by_others(&large_statics).minus(&chosen_by_others(&small_statics));
                    let more = encoder.minus(&gain).sample();
                    ClaimLine::new("", chosen(more, &[&[encoder], &large_statics, &small_statics]))
                        .against(control(&data, ability, &large))
                })
            },
        },
    ],
    fails: "With little text, static vectors retrieve translations no better than the encoder",
    numbers: &|view| {
        let data = study(view, "data-size");
        let of = |system: &str| {
            let mean =
                scores(&data, Ability::Words, system, &[("size", "small")]).sample().mean()?;
            Some(format!("{} {}", short(mean.mean), data.name(system)))
        };
        let parts: Vec<String> =
            ["word2vec", "glove", "encoder"].into_iter().filter_map(of).collect();
        if parts.is_empty() { String::new() } else { format!("MRR {}", parts.join(", ")) }
    },
    show: &exhibits::sizes,
};

pub(in crate::report) const WINDOW: ReportSection = ReportSection {
    id: "window",
    title: "How long must contexts be?",
    place: "Liu et al. 2020, §3.2.3",
    studies: &["window"],
    method: "The same text is cut into short segments before training (20 tokens in the paper), so that no longer dependency can be \
             learned. Static vectors are trained on the same segments.",
    claims: &[
        PaperClaim {
            finding: "With much text, short contexts reduce word retrieval",
            place: "Liu et al. 2020, Figure 5",
            paper: &|| "drastically".to_owned(),
            quantity: "MRR of the encoder with full contexts minus with short ones, large",
            criterion: Criterion::Above(0.0),
            measure: &|view| full_minus_short(view, Ability::Words, "large"),
        },
        PaperClaim {
            finding: "With much text, short contexts reduce transfer",
            place: "Liu et al. 2020, Figure 6b",
            paper: &NOT_PRINTED,
            quantity: "NLI accuracy of the encoder with full contexts minus with short ones, large",
            criterion: Criterion::Above(0.0),
            measure: &|view| full_minus_short(view, Ability::Nli, "large"),
        },
        PaperClaim {
            finding: "With little text, short contexts help word retrieval",
            place: "Liu et al. 2020, §3.2.3, Figure 5",
            paper: &|| "better in several languages".to_owned(),
            quantity: "MRR of the encoder with short contexts minus with full ones, small",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = study(view, "window");
                let [full, cut] =
                    WINDOWS.map(|window| encoder(&data, Ability::Words, "small", window));
                ClaimLine::new("", difference(&cut, &full))
                    .against(control(&data, Ability::Words, &[cut]))
                    .alone()
            },
        },
        PaperClaim {
            finding: "Long contexts matter more with more text",
            place: "Liu et al. 2020, §3.2.3, Figure 6b",
            paper: &NOT_PRINTED,
            quantity: "what full contexts gain over short ones, large minus small",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                // The same as the gain by more text with full contexts minus with short ones.
                interaction(view, |full, short| full - short)
            },
        },
        PaperClaim {
            finding: "With short contexts, more text hardly helps",
            place: "Liu et al. 2020, §3.2.3, Figure 6a",
            paper: &NOT_PRINTED,
            quantity: "gain from small to large with short contexts minus half the gain with full ones",
            criterion: Criterion::Below(0.0),
            measure: &|view| interaction(view, |full, short| short - full / 2.0),
        },
    ],
    fails: "With much text, short contexts do not reduce word retrieval",
    numbers: &|view| {
        let data = study(view, "window");
        let of = |window| encoder(&data, Ability::Words, "large", window).sample().mean();
        match (of("full"), of("short")) {
            (Some(full), Some(cut)) => {
                format!("MRR {} full, {} short", short(full.mean), short(cut.mean))
            }
            _ => String::new(),
        }
    },
    show: &exhibits::windows,
};

/// What is compared: retrieval of words, or transfer of NLI.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ability {
    Words,
    Nli,
}

impl Ability {
    const ALL: [Self; 2] = [Self::Words, Self::Nli];

    fn name(self) -> &'static str {
        match self {
            Self::Words => "word retrieval",
            Self::Nli => "NLI",
        }
    }

    /// The measure that verdicts rest on.
    fn measure(self, data: &StudyData<'_>) -> &'static str {
        match self {
            Self::Words => of_different(data, "mrr"),
            Self::Nli => "accuracy",
        }
    }

    /// What its records have beside those of the system.
    fn factors(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Words => &[],
            Self::Nli => &[("role", "target"), ("task", "nli")],
        }
    }
}

/// The records of a study. Liu et al. 2020 transfer NLI here; other tasks that a study may have are left out.
fn study<'a>(view: &SettingView<'a>, name: &str) -> StudyData<'a> {
    view.study(name).without_tasks_but(Task::Nli)
}

/// The scores of a system. The factor `sentences` repeats what `size` says, and is dropped.
fn scores(
    data: &StudyData<'_>,
    ability: Ability,
    system: &str,
    more: &[(&str, &str)],
) -> Observations {
    let factors = [&[("system", system)], ability.factors(), more].concat();
    data.observations(ability.measure(data), &factors).dropped("sentences")
}

/// Both kinds of static vectors, as candidates, and the encoder.
fn both(data: &StudyData<'_>, ability: Ability, size: &str) -> [Vec<Observations>; 2] {
    let of = |system| scores(data, ability, system, &[("size", size)]);
    [STATICS.map(of).to_vec(), vec![of("encoder")]]
}

/// The encoder with a window.
fn encoder(data: &StudyData<'_>, ability: Ability, size: &str, window: &str) -> Observations {
    scores(data, ability, "encoder", &[("size", size), ("window", window)])
}

/// The control that what is best (or its candidates) does better than an untrained encoder.
fn control(data: &StudyData<'_>, ability: Ability, trained: &[Observations]) -> Control {
    let untrained = data.untrained(ability.measure(data), ability.factors());
    let untrained =
        ["sentences", "size", "window"].into_iter().fold(untrained, Observations::dropped);
    over_untrained(trained, &[untrained])
}

/// A line for word retrieval and one for NLI.
fn of_both(line: impl Fn(Ability) -> ClaimLine) -> Vec<ClaimLine> {
    let named = |ability: Ability| ClaimLine { of: ability.name().to_owned(), ..line(ability) };
    Ability::ALL.map(named).into()
}

fn full_minus_short(view: &SettingView<'_>, ability: Ability, size: &str) -> Vec<ClaimLine> {
    let data = study(view, "window");
    let [full, short] = WINDOWS.map(|window| encoder(&data, ability, size, window));
    ClaimLine::new("", difference(&full, &short)).against(control(&data, ability, &[full])).alone()
}

/// A combination of the gains from small to large with full and with short contexts.
fn interaction(view: &SettingView<'_>, combine: fn(f64, f64) -> f64) -> Vec<ClaimLine> {
    let data = study(view, "window");
    of_both(|ability| {
        let gain = |window| {
            let [small, large] = SIZES.map(|size| encoder(&data, ability, size, window));
            large.minus(&small)
        };
        let combined = gain("full").with(&gain("short"), combine).sample();
        let full = encoder(&data, ability, "large", "full");
        ClaimLine::new("", Evidence::Seeds(combined)).against(control(&data, ability, &[full]))
    })
}
