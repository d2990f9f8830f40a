"""A runtime is loaded by a button, listed with what it started, and ended there."""

from __future__ import annotations

import re
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest
from pictures import take_pictures
from playwright.sync_api import APIResponse, Locator, Page, Response, Route, expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.timeout(180)

NAME = "running.ipynb"


def runtime(page: Page, title: str) -> Locator:
    """Return the listed items of a notebook's or kernel's runtime."""
    items = page.locator('#jp-running-sessions [data-context="oh-jupyter-runtime"]')
    return items.filter(has=page.get_by_title(title, exact=True))


def has_runtime(lab: Any, notebook: str) -> bool:
    """Whether the kernel of a notebook, which may not have started yet, has a runtime."""
    try:
        lab.request(f"oh_jupyter/kernels/{lab.kernel_of(notebook)}/server_info")
    except (ValueError, urllib.error.HTTPError):
        return False
    return True


def end(item: Locator) -> None:
    """Press its button, which is seen while the mouse is there and the list is not redrawn."""
    item.hover()
    item.locator("> .jp-RunningSessions-itemShutdown").dispatch_event("click")


@pytest.mark.thorough
def test_a_runtime_is_loaded_listed_and_ended(lab, open_notebook, write_notebook) -> None:
    write_notebook(NAME, "1 + 1")
    page: Page = open_notebook(NAME)
    toolbar = page.locator('.jp-NotebookPanel:visible [data-jp-item-name="oh-load"]')
    expect(toolbar.get_by_role("button")).to_be_visible()
    take_pictures(page, "load")
    page.locator("#oh-jupyter-log .oh-Load").click()
    expect(page.locator("#oh-jupyter-log")).to_contain_text("%oh_run ls")
    expect(toolbar.get_by_role("button")).to_be_hidden()

    action = {"action": "run", "args": {"command": "true"}}
    address = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}"
    lab.request(f"{address}/execute_action", {"action": action})
    page.locator('.lm-TabBar-tab[data-id="jp-running-sessions"]').click()
    item = runtime(page, NAME)
    shell = item.locator('[data-context="oh-jupyter-shell"]')
    expect(shell).to_be_visible()
    take_pictures(page, "running")
    # After a move it has the new name.
    moved = f"moved-{NAME}"
    lab.request(f"api/contents/{NAME}", {"path": moved}, "PATCH")
    (session,) = [s for s in lab.request("api/sessions") if s["path"] in (NAME, moved)]
    lab.request(f"api/sessions/{session['id']}", {"path": moved}, "PATCH")
    page.evaluate("jupyterapp.serviceManager.sessions.refreshRunning()")
    item = runtime(page, moved)
    shell = item.locator('[data-context="oh-jupyter-shell"]')
    end(shell)
    expect(shell).to_have_count(0)

    end(item)
    expect(item).to_have_count(0)


@pytest.fixture
def lone_kernel(lab) -> Iterator[str]:
    """A kernel of which no notebook is open, with a runtime that has a shell."""
    kernel = lab.request("api/kernels", {})["id"]
    action = {"action": "run", "args": {"command": "true"}}
    lab.request(f"oh_jupyter/kernels/{kernel}/execute_action", {"action": action})
    yield kernel
    lab.request(f"api/kernels/{kernel}", method="DELETE")


@pytest.mark.thorough
def test_a_runtime_without_an_open_notebook_is_listed_and_ended(
    lab, lone_kernel: str, open_notebook, write_notebook
) -> None:
    write_notebook(NAME, "1 + 1")
    page: Page = open_notebook(NAME)
    page.locator('.lm-TabBar-tab[data-id="jp-running-sessions"]').click()
    item = runtime(page, lone_kernel)
    expect(item).to_contain_text("python3 without a notebook")
    shell = item.locator('[data-context="oh-jupyter-shell"]')
    expect(shell).to_be_visible()
    take_pictures(page, "running-lone")
    end(shell)
    expect(shell).to_have_count(0)

    held: list[tuple[Route, APIResponse]] = []
    address = f"**/kernels/{lone_kernel}/server_info*"
    page.route(address, lambda route: held.append((route, route.fetch())), times=1)
    page.locator("#jp-running-sessions").get_by_role("button", name="Refresh List").click()
    # Playwright's callbacks are called while it is asked for something.
    wait_until(lambda: page.evaluate("true") and held, what="the question")
    end(item)
    expect(item).to_have_count(0)
    question = f"/oh_jupyter/kernels/{lone_kernel}/events?limit=0"
    with page.expect_response(lambda response: question in response.url):
        for route, answer in held:
            route.fulfill(response=answer)
    expect(item).to_have_count(0)
    info = lab.request(f"oh_jupyter/kernels/{lone_kernel}/server_info")
    assert info["runtime"] is None


