"""Writes the page "What real text shows" (docs/src/studies/real-text.md) and its figure from the packs of study/.

    python bench/real_text.py            # write them (needs target/release/isogloss)
    python bench/real_text.py --check    # are they what the packs give?

Both packs are put into one laboratory. Figure, estimates and verdicts are the report's own; nothing is computed here.
"""

import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARY = HERE.parent / "target/release/isogloss"
PACKS = [HERE / "study/tiny.tar.zst", HERE / "study/table-1-real.tar.zst"]
PAGE = HERE.parent / "docs/src/studies/real-text.md"
FIGURE = HERE / "figures/paper-against-here.svg"
INVENTED, REAL = "tiny, invented languages", "small, real languages"
# What a verdict means to a reader, the clearest first.
WORDS = {
    "holds": "hold",
    "fails": "do not hold",
    "inconclusive": "cannot be told: the interval has the paper's bound inside",
    "not measured": "cannot be told: an untrained encoder scores as well, or too little transfers",
    "two seeds": "cannot be told yet: fewer than three seeds",
    "one seed": "cannot be told yet: fewer than three seeds",
    "not tested": "cannot be tested: the papers compare three pairs of languages",
}

PAGE_TEXT = """# What real text shows

<!-- Written by bench/real_text.py from the packs of bench/study/: change that. -->

{lead}

![What each condition keeps of the default's transfer](../figures/paper-against-here.svg)

*Zero-shot transfer above chance under each condition of Conneau et al. 2020, as a share of the default's: of a task the ratio of means over seeds, of all tasks the mean of these ratios, with 95 % intervals. A diamond is the paper's.*

Real text is English and French novels, plays and everyday sentences; `wiki-cc` reads French software documentation instead. The encoders have eight layers of 512 and 8,000 updates (`small`). The settings were [written down before](../notes/2026-11-19-settings-of-table-1-on-real-text.md) a score was read. Complete: {seeds} ([first seed](../notes/2026-11-19-table-1-real-first-seed.md), [second and third](../notes/2026-11-20-table-1-real-second-and-third-seed.md)). Russian and Chinese are not measured under these settings.

## Which findings hold on real text

{told}

## Paper, invented languages, real text

Estimates with 95 % intervals over n seeds. The last number is what an untrained encoder of the same shape scores; ρ is Spearman's.

{table}

The same in a report: `isogloss study unpack bench/study/tiny.tar.zst --lab lab`, `isogloss study unpack bench/study/table-1-real.tar.zst --lab lab`, `isogloss report --lab lab`.
Fourteen more findings have one or two seeds on real text, of earlier settings: [Measurements](../results.md#real-languages-against-the-papers).
"""


def run(*words):
    """A command of the binary; its standard output."""
    return subprocess.run([BINARY, *map(str, words)], check=True, capture_output=True, text=True).stdout


def report():
    """The findings of both packs, and the figure that compares them with the paper."""
    with tempfile.TemporaryDirectory() as folder:
        lab, figures = Path(folder, "lab"), Path(folder, "figures")
        for pack in PACKS:
            run("study", "unpack", pack, "--lab", lab)
        page = Path(folder, "report.html")
        found = json.loads(run("report", "--lab", lab, "--out", page, "--figures", figures, "--json"))
        rows = list(csv.DictReader((figures / "paper-against-here.csv").open()))
        return found["findings"], rows, (figures / "paper-against-here.svg").read_text()


def complete(rows):
    """How many seeds of which conditions have every task on real text, the most first."""
    own = [row for row in rows if row["panel"] != "all tasks" and row["series"].endswith("(small)")]
    least = {}
    for row in own:
        least[row["row"]] = min(least.get(row["row"], 99), len(row["seeds"].split()))
    counts = sorted(set(least.values()), reverse=True)
    named = {count: ", ".join(name for name, seeds in least.items() if seeds == count) for count in counts}
    return "; ".join(f"{count} seeds of {names}" for count, names in named.items())


def name(finding):
    """A finding with the part that it is about: of layers each setting has its own number, so that these are left out."""
    part = "" if "layers separate" in finding["of"] else finding["of"]
    return finding["finding"] + (f" ({part})" if part else "")


def page(findings, rows):
    """The page, from the findings that real text was tested for and the rows of the figure."""
    seeds = complete(rows)
    real = {name(one): one for one in findings if one["setting"] == REAL}
    invented = {name(one): one for one in findings if one["setting"] == INVENTED}
    told = []
    for words in dict.fromkeys(WORDS.values()):
        those = [title for title, one in real.items() if WORDS[one["verdict"]] == words]
        if those:
            told.append(f"**{len(those)} {words}**\n\n" + "\n".join(f"- {title}" for title in those))
    lines = ["| finding | paper | invented (`tiny`) | real (`small`) |", "| --- | --- | --- | --- |"]
    for title, one in real.items():
        cells = [invented.get(title), one]
        shown = [f"**{cell['verdict']}** {cell['strength']}" if cell else "–" for cell in cells]
        lines.append(f"| {title} | {one['paper']} | {' | '.join(shown)} |")
    counts = [sum(one["verdict"] == verdict for one in real.values()) for verdict in ("holds", "fails")]
    lead = f"Of {len(real)} tests of Conneau et al.'s Table 1 on real English and French, {counts[0]} hold, {counts[1]} fail, and {len(real) - sum(counts)} cannot be told."
    return PAGE_TEXT.format(lead=lead, told="\n\n".join(told), table="\n".join(lines), seeds=seeds)


if __name__ == "__main__":
    findings, rows, figure = report()
    for path, text in {PAGE: page(findings, rows), FIGURE: figure}.items():
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path} is not what the packs give: python bench/real_text.py")
    # README quotes the order of the conditions on real text.
    rank = next(one for one in findings if one["setting"] == REAL and one["of"] == "all tasks")
    rho = re.search(r"\u03c1 = 0(\.\d+)", rank["strength"])[1]
    if f"| \u03c1 {rho}, no verdict |" not in (HERE.parent / "README.md").read_text():
        sys.exit(f"README.md does not say that the conditions' \u03c1 on real text is {rho}")
