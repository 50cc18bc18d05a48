"""``python -m isogloss``."""

from ._command import main

main()
