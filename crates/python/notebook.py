"""Executes the book's notebook; with --write, writes its page again with what came out.

    pip install nbclient ipykernel pandas
    python crates/python/notebook.py [--write]
"""

import argparse
import pathlib

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebooks" / "isogloss.ipynb"
PAGE = ROOT / "docs" / "src" / "how-to" / "notebook.md"
FIGURES = ROOT / "docs" / "src" / "figures"

OPENING = """# A notebook

`docs/notebooks/isogloss.ipynb`, with what it printed.
`python crates/python/notebook.py --write` executes it and writes this page.
"""


def execute(timeout=600):
    """The notebook with its outputs; a cell that raises is an error."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    return NotebookClient(notebook, timeout=timeout, kernel_name="python3").execute()


def shown(output, number):
    """An output as Markdown; pictures become files of the book."""
    if output.output_type == "stream":
        return f"```text\n{output.text.rstrip()}\n```\n" if output.name == "stdout" else ""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        name = f"notebook-{number:02}.svg"
        (FIGURES / name).write_text(data["image/svg+xml"], encoding="utf-8")
        return f"![The picture of this cell](../figures/{name})\n"
    if output.output_type == "execute_result":
        return f"```text\n{data['text/plain']}\n```\n"
    return ""


def page(notebook):
    parts = [OPENING]
    for number, cell in enumerate(notebook.cells, 1):
        parts.append(f"```python\n{cell.source}\n```\n")
        parts += [text for text in (shown(output, number) for output in cell.outputs) if text]
    return "\n".join(parts)


def code(text):
    """The code of a page's cells."""
    blocks = text.split("```python\n")[1:]
    return [block.split("\n```")[0] for block in blocks]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    done = execute()
    if arguments.write:
        PAGE.write_text(page(done), encoding="utf-8")
    print(f"{len(done.cells)} cells executed")
