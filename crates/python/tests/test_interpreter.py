"""The interpreter stays alive and responsive: the lock is released, Ctrl-C stops, panics and faults are exceptions."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import isogloss
import numpy as np
import pytest

BIG = np.random.default_rng(0).normal(size=(40_000, 256)).astype(np.float32)

# Seconds: one, and two more for a busy machine.
BUSY = 3.0


def interrupted(work):
    """How long work goes on after Ctrl-C; it must raise KeyboardInterrupt."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.7, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        timer.cancel()
    return time.monotonic() - sent[0]


def long_words():
    words = [f"w{i % 997}" for i in range(200)]
    return [(" ".join(words[i % 50 :]), " ".join(words[: 150 + i % 50])) for i in range(3000)]


@pytest.mark.parametrize("work", [
    lambda: isogloss.retrieve(BIG, BIG[::-1], method="csls"),
    lambda: isogloss.cka(BIG, BIG[::-1], subsamples=1000),
    lambda: isogloss.align.unsupervised(BIG, BIG[::-1]),
    lambda: isogloss.word_align(long_words() * 3, iterations=50),
    lambda: isogloss.vectors.word2vec([f"w{i}" for i in range(j % 7, 4000)] for j in range(300)),
], ids=["retrieve", "cka", "unsupervised", "word_align", "word2vec"])
def test_ctrl_c_stops_within_a_second(work):
    assert interrupted(work) < BUSY


def test_other_threads_run_meanwhile():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    isogloss.cka(BIG[:10_000], BIG[:10_000], subsamples=20)
    stop.set()
    thread.join()
    gaps = np.diff(ticks)
    assert len(ticks) > 10 and gaps.max() < 0.4


def test_a_panic_is_an_exception():
    code = """
import isogloss
try:
    isogloss._isogloss.panic_for_tests()
except isogloss.InternalError as error:
    print("caught", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "caught" in done.stdout, done.stderr


def test_threads_and_forked_use(tmp_path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(isogloss.cka(BIG[:500], BIG[:500]).score)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_no_bar_is_drawn_where_nobody_looks(capfd):
    isogloss.cka(BIG[:8000], BIG[:8000], subsamples=40)
    assert capfd.readouterr().err == ""


# Subsamples that take seconds on any machine: a bar is drawn after one.
LONG = 1200


def test_a_bar_is_drawn_on_a_terminal():
    import pty

    parent, child = pty.openpty()
    code = f"import isogloss, numpy; x = numpy.random.rand(8000, 256); isogloss.cka(x, x, subsamples={LONG})"
    done = subprocess.Popen([sys.executable, "-c", code], stderr=child)
    os.close(child)
    drawn = b""
    try:
        while part := os.read(parent, 1 << 16):
            drawn += part
    except OSError:
        # The end of a pseudo-terminal whose other side is closed.
        pass
    done.wait()
    os.close(parent)
    assert b"subsamples" in drawn and b"[" in drawn


def test_a_bar_is_drawn_in_a_notebook():
    client = pytest.importorskip("nbclient").NotebookClient
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    code = f"import isogloss, numpy\nx = numpy.random.rand(8000, 256)\nisogloss.cka(x, x, subsamples={LONG}).signature"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    drawn = []

    class Watched(client):
        def process_message(self, message, cell, index):
            drawn.append((message["msg_type"], message["content"].get("data", {}).get("text/html", "")))
            return super().process_message(message, cell, index)

    Watched(notebook, timeout=120, kernel_name="python3").execute()
    bars = [html for kind, html in drawn if "<progress" in html]
    assert len(bars) > 1 and "subsamples" in bars[-1]
    assert {kind for kind, html in drawn if "<progress" in html} == {"display_data", "update_display_data"}
    # It is gone when the work is done.
    outputs = notebook.cells[0].outputs
    assert not any("<progress" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert "cka:linear" in outputs[-1]["data"]["text/plain"]


def test_types_are_strict():
    mypy = pytest.importorskip("mypy.api")
    # Its sources: among installed packages mypy takes its own for the user's.
    package = pathlib.Path(__file__).parents[1] / "python" / "isogloss"
    out, err, code = mypy.run(["--strict", "--no-incremental", str(package)])
    assert code == 0, out + err
    code = "import isogloss\nfound: isogloss.CkaResult = isogloss.cka([[1.0]], [[1.0]])\nfound.score + 'a'\n"
    out, _, _ = mypy.run(["--strict", "-c", code])
    assert "Unsupported" in out or "operand" in out, out


FORK = """
import multiprocessing
import sys

import isogloss
import numpy as np

A = np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32)


def work(_):
    return float(isogloss.cka(A, A).score)


def refused(_):
    try:
        work(0)
    except isogloss.Error as error:
        return str(error)


if __name__ == "__main__":
    fork, spawn = (multiprocessing.get_context(kind) for kind in ("fork", "spawn"))
    # Before the parent has computed, a fork is as good as any process.
    with fork.Pool(2) as pool:
        print(pool.map(work, range(2)))
    print(work(0))
    with fork.Pool(2) as pool:
        print(pool.map(refused, range(2)))
    with spawn.Pool(2) as pool:
        print(pool.map(work, range(2)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_of_a_process_that_has_computed_is_refused_at_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FORK)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, parent, refused, spawned = done.stdout.splitlines()
    assert first == spawned == f"[{parent}, {parent}]"
    assert refused.count('get_context("spawn")') == 2, refused


DATA = """
import isogloss
import numpy as np
import torch

A = np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        return float(isogloss.cka(A, A[::-1]).score)


def loaded(kind):
    return [float(x) for x in torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context=kind)]


if __name__ == "__main__":
    expected = [Data()[0]] * 4
    try:
        loaded("fork")
    except RuntimeError as error:
        assert 'multiprocessing_context="spawn"' in str(error), error
    except isogloss.Error as error:
        assert 'multiprocessing_context="spawn"' in str(error), error
    else:
        raise SystemExit("a fork was not refused")
    assert np.allclose(loaded("spawn"), expected)
"""


def test_workers_of_pytorchs_data_loader(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed: its DataLoader was not tried")
    script = tmp_path / "script.py"
    script.write_text(DATA)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_an_array_that_no_memory_can_hold_is_a_memory_error():
    giant = np.broadcast_to(np.float32(1), (1 << 33, 1 << 20))
    for array in [giant, np.broadcast_to(np.float64(1), (1 << 33, 1 << 20))]:
        with pytest.raises(MemoryError, match="GB of memory are needed"):
            isogloss.cka(array, BIG)
