"""examples/quickstart.ipynb runs from top to bottom; the test trains fewer steps."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"
SHORTER = [("40_000", "4_096"), ("300_000", "20_000"), ("--episodes 100", "--episodes 10")]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        for long, short in SHORTER:
            cell.source = cell.source.replace(long, short)
    folder = tmp_path_factory.mktemp("notebook")
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook, folder


def printed(notebook):
    return "".join(
        output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if cell.cell_type == "code"
    )


def test_both_methods_are_trained_compared_and_drawn(executed):
    notebook, folder = executed
    assert re.search(r"^ppo: goal seen True, in \d+% of the last 100 episodes$", printed(notebook), re.MULTILINE)
    assert re.search(r"^opr: goal seen True, in \d+% of the last 100 episodes$", printed(notebook), re.MULTILINE)
    assert {path.name for path in (folder / "runs" / "quickstart").iterdir()} == {"ppo", "opr", "cage2"}
    kinds = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert "image/png" in kinds


def test_a_defender_is_trained_and_the_shipped_one_scored(executed):
    text = printed(executed[0])
    assert re.search(r"^-\d+\.\d in the last 100 episodes of training$", text, re.MULTILINE)
    assert "CardiffUni" in text


def test_the_notebook_is_stored_without_outputs_and_its_links_exist():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.source for cell in notebook.cells if cell.get("outputs")] == []
    links = re.findall(r"\]\(([^)]+)\)", "".join(cell.source for cell in notebook.cells))
    assert links
    assert [link for link in links if not (NOTEBOOK.parent / link).exists()] == []
