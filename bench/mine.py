"""Exact nearest neighbours of both sides for bitext mining: isogloss beside faiss's flat index, by turns.

    pip install numpy faiss-cpu
    python bench/mine.py --isogloss target/release/isogloss [--rows 30000] [--dim 256]

Random vectors; 4 neighbours in both directions. faiss searches twice (forward and backward), `isogloss mine` once for both; reading
files and mining pairs are not counted on either side.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np

from record import record


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isogloss", required=True)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    folder = Path(tempfile.mkdtemp())
    generator = np.random.default_rng(1)
    sides = []
    for name in "ab":
        side = generator.standard_normal((options.rows, options.dim), dtype=np.float32)
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        np.save(folder / f"{name}.npy", side)
        sides.append(side)

    def search(x, y):
        index = faiss.IndexFlatIP(options.dim)
        index.add(y)
        return index.search(x, 4)

    times = {"faiss": [], "isogloss": []}
    for _ in range(options.rounds):
        began = time.time()
        search(*sides)
        search(*sides[::-1])
        times["faiss"].append(time.time() - began)
        command = [options.isogloss, "mine", "--source", folder / "a.npy", "--target", folder / "b.npy", "--out", folder / "pairs.tsv",
                   "--force", "--device", "cpu", "--threads", str(options.threads), "--json"]
        result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        times["isogloss"].append(result["seconds"])
    for name, seconds in times.items():
        print(name, " ".join(f"{one:.2f}" for one in seconds), "s")
    print("faiss / isogloss by turns:", " ".join(f"{a / b:.2f}" for a, b in zip(times["faiss"], times["isogloss"])))
    record(f"{options.rows} x {options.rows} x {options.dim}", "faiss", times["isogloss"], times["faiss"], "s")


if __name__ == "__main__":
    main()
