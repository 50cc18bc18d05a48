"""Static word vectors of Isogloss against gensim, the original Word2Vec and the original GloVe.

    python bench/vectors.py speed   --text en.txt [--word2vec PROGRAM] [--turns 3] [--threads 2]
    python bench/vectors.py glove   --text en.txt --glove FOLDER [--turns 3] [--threads 2]
    python bench/vectors.py quality --text en.txt --other fr.txt --muse FOLDER [--seeds 3]
    python bench/vectors.py mrr     --text world [--seeds 3]

Texts have one sentence per line, words separated by spaces (the names `en.txt` and `fr.txt` also give the
languages of the dictionaries); for `mrr`, `--text` is the folder of an invented world. `--word2vec` is the
original program, `--glove` the folder with `vocab_count`, `cooccur`, `shuffle` and `glove`; both are built
outside this repository. Needs numpy and gensim.

Runs alternate, `--turns` rounds of them. Speeds are those of training alone: reading the text and writing
vectors are excluded for all programs.
"""

import argparse
import json
import pathlib
import random
import re
import statistics
import subprocess
import tempfile
import time

import numpy as np

from record import record

HERE = pathlib.Path(__file__).parent
ISOGLOSS = HERE.parent / "target" / "release" / "isogloss"


def ours(kind, text, out, *flags, seed=1):
    command = [ISOGLOSS, "vectors", kind, "--text", f"xx={text}", "--lines", "--tokenizer", "whitespace",
               "--out", out, "--force", "--seed", str(seed), "--json", *flags]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def gensim_model(text, threads, seed=1, epochs=5, dim=100, shuffle=False, ngrams=False, **more):
    from gensim.models import FastText, Word2Vec

    kind = FastText if ngrams else Word2Vec
    model = kind(vector_size=dim, window=5, min_count=5, negative=5, sample=1e-3, workers=threads,
                 seed=seed, epochs=epochs, **{"sg": 1, **more})
    sentences = [line.split() for line in open(text)]  # in memory, as for Isogloss: reading is not timed
    if shuffle:
        random.Random(seed).shuffle(sentences)
    model.build_vocab(sentences)
    began = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    return model, time.perf_counter() - began


def original_word2vec(program, text, threads, *flags):
    """Words per second by its own clock, which starts after the vocabulary is read."""
    command = [program, "-train", text, "-output", "/dev/null", "-size", "100", "-window", "5", "-negative", "5",
               "-sample", "1e-3", "-min-count", "5", "-iter", "1", "-threads", str(threads), *flags]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.findall(r"sec: ([\d.]+)k", output)[-1]) * 1e3 * threads


def speed(given):
    """Words per second, skip-gram and CBOW, 100 dimensions."""
    for name, our_flags, sg in [("skip-gram", [], 1), ("CBOW", ["--cbow"], 0)]:
        if given.kind not in (None, name):
            continue
        rates = {}
        for _ in range(given.turns):
            with tempfile.TemporaryDirectory() as folder:
                result = ours("word2vec", given.text, f"{folder}/v.bin", "--epochs", "1", "--threads",
                            str(given.threads), *our_flags)
            rates.setdefault("isogloss", []).append(result["tokens"] / result["seconds"])
            model, seconds = gensim_model(given.text, given.threads, epochs=1, sg=sg, alpha=0.025 if sg else 0.05)
            rates.setdefault("gensim", []).append(result["tokens"] / seconds)
            for program in given.word2vec:
                rate = original_word2vec(program, given.text, given.threads, "-cbow", str(1 - sg))
                rates.setdefault(pathlib.Path(program).name, []).append(rate)
        for peer, of_peer in rates.items():
            ratios = [a / b for a, b in zip(rates["isogloss"], of_peer)]
            print(f"{name}, {given.threads} threads: {peer} {statistics.median(of_peer) / 1e3:.0f} k words/s; "
                  f"isogloss is {statistics.median(ratios):.2f} x as fast ({', '.join(f'{r:.2f}' for r in ratios)})", flush=True)
            if not peer.startswith("isogloss"):
                record(name, peer, rates["isogloss"], of_peer, "words/s")


def original_glove(folder, text, threads, iterations):
    """Seconds of counting and shuffling, and of training."""
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as place:
        def run(command, read, write):
            with open(read) as source, open(f"{place}/{write}", "w") as target:
                began = time.perf_counter()
                subprocess.run(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True, cwd=place)
                return time.perf_counter() - began

        text = pathlib.Path(text).resolve()
        run([folder / "vocab_count", "-min-count", "5"], text, "vocab.txt")
        counting = run([folder / "cooccur", "-memory", "1", "-vocab-file", "vocab.txt", "-window-size", "15"],
                       text, "pairs")
        counting += run([folder / "shuffle", "-memory", "1", "-seed", "1"], f"{place}/pairs", "shuffled")
        pairs = pathlib.Path(f"{place}/shuffled").stat().st_size // 16
        training = run([folder / "glove", "-save-file", "vectors", "-threads", str(threads), "-input-file", "shuffled",
                        "-vocab-file", "vocab.txt", "-iter", str(iterations), "-vector-size", "100", "-seed", "1"],
                       "/dev/null", "out")
        return counting, training, pairs


