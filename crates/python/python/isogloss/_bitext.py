"""Word alignment of parallel text."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from . import _isogloss
from ._commands import call
from ._errors import UsageError
from ._results import Result
from ._typing import Path

if TYPE_CHECKING:
    from ._encoder import Encoder


class WordAlignment(Result):
    """The links of sentence pairs.

    ``links`` has a list of ``(source word, target word)`` for each pair, counted from 0. Fields: ``forward`` and ``reverse``, the iterations
    of either direction with their log-likelihood and perplexity. ``score`` is the mean perplexity of both directions at the last iteration; less is
    better. Of links from an encoder, fields are those of ``isogloss word-align --model --json``, and there is no score.
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
    model: Path | Encoder | None = None,
    langs: tuple[str, str] = ("source", "target"),
    **encoder: Any,
) -> WordAlignment:
    """Align the words of sentence pairs, trained on these pairs alone: IBM model 2 as fast_align has it (Dyer et al. 2013).

    Words are separated by white space. ``prior=None`` is plain expectation-maximisation.

    With ``model``, links come from the hidden states of an encoder and nothing is trained; settings of the IBM model are then not
    used. ``langs`` are the languages of both sides, which a run needs to know. Other keyword arguments are the flags of
    ``isogloss word-align --model``: ``layers``, ``extract`` (argmax, itermax, softmax), ``units``, ``threshold``, ``device`` …

    >>> import isogloss
    >>> pairs = [("the house", "la maison"), ("the blue house", "la maison bleue"), ("the flower", "la fleur"),
    ...          ("the blue flower", "la fleur bleue"), ("a flower", "une fleur"), ("a house", "une maison")]
    >>> isogloss.word_align(pairs).lines()[1]
    '0-0 1-2 2-1'
    >>> isogloss.word_align([("a cat", "a cat")], model=bert, layers=1, device="cpu").links  # links of equal words
    [[(0, 0), (1, 1)]]
    """
    if model is not None:
        return _with_encoder(list(pairs), model, langs, {"allow_empty": allow_empty, "threads": threads, **encoder})
    if encoder:
        raise UsageError(f"{next(iter(encoder))!r} is for the hidden states of an encoder; give model=", next(iter(encoder)))
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


def _with_encoder(
    pairs: list[tuple[str, str]], model: Path | Encoder, langs: tuple[str, str], flags: dict[str, Any]
) -> WordAlignment:
    """Links from the hidden states of an encoder, through the command."""
    name = model if isinstance(model, (str, os.PathLike)) else model.path
    with tempfile.TemporaryDirectory() as folder:
        text, out = os.path.join(folder, "pairs.tsv"), os.path.join(folder, "links")
        with open(text, "w", encoding="utf-8") as file:
            file.writelines("\t".join(" ".join(side.split()) for side in pair) + "\n" for pair in pairs)
        given = {"model": name, "parallel": f"{langs[0]}-{langs[1]}={text}", "out": out}
        fields, remarks = call(["word-align"], {**given, **flags})
        with open(out, encoding="utf-8") as file:
            lines = [line.split() for line in file]
    links = [[(int(a), int(b)) for a, _, b in (link.partition("-") for link in line)] for line in lines]
    return WordAlignment(fields, None, {"links": links, "remarks": remarks})
