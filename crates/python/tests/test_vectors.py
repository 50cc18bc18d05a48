"""Word vectors against gensim and the command line."""

import pathlib

import isogloss
import numpy as np
import pytest


@pytest.fixture(scope="module")
def text(world):
    file = next(pathlib.Path(world.path("text")).glob("qaa.*"))
    return file.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("method, options, flags", [
    ("word2vec", {"negative": 3, "subsample": 0.01}, ["--negative", 3, "--subsample", 0.01]),
    ("word2vec", {"cbow": True, "lr": 0.03}, ["--cbow", "--lr", 0.03]),
    ("word2vec", {"ngrams": (3, 4)}, ["--ngrams", "3-4"]),
    ("glove", {"x_max": 10, "left": True}, ["--x-max", 10, "--left"]),
])
def test_vectors_equal_the_command_lines(tmp_path, command, text, method, options, flags):
    (tmp_path / "text").write_text("\n".join(text) + "\n")
    how = ["--dim", 12, "--epochs", 2, "--min-count", 2, "--seed", 4]
    printed = command("vectors", method, "--text", f"qaa={tmp_path / 'text'}", "--lines", "--tokenizer", "whitespace",
                      *how, *flags, "--out", tmp_path / "v.npy")
    train = getattr(isogloss.vectors, method)
    found = train(text, dim=12, epochs=2, min_count=2, seed=4, **options)
    assert found.signature == printed["signature"]
    assert found.losses == printed["losses"] and found.score == printed["losses"][-1]
    assert (found.vectors == np.load(tmp_path / "v.npy")).all()


def test_files_come_back(tmp_path, text):
    found = isogloss.vectors.word2vec(text[:300], dim=6, epochs=1, min_count=1)
    for name in ("v.vec", "v.bin", "v.npy", "v.glove"):
        found.save(tmp_path / name)
        read = isogloss.vectors.load(tmp_path / name)
        assert read == found and (read[found.words[3]] == found.vectors[3]).all()
    assert len(isogloss.vectors.load(tmp_path / "v.vec", limit=5)) == 5
    assert "no-such-word" not in found and found.words[0] in found
    with pytest.raises(KeyError):
        found["no-such-word"]
    with pytest.raises(isogloss.Error):
        isogloss.vectors.load(tmp_path / "absent.vec")


def test_gensim_in_and_out(tmp_path, text):
    gensim = pytest.importorskip("gensim")
    found = isogloss.vectors.word2vec(text[:300], dim=6, epochs=1, min_count=1)
    keyed = found.to_gensim()
    assert (keyed[found.words[5]] == found[found.words[5]]).all()
    assert isogloss.vectors.from_gensim(keyed) == found
    keyed.save_word2vec_format(str(tmp_path / "g.bin"), binary=True)
    assert isogloss.vectors.load(tmp_path / "g.bin") == found
    found.save(tmp_path / "own.vec")
    read = gensim.models.KeyedVectors.load_word2vec_format(str(tmp_path / "own.vec"))
    assert (read.vectors == found.vectors).all()
    with pytest.raises(isogloss.UsageError):
        isogloss.vectors.from_gensim([1, 2])


@pytest.mark.parametrize("call, key", [
    (lambda text: isogloss.vectors.word2vec(text, dim=0), "dim"),
    (lambda text: isogloss.vectors.word2vec(text, min_count=10**6), "min_count"),
    (lambda text: isogloss.vectors.glove(text, window=0), "window"),
])
def test_wrong_requests_name_their_key(text, call, key):
    with pytest.raises(isogloss.Error) as raised:
        call(text[:100])
    assert raised.value.key == key
