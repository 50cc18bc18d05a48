"""Measures of two spaces beside CKA: measures of similarity, the language-ID probe, bitext mining."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from . import _isogloss
from ._results import Result
from ._typing import ArrayLike, Device

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SimilarityResult(Result):
    """The similarity of the same layers of two sides.

    Fields are those of ``isogloss similarity --json``: ``layers``, each with its ``measures`` by name (``value``, ``interval``, ``chance``),
    and counts of rows. ``score`` is the value of the last layer, where one measure was asked for.
    """

    __slots__ = ()

    def values(self, measure: str) -> list[float]:
        """A measure at each layer."""
        return [layer["measures"][measure]["value"] for layer in self._fields["layers"]]

    def _summary(self) -> str:
        return f"rows={self._fields['rows']}, layers={len(self._fields['layers'])}"


class LanguageIdResult(Result):
    """How well a linear probe tells the language of a sentence from its vector.

    Fields are those of ``isogloss language-id --json``: ``layers``, each with its ``treatments`` (raw, centered, lsar, without-k; ``accuracy``
    beside ``shuffled``, what the same procedure gives for languages that do not differ), ``chance`` and the ``languages`` with the sentences
    that were used and those left out as ``repeated``. ``score`` is the accuracy at the last layer, raw.
    """

    __slots__ = ()

    def accuracy(self, treatment: str = "raw") -> list[float]:
        """The accuracy at each layer after a treatment."""
        return self._of(treatment, "accuracy")

    def shuffled(self, treatment: str = "raw") -> list[float]:
        """The same where labels were shuffled before the treatment: what to compare the accuracy with."""
        return self._of(treatment, "shuffled")

    def _of(self, treatment: str, key: str) -> list[float]:
        layers = self._fields["layers"]
        return [one[key] for layer in layers for one in layer["treatments"] if one["treatment"] == treatment]

    def _summary(self) -> str:
        return f"chance={self._fields['chance']:.3f}, layers={len(self._fields['layers'])}"


class MiningResult(Result):
    """Pairs of rows that may be translations.

    ``indices`` has the row of x and the row of y of each pair, the highest score first (pairs x 2), ``scores`` their scores. Fields are those
    of ``isogloss mine --json``. ``score`` is F1 against gold pairs: at the threshold or, where none was given, of every second row of x at the
    threshold that is best for the others (``held_out``; ``best`` is that of all, chosen where it is measured).
    """

    __slots__ = ()

    def _summary(self) -> str:
        return f"pairs={self._fields['pairs']}"


def similarity(
    x: ArrayLike,
    y: ArrayLike,
    *,
    measures: str | Sequence[str] = (),
    subsamples: int = 100,
    seed: int = 1,
    device: Device = "auto",
    threads: int = 0,
) -> SimilarityResult:
    """Compare each layer of x with the same layer of y by every measure, or by those that are named, beside their chance levels.

    Row i of y is of the same thing as row i of x; both are rows x dimension or layers x rows x dimension. ``measures``: cka, svcca, pwcca,
    anc, rsa, mutual-nn, mexa, weak-alignment, strong-alignment. ``subsamples`` are those of the 95 % intervals (0 for none); measures of
    neighbours are shares and have the score interval (Wilson 1927).

    >>> import numpy as np, isogloss
    >>> x = np.random.default_rng(0).normal(size=(200, 8))
    >>> turn = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]
    >>> found = isogloss.similarity(x, x @ turn, measures=["svcca", "mutual-nn"], subsamples=0)
    >>> [round(value, 4) for value in found.values("svcca") + found.values("mutual-nn")]
    [1.0, 1.0]
    """
    chosen = [measures] if isinstance(measures, str) else list(measures)
    fields = _isogloss.similar(x, y, chosen, subsamples, seed, (device, threads))
    score = fields["layers"][-1]["measures"][chosen[0]]["value"] if len(chosen) == 1 else None
    return SimilarityResult(fields, score)


def language_id(
    vectors: Mapping[str, ArrayLike], *, directions: int = 1, seed: int = 1, threads: int = 0
) -> LanguageIdResult:
    """Tell the language of sentences from their vectors by a linear probe, before and after removing it.

    ``vectors`` has those of each language: rows x dimension, or layers x rows x dimension. A logistic regression is trained on a third of the
    sentences and tested on another; treatments (each language's mean subtracted, the subspace of the means removed, ``directions`` leading
    principal directions removed) are learned on the last third. Arrays of equally many rows are taken for translations, row by row; a row whose
    vector at the last layer equals an earlier one's, in any language, is left out and counted.

    >>> import numpy as np, isogloss
    >>> rng = np.random.default_rng(0)
    >>> found = isogloss.language_id({"en": rng.normal(size=(90, 4)), "fr": rng.normal(size=(90, 4)) + 5})
    >>> found.score, abs(found.accuracy("centered")[0] - found.shuffled("centered")[0]) < 0.3
    (1.0, True)
    """
    fields = _isogloss.language_probed(list(vectors.items()), directions, seed, threads)
    result = LanguageIdResult(fields, None)
    return LanguageIdResult(fields, result.accuracy()[-1])


def mine(
    x: ArrayLike,
    y: ArrayLike,
    *,
    margin: Literal["ratio", "distance", "absolute"] = "ratio",
    direction: Literal["forward", "backward", "intersection", "max"] = "max",
    neighbors: int = 4,
    center: bool = False,
    threshold: float | None = None,
    gold: Iterable[tuple[int, int]] | None = None,
    device: Device = "auto",
    threads: int = 0,
) -> MiningResult:
    """Mine translation pairs between the rows of x and of y, which may differ in number, by margins (Artetxe and Schwenk 2019).

    The search is exact. ``center`` subtracts the mean vector of each side first. With ``gold`` pairs of rows, the result has precision, recall
    and F1 as BUCC counts them.

    >>> import numpy as np, isogloss
    >>> x = np.random.default_rng(0).normal(size=(50, 8))
    >>> found = isogloss.mine(x, x[10:40], gold=[(10 + row, row) for row in range(30)])
    >>> found.best["f1"], found.indices.shape, (found.indices[:30, 0] == found.indices[:30, 1] + 10).all().item()
    (1.0, (30, 2), True)
    """
    settings = {
        "margin": margin,
        "direction": direction,
        "neighbors": neighbors,
        "center": center,
        "threshold": threshold,
    }
    pairs = None if gold is None else {(int(a), int(b)) for a, b in gold}
    found = _isogloss.mined(x, y, pairs, settings, (device, threads))
    fields, indices, scores = found
    scored = fields["score"] or fields["held_out"] or {}
    arrays: dict[str, NDArray[np.int64] | NDArray[np.float32]] = {"indices": indices, "scores": scores}
    return MiningResult(fields, scored.get("f1"), arrays)
