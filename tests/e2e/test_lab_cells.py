"""The agent's cells, as cells of the notebook that a person has open."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from run_cells import run_all_cells

ADDED = """() => jupyterapp.shell.currentWidget.model.sharedModel.cells
    .map(cell => cell.toJSON())
    .filter(cell => cell.metadata.oh_jupyter)"""
PLOT = """from io import BytesIO
from IPython.display import Image, display
from PIL import Image as Picture
red = BytesIO()
Picture.new('RGB', (80, 40), 'red').save(red, 'png')
display(Image(red.getvalue()))
print('x' * 5000)
6 * 7"""


@pytest.fixture
def notebook(lab, open_notebook, write_notebook):
    """Open a notebook with a runtime in its kernel: the page, and a function to run cells."""
    name = "cells.ipynb"
    prose = {"cell_type": "markdown", "id": "prose", "metadata": {}, "source": "long\n\n" * 60}
    write_notebook(name, "%load_ext oh_jupyter", prose)
    page = open_notebook(name)
    run_all_cells(page)
    address = f"oh_jupyter/kernels/{lab.kernel_of(name)}/execute_action"

    def run(code: str) -> None:
        action = {"action": {"action": "run_ipython", "args": {"code": code}}}
        assert lab.request(address, action)["observation"] == "run_ipython"

    return page, run


@pytest.fixture
def append_by_itself(lab):
    path = lab.server.directory / "settings" / "oh-jupyter" / "log.jupyterlab-settings"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"appendAgentCells": true}')
    yield
    path.unlink()


def add(page, words: str) -> None:
    """Click the button of a card, and wait until the command is done."""
    card = page.locator("#oh-jupyter-log .oh-Card", has_text=words)
    done = """() => { window.done = new Promise(resolve =>
        jupyterapp.commands.commandExecuted.connect((_, { id, result }) =>
            id === 'oh-jupyter:add-cell' && resolve(result))) }"""
    page.evaluate(done)
    card.get_by_role("button", name="Add to notebook").click()
    page.evaluate("window.done")


@pytest.mark.thorough
def test_a_click_makes_the_agents_cell_one_of_the_notebook(notebook) -> None:
    page, run = notebook
    run(PLOT)
    add(page, "from io import BytesIO")
    (cell,) = page.evaluate(ADDED)
    assert cell["source"] == PLOT
    origin = cell["metadata"]["oh_jupyter"]
    assert origin["source"] == "agent"
    assert isinstance(origin["event"], int)
    text, image = cell["outputs"]
    assert (text["output_type"], text["name"]) == ("stream", "stdout")
    # In full, although only its beginning is broadcast; and without the footer.
    assert "x" * 5000 + "\n42\n" in text["text"]
    assert "[Jupyter" not in text["text"]
    assert image["data"]["image/png"].startswith("iVBOR")
    page.locator(".jp-Notebook .jp-OutputArea-output img").wait_for()

    added = page.locator(".jp-Notebook .jp-CodeCell", has_text="from io import BytesIO")
    page.evaluate("jupyterapp.shell.currentWidget.content.scrollToItem(0, 'start')")
    expect(added).not_to_be_in_viewport()
    add(page, "from io import BytesIO")
    expect(added.locator(".jp-InputArea")).to_be_in_viewport()
    assert page.evaluate(ADDED) == [cell]

    page.evaluate("jupyterapp.commands.execute('notebook:undo-cell-action')")
    assert page.evaluate(ADDED) == []
    command = "jupyterapp.commands.execute('oh-jupyter:add-cell')"
    assert page.evaluate(f"Promise.all([{command}, {command}])") == [True, False]
    assert len(page.evaluate(ADDED)) == 1


@pytest.mark.thorough
def test_the_agents_cells_come_by_themselves_where_that_is_set(append_by_itself, notebook) -> None:
    page, run = notebook
    seen = page.locator(".jp-Notebook .jp-CodeCell", has_text="%load_ext")
    page.evaluate("jupyterapp.shell.currentWidget.content.scrollToItem(0, 'start')")
    expect(seen).to_be_in_viewport()
    run("first = 1")
    run("print('second')")
    page.wait_for_function(f"({ADDED})().length === 2")
    first, second = page.evaluate(ADDED)
    assert (first["source"], first["outputs"]) == ("first = 1", [])
    assert second["outputs"][0]["text"] == "second\n"
    # Nobody's page moves while they read something else.
    expect(seen).to_be_in_viewport()
    add(page, "first = 1")
    assert page.evaluate(ADDED) == [first, second]