def glove(given):
    """Seconds to count co-occurrences (window 15), and pairs trained per second, 100 dimensions."""
    counts, rates = [], []
    for _ in range(given.turns):
        with tempfile.TemporaryDirectory() as folder:
            def run(epochs):
                return ours("glove", given.text, f"{folder}/v{epochs}.bin", "--epochs", str(epochs), "--threads",
                            str(given.threads))["seconds"]

            few, many = run(1), run(1 + given.epochs)
        epoch = (many - few) / given.epochs
        counting, training, pairs = original_glove(given.glove, given.text, given.threads, given.epochs)
        counts.append((few - epoch, counting))
        rates.append((pairs / epoch, pairs * given.epochs / training))
        print(f"{pairs} pairs; counting: isogloss {few - epoch:.1f} s, original {counting:.1f} s; "
              f"training: isogloss {rates[-1][0] / 1e6:.2f} M pairs/s, original {rates[-1][1] / 1e6:.2f}", flush=True)
    for name, ratios in [("counting", [b / a for a, b in counts]), ("training", [a / b for a, b in rates])]:
        print(f"{name}, {given.threads} threads: isogloss is {statistics.median(ratios):.2f} x as fast as the original "
              f"({', '.join(f'{r:.2f}' for r in ratios)})")
    record("counting", "GloVe", *zip(*counts), "s")
    record("training", "GloVe", *zip(*rates), "pairs/s")


class Table:
    """Words with their vectors, centred and normalised to unit length."""

    def __init__(self, words, vectors):
        self.words = list(words)
        self.index = {word: row for row, word in enumerate(self.words)}
        vectors = vectors - vectors.mean(axis=0)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def read_ours(path):
    from gensim.models import KeyedVectors

    model = KeyedVectors.load_word2vec_format(path)  # no further argument: that it loads like this is part of the check
    return Table(model.index_to_key, model.vectors)


def dictionary(path, source, target):
    pairs = [line.split() for line in open(path)]
    return [(source.index[a], target.index[b]) for a, b in pairs if a in source.index and b in target.index]


def align(source, target, muse, pair):
    """P@1 and P@5 by cosine on MUSE's test words, after Procrustes on its training words."""
    rows, columns = zip(*dictionary(f"{muse}/{pair}.0-5000.txt", source, target))
    u, _, v = np.linalg.svd(source.vectors[list(rows)].T @ target.vectors[list(columns)])
    test = {}
    for a, b in dictionary(f"{muse}/{pair}.5000-6500.txt", source, target):
        test.setdefault(a, set()).add(b)
    words = sorted(test)
    similarity = (source.vectors[words] @ (u @ v)) @ target.vectors.T
    ranks = np.argsort(-similarity, axis=1)[:, :5]
    at = [np.mean([bool(set(row[:k]) & test[word]) for row, word in zip(ranks, words)]) for k in (1, 5)]
    return at, len(words)


def neighbours(one, other, words=2000, k=10):
    """The share of the ten nearest neighbours of frequent words that two tables have in common, on average."""
    common = [word for word in one.words if word in other.index]
    queries = common[:words]

    def nearest(table):
        of_table = table.vectors[[table.index[word] for word in common]]
        similarity = table.vectors[[table.index[word] for word in queries]] @ of_table.T
        similarity[np.arange(len(queries)), np.arange(len(queries))] = -2
        return np.argpartition(-similarity, k, axis=1)[:, :k]

    return np.mean([len(set(a) & set(b)) / k for a, b in zip(nearest(one), nearest(other))])


