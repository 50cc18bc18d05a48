//! What a run came to, in words.

use std::fmt::Write as _;
use std::path::Path;

use train::pretrain::{Shares, Summary};

/// A number of tokens in words.
fn tokens(tokens: u64) -> String {
    format!("{:.2} M tokens", tokens as f64 / 1e6)
}

/// A run's summary as its user reads it.
pub(super) fn in_words(summary: &Summary, folder: &Path) -> String {
    let folder = folder.display();
    let mut text = format!(
        "{folder}: {} at {} scale, {} steps, {:.1} M parameters, {:.0} tokens/s\n",
        summary.preset,
        summary.scale,
        summary.steps,
        summary.parameters as f64 / 1e6,
        summary.tokens_per_second,
    );
    let Shares { waiting, evaluating, saving } = summary.shares;
    let _ = writeln!(
        text,
        "  time      {:.0} s: {:.1} % waiting for data, {:.1} % evaluating, {:.1} % saving",
        summary.seconds,
        100.0 * waiting,
        100.0 * evaluating,
        100.0 * saving,
    );
    if let Some(best) = summary.best {
        let _ = writeln!(text, "  best      step {}, perplexity {:.2}", best.step, best.perplexity);
    }
    match summary.left_plateau {
        Some(left) => {
            _ = writeln!(text, "  plateau   left at step {} ({})", left.step, tokens(left.tokens));
        }
        None => _ = writeln!(text, "  plateau   not left"),
    }
    for (language, perplexity) in &summary.perplexity {
        let _ = writeln!(text, "  {language:<9} perplexity {perplexity:.2}");
    }
    for (retrieval, emerged) in summary.retrieval.iter().zip(&summary.emerged) {
        let [a, b] = &retrieval.languages;
        let layers = |values: &[f64]| {
            values.iter().map(|value| format!("{value:.3}")).collect::<Vec<_>>().join(" ")
        };
        let _ = writeln!(
            text,
            "  {a}-{b}   translations found among {} by layer: {}\n  {:width$}   after a shift of means: {}",
            retrieval.sentences,
            layers(&retrieval.raw),
            "",
            layers(&retrieval.shifted),
            width = a.len() + b.len() + 1,
        );
        if let Some(at) = emerged {
            let _ = writeln!(
                text,
                "  {:width$}   found without alignment from step {} on ({})",
                "",
                at.step,
                tokens(at.tokens),
                width = a.len() + b.len() + 1,
            );
        }
    }
    if !summary.finished {
        let _ = writeln!(text, "stopped; go on with: isogloss pretrain --resume --out {folder}");
    }
    text
}
