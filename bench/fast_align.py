"""Bitext word alignment: isogloss beside fast_align and atools, by turns, from the same pairs to symmetrised links.

    python bench/fast_align.py --isogloss target/release/isogloss --bitext bitext.en-de.tsv [--pairs 300000]

fast_align and atools must be on the PATH. Each pair joins two random pairs of the bitext, split into words by a regular
expression, so that the text grows without a sentence that occurs twice. fast_align aligns forward and reverse and atools
symmetrises, one after another, each on every core it uses; `isogloss word-align` does all of it in one call. Times are wall
times of whole processes. How many links the two have in common is printed beside (Dice, under `--compat fast_align`).
"""

import argparse
import random
import re
import subprocess
import tempfile
import time
from pathlib import Path

from record import record

WORDS = re.compile(r"\w+|[^\w\s]")


def mixed(bitext, count):
    """`count` lines of `source ||| target`, each of two random pairs joined."""
    lines = Path(bitext).read_text(encoding="utf-8").splitlines()
    pairs = [[" ".join(WORDS.findall(side)) for side in line.split("\t")[:2]] for line in lines if "\t" in line]
    pairs = [pair for pair in pairs if all(pair)]
    generator = random.Random(1)
    for _ in range(count):
        a, b = generator.choice(pairs), generator.choice(pairs)
        yield f"{a[0]} {b[0]} ||| {a[1]} {b[1]}\n"


def links(path):
    return [set(line.split()) for line in path.read_text().splitlines()]


def dice(ours, theirs):
    common = sum(len(a & b) for a, b in zip(ours, theirs, strict=True))
    return 2 * common / sum(len(a) + len(b) for a, b in zip(ours, theirs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isogloss", required=True)
    parser.add_argument("--bitext", required=True, help="tab-separated sentence pairs")
    parser.add_argument("--pairs", type=int, default=300_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    pairs, own, other = folder / "pairs.txt", folder / "own.txt", folder / "other.txt"
    with pairs.open("w", encoding="utf-8") as file:
        file.writelines(mixed(options.bitext, options.pairs))

    def isogloss(*more):
        subprocess.run([options.isogloss, "word-align", "--parallel", f"en-de={pairs}", "--threads", str(options.threads),
                        "--out", own, "--force", *more], check=True, capture_output=True)

    def fast_align():
        for name, more in (("forward", []), ("reverse", ["-r"])):
            with (folder / name).open("w") as out:
                subprocess.run(["fast_align", "-i", pairs, "-d", "-o", "-v", *more], check=True, stdout=out, stderr=subprocess.DEVNULL)
        with other.open("w") as out:
            subprocess.run(["atools", "-i", folder / "forward", "-j", folder / "reverse", "-c", "grow-diag-final-and"], check=True, stdout=out)

    times = {isogloss: [], fast_align: []}
    for _ in range(options.rounds):
        for program, seconds in times.items():
            began = time.time()
            program()
            seconds.append(time.time() - began)
    for program, seconds in times.items():
        print(program.__name__, " ".join(f"{one:.1f}" for one in seconds), "s")
    isogloss("--compat", "fast_align")
    print(f"links in common under --compat fast_align (Dice): {dice(links(own), links(other)):.4f}")
    record(f"{options.pairs} pairs", "fast_align", times[isogloss], times[fast_align], "s")


if __name__ == "__main__":
    main()
