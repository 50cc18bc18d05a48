"""Retrieval and CKA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from . import _isogloss
from ._results import Result
from ._typing import ArrayLike, Device, Normalize, steps


class RetrievalResult(Result):
    """Translations that were retrieved.

    Fields are those of ``isogloss retrieve --json`` (``layers``, ``candidates``, ``chance``, counts of rows). Beside them:

    - ``neighbors``, ``scores``: for each row of x the nearest rows of y, best first (rows x top), and their scores;
    - ``backward_neighbors``, ``backward_scores``: the same from y to x;
    - ``accuracy``: P@1 of the same space: ``forward``, ``backward`` and ``mean``, which is ``score``.

    They are of the last layer, raw, or aligned where ``train`` was given. Of equal rows the first stands for all.
    """

    __slots__ = ()

    def _summary(self) -> str:
        return f"rows={self._fields['rows']}, layers={len(self._fields['layers'])}"


class CkaResult(Result):
    """Linear CKA of all layers of x with all of y.

    Fields are those of ``isogloss cka --json``: ``cka`` and ``debiased`` (layers of x, each with the layers of y), ``intervals``,
    counts of rows. ``score`` is the value of the last layers, debiased or not as was asked for.
    """

    __slots__ = ()

    def _summary(self) -> str:
        layers = self._fields["cka"]
        return f"rows={self._fields['rows']}, layers={len(layers)}x{len(layers[0])}"


def retrieve(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Literal["nn", "csls", "margin", "margin-distance"] = "nn",
    k: int | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    normalize: Normalize = "iterative",
    top: int = 10,
    device: Device = "auto",
    threads: int = 0,
) -> RetrievalResult:
    """Retrieve the translation of every row of x among the rows of y, and back, layer by layer.

    Row i of y translates row i of x; both are rows x dimension or layers x rows x dimension. ``k`` are the neighbours of CSLS (10) and
    margins (4). ``train`` are two sides of other translations, to learn a map from, after ``normalize``. ``top`` neighbours
    of each row are handed out.

    >>> import numpy as np, isogloss
    >>> x = np.random.default_rng(0).normal(size=(50, 8))
    >>> found = isogloss.retrieve(x, 2 * x, method="csls", k=10)
    >>> found.score, found.neighbors.shape, int(found.neighbors[7, 0])
    (1.0, (50, 10), 7)
    """
    settings = {"method": method, "k": k, "normalize": steps(normalize), "top": max(top, 1)}
    fields, found = _isogloss.retrieved(x, y, train, settings, (device, threads))
    accuracy = fields["layers"][-1]["aligned" if train is not None else "raw"]
    names = ("neighbors", "scores", "backward_neighbors", "backward_scores")
    arrays = {**dict(zip(names, found)), "accuracy": accuracy}
    return RetrievalResult(fields, accuracy["mean"], arrays)


def cka(
    x: ArrayLike,
    y: ArrayLike,
    *,
    debiased: bool = True,
    within: Sequence[object] | None = None,
    subsamples: int | None = None,
    seed: int = 1,
    device: Device = "auto",
    threads: int = 0,
) -> CkaResult:
    """Compare two sets of vectors of the same things by linear CKA (Kornblith et al. 2019), all layers with all.

    ``debiased`` chooses what ``score`` is; both values are computed. ``within`` has a label for each row, such as the lengths of sentences:
    the mean of rows with the same label is subtracted rather than that of all, which has no debiased value. ``subsamples`` are those of
    the 95 % intervals (100 for two matrices and none for layers unless given; 0 for none).

    >>> import numpy as np, isogloss
    >>> x = np.random.default_rng(0).normal(size=(400, 8))
    >>> turn = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]
    >>> round(isogloss.cka(x, 3 * x @ turn, debiased=False, subsamples=0).score, 4)
    1.0
    """
    labels = None if within is None else [str(label) for label in within]
    fields = _isogloss.compared(x, y, labels, subsamples, seed, (device, threads))
    values = fields["debiased"] if debiased and within is None else fields["cka"]
    return CkaResult(fields, values[-1][-1])
