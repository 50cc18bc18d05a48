"""Similarity, the language-ID probe and mining, against NumPy and against the command line."""

import isogloss
import numpy as np
import pytest

RNG = np.random.default_rng(11)
X = RNG.normal(size=(2, 150, 12)).astype(np.float32)
Y = (X + 0.4 * RNG.normal(size=X.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measures")
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    return folder / "x.npy", folder / "y.npy"


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_similarity_equals_the_command_lines(files, command):
    printed = command("similarity", *files, "--subsamples", 20, "--seed", 3, "--device", "cpu")
    found = isogloss.similarity(X, Y, subsamples=20, seed=3, device="cpu")
    assert found.to_dict() == printed
    assert len(printed["layers"]) == 2 and len(printed["layers"][0]["measures"]) == 9


def test_similarity_is_numpys():
    scores = unit(X[1]) @ unit(Y[1]).T
    rows = np.arange(150)
    expected = ((scores.argmax(axis=1) == rows) & (scores.argmax(axis=0) == rows)).mean()
    assert 0 < expected < 1
    assert isogloss.similarity(X, Y, measures="mexa", subsamples=0).score == pytest.approx(expected)
    neurons = [np.corrcoef(X[0][:, i], Y[0][:, i])[0, 1] for i in range(12)]
    found = isogloss.similarity(X[0], Y[0], measures=["anc", "cka"], subsamples=0)
    assert found.values("anc") == pytest.approx([np.mean(neurons)], abs=1e-6) and found.score is None
    assert found.values("cka")[0] == pytest.approx(isogloss.cka(X[0], Y[0], debiased=False, subsamples=0).score, abs=1e-6)


def test_the_language_probe_equals_the_command_lines(files, command):
    own = isogloss.language_id({"en": X, "fr": Y + 0.5}, directions=2, seed=4)
    np.save(files[1].parent / "shifted.npy", Y + np.float32(0.5))
    vectors = ["--vectors", f"en={files[0]}", "--vectors", f"fr={files[1].parent / 'shifted.npy'}"]
    assert own.to_dict() == command("language-id", *vectors, "--directions", 2, "--seed", 4)
    assert own.score == own.accuracy()[-1] > own.accuracy("centered")[-1]
    assert all(abs(shuffled - 0.5) < 0.2 for shuffled in own.shuffled("centered"))


def test_spread_is_told_by_more_than_means():
    rng = np.random.default_rng(0)
    found = isogloss.language_id({"en": rng.normal(size=(300, 12)), "fr": 3 * rng.normal(size=(300, 12))})
    assert found.nonlinear("centered")[0] > 0.9 > 0.65 > found.accuracy("centered")[0]


def test_sentences_that_come_back_are_left_out():
    found = isogloss.language_id({"en": np.repeat(X[0], 3, axis=0), "fr": np.repeat(Y[0], 3, axis=0)})
    assert [one["repeated"] for one in found.languages] == [300, 300]


@pytest.mark.parametrize("margin, direction", [("ratio", "max"), ("distance", "forward"), ("absolute", "intersection")])
def test_mining_equals_the_command_lines(files, command, tmp_path, margin, direction):
    np.save(tmp_path / "y.npy", Y[0][30:])
    gold = [(row + 30, row) for row in range(0, 120, 2)]
    (tmp_path / "gold").write_text("".join(f"{a}\t{b}\n" for a, b in gold))
    np.save(tmp_path / "x.npy", X[0])
    printed = command("mine", "--source", tmp_path / "x.npy", "--target", tmp_path / "y.npy", "--margin", margin, "--direction",
                      direction, "--center", "--threshold", 0.5, "--gold", tmp_path / "gold", "--out", tmp_path / "pairs.tsv")
    found = isogloss.mine(X[0], Y[0][30:], margin=margin, direction=direction, center=True, threshold=0.5, gold=gold)
    own = found.to_dict()
    for timed in (own, printed):
        del timed["seconds"]
    assert own == printed and found.score == printed["score"]["f1"]
    lines = [line.split("\t") for line in (tmp_path / "pairs.tsv").read_text().splitlines()]
    lines = [line for line in lines if line[0] != "score"]
    assert [[int(a), int(b)] for _, a, b in lines] == found.indices.tolist()
    np.testing.assert_allclose([float(score) for score, _, _ in lines], found.scores, atol=1e-6)


@pytest.mark.parametrize("call, key", [
    (lambda: isogloss.similarity(X, Y, measures="cosine"), "measures"),
    (lambda: isogloss.similarity(X, Y, subsamples=3), "subsamples"),
    (lambda: isogloss.mine(X[0], Y[0], margin="none"), "margin"),
    (lambda: isogloss.mine(X[0], Y[0], direction="both"), "direction"),
    (lambda: isogloss.mine(X[0], Y[0], neighbors=0), "neighbors"),
    (lambda: isogloss.mine(X[0], Y[0], gold=[(0, 150)]), "gold"),
])
def test_wrong_requests_name_their_key(call, key):
    with pytest.raises(isogloss.UsageError) as raised:
        call()
    assert raised.value.key == key and raised.value.remedy
