"""The exceptions of this package.

Every one has the configuration key to blame where there is one, the reason, and the remedy where the message names one.

>>> import isogloss
>>> try:
...     isogloss.cka([[1.0, 2.0]], [[1.0, 2.0]])
... except isogloss.Error as error:
...     print(error.reason, "->", error.remedy)
x: has 1 rows -> give at least 4; hundreds are better
"""

from __future__ import annotations


class Error(Exception):
    """Something was understood and could not be carried out: a file or an array is not what it should be."""

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        reason, _, remedy = message.partition("; ")
        #: The configuration key or argument that would have to change, such as ``adam.lr``.
        self.key = key
        #: What is wrong, and where.
        self.reason = reason
        #: What to do about it, where the message says so.
        self.remedy: str | None = remedy or None

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.key is None or self.key in message else f"{message} ({self.key})"


class UsageError(Error, ValueError):
    """The request makes no sense, whatever the files and arrays hold."""


class DeviceError(Error, RuntimeError):
    """A device cannot be used, or failed."""


class InternalError(Error, RuntimeError):
    """A fault of this package; a report of it is welcome."""
