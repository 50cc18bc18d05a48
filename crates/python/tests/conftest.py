"""Fixtures."""

import json
import pathlib
import signal
import subprocess

import isogloss
import pytest

# A shell that starts a program in the background has it ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

FIXTURES = pathlib.Path(__file__).parents[2] / "hub" / "tests" / "fixtures"


@pytest.fixture(scope="session")
def bert():
    return FIXTURES / "bert"


@pytest.fixture(scope="session")
def command():
    """Runs the command line and gives the object that it prints."""

    def run(*words):
        words = ["isogloss", "--json", *map(str, words)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """Two small invented languages."""
    out = tmp_path_factory.mktemp("world") / "world"
    return isogloss.world.generate(out, sentences=2000, lemmas=150, languages=2, seed=3)
