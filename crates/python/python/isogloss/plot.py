"""Pictures that notebooks show: SVG, drawn by the same code as the command line's."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from . import _isogloss
from ._commands import call
from ._spaces import CkaResult, RetrievalResult
from ._typing import Path

__all__ = ["Picture", "cka", "emergence", "layers", "retrieval", "shift", "space"]


class Picture:
    """An SVG; notebooks show it."""

    def __init__(self, svg: str, title: str = "", caption: str = "") -> None:
        self.svg = svg
        self.title = title
        self.caption = caption

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        from html import escape

        caption = f"<figcaption>{escape(self.caption)}</figcaption>" if self.caption else ""
        return f"<figure>{self.svg}{caption}</figure>"

    def save(self, path: Path) -> None:
        """Write the SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def __repr__(self) -> str:
        return f"Picture({self.title!r}, {len(self.svg)} characters of SVG)"


def _map(flags: Mapping[str, Any]) -> Picture:
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "figure.svg")
        fields, _ = call(["map"], {**flags, "out": out})
        with open(out, encoding="utf-8") as file:
            return Picture(file.read(), fields["title"], fields["caption"])


def space(**flags: Any) -> Picture:
    """Words or sentences on a plane, as ``isogloss map`` draws them.

    ``vectors={"fr": "fr.vec", "en": "en.vec"}``, or ``model`` with ``text`` or ``parallel``; ``view`` is ``raw``, ``centered`` or ``aligned``.
    """
    return _map(flags)


def emergence(model: Path, **flags: Any) -> Picture:
    """How a run's space emerged while it was trained: ``isogloss map --figure emergence``."""
    return _map({"model": model, "figure": "emergence", **flags})


def layers(model: Path, **flags: Any) -> Picture:
    """What the layers of a model do: ``isogloss map --figure layers``."""
    return _map({"model": model, "figure": "layers", **flags})


def shift(model: Path, **flags: Any) -> Picture:
    """Sentences translated token by token: ``isogloss map --figure shift``."""
    return _map({"model": model, "figure": "shift", **flags})


def cka(result: CkaResult, *, names: tuple[str, str] = ("x", "y")) -> Picture:
    """The table of layers of a comparison, as ``isogloss cka --svg`` draws it.

    >>> import numpy as np, isogloss
    >>> x = np.random.default_rng(0).normal(size=(3, 100, 4))
    >>> isogloss.plot.cka(isogloss.cka(x, x)).svg.startswith("<svg")
    True
    """
    title, svg = _isogloss.cka_picture(json.dumps(result.to_dict()), list(names))
    return Picture(svg, title)


def retrieval(result: RetrievalResult) -> Picture:
    """P@1 over layers: raw, mean-centred and, where maps were learned, aligned.

    >>> import numpy as np, isogloss
    >>> x = np.random.default_rng(0).normal(size=(3, 40, 4))
    >>> isogloss.plot.retrieval(isogloss.retrieve(x, x))._repr_svg_().startswith("<svg")
    True
    """
    curves: dict[str, Sequence[float]] = {}
    for space in ("raw", "centered", "aligned"):
        values = [layer[space] for layer in result.to_dict()["layers"]]
        if all(value is not None for value in values):
            curves[space] = [value["mean"] for value in values]
    title = "retrieval accuracy (P@1) over layers"
    return Picture(_isogloss.curves_picture(title, "layer", curves), title)
