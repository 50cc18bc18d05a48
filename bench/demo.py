"""Whether the demo's page, its table in the terminal, README and README's figure show the same numbers.

    isogloss demo --out demo > demo.txt && python3 bench/demo.py demo/report.html demo.txt
"""

import html
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def table(text):
    """The lines of the closing table, from its head to the layer that it is of."""
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if line.split() == ["chance", "untrained", "trained"])
    end = next(number for number in range(head, len(lines)) if lines[number].startswith("(retrieval"))
    return lines[head : end + 1]


def compared(page, terminal, readme, figure):
    """What differs, in words."""
    shown = table(terminal)
    rows = {}
    for line in shown[1:-1]:
        name, chance, untrained, trained = re.split(r" {2,}(?=[\d–.])", line.strip())
        rows[name] = chance, untrained, trained
    raw, centred, aligned = (rows[name] for name in ("sentence retrieval P@1, raw", "mean-centred", "after Procrustes alignment"))
    layer = re.search(r"layer (\d+)", shown[-1]).group(1)
    steps = [f"P@1 at layer {layer}: {raw[of]} raw, {centred[of]} mean-centred, {aligned[of]} aligned" for of in (1, 2)]
    tasks = [rows[f"zero-shot {name}"][2] for name in ("NLI accuracy", "NER F1", "parsing LAS")]
    trained = f"P@1 is {raw[1]} untrained, {raw[2]} trained"
    places = [
        ("README", readme, ["\n".join(shown)]),
        ("README's figure", figure, [trained]),
        ("a step's line", terminal, steps),
        ("the headline", titles(page, "h1"), [f"{raw[2]} of sentences", f"{raw[1]} untrained, {raw[0]} chance"]),
        ("a figure's title", titles(page, "h[234]"), [
            trained,
            f"raw sentence retrieval {raw[2]} and {raw[1]}",
            f"{rows['token conversion rate, mean difference shift'][2]} of predicted tokens",
            "NLI {}, NER {}, Parsing {} in language B".format(*tasks),
        ]),
    ]
    return [f"{place} does not say: {wanted}" for place, text, all_wanted in places for wanted in all_wanted if wanted not in text]


def titles(page, tag):
    return html.unescape("\n".join(re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page))).replace("\u00a0", " ")


if __name__ == "__main__":
    page, terminal = (Path(name).read_text() for name in sys.argv[1:])
    figure = (ROOT / "docs/src/figures/emergence-light.svg").read_text().replace("\u00a0", " ")
    differences = compared(page, terminal, (ROOT / "README.md").read_text(), figure)
    sys.exit("\n".join(differences) or None)
