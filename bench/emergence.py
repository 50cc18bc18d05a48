"""When does a shared space emerge, and which settings speed it up?

Pretrains at `tiny` scale on invented languages under many settings and seeds, several runs in parallel,
and prints means with 95 % intervals (Student's t over seeds). Every seed has its own world. Runs are
ordered by seed, so that a run cut short by `--budget` still compares all settings; results are cached
in `--out`.

    python3 bench/emergence.py --isogloss target/release/isogloss --group conditions --seeds 5
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Two-sided 95 % quantiles of Student's t by degrees of freedom.
T95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

NONE = ("--preset", "no-anchors")


def steps(number):
    return ("--steps", str(number))


def keys(*settings):
    return tuple(flag for setting in settings for flag in ("--set", setting))


# The first recipe of `tiny`: 2 x 32 rows of 32 tokens per update, cut regardless of sentences.
FIRST = NONE + keys("batch.aligned=false", "batch.sequences=32", "stages=[]")
HALF = keys("batch.aligned=true", "batch.sequences=16")
QUARTER = keys("batch.aligned=true", "batch.sequences=8")

# Eight layers, as in Conneau et al. 2020, and the learning rate that post-LayerNorm bears.
EIGHT = keys("encoder.layers=8", "encoder.dim=64", "encoder.hidden=256")
GENTLE = keys("adam.lr=1e-3", "adam.schedule.warmup=1000")
PLACES = {
    "pre, 3e-3": EIGHT,
    "pre, 1e-3": EIGHT + GENTLE,
    "post, 1e-3": EIGHT + GENTLE + keys("encoder.norm=post"),
}


def groups(updates):
    """A group is a list of settings: a name, flags of `world generate`, and flags of `pretrain`."""
    return {
        # Table 1 of Conneau et al. 2020; a tenth of the content words are spelled identically.
        "conditions": [
            (name, ("--anchors", "0.1"), ("--preset", name))
            for name in [
                "default", "default-anchors", "no-anchors", "extra-anchors", "sep-emb", "sep-emb-l1-3",
                "sep-emb-l1-6", "sep-l1-3", "sep-l1-6",
            ]
        ],
        # Why separate lower layers break transfer: the place of LayerNorm.
        "separation": [
            (f"{name} {place}", ("--anchors", "0.1"), ("--preset", name) + flags)
            for place, flags in PLACES.items()
            for name in ["default-anchors", "sep-l1-3", "sep-emb-l1-3", "sep-l1-6", "sep-emb-l1-6"]
        ],
        # No word in common; order, morphology and script diverge together.
        "distance": [
            (f"distance {d}", ("--distance", d, "--anchors", "0", "--cognates", "0"), NONE)
            for d in ["0", "0.25", "0.5", "0.75", "1"]
        ],
        "domain": [
            (f"domain shift {d}", ("--domain-shift", d), ("--preset", "default"))
            for d in ["0", "0.3", "0.6", "1"]
        ],
        # One change to the first recipe at a time, no word in common, the same number of tokens.
        "factors": [
            ("base", (), FIRST),
            ("joint vocabulary", (), ("--preset", "default") + FIRST[2:]),
            ("rows begin with sentences", (), FIRST + keys("batch.aligned=true")),
            ("learning rate 1.5e-3", (), FIRST + keys("adam.lr=1.5e-3")),
            ("learning rate 6e-3", (), FIRST + keys("adam.lr=6e-3")),
            ("warm-up 20", (), FIRST + keys("adam.schedule.warmup=20")),
            ("warm-up 400", (), FIRST + keys("adam.schedule.warmup=400")),
            ("half the batch", (), FIRST + keys("batch.sequences=16") + steps(2 * updates)),
            ("a quarter of the batch", (), FIRST + keys("batch.sequences=8") + steps(4 * updates)),
            ("twice the batch", (), FIRST + keys("batch.sequences=64") + steps(updates // 2)),
            ("rows of 16 tokens", (), FIRST + keys("batch.length=16", "batch.sequences=64")),
            ("first quarter: rows of 16", (), FIRST + keys(f"stages=[{{steps={updates // 4},length=16,sequences=64}}]")),
            ("first quarter: batches of a quarter", (),
             FIRST + keys(f"stages=[{{steps={updates},sequences=8}}]") + steps(updates + updates * 3 // 4)),
            ("masking rate 15 %", (), FIRST + keys("batch.mask.rate=0.15")),
            ("masking rate 40 %", (), FIRST + keys("batch.mask.rate=0.4")),
            ("beta2 .95", (), FIRST + keys("adam.beta2=0.95")),
            ("beta2 .999", (), FIRST + keys("adam.beta2=0.999")),
            ("no weight decay", (), FIRST + keys("adam.weight_decay=0.0")),
            ("weights N(0, .05)", (), FIRST + keys("encoder.init_std=0.05")),
            ("weights N(0, .01)", (), FIRST + keys("encoder.init_std=0.01")),
            ("positions N(0, .02)", (), FIRST + keys("encoder.start_positions=normal")),
            ("post-LayerNorm", (), FIRST + keys("encoder.norm=post")),
            ("500 merges", (), FIRST + keys("vocabulary.merges=250")),
            ("dropout .1", (), FIRST + keys("encoder.dropout=0.1")),
        ],
        # Combinations of the changes that helped alone.
        "combined": [
            ("aligned, half the batch", (), FIRST + HALF + steps(2 * updates)),
            ("aligned, a quarter of the batch", (), FIRST + QUARTER + steps(4 * updates)),
            ("aligned, a quarter, learning rate 2e-3", (), FIRST + QUARTER + keys("adam.lr=2e-3") + steps(4 * updates)),
            ("aligned, a quarter, warm-up 400", (),
             FIRST + QUARTER + keys("adam.schedule.warmup=400") + steps(4 * updates)),
            ("aligned, half, rows of 16", (),
             FIRST + HALF + keys("batch.length=16", "batch.sequences=32") + steps(2 * updates)),
            ("aligned, half, first quarter: rows of 16", (),
             FIRST + HALF + keys(f"stages=[{{steps={updates // 2},length=16,sequences=32}}]") + steps(2 * updates)),
        ],
    }


def pretrain(arguments, folder, world, setting, seed):
    name, world_flags, flags = setting
    out = folder / f"{name.replace(' ', '_')} {seed}"
    summary = folder / f"{out.name}.json"
    if summary.exists():
        return json.loads(summary.read_text())
    if time.time() > arguments.deadline:
        return None
    default = () if "--steps" in flags else steps(arguments.steps)
    command = [arguments.isogloss, "pretrain", "--world", world, "--out", out, "--seed", str(seed),
               "--threads", "1", "--evaluate-every", "100", "--checkpoint-every", "100000", "--json",
               "--set", "patience=1000", *flags, *default, *arguments.flags.split()]
    begun = time.time()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{name}, seed {seed}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    result = json.loads(done.stdout)
    result["wall"] = time.time() - begun
    result["curve"] = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()
                       if '"evaluation"' in line]
    summary.write_text(json.dumps(result))
    subprocess.run(["rm", "-r", out])
    return result


def world_for(arguments, folder, flags, seed):
    path = folder / ("world" + "".join(flags).replace("-", "_") + f".{seed}")
    if not path.exists():
        command = [arguments.isogloss, "world", "generate", "--out", path, "--seed", str(seed), *flags]
        subprocess.run(command, check=True, capture_output=True)
    return path


def interval(values):
    values = [value for value in values if value is not None]
    if not values:
        return "–"
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.3g}"
    half = T95.get(len(values) - 1, 1.96) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.3g} ± {half:.2g}"


def millions(results, key):
    moments = [r[key][0] if isinstance(r[key], list) else r[key] for r in results]
    return reached([m and m["tokens"] / 1e6 for m in moments])


def half_retrieved(result):
    """Millions of tokens until mean-centred P@1 reaches .5."""
    per_step = result["tokens"] / max(result["steps"], 1) / 1e6
    found = [line["step"] for line in result["curve"] if max(line["retrieval"][0]["centered"]) >= 0.5]
    return found[0] * per_step if found else None


def reached(values):
    there = [value for value in values if value is not None]
    note = "" if len(there) == len(values) else f" ({len(there)} of {len(values)})"
    return interval(there) + note


def table(group, results):
    print(f"\n{group}\n")
    print("| setting | seeds | leaves plateau, M tokens | ten times chance | centred P@1 .5 | P@1 raw | P@1 centred | perplexity |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, found in results.items():
        if not found:
            continue
        best = lambda kind: interval([max(r["retrieval"][0][kind]) for r in found])
        perplexity = interval([statistics.mean(r["perplexity"].values()) for r in found])
        print(f"| {name} | {len(found)} | {millions(found, 'left_plateau')} | {millions(found, 'emerged')}"
              f" | {reached([half_retrieved(r) for r in found])}"
              f" | {best('raw')} | {best('centered')} | {perplexity} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isogloss", default="target/release/isogloss")
    parser.add_argument("--group", action="append", choices=groups(4), required=True)
    parser.add_argument("--flags", default="", help="flags for every `pretrain`")
    parser.add_argument("--only", action="append", help="settings to run, instead of all of the group")
    parser.add_argument("--steps", type=int, default=2000, help="updates: of 1,024 tokens, or 2,048 with the first recipe")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=float, default=1e9, help="seconds after which no new run starts")
    parser.add_argument("--out", type=Path, default=Path("emergence"))
    arguments = parser.parse_args()
    arguments.isogloss = Path(arguments.isogloss).resolve()
    arguments.deadline = time.time() + arguments.budget
    settings = groups(arguments.steps)
    if arguments.only:
        settings = {group: [each for each in all if each[0] in arguments.only] for group, all in settings.items()}
    jobs, results = [], {}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        worlds = {}
        for group in arguments.group:
            (arguments.out / group).mkdir(parents=True, exist_ok=True)
            for _, flags, _ in settings[group]:
                for seed in range(1, arguments.seeds + 1):
                    if (flags, seed) not in worlds:
                        worlds[flags, seed] = pool.submit(world_for, arguments, arguments.out, flags, seed)
        for seed in range(1, arguments.seeds + 1):
            for group in arguments.group:
                for setting in settings[group]:
                    world = worlds[setting[1], seed].result()
                    job = pool.submit(pretrain, arguments, arguments.out / group, world, setting, seed)
                    jobs.append((group, setting[0], job))
        for group, name, job in jobs:
            found = results.setdefault(group, {}).setdefault(name, [])
            if job.result():
                found.append(job.result())
    for group, found in results.items():
        table(group, found)
    walls = [r["wall"] for found in results.values() for runs in found.values() for r in runs]
    if walls:
        print(f"\n{len(walls)} runs, {statistics.mean(walls):.0f} s each on one thread")


if __name__ == "__main__":
    main()
