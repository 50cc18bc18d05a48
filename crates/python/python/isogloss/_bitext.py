"""Word alignment of parallel text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from . import _isogloss
from ._results import Result


class WordAlignment(Result):
    """The links of sentence pairs.

    ``links`` has a list of ``(source word, target word)`` for each pair, counted from 0. Fields: ``forward`` and ``reverse``, the iterations
    of either direction with their log-likelihood and perplexity. ``score`` is the mean perplexity of both directions at the last iteration; less is
    better.
    """

    __slots__ = ()

    def lines(self) -> list[str]:
        """The links as ``isogloss word-align`` writes them: ``0-0 1-2``."""
        return [" ".join(f"{a}-{b}" for a, b in links) for links in self._arrays["links"]]

    def _summary(self) -> str:
        return f"pairs={len(self._arrays['links'])}"


def word_align(
    pairs: Iterable[tuple[str, str]],
    *,
    symmetrize: Literal[
        "intersect", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"
    ] = "grow-diag-final-and",
    iterations: int = 5,
    p_null: float = 0.08,
    tension: float = 2.0,
    max_tension: float = 4.0,
    prior: float | None = 0.01,
    allow_empty: bool = False,
    threads: int = 0,
) -> WordAlignment:
    """Align the words of sentence pairs, trained on these pairs alone: IBM model 2 as fast_align has it (Dyer et al. 2013).

    Words are separated by white space. ``prior=None`` is plain expectation-maximisation.

    >>> import isogloss
    >>> pairs = [("the house", "la maison"), ("the blue house", "la maison bleue"), ("the flower", "la fleur"),
    ...          ("the blue flower", "la fleur bleue"), ("a flower", "une fleur"), ("a house", "une maison")]
    >>> isogloss.word_align(pairs).lines()[1]
    '0-0 1-2 2-1'
    """
    settings = {
        "symmetrize": symmetrize,
        "iterations": iterations,
        "p_null": p_null,
        "tension": tension,
        "max_tension": max_tension,
        "prior": prior,
        "allow_empty": allow_empty,
    }
    links, fields = _isogloss.word_aligned(list(pairs), settings, threads)
    last = [fields[side][-1]["perplexity"] for side in ("forward", "reverse") if fields[side]]
    score = sum(last) / len(last) if last else None
    return WordAlignment(fields, score, {"links": links})
