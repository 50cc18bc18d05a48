"""Functions that run a command of ``isogloss`` within this process: keyword arguments are its flags."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _isogloss
from ._errors import UsageError
from ._results import Result
from ._typing import Path


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _values(value: object) -> list[str]:
    """The values of a flag: one, several, or a mapping from languages to files."""
    if isinstance(value, Mapping):
        pairs = [(key, each) for key, item in value.items() for each in _values(item)]
        return [f"{key}={each}" for key, each in pairs]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_value(each) for each in value]
    return [_value(value)]


def _toml(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return _value(value)


def settings(config: Mapping[str, Any], before: str = "") -> list[str]:
    """The leaves of a nested configuration as ``--set KEY=VALUE``."""
    words: list[str] = []
    for key, value in config.items():
        if isinstance(value, Mapping):
            words += settings(value, f"{before}{key}.")
        else:
            words += ["--set", f"{before}{key}={_toml(value)}"]
    return words


def words(command: Sequence[str], flags: Mapping[str, Any]) -> list[str]:
    """The command line of a command and its flags."""
    known = _isogloss.command_flags(list(command))
    made: list[str] = []
    for name, value in flags.items():
        if value is None or value is False:
            continue
        if "." in name and "set" in known:
            made += ["--set", f"{name}={_toml(value)}"]
            continue
        flag = name.rstrip("_").replace("_", "-")
        if flag not in known:
            there = ", ".join(sorted(each.replace("-", "_") for each in known))
            raise UsageError(f"{command[-1]} has no {name!r}; it has {there}", name)
        takes_value, delimiter = known[flag]
        if not takes_value:
            made.append(f"--{flag}")
            continue
        values = _values(value)
        values = [delimiter.join(values)] if delimiter else values
        made += [f"--{flag}={each}" for each in values]
    return made


def call(
    command: Sequence[str],
    flags: Mapping[str, Any],
    more: Sequence[str] = (),
    callback: Callable[[dict[str, Any]], object] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Run a command; gives the object that ``--json`` prints, and the remarks of standard error."""
    found: tuple[dict[str, Any], list[str]] = _isogloss.call_command(
        [*command, *words(command, flags), *more], callback
    )
    return found


class PretrainingRun(Result):
    """A run of pretraining: fields are those of ``isogloss pretrain --json``; ``out`` is its folder, ``remarks`` what was said on the way.

    ``score`` is the best perplexity on held-out text; less is better.
    """

    __slots__ = ()

    def load(self, **options: Any) -> Any:
        """The encoder of the best weights."""
        from ._encoder import Encoder

        return Encoder.load(self._arrays["out"], **options)

    def _summary(self) -> str:
        return f"{os.fspath(self._arrays['out'])!r}, finished={self._fields.get('finished', True)}"


class TransferResult(Result):
    """Zero-shot transfer: fields are those of ``isogloss transfer --json``; ``score`` is the mean of the target languages' scores:
    of the test sets that are not of ``source``, the language that was trained on; None where there are no such sets.
    """

    __slots__ = ()

    def _summary(self) -> str:
        return f"task={self._fields.get('task')!r}"


def pretrain(
    config: Path | Mapping[str, Any] | None = None,
    *,
    out: Path,
    callback: Callable[[dict[str, Any]], object] | None = None,
    **keys: Any,
) -> PretrainingRun:
    """Pretrain an encoder under a condition of the papers, as ``isogloss pretrain`` does.

    ``config`` is a TOML file or a nested dictionary of keys. Other keyword arguments are the command's flags (``preset``, ``scale``, ``world``,
    ``text={"en": "en.txt"}``, ``steps``, ``lr``, ``seed``, ``resume``, ``force``, ``device``, ``threads`` …), and any key of the configuration with a dot:
    ``**{"encoder.norm": "post"}``.

    ``callback`` is called with a dictionary for each line of ``metrics.jsonl``, every 50 updates and at every evaluation. Ctrl-C, or an exception
    of the callback, stops after the update with a checkpoint; ``resume=True`` goes on from there. A second Ctrl-C does not wait for it.
    """
    more: list[str] = []
    if isinstance(config, Mapping):
        more = settings(config)
    elif config is not None:
        more = [os.fspath(config)]
    fields, remarks = call(["pretrain"], {"out": out, **keys}, more, callback)
    best = fields.get("best") or {}
    score = best.get("perplexity") if isinstance(best, Mapping) else None
    return PretrainingRun(fields, score, {"out": out, "remarks": remarks})


def transfer(*, out: Path, callback: Callable[[dict[str, Any]], object] | None = None, **flags: Any) -> TransferResult:
    """Fine-tune on one language and score the others with no further training, as ``isogloss transfer`` does.

    Keyword arguments are the command's flags: ``task``, ``model``, ``world``, or ``train``, ``dev`` and ``test`` as ``{"en": "train.tsv"}``, ``seeds=[1, 2]``,
    ``quick``, ``lr``, ``device`` … Ctrl-C stops it; ``resume=True`` goes on from the last checkpoint.

    ``callback`` is called with a dictionary for each line of ``metrics.jsonl``, one for each epoch of each setting: ``epoch``, ``step``, the mean
    training ``loss``, ``dev`` (the score on the source language's development set, and ``score`` in full), and the setting (``seed``, ``batch``,
    ``lr``, ``head_lr``). An exception of it stops the run after the epoch with a checkpoint.
    """
    fields, remarks = call(["transfer"], {"out": out, **flags}, (), callback)
    return TransferResult(fields, _target_score(fields), {"out": out, "remarks": remarks})


def _target_score(fields: Mapping[str, Any]) -> float | None:
    """The mean score of the languages that were not trained on."""
    # A language that is tested in several files has names such as `es:ud`.
    scores = [test["mean"] for test in fields["results"] if test["name"].partition(":")[0] != fields["source"]]
    return sum(scores) / len(scores) if scores else None
