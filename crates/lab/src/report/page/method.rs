//! How the numbers of the page are computed and judged.

use std::fmt::Write as _;

use terms::Task;

use crate::draw::escaped;
use crate::papers::PAPERS;

/// The section on statistics and criteria, what test sets share with training, and the papers with links.
pub(super) fn explain(html: &mut String, shared_items: Option<String>) {
    html.push_str(METHOD);
    if let Some(remark) = shared_items {
        let _ = writeln!(html, "<p><b>Shared items.</b> {}</p>", escaped(&remark));
    }
    let chance = |task: Task| format!("{} {:.2}", escaped(task.title()), task.chance());
    let chance: Vec<String> = [Task::Nli, Task::Ner, Task::Parse].map(chance).to_vec();
    let _ = writeln!(
        html,
        "<p><b>Transfer above chance</b> is the target score minus that of a random prediction ({}). \
         A condition \u{201c}costs little\u{201d} where at least 0.9 of the transfer is kept.</p>",
        chance.join(", ")
    );
    html.push_str("<p><b>The papers.</b> Their numbers are shown to compare orders and directions, not magnitudes: their models \
                   are much larger, their languages real, their test sets others.</p>\n<ul>\n");
    for paper in &PAPERS {
        let _ = writeln!(
            html,
            "<li><a href=\"{}\">{}</a>: {}.</li>",
            paper.url,
            escaped(paper.citation),
            escaped(paper.title)
        );
    }
    html.push_str("</ul>\n</section>\n");
}

const METHOD: &str = "<section id=\"method\">\n<h2>Method</h2>\n\
    <p><b>Intervals</b> are 95 % confidence intervals (Student\u{2019}s t over seeds; correlations on Fisher\u{2019}s scale). A seed \
    determines the generated world, the sampled text, the initial weights and everything else that is random. Comparisons are \
    paired by seed and language pair. One seed has no interval, and fewer than three give no verdict. There is no test of what \
    is the same in every seed.</p>\n\
    <p><b>A verdict</b> is a criterion applied to one quantity: a two-sided t test over seeds decides whether the quantity is \
    on a side of the bound at all, and its sign on which: the finding <em>holds</em> on the paper\u{2019}s side, <em>fails</em> on the \
    other, and is <em>inconclusive</em> where the test is not significant. What is about encoders, or \
    about real languages, is tested by permuting them, since seeds repeat the same ones; three or four are too few for that. Many findings \
    are tested, so that some would be significant by chance: the p-values of all findings of a setting are adjusted together \
    (Benjamini and Hochberg 1995) to a false discovery rate of 5 %, which covers wrong directions too (Benjamini and Yekutieli \
    2005). q is the adjusted p-value; a verdict needs q \u{2264} 0.05.</p>\n\
    <p><b>Not measured.</b> Beside every quantity that a system which learned nothing could have stands that of an untrained \
    encoder. Where the interval of the difference includes 0, the untrained encoder does as well, and the finding is <em>not \
    measured</em>, whatever its number. Word retrieval is judged on pairs whose strings differ, since equal strings are found by any \
    encoder.</p>\n\
    <p><b>Selection.</b> Where a finding is about the best layer, weight or system, it is selected by leave-one-out over seeds: each \
    seed is scored at the one with the best mean over the other seeds, since the maximum of several numbers is biased upwards. \
    Figures and tables of the best layer show each seed\u{2019}s own maximum, which is slightly \
    optimistic; no verdict rests on them.</p>\n";
