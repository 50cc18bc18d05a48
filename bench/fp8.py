"""The matmuls of one pretraining step at the papers' shape in bf16 and in FP8, by turns, through PyTorch's cuBLASLt.

    python3 bench/fp8.py

FP8 can make only these matmuls faster. The script times each of them (forward, gradient of the input, gradient of
the weight) in both precisions and the casts that FP8 needs, and prints what a whole step would then take: an upper
bound of what `precision = "fp8"` could give before it is written.
"""

import statistics
import sys

import torch

TOKENS, DIM, LAYERS = 96 * 256, 768, 8
# A step in bf16 and its parts (ms), from Nsight Compute (notes/2026-11-15-gpu.md, "Where the time goes").
STEP, GEMM = 20.4, 13.2
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def milliseconds(work, repeat=40):
    """The time of one call, with the card busy throughout as it is while training."""
    for _ in range(5):
        work()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeat):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeat


def products(rows, inputs, outputs):
    """(name, m, n, k, left type, right type) of a linear layer's three matmuls; C[m, n] = A[m, k] Bᵀ[n, k]."""
    yield "forward", rows, outputs, inputs, E4M3, E4M3
    yield "gradient of the input", rows, inputs, outputs, E5M2, E4M3
    yield "gradient of the weight", outputs, inputs, rows, E5M2, E4M3


def main():
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 9):
        sys.exit("FP8 needs a GPU of compute capability 8.9 or later (Ada, Hopper)")
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    one = torch.ones((), device="cuda")
    sums = {"bf16": 0.0, "fp8": 0.0}
    for layer, inputs, outputs in [("query, key, value", DIM, 3 * DIM), ("output", DIM, DIM), ("up", DIM, 4 * DIM), ("down", 4 * DIM, DIM)]:
        for name, m, n, k, left, right in products(TOKENS, inputs, outputs):
            a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
            a8, b8 = a.to(left), b.to(right)
            turns = {"bf16": [], "fp8": []}
            for _ in range(3):
                turns["bf16"].append(milliseconds(lambda: torch.mm(a, b.t())))
                turns["fp8"].append(milliseconds(lambda: torch._scaled_mm(a8, b8.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=name == "forward")))
            bf16, fp8 = (statistics.median(turns[p]) for p in ("bf16", "fp8"))
            sums["bf16"] += bf16
            sums["fp8"] += fp8
            tera = 2e-9 * m * n * k
            print(f"{layer:18} {name:23} {m:6} x {n:5} x {k:6}  bf16 {1e3 * bf16:6.1f} us {tera / bf16:5.0f} TFLOP/s  fp8 {1e3 * fp8:6.1f} us {tera / fp8:5.0f} TFLOP/s  {bf16 / fp8:.2f} x")
    # What must be written in FP8, each also transposed, since Hopper's FP8 matmuls read both operands along k:
    # 7 widths of activations and 9 of gradients for each token and layer. bf16 is read, two bytes are written.
    x = torch.randn(TOKENS, DIM, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    copy = milliseconds(lambda: y.copy_(x))
    casts = LAYERS * 16 * copy
    saved = LAYERS * (sums["bf16"] - sums["fp8"])
    print(f"a layer: bf16 {sums['bf16']:.3f} ms, fp8 {sums['fp8']:.3f} ms ({sums['bf16'] / sums['fp8']:.2f} x)")
    print(f"casts, each at the speed of a copy of the same bytes: {casts:.2f} ms for {LAYERS} layers")
    for what, step in [("casts as kernels of their own", STEP - saved + casts), ("casts for nothing", STEP - saved)]:
        print(f"{what}: a step of {STEP:.1f} ms would take {step:.1f} ms, {TOKENS / step / 1e3:.2f} M tokens/s beside {TOKENS / STEP / 1e3:.2f}")


if __name__ == "__main__":
    main()
