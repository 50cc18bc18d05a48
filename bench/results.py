"""Writes bench/RESULTS.md from its records: records.toml, speed.json, study/small-means.csv and the titles of notes/.

    python bench/results.py            # write it
    python bench/results.py --check    # is it current, and do README and paper count the report's verdicts?

A number stands in one record with its command, date and machine. The notes are dated and never edited: what is measured again
gets a new note, and its record another value. The table of speed is the one that `all.py` writes into README and book.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

import all as comparisons
import real

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"

OPENING = """# Measurements

<!-- Written by bench/results.py from bench/records.toml, bench/speed.json, bench/real.py and the titles of bench/notes/: change those. -->

Each number stands beside the command that prints it, its date and its machine. "Two cores" are two AMD EPYC cores (Zen 4, AVX-512); "one H200" is one NVIDIA H200 with 16 CPU cores. A range is over rounds, seeds or
days. Programs that are compared run in turns. Retrieval (P@1) is *raw* (cosine of the vectors as they are), *centred* (each language's mean subtracted) or *Procrustes* (after an orthogonal map learned from other pairs).
P1 is Conneau et al. 2020, P2 Liu et al. 2020. The [notes](#notes) tell how each number came about; they are dated, and not edited afterwards, so that an older note may have an older number.
"""

SPEED = """## Speed

How many times as fast as the baseline, from the lowest to the highest round of all runs; below 1 the baseline is faster. One command measures every row whose peer is installed, says what it leaves out and why, and keeps each round in [speed.json](speed.json); an interrupted
run goes on where it stopped:

```sh
cargo build --release && cargo build --release -p isogloss-text --example encode_speed
ISOGLOSS_DATA=data python bench/all.py
```

`--quick` tries everything in a few minutes, `--list` says what can be measured, `--check` whether the tables are current. `isogloss bench` measures a machine alone.
"""

REAL = """## Real languages against the papers

`python bench/real.py` computes these from `bench/study/small-means.csv`. One or two seeds give no verdict: *agrees* is an estimate on the finding's side in most pairs. Chinese NER was trained on WikiAnn and tested on MSRA's news; a study no longer does so.
"""


def row(record):
    """A record as a row of its table; a link to a heading of a note keeps the heading."""
    note, _, heading = record["note"].partition("#")
    link = f"notes/{note}.md" + (f"#{heading}" if heading else "")
    cells = record["what"], record["result"], f"`{record['command']}`", f"{record['date']}; {record['machine']}"
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + f" | [note]({link}) |"


def tally():
    """How many tests the report of the studies counts, and how many hold, fail and so on."""
    report = (HERE / "study/report.html").read_text()
    tests, counts = re.search(r">(\d+) tests</a>(.*)</p>", report).groups()
    return tests, [" ".join(one.split()) for one in re.findall("<b [^>]+>([^<]+)</b>", counts)]


def document():
    """The whole of RESULTS.md."""
    records = tomllib.loads((HERE / "records.toml").read_text())["record"]
    parts = [OPENING, SPEED, comparisons.BEGIN, "", comparisons.tables(json.loads(comparisons.SPEED.read_text()))[RESULTS], "", comparisons.END, ""]
    groups = dict.fromkeys(record["group"] for record in records)
    for group in groups:
        parts += [f"## {group}\n", "| what | result | command | when, where | |", "| --- | --- | --- | --- | --- |"]
        parts += [row(record) for record in records if record["group"] == group] + [""]
    parts += [REAL, real.table(), "", "## Notes\n"]
    for note in sorted((HERE / "notes").glob("*.md")):
        # A title states findings; the list has the first.
        title = note.read_text().split("\n", 1)[0].removeprefix("# ").split("; ")[0]
        parts.append(f"- {note.name[:10]} [{title}](notes/{note.name})")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if RESULTS.read_text() != document():
            sys.exit("bench/RESULTS.md is not what its records give: python bench/results.py")
        tests, counts = tally()
        said = f"of {tests} tests {', '.join(counts[:2])}"
        for name in ["README.md", "paper/paper.md"]:
            if said not in (HERE.parent / name).read_text():
                sys.exit(f"{name} does not say what study/report.html does: {said}")
    else:
        RESULTS.write_text(document())
