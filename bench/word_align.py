"""Words aligned from hidden states: isogloss beside SimAlign, by turns, on the same random BERT-base.

    pip install torch transformers simalign scipy scikit-learn networkx
    python bench/word_align.py --isogloss target/release/isogloss --vocab mbert_cased_vocab.txt --bitext bitext.en-fr.tsv

A randomly initialised BERT of mBERT's shape and vocabulary is saved once; speed does not depend on the weights. Both align the
same pairs at the same layer on the same number of threads, and the links of both are compared: loading the model is not
counted (isogloss prints the seconds of encoding and extraction).
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from record import record


def model(folder, vocab):
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(1)
    words = Path(vocab).read_text().splitlines()
    # The default initialisation makes all tokens alike; larger weights tell them apart.
    config = BertConfig(vocab_size=len(words), initializer_range=0.05)
    BertModel(config).save_pretrained(folder)
    ids = {word: number for number, word in enumerate(words)}
    BertTokenizerFast(vocab=ids, do_lower_case=False).save_pretrained(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isogloss", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--bitext", required=True)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--layer", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    import torch
    from simalign import SentenceAligner

    torch.set_num_threads(options.threads)
    folder = Path(tempfile.mkdtemp())
    model(folder / "bert", options.vocab)
    lines = Path(options.bitext).read_text().splitlines()[: options.pairs]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")
    pairs = [line.split("\t")[:2] for line in lines]
    aligner = SentenceAligner(model=str(folder / "bert"), token_type="bpe", matching_methods="ai", layer=options.layer)
    times = {"simalign": [], "isogloss": []}
    for _ in range(options.rounds):
        began = time.time()
        theirs = [aligner.get_word_aligns(a.split(), b.split()) for a, b in pairs]
        times["simalign"].append(time.time() - began)
        ours = {}
        for extraction, name in [("itermax", "itermax"), ("argmax", "inter")]:
            command = [options.isogloss, "word-align", "--model", folder / "bert", "--parallel", f"en-fr={folder / 'pairs.tsv'}",
                       "--layers", str(options.layer), "--extract", extraction, "--device", "cpu", "--threads", str(options.threads),
                       "--out", folder / extraction, "--force", "--json"]
            result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            if extraction == "itermax":
                times["isogloss"].append(result["seconds"])
            ours[name] = (folder / extraction).read_text().splitlines()
    for name, links in ours.items():
        same = sum(" ".join(f"{i}-{j}" for i, j in one[name]) == line for one, line in zip(theirs, links))
        print(f"{name}: the links of {same} of {len(pairs)} pairs are equal")
    for name, seconds in times.items():
        print(name, " ".join(f"{one:.1f}" for one in seconds), "s")
    ratios = [a / b for a, b in zip(times["simalign"], times["isogloss"])]
    print("simalign / isogloss by turns:", " ".join(f"{ratio:.2f}" for ratio in ratios))
    record("itermax", "simalign", times["isogloss"], times["simalign"], "s")


if __name__ == "__main__":
    main()
