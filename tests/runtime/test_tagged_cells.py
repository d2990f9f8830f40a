"""Agents leave cells with the tag agent-keep-out alone, whichever way they edit the notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oh_jupyter.events import FileEditAction, FileWriteAction
from oh_jupyter.runtime import Runtime


def notebook(*sources: str, tagged: int | None = 0) -> str:
    cells = [
        {
            "cell_type": "code", "id": f"cell-{number}", "execution_count": None, "outputs": [],
            "metadata": {"tags": ["agent-keep-out"]} if number == tagged else {}, "source": source,
        }
        for number, source in enumerate(sources)
    ]  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def book(runtime: Runtime) -> Path:
    path = Path(runtime.executor.workspace_dir, "book.ipynb")
    path.write_text(notebook("precious = 1", "other = 2"))
    return path


def edits(path: Path) -> list[FileEditAction | FileWriteAction]:
    name = str(path)
    return [
        FileEditAction(name, "str_replace", old_str="precious = 1", new_str="precious = 2"),
        FileEditAction(name, "notebook_edit", cell=0, new_str="gone"),
        FileEditAction(name, "notebook_edit", cell=0, edit_mode="delete"),
        FileWriteAction(name, notebook("precious = 1", "other = 2", tagged=None)),
        FileWriteAction(name, notebook("other = 2", tagged=None)),
        FileWriteAction(name, "{}"),
    ]


@pytest.mark.parametrize("number", range(6))
def test_an_agent_cannot_change_it(runtime: Runtime, book: Path, number: int) -> None:
    before = book.read_text()
    observation = runtime.submit(runtime.executor.run_action(edits(book)[number])).result(60)
    assert "has cells with the tag agent-keep-out" in observation.content
    assert book.read_text() == before


def test_other_cells_can_be_changed(runtime: Runtime, book: Path) -> None:
    edit = FileEditAction(str(book), "str_replace", old_str="other = 2", new_str="other = 3")
    observation = runtime.submit(runtime.executor.run_action(edit)).result(60)
    assert "ERROR" not in observation.content
    assert "other = 3" in book.read_text()


def test_a_person_can_change_it(runtime: Runtime, book: Path) -> None:
    runtime.submit(runtime.executor.run_action(edits(book)[0], "user")).result(60)
    assert "precious = 2" in book.read_text()
