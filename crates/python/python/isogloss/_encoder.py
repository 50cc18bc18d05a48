"""Encoders: runs of ``isogloss pretrain`` and Hugging Face folders."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _isogloss
from ._errors import UsageError
from ._results import Result
from ._typing import Device, Path, Texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: ``"all"``, a number, numbers, or such as ``"0,4-8"``; 0 is the embeddings.
Layers: TypeAlias = "int | str | Sequence[int]"


def _layers(layer: Layers, above: int) -> list[int]:
    """The layers that are meant, of a model with so many above the embeddings."""
    wrong = UsageError(f"layer {layer!r}: there are layers 0 to {above}; give all, or such as 0,4-8", "layer")
    if layer == "all":
        return list(range(above + 1))
    try:
        if isinstance(layer, str):
            ranges = [part.split("-") for part in layer.split(",")]
            chosen = [n for part in ranges for n in range(int(part[0]), int(part[-1]) + 1)]
        else:
            chosen = [int(layer)] if isinstance(layer, int) else [int(n) for n in layer]
    except (TypeError, ValueError):
        raise wrong from None
    if not chosen or not all(0 <= n <= above for n in chosen):
        raise wrong
    return sorted(set(chosen))


#: The share of unknown tokens above which there is a warning.
_MANY_UNKNOWN = 0.01
#: Endings by which a string is the name of a file and no sentence.
_FILES = (".txt", ".tsv", ".csv", ".jsonl", ".json", ".gz", ".zst")


def _wrong_texts(reason: str, remedy: str) -> UsageError:
    return UsageError(f"texts{reason}; {remedy}", "texts")


def _is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NaN, or pandas' NA, which is neither equal nor unequal to itself."""
    if value is None or isinstance(value, float):
        return value is None or value != value
    return type(value).__name__ in ("NAType", "NaTType")


def _texts(texts: Texts) -> list[str]:
    """The sentences that are given; what is no string is refused, since its `str` would be encoded in its place."""
    if isinstance(texts, os.PathLike) or (isinstance(texts, str) and os.path.isfile(texts)):
        return _isogloss.sentences_of(os.fspath(texts))
    if isinstance(texts, str):
        if texts.endswith(_FILES) and not any(map(str.isspace, texts)):
            raise _wrong_texts(f": there is no file {texts!r}", "check the path, or give [text] for a sentence")
        return [texts]
    kind = type(texts).__name__
    if getattr(texts, "ndim", 1) != 1:
        raise _wrong_texts(f": is of type {kind} and shape {texts.shape}", "give one column of it")  # type: ignore[attr-defined]
    if isinstance(texts, (bytes, Mapping, Set)) or not isinstance(texts, Iterable):
        raise _wrong_texts(f": is of type {kind}", "give a string, a list of strings, or the path of a file")
    listed = list(texts)
    for index, text in enumerate(listed):
        if not isinstance(text, str):
            kind = type(text).__name__
            missing = _is_missing(text)
            shown = f"[{index}]: is {text!r}, a value that is missing" if missing else f"[{index}]: is of type {kind}, not a string"
            raise _wrong_texts(shown, "leave it out, and the same row of its translation" if missing else "give strings")
    return listed


class Encoding(Result):
    """The vectors of sentences.

    ``vectors`` is layers x rows x dimension, or rows x dimension of one layer; ``lengths`` has the tokens of each sentence, special tokens
    left out. Fields: ``layers``, ``truncated`` (sentences that were longer than the model reads), ``unknown_share`` (of the tokens, those that
    the vocabulary does not know; a warning above 1 %), ``model`` (the fingerprint of the weights).
    NumPy takes the result for ``vectors``.
    """

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = self._arrays["vectors"]
        return vectors if dtype is None else vectors.astype(dtype)

    def _summary(self) -> str:
        return f"shape={self._arrays['vectors'].shape}"


class ShiftResult(Result):
    """Sentences translated token by token.

    Fields are those of ``isogloss shift translate --json``. ``texts`` has what was predicted for each sentence at each weight; ``score`` is the
    mean token conversion rate at the last weight.
    """

    __slots__ = ()

    @property
    def texts(self) -> list[list[str]]:
        """For each sentence, what was predicted at each weight."""
        return [[output["text"] for output in s["outputs"]] for s in self._fields["sentences"]]

    def _repr_html_(self) -> str:
        from html import escape

        rows = []
        for sentence in self._fields["sentences"]:
            rows.append(f"<tr><th>{escape(self._fields['from'])}</th><td>{escape(sentence['sentence'])}</td></tr>")
            for output in sentence["outputs"]:
                words = "".join(
                    f"<b>{escape(word['text'])}</b> " if word["target"] and not word["source"] else escape(word["text"]) + " "
                    for word in output["subwords"]
                )
                rows.append(f"<tr><th>α={output['alpha']:g}</th><td>{words}</td></tr>")
        return f"<table>{''.join(rows)}</table>"

    def _summary(self) -> str:
        fields = self._fields
        return f"{fields['from']}-{fields['to']}, layer={fields['layer']}, sentences={len(fields['sentences'])}"


