"""How time and memory grow: with text, vocabulary, length, pairs, sentences and languages.

    cargo build --release
    ISOGLOSS_DATA=DATA python bench/growth.py --work FOLDER             # everything, some 75 minutes of one core
    ISOGLOSS_DATA=DATA python bench/growth.py --work FOLDER corpus mine # these tables alone
    python bench/growth.py --work FOLDER --show                         # the tables of what was measured, nothing run
    python bench/growth.py --work FOLDER --summary                      # all of them as one
    ISOGLOSS=PROGRAM python bench/growth.py …                           # another binary than target/release/isogloss

Each table runs one command at growing sizes and prints wall time, CPU time (user and system, which other programs on
the machine hardly disturb) and peak resident memory. Below it stands the exponent of CPU time and of memory: the
slope of a least-squares line through the logarithms, over all sizes and between the two largest ones, where what does not
grow (starting, loading a model) weighs least. `expected` is what the algorithm should have. Measurements are kept in
FOLDER/growth.json, so that a run that was interrupted goes on; inputs are removed after the table that needs them. Real
text is sampled with repetition from ISOGLOSS_DATA; numpy is needed for vectors.
"""

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ISOGLOSS = os.environ.get("ISOGLOSS", ROOT / "target/release/isogloss")
# A process of its own for every command: the peak of a child is never less than its parent's at the start.
LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
done = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "w"))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps(dict(wall=time.perf_counter() - began, cpu=used.ru_utime + used.ru_stime, peak=used.ru_maxrss * 1024)))
sys.exit(done.returncode)
"""


def measured(command, output):
    """Wall time, CPU time and peak memory of a command; what it prints goes to a file."""
    done = subprocess.run([sys.executable, "-c", LAUNCHER, output, *map(str, command)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return json.loads(done.stdout)


def slope(sizes, values):
    """The exponent of a power law: least squares on logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


