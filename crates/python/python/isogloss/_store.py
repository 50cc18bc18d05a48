"""The results of a laboratory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ._commands import call
from ._typing import Path


class Results:
    """The numbers of a laboratory's folder, as ``isogloss results`` shows them.

    >>> import isogloss, tempfile
    >>> lab = isogloss.Results(tempfile.mkdtemp())
    >>> lab.add(measure="accuracy", value=0.672, factors={"system": "mbert", "task": "nli"}, command="python finetune.py")
    >>> [(row["measure"], row["value"]) for row in lab.rows()]
    [('accuracy', 0.672)]
    """

    def __init__(self, lab: Path = "lab") -> None:
        self.lab = os.fspath(lab)

    def add(
        self,
        *,
        measure: str,
        value: float,
        factors: Mapping[str, object] | None = None,
        command: str,
        **flags: Any,
    ) -> None:
        """Add a number of one's own, with the command that gave it; other flags are those of ``isogloss results add``."""
        given = {"lab": self.lab, "measure": measure, "value": value, "command": command}
        call(["results", "add"], {**given, "factor": dict(factors or {}), **flags})

    def rows(self, *, mean: bool = False, where: Mapping[str, object] | None = None, **flags: Any) -> list[dict[str, Any]]:
        """The records, or with ``mean`` their means over seeds; ``study``, ``measure``, ``seed``, ``scale`` and ``where`` select."""
        given = {"lab": self.lab, "where": _pairs(where), "mean": mean}
        found, _ = call(["results"], {**given, **flags})
        if mean:
            means: list[dict[str, Any]] = found["means"]
            return means
        return [_flat(record) for record in found["records"]]

    def to_pandas(self, **selection: Any) -> Any:
        """The same as a ``pandas.DataFrame``."""
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]

        return pandas.DataFrame(self.rows(**selection))

    def __repr__(self) -> str:
        return f"Results({self.lab!r})"


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with its factors and its origin beside its number."""
    own = {key: value for key, value in record.items() if key not in ("factors", "origin")}
    return {**record["factors"], **own, **record["origin"]}


def _pairs(where: Mapping[str, object] | None) -> dict[str, Sequence[str]]:
    listed = (where or {}).items()
    return {
        key: [str(each) for each in value] if isinstance(value, (list, tuple)) else [str(value)]
        for key, value in listed
    }
