"""Writes the page "What real text shows" (docs/src/studies/real-text.md) and its figure from the packs of study/.

    python bench/real_text.py            # write them (needs target/release/isogloss)
    python bench/real_text.py --check    # are they what the packs give?

Both packs are put into one laboratory; the report's own verdicts and its own figure are what the page shows. Only the
sentence beside each finding is written by hand, here, and a finding without one fails.
"""

import json
import shutil
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

OPENING = """# What real text shows

<!-- Written by bench/real_text.py from the packs of bench/study/: change that. -->

"""

# What a reader should take from a finding, by its title and, where it has parts, the part.
PLAIN = {}


def run(*words):
    """A command of the binary; its standard output."""
    return subprocess.run([BINARY, *map(str, words)], check=True, capture_output=True, text=True).stdout


def report():
    """The findings of both packs, and the figure that compares them with the paper."""
    with tempfile.TemporaryDirectory() as folder:
        lab, figures = Path(folder, "lab"), Path(folder, "figures")
        for pack in PACKS:
            run("study", "unpack", pack, "--lab", lab)
        found = json.loads(run("report", "--lab", lab, "--out", Path(folder, "report.html"), "--figures", figures, "--json"))
        return found["findings"], (figures / "paper-against-here.svg").read_text()