class Bench:
    """The folder of inputs, the measurements so far, and what makes inputs."""

    def __init__(self, work):
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        self.data = os.environ.get("ISOGLOSS_DATA")
        self.file = work / "growth.json"
        self.kept = json.loads(self.file.read_text()) if self.file.exists() else {}

    def run(self, table, size, command):
        """Measures a command, unless the same was measured before."""
        key = f"{table} {size}"
        if key not in self.kept:
            print(f"    {table}: {size:,} …", flush=True)
            self.kept[key] = dict(size=size, **measured(command, self.work / "output"))
            self.file.write_text(json.dumps(self.kept, indent=1) + "\n")

    def has(self, table, sizes):
        return all(f"{table} {size}" in self.kept for size in sizes)

    def quietly(self, *command):
        subprocess.run([*map(str, command)], check=True, capture_output=True)

    def text(self, language, *kinds):
        """The lines of real text."""
        lines = []
        for kind in kinds:
            raw = subprocess.run(["zstd", "-dcq", f"{self.data}/text/{language}.{kind}.txt.zst"], capture_output=True, check=True).stdout
            lines += raw.splitlines()
        return lines

    def corpus(self, size):
        """English of so many bytes, in a process of its own, whose memory is not the launcher's."""
        path = self.work / "corpus.txt"
        if not path.exists() or path.stat().st_size != size:
            subprocess.run([sys.executable, __file__, "--work", self.work, "--make-corpus", str(size)], check=True)
        return path

    def vocabulary(self):
        folder = self.work / "bpe"
        if not folder.exists():
            texts = [word for kind in ("lit", "docs") for word in ("--text", f"en={self.data}/text/en.{kind}.txt.zst")]
            self.quietly(ISOGLOSS, "vocab", "train", "--merges", 30000, *texts, "--out", folder)
        return folder

    def world(self, languages=2, sentences=500_000, lemmas=200):
        folder = self.work / f"world.{languages}.{sentences}.{lemmas}"
        if not folder.exists():
            self.quietly(ISOGLOSS, "world", "generate", "--languages", languages, "--sentences", sentences, "--lemmas", lemmas,
                         "--set", "all_dictionaries=true", "--out", folder)
        return folder

    def encoder(self):
        folder = self.work / "run"
        if not folder.exists():
            self.quietly(ISOGLOSS, "pretrain", "--preset", "no-anchors", "--scale", "tiny", "--steps", 20, "--world", self.world(),
                         "--device", "cpu", "--out", folder)
        return folder

    def gone(self, *names):
        for name in names:
            path = self.work / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def make_corpus(bench, size):
    """English sampled with repetition. The number of its repetition stands before every comma and full stop, so that sentences
    differ between repetitions, as those of real text of that size would."""
    lines = bench.text("en", "lit", "docs")
    draw = random.Random(size)
    written, repetition = 0, 0
    with open(bench.work / "corpus.txt", "wb") as file:
        while written < size:
            mark = str(repetition).encode()
            block = b"\n".join(draw.choices(lines, k=len(lines) // 4)) + b"\n"
            block = block.replace(b".", b" " + mark + b".").replace(b",", b" " + mark + b",")
            block = block[: size - written]
            file.write(block)
            written += len(block)
            repetition += 1


def corpus(bench):
    for size in [10**7, 10**8, 10**9, 10**10]:
        if not bench.has("corpus", [size]):
            bench.run("corpus", size, [ISOGLOSS, "corpus", "prepare", "--vocab", bench.vocabulary(), "--text", f"en={bench.corpus(size)}",
                                       "--out", bench.work / "corpora"])
            bench.gone("corpora", "corpus.txt")


def distinct(bench):
    for size in [10**7, 10**8, 10**9]:
        if not bench.has("distinct", [size]):
            bench.run("distinct", size, [ISOGLOSS, "corpus", "prepare", "--distinct", "--dev", 5000, "--test", 5000, "--vocab", bench.vocabulary(),
                                         "--text", f"en={bench.corpus(size)}", "--out", bench.work / "corpora"])
            bench.gone("corpora", "corpus.txt")


def vocab_text(bench):
    for size in [10**7, 10**8, 10**9]:
        if not bench.has("vocab_text", [size]):
            bench.run("vocab_text", size, [ISOGLOSS, "vocab", "train", "--merges", 30000, "--text", f"en={bench.corpus(size)}",
                                           "--out", bench.work / "learned"])
            bench.gone("learned", "corpus.txt")


def word2vec(bench):
    for size in [10**6, 10**7, 10**8]:
        if not bench.has("word2vec", [size]):
            bench.run("word2vec", size, [ISOGLOSS, "vectors", "word2vec", "--epochs", 1, "--text", f"en={bench.corpus(size)}",
                                         "--out", bench.work / "vectors.bin", "--force"])
            bench.gone("vectors.bin", "corpus.txt")


def vocab_merges(bench):
    """All four alphabetic languages, so that there are 250,000 merges to learn."""
    texts = [word for language in ("en", "fr", "ru", "de") for kind in ("lit", "docs")
             if Path(f"{bench.data}/text/{language}.{kind}.txt.zst").exists()
             for word in ("--text", f"{language}={bench.data}/text/{language}.{kind}.txt.zst")]
    for merges in [8000, 32000, 80000, 250000]:
        bench.run("vocab_merges", merges, [ISOGLOSS, "vocab", "train", "--merges", merges, *texts, "--out", bench.work / f"vocab.{merges}", "--force"])


def tokenise_vocab(bench):
    """The same text with the vocabularies of the table before."""
    vocab_merges(bench)
    for merges in [8000, 32000, 80000, 250000]:
        if not bench.has("tokenise_vocab", [merges]):
            bench.run("tokenise_vocab", merges, [ISOGLOSS, "corpus", "prepare", "--vocab", bench.work / f"vocab.{merges}", "--text",
                                                 f"en={bench.corpus(10**8)}", "--out", bench.work / "corpora"])
            bench.gone("corpora")
    bench.gone("corpus.txt")


def mlm_vocab(bench):
    for vocabulary in [2000, 8000, 32000, 80000, 250000]:
        bench.run("mlm_vocab", vocabulary, [ISOGLOSS, "bench", "mlm", "--device", "cpu", "--vocab", vocabulary, "--steps", 10])


def mlm_length(bench):
    for length in [32, 64, 128, 256, 512]:
        bench.run("mlm_length", length, [ISOGLOSS, "bench", "mlm", "--device", "cpu", "--batch", 2048 // length, "--length", length, "--steps", 10])


def encode_length(bench):
    for length in [32, 64, 128, 256, 512]:
        bench.run("encode_length", length, [ISOGLOSS, "bench", "encode", "--device", "cpu", "--batch", 2048 // length, "--length", length, "--steps", 20])


def encode(bench):
    lines = bench.world() / "text/qaa.base.txt"
    for count in [10**4, 10**5, 10**6]:
        if not bench.has("encode", [count]):
            sentences = repeated(bench, lines, count)
            bench.run("encode", count, [ISOGLOSS, "encode", "--model", bench.encoder(), "--text", f"qaa={sentences}", "--layers", "4",
                                        "--device", "cpu", "--out", bench.work / "states.npy", "--force"])
    bench.gone("states.npy", "lines.txt")


def means(bench):
    lines = bench.world() / "text/qaa.base.txt"
    for count in [10**4, 10**5, 3 * 10**5, 10**6]:
        if not bench.has("means", [count]):
            sentences = repeated(bench, lines, count)
            bench.run("means", count, [ISOGLOSS, "shift", "means", "--model", bench.encoder(), "--text", f"qaa={sentences}", "--lines",
                                       "--device", "cpu", "--out", bench.work / "means.safetensors", "--force"])
    bench.gone("means.safetensors", "lines.txt")


def repeated(bench, path, count):
    """The first `count` lines of a file, from the beginning again where it has fewer."""
    target, written = bench.work / "lines.txt", 0
    with open(target, "w") as file:
        while written < count:
            with open(path) as source:
                for line in source:
                    if written == count:
                        break
                    file.write(line)
                    written += 1
    return target


def word_align(bench):
    """Two random pairs of the real bitext joined, so that pairs differ."""
    pairs = [line.split("\t")[:2] for line in Path(bench.data, "bitext/bitext.en-de.tsv").read_text().splitlines()]
    for count in [10**4, 10**5, 10**6]:
        if not bench.has("word_align", [count]):
            draw = random.Random(count)
            with open(bench.work / "pairs.tsv", "w") as file:
                for _ in range(count):
                    (a, b), (c, d) = draw.choices(pairs, k=2)
                    file.write(f"{a} {c}\t{b} {d}\n")
            bench.run("word_align", count, [ISOGLOSS, "word-align", "--parallel", f"en-de={bench.work / 'pairs.tsv'}", "--out", bench.work / "links", "--force"])
    bench.gone("pairs.tsv", "links")


def vectors(bench, rows, dim):
    """Two sides of random vectors of which row i resembles row i, made in a process of its own."""
    subprocess.run([sys.executable, __file__, "--work", bench.work, "--make-vectors", str(rows), str(dim)], check=True)
    return bench.work / "a.npy", bench.work / "b.npy"


def make_vectors(bench, rows, dim):
    import numpy as np

    generator = np.random.default_rng(rows)
    one = generator.standard_normal((rows, dim), dtype=np.float32)
    np.save(bench.work / "a.npy", one)
    np.save(bench.work / "b.npy", one + 0.5 * generator.standard_normal((rows, dim), dtype=np.float32))
    for side in "ab":
        (bench.work / f"{side}.vocab").write_text("".join(f"{side}{row}\n" for row in range(rows)))
    (bench.work / "dictionary.txt").write_text("".join(f"a{row} b{row}\n" for row in range(rows)))


def on_vectors(bench, table, sizes, dim, command):
    for rows in sizes:
        if not bench.has(table, [rows]):
            a, b = vectors(bench, rows, dim)
            bench.run(table, rows, [ISOGLOSS, *command(a, b), "--device", "cpu"])
    bench.gone("a.npy", "b.npy", "a.vocab", "b.vocab", "dictionary.txt", "pairs.found.tsv", "map.npy")


def dictionary(bench):
    on_vectors(bench, "dictionary", [10**4, 10**5, 10**6], 100, lambda a, b: [
        "align", "words", "--source", a, "--target", b, "--dictionary", bench.work / "dictionary.txt", "--max-vocab", 10**6,
        "--save-map", bench.work / "map.npy", "--force"])


def mine(bench):
    on_vectors(bench, "mine", [10**4, 3 * 10**4, 10**5, 2 * 10**5, 10**6], 32, lambda a, b: [
        "mine", "--source", a, "--target", b, "--out", bench.work / "pairs.found.tsv", "--force"])


def retrieve(bench):
    on_vectors(bench, "retrieve", [5000, 10**4, 2 * 10**4, 5 * 10**4], 100, lambda a, b: ["retrieve", "--source", a, "--target", b, "--retrieval", "csls"])


def cka(bench):
    on_vectors(bench, "cka", [10**4, 10**5, 10**6], 100, lambda a, b: ["cka", a, b])


LANGUAGES = [2, 4, 8, 15]


def per_language(bench, table, command, sentences=50_000):
    for count in LANGUAGES:
        if not bench.has(table, [count]):
            world = bench.world(count, sentences)
            bench.run(table, count, [ISOGLOSS, *command(world, sorted(world.glob("text/*.base.txt")))])


def world_languages(bench):
    for count in LANGUAGES:
        bench.run("world_languages", count, [ISOGLOSS, "world", "generate", "--languages", count, "--sentences", 200_000, "--out", bench.work / "generated", "--force"])
    bench.gone("generated")


def texts(files):
    return [word for file in files for word in ("--text", f"{file.name.split('.')[0]}={file}")]


def vocab_languages(bench):
    per_language(bench, "vocab_languages", lambda _, files: ["vocab", "train", "--kind", "union", "--merges", 2000, *texts(files),
                                                             "--out", bench.work / "learned", "--force"])
    bench.gone("learned")


def pretrain_languages(bench):
    per_language(bench, "pretrain_languages", lambda world, _: ["pretrain", "--preset", "no-anchors", "--scale", "tiny", "--steps", 300, "--world", world,
                                                                "--set", "trajectory=false", "--device", "cpu", "--out", bench.work / "several", "--force"])
    bench.gone("several")


def joint_languages(bench):
    per_language(bench, "joint_languages", lambda world, _: ["pretrain", "--preset", "default", "--scale", "tiny", "--steps", 300, "--world", world,
                                                             "--set", "trajectory=false", "--device", "cpu", "--out", bench.work / "several", "--force"])
    bench.gone("several")


# In the order in which they are run: a title with what grows, what the command is, and the exponents expected of CPU time
# and of memory at large sizes.
TABLES = {
    "corpus": (corpus, "`corpus prepare`, bytes of text", "1", "0 (streamed)"),
    "distinct": (distinct, "`corpus prepare --distinct --dev --test`, bytes of text", "1", "0 once hashes have filled two generations (14 M sentences)"),
    "vocab_text": (vocab_text, "`vocab train --merges 30000`, bytes of text", "at most 1", "0 (distinct words)"),
    "word2vec": (word2vec, "`vectors word2vec --epochs 1`, bytes of text", "1", "at most 1 (words in memory)"),
    "vocab_merges": (vocab_merges, "`vocab train` on 308 MB of four languages, merges", "below 1", "below 1"),
    "tokenise_vocab": (tokenise_vocab, "`corpus prepare` of 100 MB, merges of its vocabulary", "0", "below 1"),
    "mlm_vocab": (mlm_vocab, "`bench mlm`, 10 updates of 1,024 tokens, vocabulary", "below 1 (softmax and Adam alone grow)", "below 1"),
    "mlm_length": (mlm_length, "`bench mlm`, 10 updates of 2,048 tokens, length", "below 1 (attention alone grows)", "0"),
    "encode_length": (encode_length, "`bench encode`, 20 batches of 2,048 tokens, length", "below 1 (attention alone grows)", "0"),
    "encode": (encode, "`encode` with `tiny`, sentences", "1", "below 1 (token ids)"),
    "means": (means, "`shift means` with `tiny`, sentences", "1", "0 (blocks of text)"),
    "word_align": (word_align, "`word-align`, pairs of 19 words", "1", "1"),
    "dictionary": (dictionary, "`align words`, dictionary and vocabulary, 100 dimensions", "1", "1"),
    "cka": (cka, "`cka`, sentences of 100 dimensions", "1", "1 up to 1 GiB, then 0"),
    "retrieve": (retrieve, "`retrieve --retrieval csls`, sentences of 100 dimensions", "2", "1"),
    "mine": (mine, "`mine`, sentences of 32 dimensions on either side", "2", "1"),
    "world_languages": (world_languages, "`world generate --sentences 200000`, languages", "1", "at most 1"),
    "vocab_languages": (vocab_languages, "`vocab train --kind union`, languages of 50,000 sentences", "1", "at most 1"),
    "pretrain_languages": (pretrain_languages, "`pretrain --preset no-anchors --steps 300`, languages", "below 1 (steps do not grow, text and softmax do)", "at most 1"),
    "joint_languages": (joint_languages, "`pretrain --preset default --steps 300`, languages", "below 1", "at most 1"),
}


def rows_of(bench, name):
    return sorted((row for key, row in bench.kept.items() if key.split()[0] == name), key=lambda row: row["size"])


def exponents(rows, key):
    """Over all sizes, and between the two largest."""
    sizes, values = [row["size"] for row in rows], [row[key] for row in rows]
    return f"{slope(sizes, values):.2f}, {slope(sizes[-2:], values[-2:]):.2f}"


def show(bench, name):
    _, title, expected, expected_memory = TABLES[name]
    rows = rows_of(bench, name)
    if len(rows) < 2:
        return
    print(f"\n{title}\n")
    print("| size | wall s | CPU s | peak MB |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row['size']:,} | {row['wall']:.3g} | {row['cpu']:.3g} | {row['peak'] / 1e6:.0f} |")
    print(f"\nexponent over all sizes, between the two largest: CPU time {exponents(rows, 'cpu')}, expected {expected}; "
          f"memory {exponents(rows, 'peak')}, expected {expected_memory}")


def summary(bench):
    """All tables as one: a row each."""
    print("| command, what grows | sizes | CPU s | exponent | expected | peak MB | exponent | expected |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (_, title, expected, expected_memory) in TABLES.items():
        rows = rows_of(bench, name)
        if len(rows) > 1:
            sizes, seconds, peaks = (", ".join(shown(row) for row in rows) for shown in (
                lambda row: short(row["size"]), lambda row: f"{row['cpu']:.3g}", lambda row: f"{row['peak'] / 1e6:.0f}"))
            print(f"| {title} | {sizes} | {seconds} | {exponents(rows, 'cpu')} | {expected} | {peaks} | {exponents(rows, 'peak')} | {expected_memory} |")


def short(size):
    for unit, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return str(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="which tables; all if none is named")
    parser.add_argument("--work", type=Path, required=True, help="folder for inputs and measurements; the largest text has 10 GB, its tokens some 5")
    parser.add_argument("--show", action="store_true", help="print the tables of what was measured")
    parser.add_argument("--summary", action="store_true", help="print one table of what was measured, a row for each command")
    parser.add_argument("--make-corpus", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--make-vectors", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    bench = Bench(options.work)
    if options.make_corpus:
        return make_corpus(bench, options.make_corpus)
    if options.make_vectors:
        return make_vectors(bench, *options.make_vectors)
    if options.summary:
        return summary(bench)
    for name in options.tables or TABLES:
        if not options.show:
            TABLES[name][0](bench)
        show(bench, name)


if __name__ == "__main__":
    main()
