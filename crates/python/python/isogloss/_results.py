"""What every result has in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Result:
    """A frozen result: ``.score``, ``.signature``, ``.to_dict()``, and its other fields as attributes.

    ``.to_dict()`` is the object that the command line prints by ``--json``; attributes that are not in it, such as arrays, are
    named by the function that gives the result.
    """

    __slots__ = ("_arrays", "_fields", "_score")

    _fields: Mapping[str, Any]
    _arrays: Mapping[str, Any]
    _score: float | None

    def __init__(
        self,
        fields: Mapping[str, Any],
        score: float | None,
        arrays: Mapping[str, Any] | None = None,
    ) -> None:
        object.__setattr__(self, "_fields", dict(fields))
        object.__setattr__(self, "_arrays", dict(arrays or {}))
        object.__setattr__(self, "_score", score)

    @property
    def score(self) -> float | None:
        """The one number that stands for the result; which one, the function says."""
        return self._score

    @property
    def signature(self) -> str:
        """Names every convention that a number of the result depends on."""
        return str(self._fields.get("signature", ""))

    def to_dict(self) -> dict[str, Any]:
        """The fields, as ``--json`` prints them."""
        return dict(self._fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        for fields in (self._arrays, self._fields):
            if name in fields:
                return fields[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(self)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __iter__(self) -> Iterator[str]:
        return iter([*self._arrays, *self._fields])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields == getattr(other, "_fields", None)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._fields, self._score, self._arrays)

    def _summary(self) -> str:
        """What the repr shows beside the score."""
        return ""

    def __repr__(self) -> str:
        score = "" if self._score is None else f"score={self._score:.4f}"
        parts = ", ".join(part for part in (score, self._summary()) if part)
        return f"{type(self).__name__}({parts}, signature={self.signature!r})"
