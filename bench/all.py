"""Every comparison of speed with other programs, by turns, and the table that README and RESULTS show.

    cargo build --release && cargo build --release -p isogloss-text --example encode_speed
    pip install numpy scipy torch transformers sacremoses onnx onnxscript onnxruntime gensim simalign faiss-cpu tokenizers ./crates/python
    ISOGLOSS_DATA=DATA python bench/all.py             # measure what has not been measured with this binary, write the table
    python bench/all.py --list                         # what there is, and what is left out here and why
    python bench/all.py --quick                        # everything once, small, in a few minutes; writes no table
    python bench/all.py --only pretrain --only mine    # these alone
    python bench/all.py --check                        # do README and RESULTS show what bench/speed.json holds?

Every comparison is a script of its own in this folder, which runs both programs in turns and prints RESULT lines
(`record.py`); this one makes their inputs, calls them, and keeps what they print in `bench/speed.json`, part by part: a
run that was interrupted continues where it stopped, since what was measured with the same binary and the same arguments
is not measured again (`--again` does). What was measured before with other binaries stays beside it as `earlier`: the tables
give the range over the rounds of all runs. What cannot be measured here (no GPU, a peer that is not installed) is left out with
a line that says why, and keeps the row and the dates that it has. Only the standard library is needed here.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from record import MARK, ratios

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ISOGLOSS = ROOT / "target/release/isogloss"
ENCODE_SPEED = ROOT / "target/release/examples/encode_speed"
SPEED = HERE / "speed.json"
BEGIN, END = "<!-- speed: written by bench/all.py -->", "<!-- /speed -->"

# The rows of the table: what, beside whom; comparison, cases and peer as its script names them; whether README, which has
# little room, shows the row.
TABLE = [
    ("pretraining, f32, two shapes", "PyTorch, eager", "pretrain", ("8,128,256,4,4,8000", "4,256,768,12,8,80000"), "PyTorch", True),
    ("pretraining at Conneau et al.'s size, bf16, one H200", "PyTorch, compiled", "h200", ("96,256,768,12,8,80000",), "PyTorch", True),
    ("fine-tuning (NER, parsing, NLI)", "PyTorch, eager", "finetune", ("ner", "parse", "nli"), "PyTorch", True),
    ("encoding with BERT-base, f32", "transformers, SDPA, sorted by length", "encode", ("f32",), "transformers, sdpa", True),
    ("encoding with BERT-base, f32", "ONNX Runtime, sorted by length", "encode", ("f32",), "ONNX Runtime", False),
    ("encoding with BERT-base, f32", "sentence-transformers", "encode", ("f32",), "sentence-transformers", False),
    ("encoding with BERT-base, bf16", "transformers, SDPA, sorted by length", "encode", ("bf16",), "transformers, sdpa, bf16", False),
    ("tokenisation of English (BPE, WordPiece)", "`tokenizers`", "tokenise", ("BPE", "WordPiece"), "tokenizers", False),
    ("Word2Vec (skip-gram, CBOW)", "gensim", "word2vec", ("skip-gram", "CBOW"), "gensim", True),
    ("Word2Vec (skip-gram, CBOW)", "`word2vec.c`", "word2vec", ("skip-gram", "CBOW"), "word2vec", False),
    ("GloVe (counting, training)", "the original", "glove", ("counting", "training"), "GloVe", False),
    ("word alignment, both directions and symmetrised", "fast_align, atools", "fast_align", ("300000 pairs",), "fast_align", True),
    ("words aligned from hidden states, BERT-base", "simalign", "simalign", ("itermax",), "simalign", True),
    ("bitext mining, exact, both directions", "faiss, flat index", "mine", ("20000 x 20000 x 256",), "faiss", True),
    ("retrieval by CSLS, from Python", "faiss, flat index", "python", ("retrieve by CSLS",), "faiss-cpu (flat)", False),
    ("CKA, from Python", "NumPy", "python", ("CKA",), "numpy", False),
    ("CKA, from Python", "PyTorch", "python", ("CKA",), "torch", False),
]


class Inputs:
    """What the scripts read, made once in a folder and found again."""

    def __init__(self, work, quick):
        self.work, self.quick, self.data = work, quick, os.environ.get("ISOGLOSS_DATA")

    def made(self, name, make):
        """The path of an input; `make(path)` gives the command that writes it."""
        path = self.work / name
        if not path.exists():
            self.work.mkdir(parents=True, exist_ok=True)
            print(f"    making {name}", flush=True)
            call(make(path))
        return path

    def world(self):
        return self.made("world", lambda path: [ISOGLOSS, "world", "generate", "--out", path])

    def run(self):
        """An encoder at scale `tiny`: speed does not depend on how long it was trained."""
        return self.made("run", lambda path: [ISOGLOSS, "pretrain", "--preset", "no-anchors", "--scale", "tiny", "--steps", "20",
                                              "--world", self.world(), "--device", "cpu", "--out", path])

    def english(self, sentences):
        """Lowercased English, a tokenised sentence a line."""
        texts = [word for name in ("lit", "tatoeba") for word in ("--text", f"en={self.data}/text/en.{name}.txt.zst")]
        flags = ["--lowercase", "--sample-size", sentences, "--out", "/dev/null"]
        return self.made(f"en.{sentences}.txt", lambda path: [ISOGLOSS, "corpus", "alter", *texts, *flags, "--original", path])

    def bpe(self):
        merges = 8000 if self.quick else 80000
        text = f"en={self.data}/text/en.lit.txt.zst"
        return self.made(f"bpe.{merges}", lambda path: [ISOGLOSS, "vocab", "train", "--merges", merges, "--text", text, "--out", path])

    def wordpieces(self):
        text = f"en={self.data}/text/en.docs.txt.zst"
        return self.made("wordpieces", lambda path: [ISOGLOSS, "vocab", "train", "--kind", "wordpiece", "--text", text,
                                                     "--subwords", f"{self.data}/vocab/mbert_cased_vocab.txt", "--out", path])


def call(command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")


# The parts of each comparison: arguments of its script. A part is what is kept or lost when a run is interrupted.

def pretrain(inputs):
    if inputs.quick:
        return [["compare.py", "--shape", "8,128,256,4,4,8000", "--turns", 1, "--steps", 6]]
    return [["compare.py", "--no-scaling", "--turns", 5, "--shape", "8,128,256,4,4,8000"],
            ["compare.py", "--no-scaling", "--turns", 2, "--shape", "4,256,768,12,8,80000", "--steps", 3]]


def finetune(inputs):
    world, run = inputs.world(), inputs.run()
    files = {"ner": "ner/panx-{}-qaa.tsv", "parse": "ud/qaa_world-ud-{}.conllu", "nli": "xnli/{}-qaa.tsv"}
    parts = []
    for task, name in files.items():
        train, dev = (f"qaa={world / name.format(part)}" for part in ("train", "dev"))
        size = ["--limit", 400, "--turns", 1] if inputs.quick else ["--limit", 4000, "--turns", 3]
        parts.append(["finetune.py", "--task", task, "--model", run, "--train", train, "--dev", dev, *size])
    return parts


def encode(inputs):
    size = ["--count", 32, "--rounds", 1] if inputs.quick else ["--count", 384, "--rounds", 5]
    return [["hub.py", "speed", *size, "--work", inputs.work]]


def tokenise(inputs):
    size = ["--turns", 1 if inputs.quick else 2]
    text = f"{inputs.data}/text/en.{'docs' if inputs.quick else 'lit'}.txt.zst"
    return [["tokenise.py", "--vocab", vocabulary, "--text", f"en={text}", "--case", case, *size]
            for case, vocabulary in (("BPE", inputs.bpe()), ("WordPiece", inputs.wordpieces()))]


def word2vec(inputs):
    text = inputs.english(20_000 if inputs.quick else 400_000)
    program = shutil.which("word2vec")
    more = ["--word2vec", program] if program else []
    turns = 1 if inputs.quick else 3
    return [["vectors.py", "speed", "--text", text, "--turns", turns, "--kind", kind, *more] for kind in ("skip-gram", "CBOW")]


def glove(inputs):
    folder = Path(shutil.which("cooccur")).parent
    return [["vectors.py", "glove", "--text", inputs.english(20_000 if inputs.quick else 400_000), "--glove", folder,
             "--turns", 1 if inputs.quick else 3]]


def fast_align(inputs):
    size = ["--pairs", 20_000, "--rounds", 1] if inputs.quick else ["--pairs", 300_000, "--rounds", 3]
    return [["fast_align.py", "--isogloss", ISOGLOSS, "--bitext", f"{inputs.data}/bitext/bitext.en-de.tsv", *size]]


def simalign(inputs):
    size = ["--pairs", 20, "--rounds", 1] if inputs.quick else ["--pairs", 80, "--rounds", 3]
    return [["word_align.py", "--isogloss", ISOGLOSS, "--vocab", f"{inputs.data}/vocab/mbert_cased_vocab.txt",
             "--bitext", f"{inputs.data}/bitext/bitext.en-fr.tsv", *size]]


def mine(inputs):
    size = ["--rows", 5000, "--rounds", 1] if inputs.quick else ["--rows", 20000, "--rounds", 5]
    return [["mine.py", "--isogloss", ISOGLOSS, *size]]


def python(inputs):
    return [["python.py", "--turns", 1 if inputs.quick else 5]]


# Name, parts, Python modules, files of ISOGLOSS_DATA, programs on the PATH or built here.
COMPARISONS = {
    "pretrain": (pretrain, ["torch"], [], [ISOGLOSS]),
    "finetune": (finetune, ["torch", "tokenizers"], [], [ISOGLOSS]),
    "encode": (encode, ["torch", "transformers", "onnxruntime"], ["vocab/mbert_cased_vocab.txt", "xnli"], [ISOGLOSS]),
    "tokenise": (tokenise, ["tokenizers"], ["vocab/mbert_cased_vocab.txt", "text/en.lit.txt.zst"], [ISOGLOSS, ENCODE_SPEED]),
    "word2vec": (word2vec, ["numpy", "gensim"], ["text/en.lit.txt.zst"], [ISOGLOSS]),
    "glove": (glove, ["numpy", "gensim"], ["text/en.lit.txt.zst"], [ISOGLOSS, "vocab_count", "cooccur", "shuffle", "glove"]),
    "fast_align": (fast_align, [], ["bitext/bitext.en-de.tsv"], [ISOGLOSS, "fast_align", "atools"]),
    "simalign": (simalign, ["torch", "simalign"], ["vocab/mbert_cased_vocab.txt", "bitext/bitext.en-fr.tsv"], [ISOGLOSS]),
    "mine": (mine, ["numpy", "faiss"], [], [ISOGLOSS]),
    "python": (python, ["isogloss", "numpy", "scipy"], [], []),
}
ELSEWHERE = {
    "h200": "needs an NVIDIA GPU: bench/gpu.sh",
}


def lacking(modules, files, programs):
    """Why a comparison cannot be made here; nothing if it can."""
    data = os.environ.get("ISOGLOSS_DATA")
    reasons = [f"{name} is not installed" for name in modules if importlib.util.find_spec(name) is None]
    reasons += [f"{program} is not there" for program in programs if not shutil.which(str(program))]
    if files and not data:
        reasons.append("ISOGLOSS_DATA is not set")
    elif files:
        reasons += [f"{name} is not in ISOGLOSS_DATA" for name in files if not Path(data, name).exists()]
    return "; ".join(reasons)


def machine():
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").exists() else None
    return f"{os.cpu_count()} cores, {model.group(1) if model else os.uname().machine}"


def versions(modules):
    """The installed versions of a comparison's peers."""
    names = importlib.metadata.packages_distributions()
    return {module: importlib.metadata.version(names[module][0]) for module in modules if module in names}


