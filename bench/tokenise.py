"""Tokenisation beside `tokenizers` from Python, by turns: the same prepared sentences, vocabulary and number of threads.

    cargo build --release && cargo build --release -p isogloss-text --example encode_speed
    pip install tokenizers
    python bench/tokenise.py --vocab FOLDER --text LANG=FILE [--turns 3]

FOLDER is a vocabulary of `isogloss vocab train`. The sentences are in memory on both sides, caches begin empty, and results are not
turned into Python lists; Python's is the faster of `encode_batch_fast` and `encode_batch`.
"""

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from record import ratios, record

EXAMPLE = Path(__file__).resolve().parent.parent / "target/release/examples/encode_speed"


def ours(vocab, language, text, prepared):
    """Seconds, the fewest of three passes, and the number of tokens."""
    done = subprocess.run([EXAMPLE, vocab, language, text, *prepared], capture_output=True, text=True, check=True)
    found = re.findall(r"(\d+) tokens, ([\d.]+) s", done.stdout)
    return min(float(seconds) for _, seconds in found), int(found[0][0])


def theirs(vocab, language, lines):
    from tokenizers import Tokenizer

    # A joint vocabulary has one tokenizer for all languages.
    file = next(path for path in (Path(vocab) / f"tokenizer.{language}.json", Path(vocab) / "tokenizer.json") if path.exists())
    seconds = []
    for name in ("encode_batch_fast", "encode_batch"):
        encode = getattr(Tokenizer.from_file(str(file)), name)
        began = time.perf_counter()
        found = encode(lines, add_special_tokens=False)
        seconds.append(time.perf_counter() - began)
    return min(seconds), sum(len(one) for one in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--text", required=True, help="LANG=FILE")
    parser.add_argument("--case", default="tokenisation", help="the name of this case in the result")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    language, text = options.text.split("=", 1)
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.txt"
        ours(options.vocab, language, text, [prepared])
        lines = prepared.read_text().split("\n")[:-1]
    mine, other = [], []
    for _ in range(options.turns):
        seconds, tokens = ours(options.vocab, language, text, [])
        mine.append(seconds)
        seconds, found = theirs(options.vocab, language, lines)
        other.append(seconds)
    rounds = ratios(mine, other, "s")
    print(f"{options.case}, {len(lines)} sentences: {tokens} tokens, tokenizers {found}; Isogloss {statistics.median(mine):.2f} s, tokenizers "
          f"{statistics.median(other):.2f} s: {statistics.median(rounds):.2f} x (rounds {', '.join(f'{r:.2f}' for r in rounds)})")
    record(options.case, "tokenizers", mine, other, "s")


if __name__ == "__main__":
    main()
