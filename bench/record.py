"""The line that every comparison prints for programs to read: what was measured, beside whom, one number a round.

`bench/all.py` collects these lines; people read the ones above them.
"""

import json
import statistics

MARK = "RESULT "


def ratios(ours, theirs, unit):
    """How many times as fast we are, round by round: of seconds the fewer are better, of rates the more."""
    return [b / a if unit == "s" else a / b for a, b in zip(ours, theirs)]


def record(case, peer, ours, theirs, unit):
    """Prints the line. `unit` is `s` for seconds, or a rate such as `tokens/s`."""
    round_ = lambda values: [float(f"{value:.4g}") for value in values]
    line = dict(case=case, peer=peer, unit=unit, ours=round_(ours), theirs=round_(theirs))
    line["ratio"] = round(statistics.median(ratios(line["ours"], line["theirs"], unit)), 3)
    print(MARK + json.dumps(line), flush=True)
