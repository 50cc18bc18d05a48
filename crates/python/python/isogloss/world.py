"""Invented languages with gold annotations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ._commands import call, settings
from ._results import Result
from ._typing import Path

__all__ = ["World", "generate"]


class World(Result):
    """A folder of invented languages: fields are those of ``isogloss world generate --json``; ``out`` is the folder."""

    __slots__ = ()

    def path(self, *parts: str) -> str:
        """A file of the folder."""
        return os.path.join(os.fspath(self._arrays["out"]), *parts)

    def __fspath__(self) -> str:
        return str(os.fspath(self._arrays["out"]))

    def _summary(self) -> str:
        codes = [language["code"] for language in self._fields["languages"]]
        return f"{os.fspath(self._arrays['out'])!r}, {', '.join(codes)}"


def generate(out: Path, config: Path | Mapping[str, Any] | None = None, **flags: Any) -> World:
    """Invent languages, as ``isogloss world generate`` does; the same seed and keys give the same files.

    ``config`` is a TOML file or a nested dictionary of keys; other keyword arguments are the command's flags: ``languages``, ``sentences``,
    ``lemmas``, ``distance``, ``anchors``, ``seed``, ``force`` …
    """
    more: list[str] = []
    if isinstance(config, Mapping):
        more = settings(config)
    elif config is not None:
        flags = {"config": config, **flags}
    fields, _ = call(["world", "generate"], {"out": out, **flags}, more)
    return World(fields, None, {"out": out})
