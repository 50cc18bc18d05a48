"""Functions that run commands: worlds, pretraining, transfer, results, pictures of spaces."""

import json
import os
import pathlib
import signal

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


class Enough(Exception):
    pass


def enough(line):
    raise Enough(line["step"])


def ctrl_c(line):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("step", [1, 50])
@pytest.mark.parametrize("stop, exception", [(enough, Enough), (ctrl_c, KeyboardInterrupt)])
def test_what_stops_a_run_arrives_and_leaves_a_checkpoint(world, tmp_path, step, stop, exception):
    keys = dict(out=tmp_path / "run", device="cpu")
    called = []

    def callback(line):
        # Once: a second Ctrl-C does not wait for the checkpoint.
        if line["step"] >= step and not called:
            called.append(line)
            stop(line)

    with pytest.raises(exception):
        isogloss.pretrain(world=world, callback=callback, scale="tiny", steps=100_000, evaluate_every=step, **keys)
    lines = []

    def first(line):
        lines.append(line)
        raise Enough

    with pytest.raises(Enough):
        isogloss.pretrain(resume=True, callback=first, **keys)
    assert lines[0]["step"] > step, "it was resumed from its start"


def test_wrong_keys_are_refused_with_their_names(world, tmp_path):
    with pytest.raises(isogloss.UsageError, match="it has") as raised:
        isogloss.pretrain(out=tmp_path / "run", world=world, step=3)
    assert raised.value.key == "step"
    with pytest.raises(isogloss.UsageError) as raised:
        isogloss.pretrain({"adam": {"lr": -1.0}}, out=tmp_path / "run", world=world)
    assert "lr" in str(raised.value)
    for wrong, key, reason in [
        (dict(scale="huge"), "scale", "there is no `huge`; give tiny"),
        (dict(steps="many"), "steps", "'many'"),
    ]:
        with pytest.raises(isogloss.UsageError, match=reason) as raised:
            isogloss.pretrain(out=tmp_path / "run", world=world, **wrong)
        assert raised.value.key == key and "--help" not in str(raised.value)
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
    scores = {test["name"]: test["mean"] for test in printed["results"]}
    assert found.source == "qaa" and found.score == scores["qab"] > 0


@pytest.mark.parametrize("stop, exception", [(enough, Enough), (ctrl_c, KeyboardInterrupt)])
def test_what_stops_a_transfer_arrives_and_leaves_a_checkpoint(run, world, tmp_path, stop, exception):
    flags = dict(task="pos", model=run[0].out, world=world, quick=True, epochs=50, sample_size=100, device="cpu")
    with pytest.raises(exception):
        isogloss.transfer(out=tmp_path / "pos", callback=lambda line: line["epoch"] == 2 and stop(line), **flags)
    epochs = []

    def first(line):
        epochs.append(line["epoch"])
        raise Enough

    with pytest.raises(Enough):
        isogloss.transfer(out=tmp_path / "pos", resume=True, callback=first, device="cpu")
    assert epochs[0] > 2, "it was resumed from its start"


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
