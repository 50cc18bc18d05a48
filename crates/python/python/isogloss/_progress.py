"""Progress of long work: a bar in terminals and notebooks, nothing elsewhere."""

from __future__ import annotations

import html
import sys
import time
from typing import Any

#: Work that ends sooner shows nothing.
_AFTER = 0.5
_WIDTH = 30

_shown = True


def set_progress(shown: bool) -> None:
    """Show progress of long work, or do not.

    >>> import isogloss
    >>> isogloss.set_progress(False)
    """
    global _shown
    _shown = shown


def _notebook() -> Any:
    """The function that shows rich output, where a notebook can."""
    shell = sys.modules.get("IPython")
    if shell is None:
        return None
    running = shell.get_ipython()
    kinds = [kind.__name__ for kind in type(running).__mro__]
    if "ZMQInteractiveShell" not in kinds:
        return None
    from IPython.display import display

    return display


class Bar:
    """Draws how far work has come; the extension calls it now and then."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._display = _notebook()
        self._handle: Any = None
        self._drawn = 0

    def update(self, label: str, done: int, total: int, note: str) -> None:
        """Draw this state."""
        if not _shown or time.monotonic() - self._began < _AFTER:
            return
        share = min(done / total, 1.0) if total else 0.0
        text = f"{label} {done}/{total} {note}".rstrip()
        if self._display is not None:
            self._draw_html(share, text)
        elif sys.stderr is not None and sys.stderr.isatty():
            filled = int(share * _WIDTH)
            line = f"[{'=' * filled}{' ' * (_WIDTH - filled)}] {text}"
            sys.stderr.write("\r" + line.ljust(self._drawn))
            sys.stderr.flush()
            self._drawn = len(line)

    def _draw_html(self, share: float, text: str) -> None:
        bar = f'<progress value="{share:.4f}" max="1"></progress> {html.escape(text)}'
        data = {"text/html": bar, "text/plain": text}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        elif self._handle is not None:
            self._handle.update(data, raw=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)
        elif self._drawn:
            sys.stderr.write("\r" + " " * self._drawn + "\r")
            sys.stderr.flush()
