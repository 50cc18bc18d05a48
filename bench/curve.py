"""Training curves against PyTorch: the first updates of a run, from the same initial weights on the same batches with
the same Adam, in PyTorch and in Isogloss on one or several devices; the losses of all, update by update.

    isogloss pretrain … --out run --steps 1 --encoder.dropout 0 --encoder.attention_dropout 0
    cargo run --release -p isogloss-train --example curve -- run 200 cpu curve.safetensors > cpu.jsonl
    cargo run --release -p isogloss-train --example curve -- run 200 cuda > cuda.jsonl
    pip install torch safetensors
    python bench/curve.py curve.safetensors cpu.jsonl cuda.jsonl [--device cuda] [--out torch.jsonl]

PyTorch runs in f32, with TF32 off. It pads and masks where Isogloss packs sequences without padding.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open


class Model:
    """Weights by name, and the forward pass over a padded batch."""

    def __init__(self, config, weights):
        self.config, self.weights = config, weights

    def get(self, language, name):
        own = f"{self.config['languages'][language]}.{name}"
        return self.weights[own] if own in self.weights else self.weights[name]

    def norm(self, language, name, x):
        gamma, beta = (self.get(language, f"{name}.{part}")[0] for part in ("gamma", "beta"))
        return F.layer_norm(x, gamma.shape, gamma, beta, self.config["epsilon"])

    def affine(self, language, name, x):
        return x @ self.get(language, f"{name}.weight") + self.get(language, f"{name}.bias")

    def attention(self, language, name, x, mask):
        batch, length, dim = x.shape
        heads = self.config["heads"]
        split = lambda y: y.view(batch, length, heads, dim // heads).transpose(1, 2)
        query = split(self.affine(language, f"{name}.query", x))
        key, value = (split(y) for y in self.affine(language, f"{name}.key_value", x).chunk(2, dim=-1))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None, :])
        return self.affine(language, f"{name}.output", mixed.transpose(1, 2).reshape(batch, length, dim))

    def feed_forward(self, language, name, x):
        return self.affine(language, f"{name}.down", F.gelu(self.affine(language, f"{name}.up", x)))

    def hidden(self, language, tokens, mask):
        """The input of the MLM head: batch x length x dim."""
        x = self.get(language, "embeddings.tokens")[tokens]
        x = x + self.get(language, "embeddings.positions")[: tokens.shape[1]]
        if self.config["language_embeddings"]:
            x = x + self.weights["embeddings.languages"][language]
        post = self.config["norm"] == "post"
        if post:
            x = self.norm(language, "embeddings.norm", x)
        for layer in range(1, self.config["layers"] + 1):
            name = f"layers.{layer}"
            if post:
                x = self.norm(language, f"{name}.attention_norm", x + self.attention(language, name, x, mask))
                x = self.norm(language, f"{name}.hidden_norm", x + self.feed_forward(language, name, x))
            else:
                x = x + self.attention(language, name, self.norm(language, f"{name}.attention_norm", x), mask)
                x = x + self.feed_forward(language, name, self.norm(language, f"{name}.hidden_norm", x))
        return x if post else self.norm(language, "head.final_norm", x)

    def loss(self, language, batch):
        """The sum of the losses of a micro-batch's masked tokens."""
        tokens, mask = padded(batch["tokens"], batch["starts"])
        x = self.hidden(language, tokens, mask)[mask][batch["rows"]]
        if self.config["transform"]:
            x = self.norm(language, "head.norm", F.gelu(self.affine(language, "head.dense", x)))
        table = "head.decoder" if self.config.get("untied") else "embeddings.tokens"
        logits = x @ self.get(language, table).T + self.get(language, "head.bias")
        return F.cross_entropy(logits, batch["targets"], reduction="sum")


def padded(tokens, starts):
    """Packed sequences as padded rows, and the mask of positions that hold a token."""
    ends = torch.cat([starts[1:], starts.new_tensor([len(tokens)])])
    lengths = ends - starts
    mask = torch.arange(int(lengths.max()), device=tokens.device) < lengths[:, None]
    rows = tokens.new_zeros(mask.shape)
    rows[mask] = tokens
    return rows, mask


