"""Maps, retrieval and CKA against NumPy, SciPy and scikit-learn, and against the command line."""

import subprocess
import sys

import isogloss
import numpy as np
import pytest
import scipy.linalg
from sklearn.neighbors import NearestNeighbors

RNG = np.random.default_rng(7)
TURN = np.linalg.qr(RNG.normal(size=(16, 16)))[0]
X = (RNG.normal(size=(300, 16)) * np.linspace(0.5, 2, 16)).astype(np.float32)
Y = (X @ TURN + 0.3 * RNG.normal(size=(300, 16))).astype(np.float32)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_procrustes_is_scipys():
    found = isogloss.align.procrustes(X, Y, normalize="none")
    expected = scipy.linalg.orthogonal_procrustes(X.astype(float), Y.astype(float))[0]
    np.testing.assert_allclose(found.matrix, expected.T, atol=1e-6)
    np.testing.assert_allclose(found.transform(X), X @ expected, atol=1e-4)
    mapped = unit(X @ expected)
    assert found.score == pytest.approx((mapped * unit(Y)).sum(axis=1).mean(), abs=1e-6)


def test_pairs_choose_rows():
    order = RNG.permutation(300)
    pairs = [(int(order[i]), i) for i in range(200)]
    found = isogloss.align.procrustes(X, Y[order], pairs=[(b, a) for b, a in zip(order, range(300))])
    whole = isogloss.align.procrustes(X, Y)
    np.testing.assert_allclose(found.matrix, whole.matrix, atol=1e-4)
    assert len(pairs) == 200


def test_normalisation_is_numpys():
    x = X.astype(float)
    for _ in range(5):
        x = unit(x)
        x = x - x.mean(axis=0)
    np.testing.assert_allclose(isogloss.align.normalize(X), unit(x), atol=1e-5)
    centred = isogloss.align.normalize(X, ["center", "unit"])
    np.testing.assert_allclose(centred, unit(X - X.mean(axis=0)), atol=1e-5)


def test_a_map_comes_back_from_its_file(tmp_path):
    found = isogloss.align.procrustes(X, Y)
    found.save(tmp_path / "w.npy")
    read = isogloss.align.load(tmp_path / "w.npy")
    assert (read.matrix == found.matrix).all()
    assert (read.transform(X) == found.transform(X)).all()
    assert (np.load(tmp_path / "w.npy") == found.matrix).all()
    with pytest.raises(isogloss.Error, match="exists"):
        found.save(tmp_path / "w.npy")


def test_retrieval_by_cosine_is_sklearns():
    found = isogloss.retrieve(X, Y, top=5)
    nearest = NearestNeighbors(n_neighbors=5, metric="cosine").fit(Y)
    distances, rows = nearest.kneighbors(X)
    assert (found.neighbors == rows).mean() > 0.999
    np.testing.assert_allclose(found.scores, 1 - distances, atol=1e-5)
    assert found.accuracy["forward"] == (rows[:, 0] == np.arange(300)).mean()


def test_csls_is_numpys():
    scores = unit(X) @ unit(Y).T
    own = np.sort(scores, axis=1)[:, -10:].mean(axis=1, keepdims=True)
    other = np.sort(scores, axis=0)[-10:].mean(axis=0, keepdims=True)
    csls = 2 * scores - own - other
    found = isogloss.retrieve(X, Y, method="csls", k=10, top=3)
    np.testing.assert_allclose(found.scores, np.sort(csls, axis=1)[:, ::-1][:, :3], atol=1e-5)
    assert (found.backward_neighbors[:, 0] == csls.argmax(axis=0)).mean() > 0.99


def linear_cka(x, y):
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    cross = np.linalg.norm(x.T @ y) ** 2
    return cross / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y)


def debiased_cka(x, y):
    def hsic(k, l):
        k, l = k.copy(), l.copy()
        np.fill_diagonal(k, 0)
        np.fill_diagonal(l, 0)
        n = len(k)
        total = (k * l).sum() + k.sum() * l.sum() / (n - 1) / (n - 2)
        return total - 2 * (k.sum(axis=0) @ l.sum(axis=0)) / (n - 2)

    k, l = x @ x.T, y @ y.T
    return hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l))


def test_cka_is_numpys_over_layers():
    x, y = np.stack([X, X**2, Y]), np.stack([Y, X])
    found = isogloss.cka(x, y)
    for i, a in enumerate(x.astype(float)):
        for j, b in enumerate(y.astype(float)):
            assert found.cka[i][j] == pytest.approx(linear_cka(a, b), abs=1e-5)
            assert found.debiased[i][j] == pytest.approx(debiased_cka(a, b), abs=1e-5)
    assert found.score == found.debiased[-1][-1]


def test_cka_within_groups_is_numpys():
    lengths = RNG.integers(3, 9, size=300)
    x, y = X.astype(float), Y.astype(float)
    for length in set(lengths):
        x[lengths == length] -= x[lengths == length].mean(axis=0)
        y[lengths == length] -= y[lengths == length].mean(axis=0)
    found = isogloss.cka(X, Y, within=lengths)
    assert found.score == pytest.approx(linear_cka(x, y), abs=1e-5)


def test_unsupervised_learning_finds_the_map():
    words = RNG.normal(size=(1500, 16)) * np.linspace(0.3, 2, 16)
    found = isogloss.align.unsupervised(words, words[RNG.permutation(1500)] @ TURN, refine=2)
    np.testing.assert_allclose(found.matrix, TURN.T, atol=0.05)


