"""The wheel itself: its version, its command, its exceptions."""

import subprocess
import sys

import isogloss
import pytest


def test_the_command_and_the_module_are_of_one_version():
    shown = subprocess.run(["isogloss", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["isogloss", isogloss.__version__]


def test_the_command_exits_as_the_binary_does():
    wrong = subprocess.run(["isogloss", "retrieve", "--no-such-flag"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "--no-such-flag" in wrong.stderr
    absent = [sys.executable, "-m", "isogloss", "inspect", "no-such-file"]
    assert subprocess.run(absent, capture_output=True).returncode == 1


def test_exceptions_have_key_reason_and_remedy():
    error = isogloss.UsageError("k is 0; give 1 or more", "neighbors")
    assert isinstance(error, (isogloss.Error, ValueError))
    assert (error.key, error.reason, error.remedy) == ("neighbors", "k is 0", "give 1 or more")
    assert str(error) == "k is 0; give 1 or more (neighbors)"
    with pytest.raises(isogloss.Error):
        raise isogloss.DeviceError("no GPU")
