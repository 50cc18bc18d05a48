"""The Python package against what one would use instead, by turns in one process: medians of the ratios of neighbouring runs.

    pip install isogloss-*.whl numpy scipy faiss-cpu torch
    python bench/python.py [--turns 5] [--only CKA]

faiss-cpu, torch and fast_align (on the PATH) are left out, with a line that says so, where they are not installed.
"""

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import timeit

import isogloss
import numpy as np
import scipy.linalg

from record import record


# OpenBLAS's threads spin for a while after a call, waiting for another one, and so slow down whatever comes next.
PAUSE = 0.2
ONLY = ""


def by_turns(name, ours, others, turns):
    """Prints the median time of ours and, for each other, its own and the median ratio (above 1: ours is faster)."""
    if ONLY not in name:
        return
    ours(), [other() for other in others.values()]
    times = {label: [] for label in ["isogloss", *others]}
    for _ in range(turns):
        for label, run in [("isogloss", ours), *others.items()]:
            time.sleep(PAUSE)
            start = time.perf_counter()
            run()
            times[label].append(time.perf_counter() - start)
    own = times.pop("isogloss")
    print(f"{name}: isogloss {1e3 * statistics.median(own):.1f} ms")
    for label, other in times.items():
        ratio = statistics.median(b / a for a, b in zip(own, other))
        print(f"    {label} {1e3 * statistics.median(other):.1f} ms, {ratio:.2f} times")
        record(name.split(",")[0], label, own, other, "s")


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def numpy_csls(x, y, k=10):
    x, y = unit(x), unit(y)
    scores = x @ y.T
    own = np.partition(scores, -k, axis=1)[:, -k:].mean(axis=1)
    other = np.partition(scores, -k, axis=0)[-k:].mean(axis=0)
    csls = 2 * scores - own[:, None] - other
    return csls.argmax(axis=1), csls.argmax(axis=0)


def faiss_csls(x, y, k=10):
    import faiss

    def index(vectors):
        made = faiss.IndexFlatIP(vectors.shape[1])
        made.add(vectors)
        return made

    x, y = unit(x), unit(y)
    own = index(y).search(x, k)[0].mean(axis=1)
    other = index(x).search(y, k)[0].mean(axis=1)

    def best(queries, vectors, means):
        # 2 q v - mean(v) is a product of vectors with one more column.
        extended = np.hstack([2 * vectors, -means[:, None]])
        asked = np.hstack([queries, np.ones((len(queries), 1), dtype=np.float32)])
        return index(np.ascontiguousarray(extended)).search(asked, 1)[1][:, 0]

    return best(x, y, other), best(y, x, own)


def numpy_cka(x, y):
    """Biased and debiased, from products of columns, in f32."""
    return cka_of(np, np.linalg.norm, x - x.mean(axis=0), y - y.mean(axis=0), lambda a: (a * a).sum(axis=1))


def torch_cka(x, y):
    import torch

    x, y = torch.from_numpy(x), torch.from_numpy(y)
    return cka_of(torch, torch.linalg.norm, x - x.mean(0), y - y.mean(0), lambda a: (a * a).sum(1))


def cka_of(library, norm, x, y, squares):
    n = len(x)
    cross, own, other = (norm(a.T @ b) ** 2 for a, b in ((x, y), (x, x), (y, y)))
    sx, sy = squares(x), squares(y)

    def debias(product, a, b):
        return product - n / (n - 2) * (a @ b) + a.sum() * b.sum() / ((n - 1) * (n - 2))

    biased = cross / (own * other) ** 0.5
    debiased = debias(cross, sx, sy) / (debias(own, sx, sx) * debias(other, sy, sy)) ** 0.5
    return float(biased), float(debiased)


def overhead():
    x = np.ones((2, 4), dtype=np.float32)
    fit = isogloss.align.procrustes(np.eye(4), np.eye(4), normalize="none")
    calls = {
        "align.normalize of 2 x 4": lambda: isogloss.align.normalize(x, "unit"),
        "map.transform of 2 x 4": lambda: fit.transform(x, normalize="none", device="cpu"),
        "word_align of a pair": lambda: isogloss.word_align([("a b", "c d")], iterations=1),
    }
    for name, call in calls.items():
        call()
        took = min(timeit.repeat(call, number=200, repeat=7)) / 200
        print(f"call overhead, {name}: {1e6 * took:.1f} µs")


def fast_align(pairs):
    lines = "".join(f"{a} ||| {b}\n" for a, b in pairs)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write(lines)

    def run():
        for more in ([], ["-r"]):
            subprocess.run(["fast_align", "-i", file.name, "-d", "-o", "-v", *more], capture_output=True, check=True)

    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="only what has this in its name: retrieve, CKA, Procrustes, word_align")
    global ONLY
    turns, ONLY = (arguments := parser.parse_args()).turns, arguments.only
    isogloss.set_progress(False)
    print(f"isogloss {isogloss.__version__}, {os.cpu_count()} cores, numpy {np.__version__}, {turns} turns")
    has = lambda name: importlib.util.find_spec(name) is not None
    for name in ("faiss", "torch"):
        if not has(name):
            print(f"LEFT OUT: {name} is not installed")
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    x = normal(10_000, 300)
    y = x + 0.5 * normal(10_000, 300)
    others = {"numpy": lambda: numpy_csls(x, y)}
    if has("faiss"):
        others["faiss-cpu (flat)"] = lambda: faiss_csls(x, y)
    by_turns("retrieve by CSLS, 10,000 by 10,000 by 300, both directions (ours also mean-centred)",
             lambda: isogloss.retrieve(x, y, method="csls", k=10, top=1, device="cpu"), others, turns)

    a = normal(10_000, 768)
    b = a @ normal(768, 768) / 30 + normal(10_000, 768)
    others = {"numpy": lambda: numpy_cka(a, b)}
    if has("torch"):
        others["torch"] = lambda: torch_cka(a, b)
    found = isogloss.cka(a, b, subsamples=0, device="cpu")
    print("CKA, the same numbers:", np.allclose([found.cka[0][0], found.score], numpy_cka(a, b), atol=1e-3))
    by_turns("CKA, 10,000 rows of 768, biased and debiased",
             lambda: isogloss.cka(a, b, subsamples=0, device="cpu"), others, turns)

    p, q = normal(5000, 300), normal(5000, 300)
    by_turns("Procrustes, 5,000 pairs of 300",
             lambda: isogloss.align.procrustes(p, q, normalize="none", device="cpu"),
             {"scipy, in f32": lambda: scipy.linalg.orthogonal_procrustes(p, q),
              # The precision of our sums and decomposition, from the same f32.
              "scipy, in f64": lambda: scipy.linalg.orthogonal_procrustes(p.astype(float), q.astype(float))}, turns)

    words = [f"w{n}" for n in range(5000)]
    ranks = rng.zipf(1.3, size=(20_000, 12)) % 5000
    pairs = [(" ".join(words[r] for r in row), " ".join(words[-1 - r] for r in row[::-1])) for row in ranks]
    others = {"fast_align": fast_align(pairs)} if shutil.which("fast_align") else {}
    if not others:
        print("LEFT OUT: fast_align is not on the PATH")
    by_turns("word_align, 20,000 pairs of 12 words, both directions", lambda: isogloss.word_align(pairs), others, turns)
    overhead()


if __name__ == "__main__":
    main()
