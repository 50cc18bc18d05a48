//! The result of `isogloss align words` in words.

use std::fmt::Write as _;

use geometry::align::{AlignWordsResult, DifferentAccuracy};
use geometry::learn::UnsupervisedCheck;
use geometry::lexicon::{CandidateAccuracy, LookupAccuracy, TrainingOverlap};

pub(super) fn in_words(result: &AlignWordsResult) -> String {
    let target = result.target_words.map_or(String::new(), |words| format!(" x {words}"));
    let mut text = format!("{}{target} words, {} dimensions", result.source_words, result.dim);
    match result.train_pairs {
        Some(pairs) => {
            let _ = write!(text, ", map learned from {pairs} pairs");
            if let Some(listed) = result.train_listed {
                let share = 100.0 * pairs as f64 / listed.max(1) as f64;
                let _ = write!(text, " of {listed} in the dictionary ({share:.1} %)");
            }
        }
        None => _ = write!(text, ", init: {}", result.init.name()),
    }
    if let Some(last) = result.rounds.last() {
        let rounds = result.rounds.len();
        let _ = write!(text, ", {rounds} rounds (mean cosine {:.3})", last.cosine);
    }
    if let Some(UnsupervisedCheck { cosine, chance, gain, failed }) = result.unsupervised {
        let verdict = if failed { "has probably failed" } else { "is better than chance" };
        let _ = write!(
            text,
            "\nthe unsupervised map {verdict}: its mutual nearest neighbours have a mean cosine of {cosine:.3}, those of \
             random dictionaries {chance:.3} (gain {gain:.2}, at least 0.10 is asked)"
        );
    }
    let (Some(accuracy), Some(words), Some(pairs)) = (result.accuracy, result.words, result.pairs)
    else {
        return text;
    };
    text += "\n\n                          queries    P@1    P@5   P@10    MRR\n";
    text += &row("whole vocabulary", accuracy);
    if let Some(CandidateAccuracy { words, accuracy }) = result.candidates {
        text += &row(&format!("{words} candidates"), accuracy);
    }
    if let Some(DifferentAccuracy { accuracy, candidates, .. }) = result.different {
        text += "words that no translation equals:\n";
        text += &row("  whole vocabulary", accuracy);
        text += &row(&format!("  {} candidates", candidates.words), candidates.accuracy);
    }
    if let Some(overlap) =
        result.train_overlap.filter(|overlap| overlap.queries + overlap.translations > 0)
    {
        text += &seen(overlap, accuracy, result.unseen);
    }
    let (words, pairs) = (share(words, "source words"), share(pairs, "pairs"));
    text + &format!("\ncoverage: {words}, {pairs}\n{}", result.signature)
}

/// What of the test was learned from, and what the rest gives.
fn seen(
    overlap: TrainingOverlap,
    accuracy: LookupAccuracy,
    unseen: Option<LookupAccuracy>,
) -> String {
    let TrainingOverlap { pairs, queries, translations } = overlap;
    let others = match translations {
        0 => String::new(),
        _ => format!(
            "of {translations} other words a translation was learned from, with another word\n"
        ),
    };
    if queries == 0 {
        return others;
    }
    others
        + &match unseen {
            None => format!(
                "the map was learned from all of these {queries} words ({pairs} pairs): this is how well it fits, and no test\n"
            ),
            Some(unseen) => format!(
                "the map was learned from {queries} of these {} words ({pairs} pairs); the others:\n{}",
                accuracy.queries,
                row("  whole vocabulary", unseen)
            ),
        }
}

fn row(label: &str, accuracy: LookupAccuracy) -> String {
    let LookupAccuracy { queries, p_at_1, p_at_5, p_at_10, mrr } = accuracy;
    format!("{label:<22} {queries:>10}  {p_at_1:.3}  {p_at_5:.3}  {p_at_10:.3}  {mrr:.3}\n")
}

/// `116 of 1500 words (0.077)`.
fn share([all, part]: [usize; 2], what: &str) -> String {
    format!("{part} of {all} {what} ({:.3})", part as f64 / all.max(1) as f64)
}
