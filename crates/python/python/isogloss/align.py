"""Orthogonal maps between two spaces of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _isogloss
from ._results import Result
from ._typing import ArrayLike, Device, Normalize, Path, steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OrthogonalMap", "load", "normalize", "procrustes", "unsupervised"]


class OrthogonalMap(Result):
    """A map that was learned or read.

    ``.score`` is the mean cosine of the pairs that it was learned from, after the map; of unsupervised learning and refinement
    that of the pairs which the best map induces. Other fields: ``init``, ``rounds`` (of self-learning), ``cosine``.
    """

    __slots__ = ()

    @property
    def matrix(self) -> NDArray[np.float64]:
        """W of W x, dimension x dimension."""
        matrix: NDArray[np.float64] = self._arrays["map"].matrix()
        return matrix

    def transform(
        self,
        z: ArrayLike,
        normalize: Normalize | None = None,
        *,
        device: Device = "auto",
        threads: int = 0,
    ) -> NDArray[np.float32]:
        """Map every row of z, after the normalisation that the map was learned with.

        z is normalised as a set of its own, as ``isogloss align words --map`` does it; ``normalize="none"`` is the map alone, which
        is what few rows need.

        >>> import numpy as np, isogloss
        >>> x = np.eye(3, 2) + 0.1
        >>> fit = isogloss.align.procrustes(x, x[:, ::-1], normalize="none")
        >>> fit.transform([[1.0, 2.0]], normalize="none").round(4).tolist()
        [[2.0, 1.0]]
        """
        chosen = self._arrays["normalize"] if normalize is None else steps(normalize)
        mapped: NDArray[np.float32] = self._arrays["map"].transform(z, chosen, (device, threads))
        return mapped

    def save(self, path: Path, *, force: bool = False) -> None:
        """Write W as ``isogloss align words --save-map`` does: a .npy file that ``--map`` and :func:`load` read."""
        self._arrays["map"].save(path, force)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("an OrthogonalMap is not pickled; save() it and load() it")

    def _summary(self) -> str:
        return f"dim={self._arrays['map'].dim}, init={self._fields['init']!r}"


def _learned(
    x: ArrayLike,
    y: ArrayLike,
    pairs: Sequence[tuple[int, int]] | None,
    settings: dict[str, Any],
    place: tuple[Device, int],
) -> OrthogonalMap:
    if pairs is not None:
        pairs = [(int(a), int(b)) for a, b in pairs]
    fitted, fields = _isogloss.fit_map(x, y, pairs, settings, place)
    arrays = {"map": fitted, "normalize": settings["normalize"]}
    return OrthogonalMap(fields, fields["cosine"], arrays)


def procrustes(
    x: ArrayLike,
    y: ArrayLike,
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    normalize: Normalize = "iterative",
    refine: int = 0,
    cutoff: int = 10_000,
    neighbors: int = 10,
    device: Device = "auto",
    threads: int = 0,
) -> OrthogonalMap:
    """Learn the orthogonal map of x onto y (rows x dimension) from pairs of rows; without pairs, row i belongs to row i.

    Both sides are normalised first, as ``isogloss align words`` does it. ``refine`` rounds of self-learning follow, from mutual nearest
    neighbours by CSLS among the first ``cutoff`` rows of each side.

    >>> import numpy as np, isogloss
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 10))
    >>> turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    >>> fit = isogloss.align.procrustes(x, x @ turn.T, normalize="none")
    >>> bool(np.allclose(fit.matrix, turn, atol=1e-6)), round(fit.score, 4)
    (True, 1.0)
    """
    settings = {
        "normalize": steps(normalize),
        "refine": refine,
        "cutoff": cutoff,
        "neighbors": neighbors,
        "seed": 1,
        "unsupervised": False,
    }
    return _learned(x, y, pairs, settings, (device, threads))


def unsupervised(
    x: ArrayLike,
    y: ArrayLike,
    *,
    normalize: Normalize = "iterative",
    refine: int = 0,
    cutoff: int = 10_000,
    neighbors: int = 10,
    seed: int = 1,
    device: Device = "auto",
    threads: int = 0,
) -> OrthogonalMap:
    """Learn the map of x onto y without any pair: similarity distributions and self-learning (Artetxe et al. 2018).

    Rows are in the order of frequency; the first ``cutoff`` of each side take part.

    >>> import numpy as np, isogloss
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 8)) * np.arange(1, 9)
    >>> turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    >>> fit = isogloss.align.unsupervised(x, x @ turn)
    >>> fit.score > 0.99
    True
    """
    settings = {
        "normalize": steps(normalize),
        "refine": refine,
        "cutoff": cutoff,
        "neighbors": neighbors,
        "seed": seed,
        "unsupervised": True,
    }
    return _learned(x, y, None, settings, (device, threads))


def load(path: Path, *, normalize: Normalize = "iterative") -> OrthogonalMap:
    """Read a map that was saved; ``normalize`` is what :meth:`OrthogonalMap.transform` does to vectors first."""
    read = _isogloss.load_map(path)
    fields: dict[str, Any] = {"init": "map", "rounds": [], "cosine": None, "signature": f"map:{path}"}
    return OrthogonalMap(fields, None, {"map": read, "normalize": steps(normalize)})


def normalize(z: ArrayLike, normalize: Normalize = "iterative") -> NDArray[np.float32]:
    """The rows of z, normalised as a set.

    >>> import isogloss
    >>> isogloss.align.normalize([[3.0, 4.0]], "unit").tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """
    done: NDArray[np.float32] = _isogloss.normalized(z, steps(normalize))
    return done
