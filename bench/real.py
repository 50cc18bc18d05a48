"""What real languages say of the papers' findings, from study/small-means.csv.

    python bench/real.py            # print the table, as RESULTS.md has it

One or two seeds give no verdict. An estimate *agrees* where it is on the paper's side of the line that the row names, and
*contradicts* where it is on the other side, in most of the pairs. `results.py` writes the table, so that no number is copied.
"""

import csv
import statistics
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = list(csv.DictReader((HERE / "study" / "small-means.csv").open()))
PAPERS = tomllib.loads((HERE.parent / "crates/lab/src/papers/numbers.toml").read_text())["table"]
PAIRS = ["en-fr", "en-ru", "en-zh"]
# The tasks of Table 1 with their measures and what a guess scores.
TASKS = {"nli": ("accuracy", 1 / 3), "ner": ("f1", 0.0), "parse": ("las", 0.0)}
DIRECTIONS = [direction for pair in ("fr", "de", "ru", "zh") for direction in (f"en-{pair}", f"{pair}-en")]
LAYERS = [str(layer) for layer in range(9)]
used = []


def value(study, measure, **factors):
    """The mean of the only row with these factors; its seeds are remembered."""
    wanted = {"study": study, "measure": measure, **factors}
    found = [row for row in ROWS if all(row[name] == level for name, level in wanted.items())]
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows of {wanted}")
    used.append(int(found[0]["n"]))
    return float(found[0]["mean"])


def shown(numbers, digits=2, sign=False):
    """Numbers as RESULTS writes them: `.76, −.63`."""
    texts = []
    for number in numbers:
        text = f"{abs(number):.{digits}f}".lstrip("0")
        minus = number < 0 and float(text) != 0
        texts.append(("−" if minus else "+" if sign else "") + text)
    return ", ".join(texts)


def score(task, condition, pair):
    """A target language's score, above a guess: without the items that training has too, where every condition has such a score."""
    measure, chance = TASKS[task]
    own = [row for row in ROWS if (row["study"], row["task"], row["pair"], row["role"]) == ("table-1", task, pair, "target")]
    conditions = lambda name: {row["condition"] for row in own if row["measure"] == name}
    without = f"{measure}_without_overlap"
    measure = without if conditions(without) == conditions(measure) else measure
    return value("table-1", measure, task=task, condition=condition, pair=pair, role="target") - chance


def kept(condition, pair, whole="default"):
    """The share of a condition's transfer that another keeps: of each task, then their mean."""
    return statistics.mean(score(task, condition, pair) / score(task, whole, pair) for task in TASKS)


def kept_in_paper(condition, pair, whole="default"):
    """The same of Table 1 of Conneau et al. 2020."""
    table = next(table for table in PAPERS if (table["paper"], table["place"]) == (1, "Table 1"))
    rows = {row[0]: row[1:] for row in table["rows"]}

    def above(name):
        cells = zip(table["across"], rows[name])
        return [number * table["unit"] - TASKS[column["task"]][1] for column, number in cells if column["language"] == pair[3:]]

    return statistics.mean(part / all for part, all in zip(above(condition), above(whole)))


def words(system, pair, layer=""):
    """P@1 of words that differ from their translations, among the words of a common vocabulary."""
    return value("align-words", "p_at_1_different", system=system, pair=pair, layer=layer, vocabulary="common")


def per_pair(measure):
    return [measure(pair) for pair in PAIRS]


def reading(holds, remark=""):
    """Whether the estimates agree: in most of the pairs, or directions."""
    holds = list(holds)
    return ("agrees" if 2 * sum(holds) > len(holds) else "contradicts") + remark


def transfer(condition, whole="default"):
    """The shares that a condition keeps in each pair, and these in words."""
    own = per_pair(lambda pair: kept(condition, pair, whole))
    return own, f"keeps {shown(own)} (P1 {shown(per_pair(lambda pair: kept_in_paper(condition, pair, whole)))})"


