"""Fine-tuning in Isogloss against PyTorch, in alternating runs: same encoder shape, task, sentences and batch; CPU, f32.

    cargo build --release
    pip install torch tokenizers
    python bench/finetune.py --task ner --model RUN --train LANG=FILE --dev LANG=FILE [--batch 32] [--turns 3]

RUN is a run of `isogloss pretrain`. Each round (`--turns` of them) trains one epoch with each program, in a process of its
own; PyTorch trains a plain eager model of the same shape from random weights on the same sentences, padded to the longest
of each batch, with the same head (linear for ner and nli, deep biaffine for parse), Adam and clipping. Tokens are counted
without padding. For Isogloss the speed of scoring is printed too; for PyTorch, the share of padding.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from record import record

ROOT = Path(__file__).parent.parent


def sentences(task, path):
    """The words of every example and its gold labels: a class per word, heads and relations, or one class."""
    text = Path(path).read_text(encoding="utf-8")
    if task == "nli":
        return [(a.split() + ["</s>"] + b.split(), [label]) for a, b, label in
                (line.split("\t") for line in text.strip().split("\n"))]
    items = []
    for block in text.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        if task == "ner":
            items.append(([row[0] for row in rows], [row[1] for row in rows]))
        else:
            rows = [row for row in rows if row[0].isdigit()]
            items.append(([row[1] for row in rows], [(int(row[6]), row[7].split(":")[0]) for row in rows]))
    return items


def torch_epoch(task, run, language, path, batch_size, limit):
    """Trains one epoch; returns tokens per second without padding, and the share of padding."""
    import torch
    from tokenizers import Tokenizer
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    config = tomllib.loads((Path(run) / "config.toml").read_text())["encoder"]
    dim, heads, layers, hidden = (config[key] for key in ("dim", "heads", "layers", "hidden"))
    longest, dropout, post = config["positions"], config["dropout"], config.get("norm", "post") == "post"
    tokenizer = Tokenizer.from_file(str(Path(run) / "vocabulary" / f"tokenizer.{language}.json"))
    vocabulary = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    examples, classes = [], {}
    for words, answers in sentences(task, path)[:limit]:
        tokens, firsts = [1], []
        for word in words:
            subwords = tokenizer.encode(word, add_special_tokens=False).ids or [3]
            if len(tokens) + len(subwords) + 1 > longest:
                break
            firsts.append(len(tokens))
            tokens += subwords
        tokens.append(1)
        number = lambda name: classes.setdefault(name, len(classes))
        if task == "parse":
            answers = [(head if head <= len(firsts) else 0, number(label)) for head, label in answers[: len(firsts)]]
        else:
            answers = [number(name) for name in (answers if task == "nli" else answers[: len(firsts)])]
        examples.append((tokens, [0] if task == "nli" else firsts, answers))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
            self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)

        def attend(self, x, mask):
            count, length, _ = x.shape
            query, key, value = self.qkv(x).view(count, length, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
            return F.dropout(self.out(mixed.transpose(1, 2).reshape(count, length, dim)), dropout)

        def forward(self, x, mask):
            if post:
                x = self.first(x + self.attend(x, mask))
                return self.second(x + F.dropout(self.down(F.gelu(self.up(x))), dropout))
            x = x + self.attend(self.first(x), mask)
            return x + F.dropout(self.down(F.gelu(self.up(self.second(x)))), dropout)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, dim), nn.Embedding(longest, dim)
            self.norm, self.blocks = nn.LayerNorm(dim), nn.ModuleList(Block() for _ in range(layers))
            if task == "parse":
                arc, label = min(max(2 * dim, 64), 512), min(max(dim, 32), 128)
                self.networks = nn.ModuleList(nn.Linear(dim, size) for size in (arc, arc, label, label))
                self.arc = nn.Linear(arc, arc)
                self.pairs = nn.Parameter(torch.zeros(len(classes), label + 1, label + 1))
            else:
                self.output = nn.Linear(dim, len(classes))

        def encode(self, tokens, mask):
            x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
            x = self.norm(x) if post else x
            for block in self.blocks:
                x = block(x, mask)
            return x if post else self.norm(x)

        def loss(self, tokens, mask, rows, answers):
            x = self.encode(tokens, mask)
            if task != "parse":
                return F.cross_entropy(self.output(F.dropout(x[rows], 0.1)), answers)
            (sentence, position), (firsts, chosen, heads_of, labels) = rows, answers
            roots = torch.cat([torch.zeros_like(firsts[:, :1]), firsts], 1)  # sentences x (1 + words)
            candidates = F.dropout(x.gather(1, roots.clamp(min=0)[..., None].expand(-1, -1, dim)), 0.1)
            networks = [F.dropout(F.elu(network(candidates)), 0.1) for network in self.networks]
            scores = self.arc(networks[1]) @ networks[0].transpose(1, 2)
            scores = scores.masked_fill((roots < 0)[:, None, :], -1e9)
            arcs = F.cross_entropy(scores[chosen], heads_of)
            one = torch.ones(len(heads_of), 1)
            dependents = torch.cat([networks[3][chosen], one], 1)
            governors = torch.cat([networks[2][chosen[0], heads_of], one], 1)
            bilinear = torch.einsum("na,cab,nb->nc", dependents, self.pairs, governors)
            return arcs + F.cross_entropy(bilinear, labels)

    model = Model()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    random.Random(0).shuffle(examples)
    real = padded = 0
    times = []
    for start in range(0, len(examples), batch_size):
        batch = examples[start : start + batch_size]
        begin = time.perf_counter()
        width = max(len(tokens) for tokens, *_ in batch)
        tokens = torch.tensor([tokens + [2] * (width - len(tokens)) for tokens, *_ in batch])
        mask = (torch.arange(width) < torch.tensor([[len(tokens)] for tokens, *_ in batch]))[:, None, None, :]
        rows = [(at, first) for at, (_, firsts, _) in enumerate(batch) for first in firsts]
        rows = tuple(torch.tensor(rows).T)
        if task == "parse":
            most = max(len(firsts) for _, firsts, _ in batch)
            firsts = torch.tensor([firsts + [-1] * (most - len(firsts)) for _, firsts, _ in batch])
            chosen = [(at, 1 + word) for at, (_, firsts_, _) in enumerate(batch) for word in range(len(firsts_))]
            flat = torch.tensor([answer for *_, answers in batch for answer in answers])
            answers = (firsts, tuple(torch.tensor(chosen).T), flat[:, 0], flat[:, 1])
        else:
            answers = torch.tensor([answer for *_, answers in batch for answer in answers])
        model.loss(tokens, mask, rows, answers).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
        real += sum(len(tokens) for tokens, *_ in batch)
        padded += width * len(batch)
    return real / sum(times), 1 - real / padded


def ours(options, folder):
    language, file = options.train.split("=", 1)
    command = [ROOT / "target/release/isogloss", "transfer", "--task", options.task, "--quick", "--model", options.model,
               "--train", options.train, "--dev", options.dev, "--test", options.dev, "--epochs", "1",
               "--batch", options.batch, "--limit", options.limit, "--allow-unseen", "--out", folder, "--json"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    speed = json.loads(done.stdout)["speed"]
    return speed["trained"] / speed["train_seconds"], speed["evaluated"] / speed["evaluate_seconds"]


def main(options):
    language, file = options.train.split("=", 1)
    if options.torch:
        print(*torch_epoch(options.task, options.model, language, file, options.batch, options.limit))
        return
    trained, scored, theirs, padding = [], [], [], 0.0
    for turn in range(options.turns):
        with tempfile.TemporaryDirectory() as folder:
            train, score = ours(options, Path(folder) / "run")
        trained.append(train)
        scored.append(score)
        command = [sys.executable, __file__, *sys.argv[1:], "--torch"]
        rate, padding = map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
        theirs.append(rate)
    turns = ", ".join(f"{a / b:.2f}" for a, b in zip(trained, theirs))
    mine, other, eval_rate = map(statistics.median, (trained, theirs, scored))
    print(f"{options.task}, batch {options.batch}: Isogloss {mine:.0f} tokens/s, PyTorch {other:.0f}: "
          f"{statistics.median(a / b for a, b in zip(trained, theirs)):.2f} x (rounds {turns}); scoring {eval_rate:.0f} "
          f"tokens/s, {eval_rate / mine:.1f} x training; padding 0 %, PyTorch {100 * padding:.0f} %", flush=True)
    record(options.task, "PyTorch", trained, theirs, "tokens/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["ner", "parse", "nli"], required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=int, default=1000000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    main(parser.parse_args())
