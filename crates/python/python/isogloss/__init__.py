"""Cross-lingual structure in vectors and encoders.

Functions take arrays or files and give small frozen results with ``.score``, ``.signature`` and ``.to_dict()``. What they
compute is what the command ``isogloss`` computes for the same input. Names are those of the command line.
"""

from __future__ import annotations

from . import align, plot, vectors, world
from ._bitext import WordAlignment, word_align
from ._commands import PretrainingRun, TransferResult, pretrain, transfer
from ._encoder import Encoder, Encoding, Means, ShiftResult
from ._errors import DeviceError, Error, InternalError, UsageError
from ._isogloss import __version__
from ._measures import LanguageIdResult, MiningResult, SimilarityResult, language_id, mine, similarity
from ._progress import set_progress
from ._results import Result
from ._spaces import CkaResult, RetrievalResult, cka, retrieve
from ._store import Results

__all__ = [
    "CkaResult",
    "DeviceError",
    "Encoder",
    "Encoding",
    "Error",
    "InternalError",
    "LanguageIdResult",
    "Means",
    "MiningResult",
    "PretrainingRun",
    "Result",
    "Results",
    "RetrievalResult",
    "ShiftResult",
    "SimilarityResult",
    "TransferResult",
    "UsageError",
    "WordAlignment",
    "__version__",
    "align",
    "cka",
    "language_id",
    "mine",
    "plot",
    "pretrain",
    "retrieve",
    "set_progress",
    "similarity",
    "transfer",
    "vectors",
    "word_align",
    "world",
]
