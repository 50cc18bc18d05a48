from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._typing import ArrayLike, Path

__version__: str

_Place = tuple[str, int]

def panic_for_tests() -> None: ...
def run_command(program: str, typed: Sequence[str]) -> int: ...
def call_command(
    words: Sequence[str], callback: Callable[[dict[str, Any]], object] | None
) -> tuple[dict[str, Any], list[str]]: ...
def command_flags(words: Sequence[str]) -> dict[str, tuple[bool, str | None]]: ...
def fit_map(
    x: ArrayLike,
    y: ArrayLike,
    pairs: Sequence[tuple[int, int]] | None,
    settings: Mapping[str, Any],
    place: _Place,
) -> tuple[LinearMap, dict[str, Any]]: ...
def load_map(path: Path) -> LinearMap: ...
def normalized(z: ArrayLike, normalize_by: Sequence[str]) -> Any: ...
def retrieved(
    x: ArrayLike,
    y: ArrayLike,
    train: tuple[ArrayLike, ArrayLike] | None,
    settings: Mapping[str, Any],
    place: _Place,
) -> tuple[dict[str, Any], list[Any]]: ...
def compared(
    x: ArrayLike,
    y: ArrayLike,
    within: Sequence[str] | None,
    subsamples: int | None,
    seed: int,
    place: _Place,
) -> dict[str, Any]: ...
def similar(
    x: ArrayLike, y: ArrayLike, measures: Sequence[str], subsamples: int, seed: int, place: _Place
) -> dict[str, Any]: ...
def language_probed(
    vectors: Sequence[tuple[str, ArrayLike]], directions: int, seed: int, threads: int
) -> dict[str, Any]: ...
def mined(
    x: ArrayLike,
    y: ArrayLike,
    gold: set[tuple[int, int]] | None,
    settings: Mapping[str, Any],
    place: _Place,
) -> tuple[dict[str, Any], Any, Any]: ...
def word_aligned(
    pairs: Sequence[tuple[str, str]], settings: Mapping[str, Any], threads: int
) -> tuple[list[list[tuple[int, int]]], dict[str, Any]]: ...
def train_vectors(
    method: str, sentences: Sequence[Sequence[str]], min_count: int, keys: str, threads: int
) -> tuple[tuple[list[str], Any], list[int], dict[str, Any]]: ...
def read_vectors(path: Path, limit: int | None) -> tuple[list[str], Any]: ...
def write_vectors(path: Path, words: Sequence[str], vectors: ArrayLike, force: bool) -> None: ...
def cka_picture(result: str, names: Sequence[str]) -> tuple[str, str]: ...
def curves_picture(title: str, across: str, curves: Mapping[str, Sequence[float]]) -> str: ...

class LinearMap:
    dim: int
    def matrix(self) -> Any: ...
    def save(self, path: Path, force: bool) -> None: ...
    def transform(self, z: ArrayLike, normalize_by: Sequence[str], place: _Place) -> Any: ...

class LoadedModel:
    name: str
    languages: list[str]
    any_language: bool
    layers: int
    shifted_layer: int
    dim: int
    fingerprint: str
    has_mlm_head: bool
    on: str
    @staticmethod
    def open(path: Path, device: str, threads: int) -> LoadedModel: ...
    def encode(
        self, texts: Sequence[str], language: str, layers: Sequence[int], pool: str
    ) -> tuple[Any, list[int], int]: ...
    def tokens(self, texts: Sequence[str], language: str) -> list[list[str]]: ...
    def predict(self, text: str, language: str, top: int) -> list[list[dict[str, Any]]]: ...
    def means(
        self,
        texts: Sequence[tuple[str, Sequence[str]]],
        lines: bool,
        take: tuple[int | None, int | None, int],
    ) -> LoadedMeans: ...
    def load_means(self, path: Path) -> LoadedMeans: ...
    def shift(
        self,
        means: LoadedMeans,
        texts: Sequence[str],
        languages: tuple[str, str],
        place: tuple[int, str, Sequence[float]],
    ) -> dict[str, Any]: ...

class LoadedMeans:
    languages: list[str]
    def save(self, path: Path, force: bool) -> None: ...
    def summary(self, out: Path) -> dict[str, Any]: ...
    def vectors(self, language: str) -> Any: ...
    def difference(self, from_: str, to: str, layer: int) -> Any: ...