def lost(condition, pair):
    """The mean score that a condition loses over three tasks."""
    return sum(score(task, "default", pair) - score(task, condition, pair) for task in TASKS) / len(TASKS)


def of_table_1():
    """Findings of Conneau et al. 2020, §4."""
    own, text = transfer("wiki-cc")
    yield "another domain costs little (P1 §4.1)", text, "not measured: Default had more text too"
    others = lambda pair: [score(task, "default", pair) - score(task, "wiki-cc", pair) for task in TASKS]
    beyond = per_pair(lambda pair: others(pair)[1] - (others(pair)[0] + others(pair)[2]) / 2)
    yield "NER loses most by another domain", f"loss in NER less that in the others: {shown(beyond, 3, True)}", reading((one > 0 for one in beyond), ", but amounts differ too")
    own, text = transfer("no-anchors", "default-anchors")
    yield "anchors are not needed (§4.2)", text, reading(one > 0.9 for one in own)
    gains = per_pair(lambda pair: -lost("extra-anchors", pair))
    yield "extra anchors help distant pairs most", shown(gains, 3, True), reading(one > gains[0] for one in gains[1:])
    own, text = transfer("default-anchors")
    yield "a joint vocabulary matters little (§4.5)", text, reading(abs(one - 1) < 0.1 for one in own)
    own, text = transfer("sep-l1-3")
    yield "three separate layers survive (§4.3)", text, reading(one > 0.5 for one in own)
    own, text = transfer("sep-emb-l1-3")
    yield "and so do separate embeddings with them", text, reading(one > 0.5 for one in own)
    own, text = transfer("sep-emb-l1-6")
    yield "six separate layers break transfer", text, reading(one < 0.5 for one in own)
    losses = per_pair(lambda pair: lost("sep-l1-3", pair))
    yield "distant pairs lose most by separate layers (§4.4)", f"loss {shown(losses, 3)}", reading([losses[2] > losses[0]], ", but Chinese has little to lose")


def of_geometry():
    """Findings of Conneau et al. 2020, §5."""
    static = per_pair(lambda pair: words("fasttext", pair))
    tables = per_pair(lambda pair: words("embeddings", pair))
    yield "embedding tables align as well as fastText (§5.1.1)", f"P@1 {shown(tables)} against {shown(static)}", reading(a >= b for a, b in zip(tables, static))
    static = per_pair(lambda pair: words("fasttext", pair))
    context = per_pair(lambda pair: max(words("monolingual", pair, layer) for layer in LAYERS))
    yield "words in context align less well than fastText", f"P@1 {shown(context)} against {shown(static)}", reading(a < b for a, b in zip(context, static))
    mapped = lambda measure, system: max(value("align-contexts", measure, role="target", layer=layer, system=system) for layer in ["0", "4", "8"])
    own, random = ([mapped(measure, f"{system}-aligned") for measure in ("f1", "las")] for system in ("monolingual", "untrained"))
    own, random = list(own), list(random)
    yield "a map carries a task over (§5.1.2)", f"Chinese, F1 and LAS: {shown(own)}; untrained {shown(random)}", reading((a > b for a, b in zip(own, random)), ", weakly")
    found = lambda pair: lambda layer: value("align-sentences", "retrieval", kind="aligned", system="monolingual", pair=pair, layer=layer)
    best = per_pair(lambda pair: max(LAYERS, key=found(pair)))
    yield "sentences of encoders trained apart align best in lower layers (§5.1.3)", f"best of layers 0 to 8: {', '.join(best)}", reading(int(layer) < 4 for layer in best)
    cka = lambda system: per_pair(lambda pair: statistics.mean(value("similarity", "cka", system=system, pair=pair, layer=layer) for layer in LAYERS))
    both, apart = cka("bilingual"), cka("monolingual")
    gaps = [a - b for a, b in zip(both, apart)]
    yield "CKA of one encoder is above that of two (§5.2)", f"mean of layers: {shown(both)} against {shown(apart)}", reading(gap > 0 for gap in gaps)
    apart, random = cka("monolingual"), cka("untrained")
    yield "CKA of two is above that of an untrained one", f"{shown(apart)} against {shown(random)}", reading((a > b for a, b in zip(apart, random)), "" if all(a > b for a, b in zip(apart, random)) else ", not in every pair")
    both, apart = cka("bilingual"), cka("monolingual")
    yield "the gap in CKA shrinks with distance", shown(gaps), reading([gaps[0] > gaps[1] > gaps[2]])
    r = [per_pair(lambda pair, system=system: value("similarity", "correlation", system=system, pair=pair)) for system in ("bilingual", "monolingual", "untrained")]
    yield "CKA follows retrieval over layers, r above .9 (§5.2)", f"one encoder {shown(r[0])}; two {shown(r[1])}; untrained {shown(r[2])}", reading(one > 0.9 for one in r[0] + r[1])