def results_of(output):
    """The RESULT lines of a script."""
    return [json.loads(line.removeprefix(MARK)) for line in output.splitlines() if line.startswith(MARK)]


def measure(name, part, kept, stamp, again):
    """Runs one part and keeps its results, unless they are there from the same binary and arguments."""
    # Without the paths of inputs, which differ from machine to machine.
    key = re.sub(r" --\S+ (\w+=)?\S*/\S*", "", " ".join(map(str, [name, *part[1:]])))
    old = kept.get(key)
    if old and old["binary"] == stamp["binary"] and not again:
        return print(f"{key}: measured on {old['date']} with this binary")
    print(f"{key} …", flush=True)
    began = time.time()
    done = subprocess.run([sys.executable, HERE / part[0], *map(str, part[1:])], capture_output=True, text=True)
    results = results_of(done.stdout) if done.returncode == 0 else []
    if not results:
        print(f"    FAILED: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        return f"{key} failed"
    for result in results:
        shown = ", ".join(f"{ratio:.2f}" for ratio in ratios(result["ours"], result["theirs"], result["unit"]))
        print(f"    {result['case']} beside {result['peer']}: {result['ratio']:.2f} ({shown})")
    earlier = replaced(kept, name, results)
    kept[key] = dict(comparison=name, **stamp, seconds=round(time.time() - began), versions=versions(COMPARISONS[name][1]), results=results,
                     earlier=earlier)


def replaced(kept, name, results):
    """Takes out, and gives, the runs of the same cases beside the same peers that were measured earlier."""
    new = {(result["case"], result["peer"]) for result in results}
    earlier = []
    for key, entry in list(kept.items()):
        for run in runs(entry) if entry["comparison"] == name else []:
            same = [result for result in run["results"] if (result["case"], result["peer"]) in new]
            if same:
                earlier.append({field: run[field] for field in ("date", "machine", "binary", "how") if field in run} | dict(results=same))
            run["results"] = [result for result in run["results"] if result not in same]
        if not any(run["results"] for run in runs(entry)):
            del kept[key]
    return earlier


def runs(entry):
    """The newest run of a part, and those before."""
    return [entry, *entry.get("earlier", [])]


def rounds_of(result):
    """How many times as fast, round by round; of what was noted by hand the ratios alone are kept."""
    return result["rounds"] if "rounds" in result else ratios(result["ours"], result["theirs"], result["unit"])


def run(options):
    inputs = Inputs(options.work, options.quick)
    file = options.work / "quick.json" if options.quick else SPEED
    kept = json.loads(file.read_text()) if file.exists() else {}
    stamp = dict(date=datetime.date.today().isoformat(), machine=machine(),
                 binary=hashlib.sha256(ISOGLOSS.read_bytes()).hexdigest()[:12] if ISOGLOSS.exists() else None)
    began, left_out, failed = time.time(), [], []
    for name, (parts, modules, files, programs) in COMPARISONS.items():
        if options.only and name not in options.only:
            continue
        reason = lacking(modules, files, programs)
        if reason:
            left_out.append(f"{name}: {reason}")
            continue
        for part in parts(inputs):
            if options.inputs:
                continue
            if options.minutes and time.time() - began > 60 * options.minutes:
                failed.append(f"{name} was not begun: --minutes {options.minutes} have passed; the same command again goes on")
                break
            failed += filter(None, [measure(name, part, kept, stamp, options.again)])
            file.parent.mkdir(parents=True, exist_ok=True)
            draft = file.with_suffix(".draft")
            draft.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            draft.replace(file)
    for line in left_out + ([f"{name}: {reason}" for name, reason in ELSEWHERE.items()] if not options.only else []):
        print(f"LEFT OUT: {line}")
    if not options.quick:
        write(kept)
    for line in failed:
        print(f"NOT DONE: {line}")
    return bool(failed)


def cells(kept):
    """The rows of the table: what, beside whom, how many times as fast, when, and whether README shows it."""
    for what, beside, comparison, cases, peer, headline in TABLE:
        found = [(result["case"], run["date"], rounds_of(result)) for entry in kept.values() if entry["comparison"] == comparison
                 for run in runs(entry) for result in run["results"] if result["peer"] == peer and result["case"] in cases]
        if found:
            times = ", ".join(shown([ratio for of, _, rounds in found if of == case for ratio in rounds]) for case in cases)
            dates = sorted({date for _, date, _ in found})
            yield what, beside, times, " to ".join(dict.fromkeys([dates[0], dates[-1]])), headline


def shown(rounds):
    """The lowest and the highest round."""
    if not rounds:
        return "not measured"
    low, high = min(rounds), max(rounds)
    digits = 0 if low >= 10 else 1 if high >= 3 else 2
    return "–".join(dict.fromkeys(f"{ratio:.{digits}f}" for ratio in (low, high)))


def tables(kept):
    """The block of README and that of the book."""
    rows = list(cells(kept))
    short = ["| | baseline | speed-up (range) |", "| --- | --- | --- |"]
    short += [f"| {what} | {beside} | {times} |" for what, beside, times, _, headline in rows if headline]
    long = ["| what | baseline | speed-up (range) | measured |", "| --- | --- | --- | --- |"]
    long += [f"| {what} | {beside} | {times} | {date} |" for what, beside, times, date, _ in rows]
    return {ROOT / "README.md": "\n".join(short), ROOT / "bench/RESULTS.md": "\n".join(long)}


def pages(kept):
    """Each page as it stands and as it should."""
    for path, table in tables(kept).items():
        page = path.read_text()
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        yield path, page, f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def write(kept):
    for path, page, wanted in pages(kept):
        if page != wanted:
            path.write_text(wanted)
            print(f"wrote the table of {path.relative_to(ROOT)}")


def check():
    """Whether both pages show what is kept, and every ratio that is kept is the median of its rounds."""
    kept = json.loads(SPEED.read_text())
    wrong = [f"{path.relative_to(ROOT)} does not show what bench/speed.json holds: python bench/all.py --write"
             for path, page, wanted in pages(kept) if page != wanted]
    for key, entry in kept.items():
        for result in entry["results"]:
            if "ratio" in result:
                median = statistics.median(ratios(result["ours"], result["theirs"], result["unit"]))
                if abs(median - result["ratio"]) > 0.01 * median:
                    wrong.append(f"{key}: the ratio {result['ratio']} is not the median of its rounds, {median:.3f}")
    print("\n".join(wrong) or "README and RESULTS show what bench/speed.json holds")
    return bool(wrong)


def listed():
    for name, (_, modules, files, programs) in COMPARISONS.items():
        reason = lacking(modules, files, programs)
        print(f"{name}: {'left out: ' + reason if reason else 'can be measured here'}")
    for name, reason in ELSEWHERE.items():
        print(f"{name}: left out: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=COMPARISONS, help="this comparison alone; repeat for more")
    parser.add_argument("--quick", action="store_true", help="small sizes and one round each, to see that everything runs")
    parser.add_argument("--again", action="store_true", help="measure again what was measured with this binary")
    parser.add_argument("--minutes", type=float, help="begin no further part after so many minutes")
    parser.add_argument("--inputs", action="store_true", help="make the inputs, and measure nothing")
    parser.add_argument("--work", type=Path, default=ROOT / "target/bench", help="folder for inputs")
    parser.add_argument("--list", action="store_true", help="what can be measured here, and what cannot and why")
    parser.add_argument("--check", action="store_true", help="whether README and book show what is kept")
    parser.add_argument("--write", action="store_true", help="write the tables of README and book, and measure nothing")
    options = parser.parse_args()
    if options.list:
        return listed()
    if options.check:
        return check()
    if options.write:
        return write(json.loads(SPEED.read_text()))
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
