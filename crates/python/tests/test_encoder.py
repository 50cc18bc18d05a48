"""Encoders against transformers and the command line."""

import json
import pathlib

import isogloss
import numpy as np
import pytest

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


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "distilbert"])
def test_states_are_those_of_transformers(bert, family):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder = bert.parent / family
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # fixtures have no tokenizer that this version of transformers reads
        pytest.skip(f"transformers reads no tokenizer: {error}")
    model = transformers.AutoModel.from_pretrained(folder).eval()
    encoder = isogloss.Encoder.load(folder, device="cpu")
    for text in TEXTS:
        tokens = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**tokens, output_hidden_states=True).hidden_states
        expected = torch.stack(hidden)[:, 0, 1:-1].numpy()
        found = encoder.encode(text, pool="none")
        assert found.lengths == [expected.shape[1]]
        np.testing.assert_allclose(found.vectors, expected, atol=2e-4)
        np.testing.assert_allclose(encoder.encode(text).vectors[:, 0], expected.mean(axis=1), atol=2e-4)


def test_predictions_are_those_of_transformers(bert):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    model = transformers.AutoModelForMaskedLM.from_pretrained(bert).eval()
    text = "a [MASK] of [MASK] ."
    tokens = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        logits = model(**tokens).logits[0]
    places = (tokens["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0]
    found = isogloss.Encoder.load(bert, device="cpu").predict(text, top=3)
    assert len(found) == len(places) == 2
    for place, predicted in zip(places, found):
        expected = logits[place].softmax(dim=0).topk(3)
        assert [each["id"] for each in predicted] == expected.indices.tolist()
        np.testing.assert_allclose([each["probability"] for each in predicted], expected.values, atol=1e-5)
        assert predicted[0]["token"] == tokenizer.convert_ids_to_tokens(expected.indices.tolist())[0]


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
