"""Static word vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _isogloss
from ._errors import UsageError
from ._results import Result
from ._typing import ArrayLike, Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WordVectors", "from_gensim", "glove", "load", "word2vec"]


class WordVectors(Result):
    """Words and their vectors: ``words``, ``vectors`` (words x dimension), ``vectors_of["word"]`` by subscript.

    Of vectors that were trained here the fields are those of ``isogloss vectors --json``, and ``score`` is the loss of the last epoch.
    """

    __slots__ = ()

    @property
    def words(self) -> list[str]:
        """The words, the most frequent first."""
        return list(self._arrays["words"])

    @property
    def vectors(self) -> NDArray[np.float32]:
        """words x dimension."""
        vectors: NDArray[np.float32] = self._arrays["vectors"]
        return vectors

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self.vectors[self._arrays["index"][word]]
        return row

    def __contains__(self, word: object) -> bool:
        return word in self._arrays["index"]

    def __len__(self) -> int:
        return len(self._arrays["words"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays["words"])

    def save(self, path: Path, *, force: bool = False) -> None:
        """Write the format that the name says: .vec, .bin, .glove, or .npy with .vocab."""
        _isogloss.write_vectors(path, self._arrays["words"], self.vectors, force)

    def to_gensim(self) -> Any:
        """The same as gensim's ``KeyedVectors``."""
        from gensim.models import KeyedVectors  # type: ignore[import-untyped, import-not-found, unused-ignore]

        keyed = KeyedVectors(vector_size=self.vectors.shape[1])
        keyed.add_vectors(self.words, self.vectors)
        return keyed

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WordVectors)
            and self._arrays["words"] == other._arrays["words"]
            and bool((self.vectors == other.vectors).all())
        )

    def _summary(self) -> str:
        return f"words={len(self)}, dim={self.vectors.shape[1]}"


def _table(
    words: Sequence[str], vectors: ArrayLike, fields: dict[str, Any], score: float | None
) -> WordVectors:
    index = {word: row for row, word in enumerate(words)}
    return WordVectors(fields, score, {"words": words, "vectors": vectors, "index": index})


def _trained(
    method: str,
    sentences: Iterable[str | Sequence[str]],
    min_count: int,
    keys: dict[str, Any],
    threads: int,
) -> WordVectors:
    split = [s.split() if isinstance(s, str) else [str(word) for word in s] for s in sentences]
    (words, vectors), _, fields = _isogloss.train_vectors(
        method, split, min_count, json.dumps(keys), threads
    )
    del fields["file"]
    return _table(words, vectors, fields, fields["losses"][-1] if fields["losses"] else None)


def word2vec(
    sentences: Iterable[str | Sequence[str]],
    *,
    dim: int = 100,
    window: int = 5,
    negative: int = 5,
    epochs: int = 5,
    lr: float | None = None,
    subsample: float | None = None,
    cbow: bool = False,
    ngrams: tuple[int, int] | None = None,
    min_count: int = 5,
    seed: int = 1,
    threads: int = 0,
) -> WordVectors:
    """Train vectors by skip-gram (or CBOW) with negative sampling (Mikolov et al. 2013), the same on any number of threads.

    Sentences are lists of words, or text that is split at white space. ``ngrams=(3, 6)`` adds character n-grams as fastText does.

    >>> import isogloss
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 50
    >>> trained = isogloss.vectors.word2vec(text, dim=8, epochs=1, min_count=1)
    >>> trained.words[0], trained.vectors.shape
    ('the', (7, 8))
    """
    keys: dict[str, Any] = {
        "architecture": "cbow" if cbow else "skipgram",
        "dim": dim,
        "window": window,
        "negative": negative,
        "epochs": epochs,
        "lr": lr,
        "subsample": subsample,
        "seed": seed,
    }
    if ngrams is not None:
        keys["ngrams"] = {"shortest": ngrams[0], "longest": ngrams[1], "buckets": 2_000_000}
    return _trained("word2vec", sentences, min_count, keys, threads)


def glove(
    sentences: Iterable[str | Sequence[str]],
    *,
    dim: int = 100,
    window: int = 15,
    epochs: int = 25,
    lr: float = 0.05,
    x_max: float = 100.0,
    weight_power: float = 0.75,
    left: bool = False,
    flat: bool = False,
    min_count: int = 5,
    seed: int = 1,
    threads: int = 0,
) -> WordVectors:
    """Train vectors by GloVe (Pennington et al. 2014), from co-occurrence counts.

    >>> import isogloss
    >>> text = ["the cat sat on the mat", "the dog sat on the rug"] * 50
    >>> isogloss.vectors.glove(text, dim=8, epochs=2, min_count=1).vectors.shape
    (7, 8)
    """
    keys = {
        "dim": dim,
        "window": window,
        "symmetric": not left,
        "flat": flat,
        "epochs": epochs,
        "lr": lr,
        "x_max": x_max,
        "alpha": weight_power,
        "seed": seed,
    }
    return _trained("glove", sentences, min_count, keys, threads)


def load(path: Path, *, limit: int | None = None) -> WordVectors:
    """Read vectors of any format: Word2Vec's text or binary, fastText's .vec, GloVe's text, .npy with .vocab; plain, gzip or zstd."""
    words, vectors = _isogloss.read_vectors(path, limit)
    return _table(words, vectors, {"signature": f"vectors|file:{path}"}, None)


def from_gensim(keyed: Any) -> WordVectors:
    """Take the words and vectors of gensim's ``KeyedVectors``, or of a model that has them as ``.wv``."""
    keyed = getattr(keyed, "wv", keyed)
    if not hasattr(keyed, "index_to_key"):
        raise UsageError(f"{type(keyed).__name__} is no KeyedVectors; give gensim's KeyedVectors or a model", "keyed")
    import numpy as np

    vectors = np.array(keyed.vectors, dtype=np.float32)
    return _table(list(keyed.index_to_key), vectors, {"signature": "vectors|gensim"}, None)
