"""Every kind of array gives the same numbers; what is no array is refused with a reason."""

import isogloss
import numpy as np
import pytest

X = np.random.default_rng(0).normal(size=(40, 6))
Y = np.random.default_rng(1).normal(size=(40, 6)) + X


def score(x, y):
    return isogloss.cka(x, y, subsamples=0).score


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.astype(np.float32),
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[:, ::-1].copy()[:, ::-1],
        lambda a: a.astype(">f8"),
        lambda a: a.tolist(),
        lambda a: a[None],
        lambda a: [a],
    ],
)
def test_layouts_and_types_agree(change):
    assert score(change(X), Y) == pytest.approx(score(X, Y), abs=1e-12)


def test_half_precision_is_read_as_it_is():
    half = X.astype(np.float16)
    assert score(half, Y) == score(half.astype(np.float64), Y)


def test_read_only_arrays_are_read_and_not_written():
    x = X.copy()
    x.flags.writeable = False
    isogloss.align.normalize(x)
    assert (x == X).all()


def test_whole_numbers_are_numbers():
    x = np.arange(24).reshape(8, 3) ** 2 % 11
    assert score(x, x) == pytest.approx(1.0)


def test_places_count_from_zero_as_in_numpy():
    y = Y.copy()
    y[3, 2] = np.nan
    for call in (isogloss.cka, isogloss.retrieve, isogloss.mine):
        with pytest.raises(isogloss.Error, match=r"y: (layer 0, )?row 3: has NaN in column 2 \(rows and columns count from 0\)"):
            call(X, y)


def test_files_are_arrays(tmp_path):
    x, y, layers = (tmp_path / f"{name}.npy" for name in ("x", "y", "layers"))
    np.save(x, X.astype(np.float32))
    np.save(y, Y.astype(np.float32))
    np.save(layers, np.stack([X, Y]).astype(np.float32))
    for call in (isogloss.retrieve, isogloss.cka, isogloss.similarity, isogloss.mine):
        assert call(str(x), y).to_dict() | {"seconds": 0} == call(X, Y).to_dict() | {"seconds": 0}
    assert len(isogloss.cka(layers, y).cka) == 2
    with pytest.raises(isogloss.UsageError, match="has the shape"):
        isogloss.mine(layers, y)
    with pytest.raises(isogloss.Error, match="absent.npy"):
        isogloss.cka("absent.npy", y)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x = torch.tensor(X)
    assert score(x, Y) == score(X, Y)
    with pytest.raises(isogloss.UsageError, match="detach"):
        score(x.clone().requires_grad_(), Y)
    with pytest.raises(isogloss.UsageError, match="float"):
        score(x.bfloat16(), Y)


@pytest.mark.parametrize(
    "x, reason",
    [
        (np.ones(3), "has the shape"),
        (np.ones((0, 3)), "no values"),
        (np.ones((4, 3), dtype=complex), "real numbers"),
        (np.array([["a"]]), "real numbers"),
        (object(), "real numbers"),
        (np.full((8, 2), np.nan), "NaN"),
    ],
)
def test_what_is_no_array_is_refused(x, reason):
    with pytest.raises(isogloss.Error, match=reason):
        isogloss.cka(x, x)


def test_results_own_their_memory_and_are_frozen():
    found = isogloss.retrieve(X, Y)
    assert found.neighbors.dtype == np.int64 and found.scores.dtype == np.float32
    with pytest.raises(AttributeError, match="frozen"):
        found.score = 1.0
    with pytest.raises(AttributeError, match="it has neighbors"):
        found.no_such_field
    assert "score=" in repr(found) and found.signature in repr(found)
    assert "neighbors" in dir(found)
