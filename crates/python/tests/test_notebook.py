"""The notebook runs from its first cell to its last, and the book shows it."""

import importlib.util
import pathlib

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

SCRIPT = pathlib.Path(__file__).parents[1] / "notebook.py"
SPEC = importlib.util.spec_from_file_location("notebook", SCRIPT)
notebook = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebook)


def test_the_page_shows_the_cells():
    cells = nbformat.read(notebook.NOTEBOOK, as_version=4).cells
    assert len(cells) == 12
    assert notebook.code(notebook.PAGE.read_text()) == [cell.source for cell in cells]


def test_all_cells_run():
    done = notebook.execute()
    svg = [output for cell in done.cells for output in cell.outputs if "image/svg+xml" in output.get("data", {})]
    assert len(svg) == 2
    rates = eval(done.cells[6].outputs[-1].data["text/plain"])
    assert rates[2.0] > rates[0.0], "shifted states are predicted in the other language"
    assert "score=" in done.cells[8].outputs[-1].data["text/plain"]
