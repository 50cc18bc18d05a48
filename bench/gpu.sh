#!/bin/sh
# Everything that needs a GPU, in one go: every operation beside the CPU, the same under
# compute-sanitizer, the rate of training at two shapes by turns with PyTorch, the rate of encoding, searches
# on both devices, a short real run on both and its beginning beside PyTorch's, and the time of a step by
# kernel. Prints a table; logs go to a folder.
#
#   cargo build --release && cargo test -p isogloss-tensor --test cuda --no-run
#   bench/gpu.sh target/release/isogloss target/debug/deps/cuda-* [yardstick.py [run-folder]]
#
# The tests are built without optimisation on purpose: memory is then filled with what is no number, so
# that a kernel that reads before it writes shows itself. `yardstick.py` is called as
# `yardstick.py cuda bf16 BATCH LENGTH DIM HEADS LAYERS VOCAB STEPS compile` and prints tokens per second.
# `run-folder` holds a prepared run (config.toml, vocabulary, corpora), which is copied, not changed.
# GEOMETRY names the tests of searches and CKA (cargo test --release -p isogloss-geometry --test gpu --no-run:
# the CPU's side is large), CURVE the example of crate `train` that goes through a run's beginning.
set -u
isogloss=$1 tests=$2 yardstick=${3:-} run=${4:-} geometry=${GEOMETRY:-} curve=${CURVE:-}
out=${OUT:-$(mktemp -d)}
export ISOGLOSS_GPU=1 PYTHONUNBUFFERED=1
line() { printf '%-58s %s\n' "$1" "$2"; }
verdict() { if [ "$1" -eq 0 ]; then echo passed; else echo "FAILED ($1)"; fi; }

if [ -n "$run" ]; then
    # The CPU takes longest, so it begins first, with half of the cores.
    mkdir -p "$out/cpu" "$out/cuda" && cp -r "$run" "$out/cpu/run" && cp -r "$run" "$out/cuda/run"
    "$isogloss" pretrain --resume --device cpu --threads $(($(nproc) / 2)) --out "$out/cpu/run" >"$out/cpu.txt" 2>&1 &
    slow=$!
fi

line "operations beside the CPU" ""
for name in $("$tests" --list 2>/dev/null | sed -n 's/: test$//p'); do
    "$tests" --exact "$name" --nocapture >"$out/$name.txt" 2>&1
    line "  $name" "$(verdict $?), largest distance $(grep -oE '[0-9.]+e-?[0-9]+  ' "$out/$name.txt" | sort -g | tail -1)"
done
if [ -n "$geometry" ]; then
    line "searches and CKA beside the CPU" ""
    for name in $("$geometry" --list 2>/dev/null | sed -n 's/: test$//p'); do
        "$geometry" --exact "$name" --nocapture >"$out/$name.txt" 2>&1
        line "  $name" "$(verdict $?)"
    done
fi
cache=$(mktemp -d)
for start in first later; do
    line "$start start, the first step done after" "$(XDG_CACHE_HOME=$cache "$isogloss" bench mlm --device cuda --batch 64 \
        --length 256 --dim 512 --heads 8 --layers 8 --vocab 32000 --steps 1 --json 2>/dev/null |
        sed -E 's/.*"first_step_s":([0-9.]+).*/\1 s/')"
