# Everyday commands; `just` lists them. Each is one line that can be typed without just, too.

# List the commands.
default:
    @just --list

# The binary, at target/release/isogloss.
build:
    cargo build --release

# Formatting, lints and documentation, as CI has them.
check:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --document-private-items

# All tests; with ISOGLOSS_DATA set, those on real data too.
test *ARGS:
    cargo test --release --workspace {{ARGS}}

# The tests of one crate: just test-crate tensor
test-crate CRATE *ARGS:
    cargo test --release -p isogloss-{{CRATE}} {{ARGS}}

# The demo, from nothing to its report.
demo OUT="isogloss-demo":
    cargo run --release -- demo --out {{OUT}}

# Speed of training, encoding and search on this machine.
bench:
    cargo run --release -- bench mlm
    cargo run --release -- bench encode
    cargo run --release -- bench search

# Every comparison with another program that is installed; writes the tables of README and book.
compare *ARGS:
    python3 bench/all.py {{ARGS}}

# Everything that a change must pass before it lands.
ci:
    .ci/run

# Everything that needs a GPU: correctness beside the CPU, speed, sanitizers (see bench/gpu.sh).
gpu:
    cargo build --release
    cargo test -p isogloss-tensor --test cuda --no-run
    bench/gpu.sh target/release/isogloss "$(ls -t target/debug/deps/cuda-* | grep -v '\.d$' | head -1)"
