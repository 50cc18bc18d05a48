"""`isogloss score` against `seqeval` and the CoNLL 2018 evaluation, on any gold and predicted files.

    cargo build --release
    pip install seqeval
    python bench/scores.py ner GOLD PREDICTED [GOLD PREDICTED ...]
    python bench/scores.py parse --evaluator CONLL18_UD_EVAL.py GOLD PREDICTED [...]

For NER the conventional treatment of invalid BIO sequences is compared, and the paper's on tags already repaired by it (as
`isogloss transfer` writes them). The evaluation script of the shared task is not part of this repository. Prints the
largest difference of any score over all pairs of files.
"""

import argparse
import importlib.util
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def ours(task, gold, predicted, *flags):
    command = [ROOT / "target/release/isogloss", "score", "--task", task, "--gold", gold, "--predicted", predicted]
    return json.loads(subprocess.run([*command, *flags, "--json"], capture_output=True, text=True, check=True).stdout)


def tags(path):
    blocks = Path(path).read_text(encoding="utf-8").split("\n\n")
    return [[line.rsplit("\t", 1)[1] for line in block.split("\n") if line.strip()] for block in blocks if block.strip()]


def ner(gold, predicted):
    from seqeval.metrics import classification_report

    report = classification_report(tags(gold), tags(predicted), output_dict=True, zero_division=0)
    found = ours("ner", gold, predicted, "--repair", "conventional")
    pairs = [(found["micro"][mine], report["micro avg"][theirs])
             for mine, theirs in [("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")]]
    pairs += [(scores["f1"], report.get(kind, {"f1-score": 0.0})["f1-score"]) for kind, scores in found["types"].items()]
    by_paper = ours("ner", gold, predicted)["micro"]["f1"]
    return found["micro"]["f1"], pairs + [(by_paper, report["micro avg"]["f1-score"])]


def parse(gold, predicted, evaluator):
    result = evaluator.evaluate(evaluator.load_conllu_file(gold), evaluator.load_conllu_file(predicted))
    found = ours("parse", gold, predicted)
    pairs = [(found["all"]["uas"], result["UAS"].f1), (found["all"]["las"], result["LAS"].f1)]
    return found["all"]["las"], pairs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["ner", "parse"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--evaluator")
    options = parser.parse_args()
    if options.task == "parse":
        spec = importlib.util.spec_from_file_location("evaluator", options.evaluator)
        evaluator = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(evaluator)
    worst = 0.0
    for gold, predicted in zip(options.files[::2], options.files[1::2]):
        more = (evaluator,) if options.task == "parse" else ()
        headline, pairs = globals()[options.task](gold, predicted, *more)
        difference = max(abs(a - b) for a, b in pairs)
        worst = max(worst, difference)
        print(f"{Path(predicted).name}: {headline:.4f}, largest difference {difference:.1e} over {len(pairs)} scores")
    print(f"largest difference {worst:.1e}")
