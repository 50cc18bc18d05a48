"""Isogloss against PyTorch, in alternating runs: one step of masked language modelling on the CPU in f32.

    cargo build --release
    pip install torch numpy
    python bench/compare.py                      # both shapes, three rounds each
    python bench/compare.py --turns 5 --shape 8,128,256,4,4,8000
    python bench/compare.py --yardstick FILE     # another script with the same arguments and result line

A shape is BATCH,LENGTH,DIM,HEADS,LAYERS,VOCABULARY. Each round (`--turns` of them) runs each program once, in a
process of its own; the result of a program is the median over rounds of its median step. Memory is peak resident memory.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from record import record

ROOT = Path(__file__).parent.parent
SHAPES = {"8,128,256,4,4,8000": 30, "4,256,768,12,8,80000": 8}


def torch_steps(batch, length, dim, heads, layers, vocabulary, steps):
    """The median step of a plain PyTorch model, in seconds: eager, f32, post-LayerNorm, dropout 0.1, AdamW."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
            self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
            self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)

        def forward(self, x):
            split = self.qkv(x).view(batch, length, 3, heads, dim // heads)
            query, key, value = split.permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=0.1)
            mixed = mixed.transpose(1, 2).reshape(batch, length, dim)
            x = self.first(x + F.dropout(self.out(mixed), 0.1))
            return self.second(x + F.dropout(self.down(F.gelu(self.up(x))), 0.1))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(vocabulary, dim), nn.Embedding(length, dim)
            self.norm = nn.LayerNorm(dim)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.dense, self.dense_norm = nn.Linear(dim, dim), nn.LayerNorm(dim)
            self.bias = nn.Parameter(torch.zeros(vocabulary))
            for weight in self.parameters():
                if weight.dim() > 1:
                    nn.init.normal_(weight, std=0.02)

        def forward(self, tokens, rows):
            x = self.norm(F.dropout(self.tokens(tokens) + self.positions.weight, 0.1))
            x = self.blocks(x).reshape(batch * length, dim)[rows]
            x = self.dense_norm(F.gelu(self.dense(x)))
            return F.cross_entropy(F.linear(x, self.tokens.weight, self.bias), tokens.reshape(-1)[rows])

    torch.manual_seed(0)
    model = Model()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    masked = batch * length * 15 // 100
    rows = torch.arange(masked) * (batch * length) // masked
    times = []
    for _ in range(steps):
        tokens = torch.randint(0, vocabulary, (batch, length))
        start = time.perf_counter()
        model(tokens, rows).backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[steps // 2 :])


def measured(command):
    """The output of a command and the peak resident memory of its process, in bytes."""
    code = "import resource,subprocess,sys;p=subprocess.run(sys.argv[1:]);" \
           "print('PEAK',resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss*1024);sys.exit(p.returncode)"
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], capture_output=True, text=True, check=True)
    return done.stdout, int(re.search(r"PEAK (\d+)", done.stdout).group(1))


def compare(shape, steps, turns, yardstick, scaling):
    names = ["batch", "length", "dim", "heads", "layers", "vocab"]
    flags = [word for name, size in zip(names, shape.split(",")) for word in (f"--{name}", size)]
    ours = [ROOT / "target/release/isogloss", "bench", "mlm", *flags, "--steps", steps, "--json"]
    torch = [sys.executable, __file__, "--torch", shape, "--steps", steps]
    if yardstick:
        torch = [sys.executable, yardstick, "cpu", "f32", *shape.split(","), steps]
    steps_ours, steps_torch, shares, memory = [], [], [], [0, 0]
    for _ in range(turns):
        out, peak = measured(ours)
        result = json.loads(out.splitlines()[0])
        steps_ours.append(result["step_s"])
        shares.append(result["share_of_peak"])
        memory[0] = max(memory[0], peak)
        out, peak = measured(torch)
        steps_torch.append(float(re.search(r"median ([\d.]+)s", out).group(1)))
        memory[1] = max(memory[1], peak)
    single = json.loads(measured([*ours, "--threads", 1])[0].splitlines()[0])["step_s"] if scaling else None
    mine, theirs = statistics.median(steps_ours), statistics.median(steps_torch)
    tokens = int(shape.split(",")[0]) * int(shape.split(",")[1])
    print(f"shape {shape}: Isogloss {tokens / mine:.0f} tokens/s, PyTorch {tokens / theirs:.0f}: {theirs / mine:.2f} x"
          f" (rounds {', '.join(f'{b / a:.2f}' for a, b in zip(steps_ours, steps_torch))});"
          f" {100 * statistics.median(shares):.0f} % of large-GEMM throughput;{f' all threads {single / mine:.2f} x one;' if single else ''}"
          f" peak memory {memory[0] / 1e9:.2f} GB, PyTorch {memory[1] / 1e9:.2f} GB", flush=True)
    record(shape, "PyTorch", [tokens / one for one in steps_ours], [tokens / one for one in steps_torch], "tokens/s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="rounds: each program once per round")
    parser.add_argument("--shape", action="append")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--yardstick", help="reference script to run in place of the built-in PyTorch model")
    parser.add_argument("--no-scaling", action="store_true", help="do not run on one thread as well")
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        print(f"median {torch_steps(*map(int, options.torch.split(',')), options.steps):.4f}s")
    else:
        for shape in options.shape or SHAPES:
            compare(shape, options.steps or SHAPES.get(shape, 20), options.turns, options.yardstick, not options.no_scaling)
