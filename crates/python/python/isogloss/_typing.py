"""Types of arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

#: Numbers that NumPy makes an array of: arrays of f16, f32, f64 or whole numbers, of any strides, read-only or not; lists; tensors in
#: the host's memory. They are copied once, to f32. A string or a path is the file of such an array: ``.npy``, ``.npz`` or safetensors.
ArrayLike: TypeAlias = Any
Path: TypeAlias = "str | os.PathLike[str]"
#: A sentence; a list, a pandas Series or a NumPy array of some; or a file of them, one a line, which a string names if it is there.
Texts: TypeAlias = "str | os.PathLike[str] | Iterable[str]"
Device: TypeAlias = Literal["auto", "cpu", "cpu-bf16", "cuda"]
#: ``iterative``, ``center``, ``unit``, ``none``, or several of them in order.
Normalize: TypeAlias = "str | Sequence[str]"


def steps(normalize: Normalize) -> list[str]:
    """The steps of normalisation in order."""
    return normalize.split(",") if isinstance(normalize, str) else list(normalize)
