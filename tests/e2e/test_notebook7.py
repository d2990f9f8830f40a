"""The panel, approvals and reviews in Notebook 7, whose page has one document and sidebars.

It needs an environment with ``notebook`` and this package, named by ``OH_JUPYTER_TEST_NOTEBOOK``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from live_tab import SOURCES, Tab
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

from conftest import TOKEN, Lab, answered
from oh_jupyter.testing.server import run_command

PYTHON = os.environ.get("OH_JUPYTER_TEST_NOTEBOOK", "")

pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="needs Notebook 7; make test-all installs it"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def notebook_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("notebook7")
    root = folder / "root"
    root.mkdir()
    cells = [new_code_cell(source) for source in ("%load_ext oh_jupyter", "x = 1")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, root / "book.ipynb")
    command = [
        PYTHON, "-m", "notebook", "--no-browser", "--allow-root",
        f"--ServerApp.root_dir={root}", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1",
        f"--IdentityProvider.token={TOKEN}",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--LabServerApp.workspaces_dir={folder / 'workspaces'}",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_CONFIG_DIR": str(folder / "settings"),
        "PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with run_command(command, folder, environment, TOKEN) as server:
        yield Lab(server, root)


@pytest.fixture
def errors(page: Page) -> list[str]:
    """Errors that the page reports about our extension."""
    reported: list[str] = []
    page.on(
        "console",
        lambda message: (
            reported.append(message.text)
            if message.type == "error" and "oh-jupyter" in message.text
            else None
        ),
    )
    return reported


@pytest.fixture
def book(notebook_server: Lab, page: Page, errors: list[str]) -> Page:
    """A notebook whose kernel has a runtime, with the panel beside it."""
    page.goto(f"{notebook_server.url}/notebooks/book.ipynb?token={TOKEN}")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.info")
    run_all_cells(page)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-log')")
    page.locator("#oh-jupyter-log").wait_for()
    return page


def test_a_question_is_answered_in_the_panel(
    notebook_server: Lab, book: Page, agents: ThreadPoolExecutor, errors: list[str]
) -> None:
    address = f"oh_jupyter/kernels/{notebook_server.kernel_of('book.ipynb')}"
    action = {"action": {"action": "run", "args": {"command": "sudo -n true"}}}
    reply = agents.submit(answered, notebook_server, f"{address}/execute_action", action)
    panel = book.locator("#oh-jupyter-log")
    panel.get_by_role("button", name="Approve sudo -n true").first.click()
    assert reply.result(120)["observation"] == "run"
    expect(panel.get_by_role("button", name="Approve sudo -n true")).to_have_count(0)
    assert errors == []


def test_an_agents_edit_of_a_cell_is_reviewed(
    notebook_server: Lab, book: Page, errors: list[str]
) -> None:
    tab = Tab(notebook_server, book, "book.ipynb")
    tab.call("read_cells", outputs=False)
    tab.call("edit_cell", cell=1, source="x = 2")
    tab.expect(SOURCES, ["%load_ext oh_jupyter", "x = 2"])
    book.get_by_role("button", name="Undo this change", exact=True).click()
    tab.expect(SOURCES, ["%load_ext oh_jupyter", "x = 1"])
    expect(book.locator(".cm-deletedChunk")).to_have_count(0)
    assert errors == []


@pytest.mark.parametrize("tab", ["changes", "browser", "store", "deliveries"])
def test_the_tabs_are_shown_beside_the_notebook(book: Page, tab: str, errors: list[str]) -> None:
    book.evaluate(f"jupyterapp.commands.execute('oh-jupyter:show-{tab}')")
    expect(book.locator(f"[id^='oh-jupyter-{tab}']").first).to_be_visible()
    expect(book.locator(".jp-Notebook .jp-Cell").first).to_be_visible()
    assert errors == []
