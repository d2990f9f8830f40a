"""A runtime is loaded by a button, listed with what it started, and ended there."""

from __future__ import annotations

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, Response, expect

pytestmark = pytest.mark.timeout(180)

NAME = "running.ipynb"


def test_a_runtime_is_loaded_listed_and_ended(lab, open_notebook, write_notebook) -> None:
    write_notebook(NAME, "1 + 1")
    page: Page = open_notebook(NAME)
    toolbar = page.locator('.jp-NotebookPanel:visible [data-jp-item-name="oh-load"]')
    expect(toolbar.get_by_role("button")).to_be_visible()
    take_pictures(page, "load")
    page.locator("#oh-jupyter-log .oh-Load").click()
    expect(page.locator("#oh-jupyter-log")).to_contain_text("Nothing has happened yet.")
    expect(toolbar.get_by_role("button")).to_be_hidden()

    action = {"action": "run", "args": {"command": "true"}}
    address = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}"
    lab.request(f"{address}/execute_action", {"action": action})
    page.locator('.lm-TabBar-tab[data-id="jp-running-sessions"]').click()
    section = page.locator("#jp-running-sessions .jp-RunningSessions-section").filter(
        has=page.locator('[data-context="oh-jupyter-runtime"]')
    )
    shell = section.locator('[data-context="oh-jupyter-shell"]')
    expect(shell).to_be_visible()
    take_pictures(page, "running")
    shell.hover()
    shell.locator("> .jp-RunningSessions-itemShutdown").click()
    expect(shell).to_have_count(0)

    item = section.locator('[data-context="oh-jupyter-runtime"]')
    item.hover()
    item.locator("> .jp-RunningSessions-itemShutdown").click()
    expect(item).to_have_count(0)


def saves_the_tab(response: Response) -> bool:
    """Whether it answers the layout being saved, with the tab of changes in it."""
    request = response.request
    is_save = request.method == "PUT" and "/api/workspaces/" in request.url
    return is_save and "oh-jupyter-changes" in (request.post_data or "")


def test_the_launcher_opens_a_notebook_with_a_runtime_and_tabs_come_back(
    lab, open_notebook, write_notebook
) -> None:
    write_notebook("first.ipynb", "%load_ext oh_jupyter")
    page: Page = open_notebook("first.ipynb")
    assert page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')") is True
    page.evaluate("jupyterapp.commands.execute('launcher:create')")
    page.locator(".jp-LauncherCard", has_text="Notebook with an Agent").click()
    panel = page.locator("#oh-jupyter-agent")
    expect(panel.get_by_role("textbox", name="Prompt for the agent")).to_be_visible()
    changes = page.locator("#oh-jupyter-changes")
    with page.expect_response(saves_the_tab):
        page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-changes')")
        expect(changes).to_contain_text("No file has changed")
    page.goto(f"{lab.url}/lab")
    expect(changes).to_contain_text("No file has changed")
    expect(panel).to_be_visible()
