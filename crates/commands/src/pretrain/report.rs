//! The summary of a run as a person reads it.

use std::fmt::Write as _;
use std::path::Path;

use train::pretrain::{PretrainSummary, TimeShares};

fn tokens(tokens: u64) -> String {
    format!("{:.2} M tokens", tokens as f64 / 1e6)
}

pub(super) fn in_words(summary: &PretrainSummary, folder: &Path) -> String {
    let folder = folder.display();
    let mut text = format!(
        "{folder}: {} at {} scale, {} steps, {:.1} M parameters, {:.0} tokens/s\n",
        summary.preset,
        summary.scale,
        summary.steps,
        summary.parameters as f64 / 1e6,
        summary.tokens_per_second,
    );
    let TimeShares { waiting, evaluating, saving } = summary.shares;
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
            "  {a}-{b}   P@1 among {} translations by layer, raw: {}\n  {:width$}   mean-centred: {}",
            retrieval.sentences,
            layers(&retrieval.raw),
            "",
            layers(&retrieval.centered),
            width = a.len() + b.len() + 1,
        );
        if let Some(at) = emerged {
            let _ = writeln!(
                text,
                "  {:width$}   retrieval without alignment emerged at step {} ({})",
                "",
                at.step,
                tokens(at.tokens),
                width = a.len() + b.len() + 1,
            );
        }
    }
    if !summary.finished {
        let _ = writeln!(text, "stopped; resume with: isogloss pretrain --resume --out {folder}");
    }
    text
}