done
rm -r "$cache"
nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader -lms 250 >"$out/clock.txt" 2>/dev/null &
watch=$!
shape() { # batch length dim heads layers vocabulary
    for turn in 1 2; do
        ours=$("$isogloss" bench mlm --device cuda --batch "$1" --length "$2" --dim "$3" --heads "$4" --layers "$5" \
            --vocab "$6" --steps 60 --json 2>/dev/null)
        line "$1 x $2, dim $3, $5 layers, vocabulary $6: Isogloss" "$(echo "$ours" | sed -E \
            's/.*"device_bytes":([0-9]+).*"fastest_step_s":([0-9.]+).*"step_s":([0-9.e-]+).*"tokens_per_s":([0-9]+).*/\4 tokens\/s, step \3 s, \1 bytes/')"
        [ -n "$yardstick" ] && line "  PyTorch, compiled" \
            "$(python3 "$yardstick" cuda bf16 "$1" "$2" "$3" "$4" "$5" "$6" 40 compile 2>/dev/null | tail -1)"
        line "  kernels asked for one by one" "$("$isogloss" bench mlm --device cuda --batch "$1" --length "$2" --dim "$3" \
            --heads "$4" --layers "$5" --vocab "$6" --steps 60 --one-by-one 2>/dev/null | grep tokens/s)"
    done
}
shape 96 256 768 12 8 80000
shape 64 256 512 8 8 32000
kill "$watch"
for size in "96 256 768 12 8 80000" "64 256 512 8 8 32000"; do
    set -- $size
    line "encoding $1 x $2, dim $3, $5 layers" "$("$isogloss" bench encode --device cuda --batch "$1" --length "$2" \
        --dim "$3" --heads "$4" --layers "$5" --vocab "$6" 2>/dev/null | grep tokens/s)"
done
for device in cpu cuda cpu cuda; do
    line "50,000 nearest of 50,000, dim 300, $device" \
        "$("$isogloss" bench search --device $device --rows 50000 --columns 50000 --turns 3 2>/dev/null | grep search)"
done
line "clock and power when hottest" "$(sort -t, -k2 -rn -k1 "$out/clock.txt" | sort -t, -k2,2 -rn | head -1)"

if [ -n "$run" ]; then
    "$isogloss" pretrain --resume --device cuda --out "$out/cuda/run" >"$out/cuda.txt" 2>&1
    wait "$slow"
    for device in cpu cuda; do
        losses=$(grep -oE '"loss":[0-9.]+' "$out/$device/run/metrics.jsonl" | cut -d: -f2 | tr '\n' ' ')
        line "losses of a real run, $device" "$losses"
        line "  " "$(grep tokens/s "$out/$device.txt" | tail -1)"
        cp "$out/$device/run/metrics.jsonl" "$out/$device.jsonl" && rm -r "${out:?}/$device"
    done
fi

if [ -n "$run" ] && [ -n "$curve" ]; then
    cp -r "$run" "$out/beginning"
    "$curve" "$out/beginning" 200 cpu "$out/curve.safetensors" >"$out/curve-cpu.jsonl" 2>/dev/null
    "$curve" "$out/beginning" 200 cuda >"$out/curve-cuda.jsonl" 2>/dev/null
    line "the first 200 updates of a real run" ""
    python3 "$(dirname "$0")/curve.py" "$out/curve.safetensors" "$out/curve-cpu.jsonl" "$out/curve-cuda.jsonl" \
        --device cuda --out "$out/curve-torch.jsonl"
    rm -r "${out:?}/beginning" "$out/curve.safetensors"
fi

if command -v ncu >/dev/null; then
    ncu --clock-control none --metrics gpu__time_duration.sum --csv -c 700 --launch-skip 300 \
        "$isogloss" bench mlm --device cuda --batch 96 --length 256 --dim 768 --heads 12 --layers 8 --vocab 80000 \
        --steps 4 >"$out/ncu.csv" 2>/dev/null
    python3 "$(dirname "$0")/kernel_times.py" "$out/ncu.csv"
fi

if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        ISOGLOSS_QUICK=1 timeout "${SANITIZE_S:-100}" compute-sanitizer --tool $tool --error-exitcode 9 \
            "$tests" --nocapture --test-threads 1 >"$out/$tool.txt" 2>&1
        line "compute-sanitizer $tool" "$(verdict $?), $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/$tool.txt" | tail -1)"
        [ -z "$geometry" ] && continue
        ISOGLOSS_QUICK=1 timeout "${SANITIZE_S:-100}" compute-sanitizer --tool $tool --error-exitcode 9 \
            "$geometry" --nocapture --test-threads 1 >"$out/$tool-geometry.txt" 2>&1
        line "  searches and CKA" "$(verdict $?), $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/$tool-geometry.txt" | tail -1)"
    done
fi