def test_results_equal_the_command_lines(tmp_path, command):
    np.save(tmp_path / "x.npy", np.stack([X, X + 1]))
    np.save(tmp_path / "y.npy", np.stack([Y, Y + 1]))
    files = ["--source", tmp_path / "x.npy", "--target", tmp_path / "y.npy"]
    train = ["--train-source", tmp_path / "x.npy", "--train-target", tmp_path / "y.npy"]
    x, y = np.stack([X, X + 1]), np.stack([Y, Y + 1])
    printed = command("retrieve", *files, *train, "--retrieval", "csls", "--neighbors", 7)
    assert isogloss.retrieve(x, y, train=(x, y), method="csls", k=7).to_dict() == printed
    for method in ("nn", "margin", "margin-distance"):
        printed = command("retrieve", *files, "--retrieval", method)
        assert isogloss.retrieve(x, y, method=method).to_dict() == printed
    printed = command("cka", tmp_path / "x.npy", tmp_path / "y.npy", "--subsamples", 20, "--seed", 5)
    assert isogloss.cka(x, y, subsamples=20, seed=5).to_dict() == printed
    labels = [row % 5 for row in range(300)]
    (tmp_path / "labels").write_text("".join(f"{label}\n" for label in labels))
    printed = command("cka", tmp_path / "x.npy", tmp_path / "y.npy", "--within", tmp_path / "labels")
    assert isogloss.cka(x, y, within=labels).to_dict() == printed


@pytest.mark.parametrize("init", ["dictionary", "unsupervised"])
def test_maps_equal_the_command_lines(tmp_path, command, init):
    words = [f"w{i}" for i in range(300)]
    for name, vectors in (("x", X), ("y", Y)):
        isogloss.vectors._table(words, vectors, {}, None).save(tmp_path / f"{name}.vec")
    # A file of text has as many digits as a float needs.
    x, y = (isogloss.vectors.load(tmp_path / f"{name}.vec").vectors for name in "xy")
    (tmp_path / "d.txt").write_text("".join(f"{word} {word}\n" for word in words))
    how = ["--dictionary", tmp_path / "d.txt"] if init == "dictionary" else ["--init", init]
    out = tmp_path / "w.npy"
    command("align", "words", "--source", tmp_path / "x.vec", "--target", tmp_path / "y.vec", *how,
            "--refine", 2, "--save-map", out, "--out", tmp_path / "mapped.vec")
    if init == "dictionary":
        found = isogloss.align.procrustes(x, y, refine=2)
    else:
        found = isogloss.align.unsupervised(x, y, refine=2)
    assert (np.load(out) == found.matrix).all()
    mapped = isogloss.vectors.load(tmp_path / "mapped.vec").vectors
    assert (found.transform(x) == mapped).all()


@pytest.mark.parametrize(
    "call, key",
    [
        (lambda: isogloss.retrieve(X, Y, method="cosine"), "retrieval"),
        (lambda: isogloss.retrieve(X, Y, method="csls", k=301), "neighbors"),
        (lambda: isogloss.cka(X, Y, subsamples=3), "subsamples"),
        (lambda: isogloss.align.procrustes(X, Y[:, :3]), "y"),
        (lambda: isogloss.align.procrustes(X, Y[:5]), "pairs"),
        (lambda: isogloss.align.procrustes(X, Y, pairs=[(0, 300)]), "pairs"),
        (lambda: isogloss.align.procrustes(X, Y, normalize="zscore"), "normalize"),
        (lambda: isogloss.align.procrustes(X, Y).transform(X[:, :3]), "z"),
    ],
)
def test_wrong_requests_name_their_key(call, key):
    with pytest.raises(isogloss.UsageError) as raised:
        call()
    assert raised.value.key == key and raised.value.reason


def test_a_device_that_is_not_there_is_an_exception():
    with pytest.raises(isogloss.DeviceError) as raised:
        isogloss.cka(X, Y, device="tpu")
    assert raised.value.key == "device" and raised.value.remedy


@pytest.mark.parametrize("call", [
    lambda bert, out: isogloss.cka(X, Y, device="cuda"),
    lambda bert, out: isogloss.Encoder.load(bert, device="cuda"),
    lambda bert, out: isogloss.word_align([("a", "b")], model=bert, layers=1, device="cuda"),
    lambda bert, out: isogloss.pretrain(out=out, text={"en": __file__}, scale="tiny", steps=1, device="cuda"),
], ids=["arrays", "encoder", "word_align", "command"])
def test_a_gpu_that_cannot_be_used_is_an_exception_with_its_remedy(call, bert, tmp_path):
    code = "import isogloss, numpy; isogloss.cka(numpy.eye(4), numpy.eye(4), device='cuda', subsamples=0)"
    if subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0:
        pytest.skip("there is a GPU")
    with pytest.raises(isogloss.DeviceError) as raised:
        call(bert, tmp_path / "run")
    error = raised.value
    assert error.key == "device" and "GPU" in error.reason and 'device="cpu"' in error.remedy
    assert not (tmp_path / "run").exists()


def test_pictures_are_svg():
    layers = np.stack([X, Y])
    for picture in (isogloss.plot.cka(isogloss.cka(layers, layers)), isogloss.plot.retrieval(isogloss.retrieve(layers, layers))):
        assert picture._repr_svg_().startswith("<svg") and "<svg" in picture._repr_html_()
