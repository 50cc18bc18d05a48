"""Encoding on the GPU: Isogloss beside transformers (FlashAttention by SDPA, batches sorted by length) and
sentence-transformers as it comes, by turns, one BERT-base with random weights, bf16, mean-pooled last layer.

    python3 bench/encode_gpu.py ISOGLOSS SENTENCES.txt [PEERS...]

Every time is that of twice the sentences less that of once, from text to vectors on the host, so that loading,
start-up and warm-up are left out on all sides.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import AutoModel, AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizerFast

ISOGLOSS, TEXT = sys.argv[1], sys.argv[2]
SIZES = {"short": (20_000, 1), "long": (2_000, 16)}  # sentences, and how many of the file are joined into one


def model_folder(folder, lines):
    tokenizer = BertWordPieceTokenizer(lowercase=False)
    tokenizer.train_from_iterator(lines[:50_000], vocab_size=30_000, show_progress=False)
    tokenizer.save_model(folder)
    fast = BertTokenizerFast(vocab_file=f"{folder}/vocab.txt", do_lower_case=False, model_max_length=512)
    fast.save_pretrained(folder)
    torch.manual_seed(1)
    BertForMaskedLM(BertConfig(vocab_size=len(fast))).save_pretrained(folder)


def isogloss(folder, sentences):
    with tempfile.TemporaryDirectory() as place:
        with open(f"{place}/text.txt", "w") as file:
            file.writelines(s + "\n" for s in sentences)
        begin = time.perf_counter()
        subprocess.run([ISOGLOSS, "encode", "--model", folder, "--text", f"en={place}/text.txt", "--layers", "12", "--out", f"{place}/x.npy", "--device", "cuda", "--quiet"], check=True)
        return time.perf_counter() - begin


def transformers_sorted(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.bfloat16, attn_implementation="sdpa").cuda().eval()

    def encode(_, sentences):
        begin = time.perf_counter()
        ids = tokenizer(sentences, truncation=True, max_length=512)["input_ids"]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        vectors = [None] * len(ids)
        start = 0
        with torch.inference_mode():
            while start < len(order):
                batch = order[start : start + max(1, 65_536 // len(ids[order[start]]))]
                start += len(batch)
                padded = tokenizer.pad({"input_ids": [ids[i] for i in batch]}, return_tensors="pt").to("cuda")
                states = model(**padded).last_hidden_state
                mask = padded["attention_mask"].unsqueeze(-1)
                mean = ((states * mask).sum(1) / mask.sum(1)).float().cpu()
                for i, v in zip(batch, mean):
                    vectors[i] = v
        torch.stack(vectors)
        return time.perf_counter() - begin

    return encode


def sentence_transformers(folder):
    from sentence_transformers import SentenceTransformer
    # A folder without modules of its own gets mean pooling.
    model = SentenceTransformer(folder, device="cuda", model_kwargs={"dtype": torch.bfloat16})
    model.max_seq_length = 512

    def encode(_, sentences):
        begin = time.perf_counter()
        model.encode(sentences, batch_size=256, convert_to_numpy=True, show_progress_bar=False)
        return time.perf_counter() - begin

    return encode


def main():
    lines = [line.strip() for line in open(TEXT, errors="replace")]
    with tempfile.TemporaryDirectory() as folder:
        model_folder(folder, lines)
        systems = {"isogloss": isogloss}
        for name, make in [("transformers, sorted, sdpa", transformers_sorted), ("sentence-transformers", sentence_transformers)]:
            try:
                systems[name] = make(folder)
            except Exception as error:  # a peer that is missing is named, not hidden
                print("left out:", name, repr(error)[:300])
        tokenizer = AutoTokenizer.from_pretrained(folder)
        for size, (count, joined) in SIZES.items():
            sentences = [" ".join(lines[i * joined : (i + 1) * joined]) for i in range(2 * count)]
            tokens = sum(min(512, len(x)) for x in tokenizer(sentences[count:])["input_ids"])
            times = {name: [] for name in systems}
            for turn in range(4):
                for name, encode in systems.items():
                    once, twice = encode(folder, sentences[:count]), encode(folder, sentences)
                    if turn:  # the first turn warms up
                        times[name].append(twice - once)
            best = {name: statistics.median(t) for name, t in times.items()}
            print(json.dumps({"sentences": size, "count": count, "tokens": tokens, "tokens_per_s": {n: round(tokens / t) for n, t in best.items()}, "seconds": {n: [round(x, 3) for x in t] for n, t in times.items()}}))


if __name__ == "__main__":
    main()
