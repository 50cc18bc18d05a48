"""Encoders against transformers and the command line."""

import json
import os
import subprocess
import sys
import warnings

import isogloss
import numpy as np
import pytest
import reference

TEXTS = ["A sentence.", "the cat sat on the mat", "Another one , of more words ."]


@pytest.fixture(scope="module")
def encoder(bert):
    return isogloss.Encoder.load(bert, device="cpu")


def test_an_encoder_says_what_it_is(encoder, bert):
    config = json.loads((bert / "config.json").read_text())
    assert (encoder.layers, encoder.dim) == (config["num_hidden_layers"], config["hidden_size"])
    assert "any language" in repr(encoder)
    with pytest.raises(isogloss.Error, match="holds no model"):
        isogloss.Encoder.load("no-such-folder")


def live():
    """What transformers computes now; none where it or PyTorch is not installed, and what it computed once is compared with."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        return None
    return reference.compute()


REFERENCES = [pytest.param(json.loads(reference.FILE.read_text()), id="stored"), pytest.param(live(), id="live")]


@pytest.mark.parametrize("expected", REFERENCES)
def test_states_and_predictions_are_those_of_transformers(expected, bert):
    if expected is None:
        pytest.skip("transformers or PyTorch is not installed")
    assert set(expected) == set(reference.FAMILIES)
    for family, by_text in expected.items():
        encoder = isogloss.Encoder.load(bert.parent / family, device="cpu")
        for text, states in by_text["states"].items():
            found = encoder.encode(text, pool="none")
            np.testing.assert_allclose(found.vectors, np.array(states), atol=2e-4)
            np.testing.assert_allclose(encoder.encode(text).vectors[:, 0], np.mean(states, axis=1), atol=2e-4)
        for text, places in by_text["predictions"].items():
            for found, place in zip(encoder.predict(text, top=3), places, strict=True):
                assert [each["id"] for each in found] == place["ids"]
                np.testing.assert_allclose([each["probability"] for each in found], place["probabilities"], atol=1e-5)


def test_encodings_equal_the_command_lines(tmp_path, command, encoder, bert):
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in TEXTS))
    for pool, more in (("mean", []), ("first", []), ("none", ["--lengths", tmp_path / "lengths"])):
        out = tmp_path / f"{pool}.npy"
        command("encode", "--model", bert, "--text", f"en={tmp_path / 'texts'}", "--pool", pool, "--out", out,
                "--device", "cpu", *more)
        found = encoder.encode(TEXTS, "en", pool=pool)
        assert (found.vectors == np.load(out)).all()
    assert (np.asarray(encoder.encode(TEXTS, layer=1)) == encoder.encode(TEXTS).vectors[1]).all()
    lengths = [int(line) for line in (tmp_path / "lengths").read_text().split()]
    assert encoder.encode(TEXTS, pool="none").lengths == lengths
    assert [len(tokens) for tokens in encoder.tokens(TEXTS)] == lengths


def test_columns_and_files_of_sentences_are_read_as_they_are(tmp_path, encoder):
    pandas = pytest.importorskip("pandas")
    expected = encoder.encode(TEXTS).vectors
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    frame = pandas.DataFrame({"sentence": TEXTS}, index=[7, 3, 5])
    path = tmp_path / "texts.txt"
    for texts in (frame["sentence"], frame["sentence"].astype(object), np.array(TEXTS), np.array(TEXTS, dtype=object), tuple(TEXTS),
                  iter(TEXTS), path, str(path)):
        assert (encoder.encode(texts).vectors == expected).all()


def test_unknown_tokens_are_counted_and_remarked_on(encoder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.encode("the cat").unknown_share == 0
    with pytest.warns(UserWarning, match="does not know 50.0% of the tokens"):
        found = encoder.encode(["the \u4f60", "\u4f60 cat"])
    assert found.unknown_share == 0.5


@pytest.mark.parametrize("texts, reason", [
    (["a cat", None], r"texts\[1\]: is None"),
    (["a cat", "a dog", float("nan")], r"texts\[2\]: is nan, a value that is missing"),
    (["a cat", 7], r"texts\[1\]: is of type int"),
    ([b"a cat"], r"texts\[0\]: is of type bytes"),
    (b"a cat", "texts: is of type bytes"),
    ([["a", "b"]], r"texts\[0\]: is of type list"),
    (7, "texts: is of type int"),
    (None, "texts: is of type NoneType"),
    ({"a": "b"}, "texts: is of type dict"),
    (np.array([["a", "b"]]), r"texts: is of type ndarray and shape \(1, 2\); give one column"),
    ("es40.txt", "there is no file 'es40.txt'"),
])
def test_what_is_no_string_is_refused_by_its_place(encoder, texts, reason):
    for call in (encoder.encode, encoder.tokens):
        with pytest.raises(isogloss.UsageError, match=reason) as raised:
            call(texts)
        assert raised.value.key == "texts" and raised.value.remedy


def test_missing_values_and_frames_of_pandas_are_refused(encoder):
    pandas = pytest.importorskip("pandas")
    for missing in (None, float("nan"), pandas.NA):
        for dtype in (object, "string"):
            with pytest.raises(isogloss.UsageError, match=r"texts\[1\]: .*missing"):
                encoder.encode(pandas.Series(["a cat", missing], dtype=dtype))
    with pytest.raises(isogloss.UsageError, match="DataFrame and shape"):
        encoder.encode(pandas.DataFrame({"sentence": TEXTS}))


@pytest.mark.parametrize("layer, count", [("all", 3), (0, 1), ([0, 2], 2), ("0,1-2", 3)])
def test_layers_are_chosen(encoder, layer, count):
    assert len(encoder.encode(TEXTS, layer=layer).layers) == count


@pytest.mark.parametrize("layer", [9, "top", [], "2-9"])
def test_layers_that_are_not_there_are_refused(encoder, layer):
    with pytest.raises(isogloss.UsageError, match="0 to 2"):
        encoder.encode(TEXTS, layer=layer)


def test_wrong_requests_are_refused(encoder):
    with pytest.raises(isogloss.Error, match="without text"):
        encoder.encode(["A sentence.", " "])
    with pytest.raises(isogloss.UsageError, match="pool"):
        encoder.encode(TEXTS, pool="max")
    with pytest.raises(isogloss.UsageError, match="no mask"):
        encoder.predict("nothing to predict")
    with pytest.raises(isogloss.UsageError, match="one string") as raised:
        encoder.predict(["a [MASK] ."])
    assert raised.value.key == "text"
    with pytest.raises(isogloss.UsageError, match="mean vectors"):
        isogloss.Encoder.load(encoder._loaded.name).shift("a", to="fr")


def test_shifts_equal_the_command_lines(tmp_path, command, encoder, bert):
    texts = {"en": ["the cat sat", "a dog ran .", "the mat"] * 5, "fr": ["le chat", "un chien", "la table ."] * 5}
    files = []
    for lang, lines in texts.items():
        (tmp_path / lang).write_text("".join(f"{line}\n" for line in lines))
        files += ["--text", f"{lang}={tmp_path / lang}"]
    means = encoder.means(texts)
    model = ["--model", bert, "--device", "cpu"]
    printed = command("shift", "means", *model, *files, "--lines", "--out", tmp_path / "means.safetensors")
    assert means.to_dict() == {key: value for key, value in printed.items() if key != "out"}
    means.save(tmp_path / "own.safetensors")
    assert (tmp_path / "own.safetensors").read_bytes() == (tmp_path / "means.safetensors").read_bytes()
    printed = command("shift", "translate", *model, "--means", tmp_path / "means.safetensors", "--from", "en", "--to", "fr",
                      "--layer", 1, "--alpha", "0,1.5", "the cat sat")
    found = encoder.shift("the cat sat", to="fr", layer=1, alpha=[0, 1.5]).to_dict()
    del found["signature"]
    assert found == printed
    read = encoder.load_means(tmp_path / "means.safetensors")
    command("shift", "difference", *model, "--means", tmp_path / "means.safetensors", "--from", "en", "--to", "fr",
            "--layer", 1, "--out", tmp_path / "d.npy")
    assert (read.difference("en", to="fr", layer=1) == np.load(tmp_path / "d.npy")).all()
    assert read.vectors("fr").shape == (3, encoder.dim)


def test_a_shift_is_the_difference_of_means(encoder):
    texts = {"en": ["the cat sat", "a dog ran"] * 3, "fr": ["le chat", "un chien"] * 3}
    means = encoder.means(texts)
    for lang, lines in texts.items():
        states = encoder.encode(lines, lang, pool="none").vectors
        np.testing.assert_allclose(means.vectors(lang), states.mean(axis=1), atol=1e-5)
    difference = means.vectors("fr")[1] - means.vectors("en")[1]
    np.testing.assert_allclose(means.difference("en", to="fr", layer=1), difference, atol=1e-6)


def test_models_of_the_cache_go_by_their_names(bert, tmp_path):
    """In a process of its own, since names are looked up in the environment."""
    for name, commit in (("google-bert--bert-base-multilingual-cased", "abc"), ("someone--model", "def")):
        model = tmp_path / f"models--{name}"
        (model / "refs").mkdir(parents=True)
        (model / "refs" / "main").write_text(commit)
        (model / "snapshots").mkdir()
        (model / "snapshots" / commit).symlink_to(bert)
    code = """
import isogloss, sys
loaded = [isogloss.Encoder.load(name, device="cpu") for name in ("mbert", "someone/model", sys.argv[1])]
assert len({encoder.fingerprint for encoder in loaded}) == 1
try:
    isogloss.Encoder.load("xlm-r", device="cpu")
except isogloss.Error as error:
    print(error.remedy)
"""
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, str(bert)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "hub download" in done.stdout, done.stderr
    # The command line takes the same names.
    words = ["isogloss", "--json", "inspect", "mbert"]
    shown = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert shown.returncode == 0 and "bert" in shown.stdout, shown.stderr