def quality(given):
    """Alignment and nearest neighbours of Isogloss and gensim, over seeds."""
    pair = f"{pathlib.Path(given.text).stem}-{pathlib.Path(given.other).stem}"
    tables = {"gensim": [], "isogloss": []}
    flags = ["--epochs", str(given.epochs), "--threads", str(given.threads)]
    kind = ["--cbow"] if given.cbow else []
    kind += ["--ngrams", "3-6"] if given.ngrams else []
    more = {"sg": 0, "alpha": 0.05} if given.cbow else {}
    more |= {"shuffle": given.shuffle, "ngrams": given.ngrams}
    for seed in range(1, given.seeds + 1):
        both = []
        for text in (given.text, given.other):
            model, _ = gensim_model(text, given.threads, seed=seed, epochs=given.epochs, **more)
            both.append(Table(model.wv.index_to_key, model.wv.vectors))
        tables["gensim"].append(both)
        both = []
        for text in (given.text, given.other):
            with tempfile.TemporaryDirectory() as folder:
                ours("word2vec", text, f"{folder}/v.vec", *flags, *kind, seed=seed)
                both.append(read_ours(f"{folder}/v.vec"))
        tables["isogloss"].append(both)
        for name, of_name in tables.items():
            (one, five), words = align(*of_name[-1], given.muse, pair)
            print(f"{name} seed {seed}: {pair} P@1 {100 * one:.2f} P@5 {100 * five:.2f} of {words} words", flush=True)
    first = {name: [both[0] for both in of_name] for name, of_name in tables.items()}
    seeds = range(given.seeds)
    within = {name: [neighbours(t[a], t[b]) for a in seeds for b in seeds if a < b] for name, t in first.items()}
    across = [neighbours(first["gensim"][a], first["isogloss"][b]) for a in seeds for b in seeds]
    for name, shares in [*within.items(), ("gensim with isogloss", across)]:
        print(f"ten nearest neighbours shared, {name}: {np.mean(shares):.3f} ({', '.join(f'{s:.3f}' for s in shares)})")


def rank(source, target, pairs):
    """Mean reciprocal rank of the translation among all translations of the dictionary, by cosine."""
    candidates = sorted({b for _, b in pairs})
    index = {b: number for number, b in enumerate(candidates)}
    similarity = source[[a for a, _ in pairs]] @ target[candidates].T
    gold = similarity[np.arange(len(pairs)), [index[b] for _, b in pairs]]
    return np.mean(1 / (1 + (similarity > gold[:, None]).sum(axis=1)))


def mrr(given):
    """Word retrieval in an invented world, both languages trained together (Liu et al. 2020, section 3)."""
    world = pathlib.Path(given.text)
    texts = sorted(world.glob("text/*.txt"))[:2]
    a, b = (path.name.split(".")[0] for path in texts)
    pairs = [line.split() for line in open(world / "muse" / f"{a}-{b}.txt")]
    pairs = [(x, y) for x, y in pairs if x != y]  # anchors are trivially retrieved
    # With so few types all are frequent: without --subsample 0 most of the text would be discarded.
    every = ["--subsample", "0"]
    for name, kind, flags in [("word2vec", "word2vec", every), ("glove", "glove", []),
                              ("word2vec --cbow", "word2vec", [*every, "--cbow"])]:
        rows = []
        for seed in range(1, given.seeds + 1):
            with tempfile.TemporaryDirectory() as folder:
                more = ["--text", f"yy={texts[1]}", "--dim", str(given.dim), "--threads", str(given.threads)]
                ours(kind, texts[0], f"{folder}/v.vec", *more, *flags, seed=seed)
                table = read_ours(f"{folder}/v.vec")
            known = [(table.index[x], table.index[y]) for x, y in pairs if x in table.index and y in table.index]
            one, other = np.array(known).T
            centred = []
            for rows_of in (one, other):
                vectors = np.zeros_like(table.vectors)
                own = table.vectors[rows_of] - table.vectors[rows_of].mean(axis=0)
                vectors[rows_of] = own / np.linalg.norm(own, axis=1, keepdims=True)
                centred.append(vectors)
            rows.append((rank(table.vectors, table.vectors, known), rank(*centred, known)))
        chance = np.mean(1 / np.arange(1, len(set(other)) + 1))
        raw, centred = np.array(rows).T
        print(f"{name}: MRR {raw.mean():.3f} ({', '.join(f'{x:.3f}' for x in raw)}), centred "
              f"{centred.mean():.3f} ({', '.join(f'{x:.3f}' for x in centred)}); {len(known)} pairs, chance {chance:.3f}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "glove", "quality", "mrr"])
    parser.add_argument("--text", required=True)
    parser.add_argument("--other")
    parser.add_argument("--muse")
    parser.add_argument("--word2vec", action="append", default=[])
    parser.add_argument("--glove")
    parser.add_argument("--kind", choices=["skip-gram", "CBOW"], help="speed: one of the two alone")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--dim", type=int, default=48)
    parser.add_argument("--cbow", action="store_true")
    parser.add_argument("--ngrams", action="store_true", help="quality: character n-grams, against gensim's FastText")
    parser.add_argument("--shuffle", action="store_true", help="quality: shuffle gensim's sentences for each seed")
    given = parser.parse_args()
    {"speed": speed, "glove": glove, "quality": quality, "mrr": mrr}[given.what](given)


main()
