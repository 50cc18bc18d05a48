#!/bin/sh
# All measurements and checks that need a GPU. Prints a table; logs go to a folder. Its parts:
#
#   proof     every operation against the CPU
#   speed     time to the first step, training at two shapes alternating with PyTorch, encoding,
#             nearest-neighbour search on both devices
#   real      the first 200 updates of a run on real text, on both devices and in PyTorch
#   kernels   the time of a step by kernel (where Nsight Compute is installed)
#   checkers  the operations under compute-sanitizer
#
#   cargo build --release && cargo test -p isogloss-tensor --test cuda --no-run
#   bench/gpu.sh target/release/isogloss target/debug/deps/cuda-* [yardstick.py [run-folder]]
#
# PARTS selects some of them. The tests are built without optimisation on purpose: debug builds fill fresh memory
# with NaN, which exposes a kernel that reads before it writes. `yardstick.py`, a reference script, is called as
# `yardstick.py cuda bf16 BATCH LENGTH DIM HEADS LAYERS VOCAB STEPS compile` and prints tokens per second.
# `run-folder` holds a prepared run (config.toml, vocabulary, corpora), which is copied, not changed; CURVE is the
# example `curve` of crate `train`, which replays its first updates. GEOMETRY names the tests of search and CKA
# (cargo test --release -p isogloss-geometry --test gpu --no-run: in release, since the CPU reference is slow).
set -u
isogloss=$1 tests=$2 yardstick=${3:-} run=${4:-} geometry=${GEOMETRY:-} curve=${CURVE:-}
out=${OUT:-$(mktemp -d)}
export ISOGLOSS_GPU=1 PYTHONUNBUFFERED=1
line() { printf '%-58s %s\n' "$1" "$2"; }
verdict() { if [ "$1" -eq 0 ]; then echo passed; else echo "FAILED ($1)"; fi; }
names() { "$1" --list 2>/dev/null | sed -n 's/: test$//p'; }
# Takes batch, length, dim, heads, layers and vocabulary, then flags.
train() { # shape, flags
    set -- $1 "$2"
    "$isogloss" bench mlm --device cuda --batch "$1" --length "$2" --dim "$3" --heads "$4" --layers "$5" --vocab "$6" $7 2>/dev/null
}
large="96 256 768 12 8 80000" small="64 256 512 8 8 32000"

proof() {
    line "operations against the CPU" ""
    for name in $(names "$tests"); do
        "$tests" --exact "$name" --nocapture >"$out/$name.txt" 2>&1
        line "  $name" "$(verdict $?), largest difference $(grep -oE '[0-9.]+e-?[0-9]+  ' "$out/$name.txt" | sort -g | tail -1)"
    done
    if [ -n "$geometry" ]; then
        line "search and CKA against the CPU" ""
        for name in $(names "$geometry"); do
            "$geometry" --exact "$name" --nocapture >"$out/$name.txt" 2>&1
            line "  $name" "$(verdict $?)"
        done
    fi
}

speed() {
    # The CUDA compiler has its own cache, which is moved aside too.
    cache=$(mktemp -d)
    for start in first later later; do
        line "$start start, time to the first step" "$(
            export XDG_CACHE_HOME="$cache" CUDA_CACHE_PATH="$cache"
            train "$small" "--steps 1 --json" | sed -E 's/.*"first_step_s":([0-9.]+).*/\1 s/'
        )"
    done
    rm -r "$cache"
    nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader -lms 250 >"$out/clock.txt" 2>/dev/null &
    watch=$!
    for shape in "$large" "$small"; do
        for turn in 1 2; do
            line "$shape: Isogloss" "$(train "$shape" "--steps 60 --json" | sed -E \
                's/.*"device_bytes":([0-9]+).*"step_s":([0-9.e-]+).*"tokens_per_s":([0-9]+).*/\3 tokens\/s, step \2 s, \1 bytes/')"
            [ -n "$yardstick" ] && line "  PyTorch, compiled" \
                "$(python3 "$yardstick" cuda bf16 $shape 40 compile 2>/dev/null | tail -1)"
            line "  without CUDA graph" "$(train "$shape" "--steps 60 --one-by-one" | grep tokens/s)"
        done
    done
    kill "$watch"
    line "clock and power at peak power" "$(sort -t, -k2,2 -rn "$out/clock.txt" | head -1)"
    for shape in "$large" "$small"; do
        set -- $shape
        line "$shape: encoding" "$("$isogloss" bench encode --device cuda --batch "$1" --length "$2" \
            --dim "$3" --heads "$4" --layers "$5" --vocab "$6" 2>/dev/null | grep tokens/s)"
    done
    for device in cpu cuda cpu cuda; do
        line "nearest neighbours, 50,000 x 50,000, dim 300, $device" \
            "$("$isogloss" bench search --device $device --rows 50000 --columns 50000 --repeats 3 2>/dev/null | grep search)"
    done
}

real() {
    [ -n "$run" ] && [ -n "$curve" ] || return
    cp -r "$run" "$out/beginning"
    "$curve" "$out/beginning" 200 cpu "$out/curve.safetensors" >"$out/curve-cpu.jsonl" 2>/dev/null
    "$curve" "$out/beginning" 200 cuda >"$out/curve-cuda.jsonl" 2>/dev/null
    line "the first 200 updates of a run on real text" ""
    python3 "$(dirname "$0")/curve.py" "$out/curve.safetensors" "$out/curve-cpu.jsonl" "$out/curve-cuda.jsonl" \
        --device cuda --out "$out/curve-torch.jsonl"
    rm -r "${out:?}/beginning" "$out/curve.safetensors"
}

kernels() {
    set -- $large
    ncu --clock-control none --metrics gpu__time_duration.sum --csv -c 700 --launch-skip 300 \
        "$isogloss" bench mlm --device cuda --batch "$1" --length "$2" --dim "$3" --heads "$4" --layers "$5" --vocab "$6" \
        --steps 4 >"$out/ncu.csv" 2>/dev/null
    python3 "$(dirname "$0")/kernel_times.py" "$out/ncu.csv"
}

# racecheck also reports kernels of cuBLASLt, which are counted separately.
check() { # name, test program
    [ -n "$2" ] || return
    library='nvjet|cublas|cutlass|gemm|gemv'
    for tool in memcheck racecheck synccheck; do
        log="$out/$tool-$1.txt"
        ISOGLOSS_QUICK=1 timeout "${CHECK_S:-300}" compute-sanitizer --tool $tool "$2" --nocapture --test-threads 1 >"$log" 2>&1
        reports=$(grep -E 'between .* access at |^=========     at ' "$log")
        line "compute-sanitizer $tool, $1" "$(grep -oE 'test result: [a-zA-Z]+. [0-9]+ passed; [0-9]+ failed' "$log" || echo NOT FINISHED); \
reports: $(echo "$reports" | grep -E . | grep -vcE "$library") in Isogloss's kernels, $(echo "$reports" | grep -cE "$library") in cuBLASLt's"
    done
}

checkers() {
    check operations "$tests"
    check search "$geometry"
}

for part in ${PARTS:-proof speed real kernels checkers}; do
    case $part in
    proof | speed | real) "$part" ;;
    kernels) command -v ncu >/dev/null && kernels ;;
    checkers) command -v compute-sanitizer >/dev/null && checkers ;;
    *) echo "no part $part: proof, speed, real, kernels, checkers" >&2 && exit 2 ;;
    esac
done