class Means:
    """Language mean vectors of one encoder, from :meth:`Encoder.means`."""

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded

    @property
    def languages(self) -> list[str]:
        """The languages, in the order in which they were given."""
        return list(self._loaded.languages)

    def vectors(self, lang: str) -> NDArray[np.float32]:
        """The mean vector of a language at each layer: layers x dimension; the first is of the embeddings."""
        vectors: NDArray[np.float32] = self._loaded.vectors(lang)
        return vectors

    def difference(self, lang: str, *, to: str, layer: int) -> NDArray[np.float32]:
        """What is added to shift states of one language to another, as ``isogloss shift difference`` writes it."""
        vector: NDArray[np.float32] = self._loaded.difference(lang, to, layer)
        return vector

    def save(self, path: Path, *, force: bool = False) -> None:
        """Write the file that ``isogloss shift means`` writes."""
        self._loaded.save(path, force)

    def to_dict(self) -> dict[str, Any]:
        """What ``isogloss shift means --json`` prints, less the name of the file."""
        summary: dict[str, Any] = self._loaded.summary("")
        del summary["out"]
        return summary

    def __repr__(self) -> str:
        return f"Means({', '.join(self.languages)})"


class Encoder:
    """An encoder that stays loaded. Load one by :meth:`load`.

    >>> import isogloss
    >>> encoder = isogloss.Encoder.load(bert)  # the folder of a run or of a Hugging Face model
    >>> encoder.encode(["A sentence."], layer=1).vectors.shape
    (1, 8)
    """

    def __init__(self, loaded: Any) -> None:
        self._loaded = loaded
        self._means: Means | None = None

    @classmethod
    def load(cls, path: Path, *, device: Device = "auto", threads: int = 0) -> Encoder:
        """Open the folder of a run (or ``RUN@STEP``) or of a Hugging Face model.

        A model of the Hugging Face cache goes by its name at the hub, ``"google-bert/bert-base-multilingual-cased"``, and ``"mbert"``,
        ``"xlm-r"``, ``"xlm-r-large"`` and ``"xlm-100"`` are short for those that the papers use. Nothing is downloaded: the command
        ``isogloss hub download NAME`` does that.
        """
        return cls(_isogloss.LoadedModel.open(path, device, threads))

    @property
    def languages(self) -> list[str]:
        """The languages of the model; none where it takes any."""
        return [] if self._loaded.any_language else list(self._loaded.languages)

    @property
    def path(self) -> str:
        """The folder or the name that it was loaded by."""
        return str(self._loaded.name)

    @property
    def layers(self) -> int:
        """Layers above the embeddings."""
        return int(self._loaded.layers)

    @property
    def dim(self) -> int:
        """Columns of a hidden state."""
        return int(self._loaded.dim)

    @property
    def fingerprint(self) -> str:
        """A digest of the weights."""
        return str(self._loaded.fingerprint)

    def _language(self, lang: str | None) -> str:
        if lang is not None:
            return lang
        known = list(self._loaded.languages)
        if self._loaded.any_language or len(known) == 1:
            return known[0] if known else "en"
        raise UsageError(f"the model has {', '.join(known)}; say which language the text is in", "lang")

    def encode(
        self,
        texts: Texts,
        lang: str | None = None,
        layer: Layers = "all",
        pool: Literal["mean", "first", "last", "weighted", "none", "own"] = "mean",
        prompt: str | None = None,
    ) -> Encoding:
        """The hidden states of sentences, as ``isogloss encode`` writes them.

        ``texts`` is a sentence, a list, a pandas Series or a NumPy array of sentences, or the path of a file of them. What is no string is
        refused: a missing value would be encoded as the word ``nan``. A string that names a file is that file.

        ``pool`` is the vector that stands for a sentence: the ``mean`` of its tokens, the special token before it (``first``), its ``last``
        token, the mean ``weighted`` by place, the model's ``own`` as sentence-transformers makes it, or ``none``: each of its tokens has its own
        row. ``prompt`` is put before every text; it may be the name of one of the model's own.

        >>> states = encoder.encode(["A sentence.", "Another one."], layer="all")
        >>> states.vectors.shape, states.lengths
        ((3, 2, 8), [10, 10])
        """
        layers = _layers(layer, self.layers)
        found = self._loaded.encode(_texts(texts), self._language(lang), layers, pool, prompt)
        vectors, lengths, truncated, unknown = found
        if unknown > _MANY_UNKNOWN:
            reason = f"the vocabulary does not know {unknown:.1%} of the tokens, whose vectors say little"
            warnings.warn(f"{reason}; is the text in a language and script of the model?", stacklevel=2)
        fields = {
            "layers": layers,
            "truncated": truncated,
            "unknown_share": unknown,
            "model": self.fingerprint,
            "signature": f"encode|pool:{pool}{'' if prompt is None else f'|prompt:{prompt}'}|layers:{','.join(map(str, layers))}|v{_isogloss.__version__}",
        }
        vectors = vectors[0] if len(layers) == 1 else vectors
        return Encoding(fields, None, {"vectors": vectors, "lengths": lengths})

    def tokens(self, texts: Texts, lang: str | None = None) -> list[list[str]]:
        """The subwords of each text, special tokens left out.

        >>> encoder.tokens("A sentence.")[0][-1]
        '.'
        """
        tokens: list[list[str]] = self._loaded.tokens(_texts(texts), self._language(lang))
        return tokens

    def predict(self, text: str, lang: str | None = None, top: int = 5) -> list[list[dict[str, Any]]]:
        """For each mask of one text (``[MASK]`` or ``<mask>``), the most likely tokens: ``token``, ``id``, ``probability``.

        >>> [[guess["id"] for guess in place] for place in encoder.predict("a [MASK] .", top=1)] == [[
        ...     encoder.predict("a <mask> .", top=3)[0][0]["id"]]]
        True
        """
        if not isinstance(text, str):
            reason = f"text: is of type {type(text).__name__}; give one string, and call predict for each of several"
            raise UsageError(reason, "text")
        predicted: list[list[dict[str, Any]]] = self._loaded.predict(text, self._language(lang), top)
        return predicted

    def means(
        self,
        texts: Mapping[str, Path | Sequence[str]],
        *,
        lines: bool = False,
        limit: int | None = None,
        sample_size: int | None = None,
        seed: int = 1,
    ) -> Means:
        """The mean vector of each language at each layer (Liu et al. 2020), from text of it: a file, or sentences.

        :meth:`shift` uses them from then on. Sentences of a list stay whole; lines of a file are split into sentences unless ``lines``.
        """
        whole = lines or any(not isinstance(text, (str, os.PathLike)) for text in texts.values())
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, (lang, text) in enumerate(texts.items()):
                if isinstance(text, (str, os.PathLike)):
                    files.append((lang, [os.fspath(text)]))
                    continue
                path = os.path.join(folder, f"{number}.txt")
                with open(path, "w", encoding="utf-8") as file:
                    file.writelines(" ".join(sentence.split()) + "\n" for sentence in _texts(text))
                files.append((lang, [path]))
            take = (limit, sample_size, seed)
            self._means = Means(self._loaded.means(files, whole, take))
        return self._means

    def load_means(self, path: Path) -> Means:
        """Read mean vectors that ``isogloss shift means`` or :meth:`Means.save` wrote; :meth:`shift` uses them from then on."""
        self._means = Means(self._loaded.load_means(path))
        return self._means

    def shift(
        self,
        text: Texts,
        *,
        to: str,
        lang: str | None = None,
        layer: int | None = None,
        alpha: float | Sequence[float] = (0.0, 1.0, 2.0, 3.0),
        shift_kind: str = "mean",
        means: Means | None = None,
    ) -> ShiftResult:
        """Translate token by token: shift hidden states from one language's mean to another's, weighted by alpha (Liu et al. 2020).

        ``layer`` is after which layer; that of ``isogloss map --figure shift`` unless given. Mean vectors come from ``means``, or from the last
        :meth:`means` or :meth:`load_means`.
        """
        used = means or self._means
        if used is None:
            raise UsageError("there are no mean vectors; compute them by means({language: text, ...})", "means")
        if lang is None:
            others = [known for known in used.languages if known != to]
            if len(others) != 1:
                raise UsageError(f"text of which of {', '.join(others)}? say so", "lang")
            lang = others[0]
        if layer is None:
            layer = int(self._loaded.shifted_layer)
        alphas = [float(a) for a in alpha] if isinstance(alpha, Sequence) else [float(alpha)]
        place = (layer, shift_kind, alphas)
        fields = self._loaded.shift(used._loaded, _texts(text), (lang, to), place)
        rates = [s["outputs"][-1]["conversion_rate"] for s in fields["sentences"]]
        known_rates = [rate for rate in rates if rate is not None]
        score = sum(known_rates) / len(known_rates) if known_rates else None
        fields["signature"] = f"shift|layer:{layer}|kind:{shift_kind}|v{_isogloss.__version__}"
        return ShiftResult(fields, score)

    def __repr__(self) -> str:
        languages = ", ".join(self.languages) or "any language"
        return f"Encoder({self._loaded.name!r}, {self.layers} layers of {self.dim}, {languages}, on {self._loaded.on})"