def of_shift():
    """Findings of Liu et al. 2020."""
    yield "little text: static vectors ahead; much: the encoder (P2 §3)", "static vectors were not run at `small`", "not measured"
    at = lambda measure, alpha: [value("language-shift", measure, direction=direction, alpha=alpha, layer="8", condition="default", kind="mean") for direction in DIRECTIONS]
    here, shifted = at("conversion_rate", "0"), at("conversion_rate", "3")
    yield "a mean difference converts tokens (P2 §4.2)", f"α 0 to 3, last layer, {len(DIRECTIONS)} directions: {shown([min(here)])}–{shown([max(here)])} to {shown([min(shifted)])}–{shown([max(shifted)])}", reading(a < b for a, b in zip(here, shifted))
    here, shifted = at("dictionary_accuracy", "0"), at("dictionary_accuracy", "3")
    falls = sum(b < a for a, b in zip(here, shifted))
    yield "and translates them", f"right by dictionary, α 0 to 3: falls in {falls} of {len(DIRECTIONS)} directions", reading(b > a for a, b in zip(here, shifted))
    third = at("third_rate", "3")
    yield "no third language appears", f"at most {shown([max(third)], 3)} of the tokens", reading(one < 0.01 for one in third)
    scores = lambda task, row, pair: value("language-shift", TASKS[task][0], task=task, row=row, pair=pair, role="target", condition="default")
    rows = [("nli", f"en-{language}") for language in ("fr", "de", "ru", "zh")] + [("ner", "en-fr"), ("parse", "en-fr")]
    only = [scores(task, "last-n", pair) - scores(task, "all-layers", pair) for task, pair in rows]
    yield "fine-tuning the last layers alone transfers better (§4.3)", f"NLI fr, de, ru, zh {shown(only[:4], 3, True)}; NER fr {shown(only[4:5], 3, True)}; LAS fr {shown(only[5:], 3, True)}", reading(one > 0 for one in only)
    gains = [scores(task, "last-n-shift", pair) - scores(task, "last-n", pair) for task, pair in rows]
    yield "and a shift improves it", f"NLI {shown(gains[:4], 3, True)}; NER fr {shown(gains[4:5], 3, True)}; LAS fr {shown(gains[5:], 3, True)}", reading((one > 0 for one in gains), ", in four of six" if sum(one > 0 for one in gains) == 4 else "")
    yield "all of multilingual BERT's numbers (P2 §4)", "the model was not run", "not measured"


def table():
    """The table of RESULTS.md: every finding with its numbers, its seeds and what they say."""
    lines = ["| finding | `small`, English with French, Russian, Chinese | seeds | reading |", "| --- | --- | --- | --- |"]
    for part in (of_table_1, of_geometry, of_shift):
        for finding, number, said in part():
            seeds = " to ".join(str(count) for count in sorted(set(used))) or "none"
            used.clear()
            lines.append(f"| {finding} | {number} | {seeds} | {said} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