@pytest.mark.thorough
def test_a_kernel_without_a_runtime_causes_no_errors(
    lab, page: Page, open_notebook, write_notebook
) -> None:
    write_notebook(NAME, "1 + 1")
    session = {"path": NAME, "name": NAME, "type": "notebook", "kernel": {"name": "python3"}}
    kernel = lab.request("api/sessions", session)["kernel"]["id"]
    before = len(lab.server.log)
    failed: list[str] = []
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    question = f"/oh_jupyter/kernels/{kernel}/events?limit=0"
    with page.expect_response(lambda response: question in response.url):
        open_notebook(NAME)
    page.evaluate(
        """() => {
            const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
            kernel.sendControlMessage({
                channel: 'control', parent_header: {}, metadata: {}, content: {}, buffers: [],
                header: {
                    msg_id: 'last', msg_type: 'last_request', session: kernel.clientId,
                    username: '', date: new Date().toISOString(), version: '5.2'
                }
            });
        }"""
    )

    def unknown() -> list[str]:
        return [line for line in lab.server.log[before:] if "UNKNOWN CONTROL" in line]

    wait_until(lambda: any("last_request" in line for line in unknown()))
    assert len(unknown()) == 1, unknown()
    assert not [url for url in failed if "/oh_jupyter/" in url]
    lab.request(f"api/kernels/{kernel}", method="DELETE")


def saves_the_tab(response: Response) -> bool:
    """Whether it answers the layout being saved, with the tab of changes in it."""
    request = response.request
    is_save = request.method == "PUT" and "/api/workspaces/" in request.url
    return is_save and "oh-jupyter-changes" in (request.post_data or "")


@pytest.mark.thorough
def test_the_launcher_opens_a_notebook_with_a_runtime_and_tabs_come_back(
    lab, open_notebook, write_notebook
) -> None:
    write_notebook("first.ipynb", "%load_ext oh_jupyter")
    page: Page = open_notebook("first.ipynb")
    run_all_cells(page)
    # A browser of the store that was open is not where notebooks are made.
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-store')")
    files = page.get_by_role("region", name="Files of the store")
    expect(files.locator(".jp-DirListing-content")).to_be_visible()
    files.locator(".jp-DirListing-content").click()
    page.evaluate("jupyterapp.commands.execute('filebrowser:activate')")
    page.evaluate("jupyterapp.commands.execute('launcher:create')")
    page.locator(".jp-LauncherCard", has_text="Notebook with an Agent").click()
    page.wait_for_function("jupyterapp.shell.currentWidget.title.label.startsWith('Untitled')")
    name = page.evaluate("jupyterapp.shell.currentWidget.title.label")
    wait_until(lambda: has_runtime(lab, name), what="a runtime in the new notebook")
    panel = page.locator("#oh-jupyter-log")
    prompt = panel.get_by_role("textbox", name="Prompt for the agent")
    expect(prompt.or_(panel.get_by_text("No agent is installed."))).to_be_visible()
    changes = page.locator("#oh-jupyter-changes")
    with page.expect_response(saves_the_tab):
        page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-changes')")
        expect(changes).to_contain_text("No file has changed")
    page.goto(f"{lab.url}/lab")
    expect(changes).to_contain_text("No file has changed")
    expect(panel).to_be_visible()


TABS = ("show-changes", "show-browser", "show-deliveries", "show-store")
RESTART = """async path => {
    const widgets = [...jupyterapp.shell.widgets('main')];
    const { sessionContext } = widgets.find(each => each.sessionContext?.path === path);
    const { kernel } = sessionContext.session;
    const send = kernel.sendControlMessage;
    kernel.sendControlMessage = function (message, ...rest) {
        if (message.header.msg_type === 'oh_jupyter_request') {
            console.error(`asked a kernel that restarts: ${JSON.stringify(message.content)}`);
        }
        return send.call(this, message, ...rest);
    };
    await sessionContext.restartKernel();
    await kernel.info;
    delete kernel.sendControlMessage;
    await kernel.requestExecute({ code: '%load_ext oh_jupyter' }).done;
}"""
# What was sent just before a restart reaches the new process, which logs that it does not know it.
AS_ERROR = re.compile(r"\[[EC] | ERROR (?!.*UNKNOWN CONTROL MESSAGE TYPE)")


@pytest.mark.thorough
def test_restarts_leave_no_error_in_the_console_or_the_log(
    lab, open_notebook, write_notebook
) -> None:
    name = "restart.ipynb"
    write_notebook(name, "%load_ext oh_jupyter")
    page: Page = open_notebook(name)
    run_all_cells(page)
    address = f"oh_jupyter/kernels/{lab.kernel_of(name)}/execute_action"
    page.locator('.lm-TabBar-tab[data-id="jp-running-sessions"]').click()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    before = len(lab.server.log)
    for tab, panel in zip(TABS * 2, ["ask-agent", "show-log"] * len(TABS), strict=True):
        for command in (panel, tab):
            page.evaluate(f"() => void jupyterapp.commands.execute('oh-jupyter:{command}')")
        page.evaluate(RESTART, name)
        lab.request(address, {"action": {"action": "run", "args": {"command": f"echo {tab}"}}})
    page.evaluate("() => void jupyterapp.commands.execute('oh-jupyter:show-log')")
    expect(page.locator("#oh-jupyter-log .oh-Card", has_text=TABS[-1]).last).to_be_visible()
    # JupyterLab's own debugger says so of a restart that comes soon after another one.
    assert [each for each in errors if "debugger" not in each] == []
    assert [line for line in lab.server.log[before:] if AS_ERROR.search(line)] == []
