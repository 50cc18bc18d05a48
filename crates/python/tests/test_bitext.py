"""Word alignment, against the command line."""

import pathlib

import isogloss
import pytest

PAIRS = [("the house", "la maison"), ("the blue house", "la maison bleue"), ("the flower", "la fleur"),
         ("the blue flower", "la fleur bleue"), ("a flower", "une fleur"), ("a house", "une maison")]


def test_links_equal_the_command_lines(tmp_path, command, world):
    bitext = pathlib.Path(world.path("bitext")).glob("*")
    bitext = next(path for path in sorted(bitext) if path.suffix != ".align")
    lines = bitext.read_text(encoding="utf-8").splitlines()[:800]
    (tmp_path / "bitext").write_text("\n".join(lines) + "\n")
    separator = " ||| " if " ||| " in lines[0] else "\t"
    pairs = [tuple(line.split(separator)) for line in lines]
    for symmetrize in ("grow-diag-final-and", "intersect"):
        out = tmp_path / symmetrize
        printed = command("word-align", "--parallel", f"qaa-qab={tmp_path / 'bitext'}", "--symmetrize", symmetrize, "--out", out)
        found = isogloss.word_align(pairs, symmetrize=symmetrize)
        assert found.lines() == out.read_text().splitlines()
        assert found.forward == printed["forward"] and found.signature == printed["signature"]


def test_links_of_an_encoder_equal_the_command_lines(tmp_path, command, bert):
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    for flags in ({"layers": "1"}, {"layers": "2", "extract": "argmax", "units": "words"}):
        out = tmp_path / f"links-{flags['layers']}"
        words = [word for key, value in flags.items() for word in (f"--{key}", value)]
        printed = command("word-align", "--model", bert, "--parallel", f"en-fr={tmp_path / 'pairs.tsv'}", "--device", "cpu",
                          "--out", out, *words)
        encoder = isogloss.Encoder.load(bert, device="cpu")
        for model in (bert, encoder):
            found = isogloss.word_align(PAIRS, model=model, langs=("en", "fr"), device="cpu", **flags)
            assert found.lines() == out.read_text().splitlines() and any(found.links)
            assert found.signature == printed["signature"] and found.score is None
    with pytest.raises(isogloss.UsageError, match="encoder") as raised:
        isogloss.word_align(PAIRS, layers=1)
    assert raised.value.key == "layers"


def test_links_are_the_translations():
    found = isogloss.word_align(PAIRS)
    assert found.links[1] == [(0, 0), (1, 2), (2, 1)]
    assert found.score < 10 and "pairs=6" in repr(found)


@pytest.mark.parametrize(
    "call, key",
    [
        (lambda: isogloss.word_align([]), "pairs"),
        (lambda: isogloss.word_align([("a", " ")]), "pairs"),
        (lambda: isogloss.word_align(PAIRS, symmetrize="both"), "symmetrize"),
        (lambda: isogloss.word_align(PAIRS, p_null=2), "p_null"),
    ],
)
def test_wrong_requests_name_their_key(call, key):
    with pytest.raises(isogloss.UsageError) as raised:
        call()
    assert raised.value.key == key
