"""Functions that run commands: worlds, pretraining, transfer, results, pictures of spaces."""

import json
import os
import pathlib

import isogloss
import pytest

STEPS = dict(scale="tiny", steps=60, evaluate_every=30, device="cpu")


@pytest.fixture(scope="module")
def run(world, tmp_path_factory):
    lines = []
    out = tmp_path_factory.mktemp("run") / "run"
    done = isogloss.pretrain(out=out, world=world, callback=lines.append, **STEPS)
    return done, lines


def test_a_world_equals_the_command_lines(world, tmp_path, command):
    printed = command("world", "generate", "--out", tmp_path / "w", "--sentences", 2000, "--lemmas", 150, "--languages", 2, "--seed", 3)
    own = world.to_dict()
    for timed in ("out", "seconds"):
        del printed[timed], own[timed]
    assert own == printed
    files = [path for path in pathlib.Path(world).rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert path.read_bytes() == (tmp_path / "w" / path.relative_to(world)).read_bytes()


def test_pretraining_calls_back_with_metrics(run):
    done, lines = run
    assert os.path.isfile(os.path.join(done.out, "model.safetensors"))
    assert {line["kind"] for line in lines} == {"train", "evaluation"}
    written = [json.loads(line) for line in open(os.path.join(done.out, "metrics.jsonl"))]
    assert [line for line in written if line["kind"] in ("train", "evaluation")] == lines
    assert done.score is not None and done.remarks


def test_pretraining_equals_the_command_lines(run, world, tmp_path, command):
    done, _ = run
    command("pretrain", "--world", os.fspath(world), "--out", tmp_path / "run", *[
        word for key, value in STEPS.items() for word in (f"--{key.replace('_', '-')}", value)])
    own = open(os.path.join(done.out, "metrics.jsonl")).read()
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == own
    encoder = done.load(device="cpu")
    assert encoder.languages == ["qaa", "qab"]
    with pytest.raises(isogloss.UsageError, match="which language"):
        encoder.encode("a")


def test_a_callback_that_raises_stops_the_run_with_a_checkpoint(world, tmp_path):
    def enough(line):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        isogloss.pretrain(out=tmp_path / "run", world=world, callback=enough, scale="tiny", steps=60, device="cpu")
    resumed = isogloss.pretrain(out=tmp_path / "run", resume=True, device="cpu")
    assert resumed.to_dict().get("finished", True)


def test_wrong_keys_are_refused_with_their_names(world, tmp_path):
    with pytest.raises(isogloss.UsageError, match="it has") as raised:
        isogloss.pretrain(out=tmp_path / "run", world=world, step=3)
    assert raised.value.key == "step"
    with pytest.raises(isogloss.UsageError) as raised:
        isogloss.pretrain({"adam": {"lr": -1.0}}, out=tmp_path / "run", world=world)
    assert "lr" in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_transfer(run, world, tmp_path, command):
    done, _ = run
    flags = dict(task="pos", model=done.out, world=world, quick=True, epochs=1, sample_size=100, device="cpu")
    lines = []
    found = isogloss.transfer(out=tmp_path / "pos", callback=lines.append, **flags)
    assert lines == [json.loads(line) for line in open(tmp_path / "pos" / "metrics.jsonl")]
    assert [line["epoch"] for line in lines] == [1]
    assert lines[0]["loss"] > 0 and 0 <= lines[0]["dev"] <= 1 and lines[0]["lr"] > 0
    words = []
    for key, value in flags.items():
        words += [f"--{key.replace('_', '-')}"] + ([] if value is True else [os.fspath(value) if key == "world" else value])
    printed = command("transfer", "--out", tmp_path / "other", *words)
    same = {key for key in printed if key not in ("out", "seconds") and "second" not in key}
    own = found.to_dict()
    assert {key: own[key] for key in same if not isinstance(own[key], (dict, list))} == {
        key: printed[key] for key in same if not isinstance(printed[key], (dict, list))}
    assert found.score is None or 0 <= found.score <= 1


def test_a_callback_that_raises_stops_a_transfer(run, world, tmp_path):
    def enough(line):
        raise LookupError("enough")

    flags = dict(task="pos", model=run[0].out, world=world, quick=True, epochs=50, sample_size=100, device="cpu")
    with pytest.raises(LookupError, match="enough"):
        isogloss.transfer(out=tmp_path / "pos", callback=enough, **flags)
    assert len((tmp_path / "pos" / "metrics.jsonl").read_text().splitlines()) < 50


def test_results_are_added_and_read(tmp_path, command):
    pandas = pytest.importorskip("pandas")
    lab = isogloss.Results(tmp_path / "lab")
    for seed, value in ((1, 0.5), (2, 0.7)):
        lab.add(measure="accuracy", value=value, factors={"system": "mbert"}, command="finetune", seed=seed)
    frame = lab.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["value"].tolist() == [0.5, 0.7]
    assert frame["system"].tolist() == ["mbert", "mbert"]
    assert lab.rows(where={"system": "mbert"}, seed=2)[0]["value"] == 0.7
    assert command("results", "--lab", tmp_path / "lab", "--mean")["means"] == lab.rows(mean=True)
    with pytest.raises(isogloss.Error):
        isogloss.Results(tmp_path / "absent").rows()


def test_spaces_are_drawn(run):
    done, _ = run
    text = {"qaa": ["a b", "c d", "e f"], "qab": ["g h", "i j", "k l"]}
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for lang, lines in text.items():
            files[lang] = os.path.join(folder, lang)
            open(files[lang], "w").write("\n".join(lines) + "\n")
        picture = isogloss.plot.space(model=done.out, text=files, layers="1", device="cpu")
    assert picture.svg.startswith("<svg") and picture.caption
    assert "Picture(" in repr(picture)