class Adam:
    """AdamW: decoupled decay, epsilon added after bias correction, updates counted for each matrix separately."""

    def __init__(self, config, weights):
        self.config, self.weights = config, weights
        self.state = {name: [torch.zeros_like(w), torch.zeros_like(w), 0] for name, w in weights.items()}

    @torch.no_grad()
    def update(self, lr):
        config = self.config
        grads = {name: w.grad for name, w in self.weights.items() if w.grad is not None}
        norm = torch.stack([grad.double().square().sum() for grad in grads.values()]).sum().sqrt().item()
        clip = config["clip"] if config.get("clip") is not None else float("inf")
        scale = min(1.0, clip / norm) if norm > 0.0 else 1.0
        for name, grad in grads.items():
            mean, square, count = self.state[name]
            count += 1
            self.state[name][2] = count
            grad = grad * scale
            mean.lerp_(grad, 1.0 - config["beta1"])
            square.mul_(config["beta2"]).addcmul_(grad, grad, value=1.0 - config["beta2"])
            deviation = square.sqrt() / (1.0 - config["beta2"] ** count) ** 0.5 + config["epsilon"]
            weight = self.weights[name]
            weight.mul_(1.0 - lr * config["weight_decay"])
            weight.addcdiv_(mean, deviation, value=-lr / (1.0 - config["beta1"] ** count))
            weight.grad = None
        return norm


def train(path, device):
    """The loss of every update in the file."""
    losses = []
    with safe_open(path, "pt", device=device) as file:
        metadata = json.loads(file.metadata()["curve"])
        names = [key for key in file.keys() if key.startswith("weights/")]
        weights = {key.removeprefix("weights/"): file.get_tensor(key).clone().requires_grad_() for key in names}
        model, adam = Model(metadata["encoder"], weights), Adam(metadata["adam"], weights)
        for step, (lr, languages) in enumerate(zip(metadata["lrs"], metadata["languages"])):
            parts = ("tokens", "starts", "rows", "targets")
            read = lambda number: {part: file.get_tensor(f"{step}/{number}/{part}").long() for part in parts}
            batches = [read(number) for number in range(len(languages))]
            targets = sum(len(batch["targets"]) for batch in batches)
            total = 0.0
            for language, batch in zip(languages, batches):
                loss = model.loss(language, batch)
                (loss / targets).backward()
                total += loss.item()
            adam.update(lr)
            losses.append(total / targets)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("curves", type=Path, nargs="+", help="output of the example, one file per device")
    parser.add_argument("--device", default="cpu", help="device of PyTorch: cpu or cuda")
    parser.add_argument("--every", type=int, default=10, help="print every Nth update")
    parser.add_argument("--out", type=Path, help="write PyTorch's losses to this file")
    arguments = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    theirs = train(arguments.file, arguments.device)
    if arguments.out:
        lines = (json.dumps({"step": step, "loss": loss}) for step, loss in enumerate(theirs, 1))
        arguments.out.write_text("\n".join(lines) + "\n")
    curves = {"PyTorch": theirs}
    for path in arguments.curves:
        curves[path.stem] = [json.loads(line)["loss"] for line in path.read_text().splitlines()]
    count = min(map(len, curves.values()))
    print(f"{'update':>10}" + "".join(f"{name:>12}" for name in curves))
    for step in range(1, count + 1):
        if step <= 3 or step % arguments.every == 0 or step == count:
            print(f"{step:>10}" + "".join(f"{losses[step - 1]:>12.6f}" for losses in curves.values()))
    print("means")
    for first in range(0, count, 50):
        last = min(first + 50, count)
        means = (sum(losses[first:last]) / (last - first) for losses in curves.values())
        print(f"{f'{first + 1}-{last}':>10}" + "".join(f"{mean:>12.6f}" for mean in means))
    print("largest difference from PyTorch")
    for last in sorted({min(count, last) for last in (10, 50, 100, 200, count)}):
        apart = (max(abs(a - b) for a, b in zip(losses[:last], theirs)) for losses in curves.values())
        print(f"{f'1-{last}':>10}" + "".join(f"{most:>12.2e}" for most in apart))


if __name__ == "__main__":
    main()
