"""The command ``isogloss``, as this package brings it."""

from __future__ import annotations

import shutil
import sys
import sysconfig

from . import _isogloss


def main() -> None:
    """Run the command line of this process and exit with its code."""
    # Steps of a study are commands; the script starts them.
    script = shutil.which("isogloss", path=sysconfig.get_path("scripts"))
    program = script or shutil.which("isogloss") or sys.argv[0]
    sys.exit(_isogloss.run_command(program, ["isogloss", *sys.argv[1:]]))
