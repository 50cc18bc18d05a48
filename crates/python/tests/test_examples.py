"""The examples of all docstrings."""

import doctest
import importlib
import pkgutil

import isogloss
import pytest

MODULES = [module.name for module in pkgutil.iter_modules(isogloss.__path__) if module.name not in ("_isogloss", "__main__")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, bert):
    module = importlib.import_module(f"isogloss.{name}")
    names = {"bert": bert, "encoder": isogloss.Encoder.load(bert, device="cpu")}
    failed, _ = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_what_is_public_has_an_example():
    """Every public function of arrays, text or numbers shows how it is called."""
    shown = [isogloss.retrieve, isogloss.cka, isogloss.similarity, isogloss.language_id, isogloss.mine, isogloss.word_align, isogloss.align.procrustes, isogloss.align.unsupervised,
             isogloss.vectors.word2vec, isogloss.vectors.glove, isogloss.Encoder, isogloss.Encoder.encode,
             isogloss.Encoder.tokens, isogloss.Encoder.predict, isogloss.Results, isogloss.plot.cka]
    assert all(">>>" in each.__doc__ for each in shown)
