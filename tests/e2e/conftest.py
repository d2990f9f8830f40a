"""A real JupyterLab with both extensions, in a real Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

import oh_jupyter
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.testing import LiveServer
from oh_jupyter.testing.server import run_command

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).parents[2]
BUILT_EXTENSIONS = (
    Path(oh_jupyter.__file__).parent / "labextension",
    Path(sys.prefix, "share", "jupyter", "labextensions", "oh-jupyter"),
)
"""Where the built extension is: in a checkout, and where a wheel puts it."""
TOKEN = "end-to-end"
AGENTS_NOTEBOOK = "confirm.ipynb"
Ask = Callable[..., "Future[Any]"]
expect.set_options(timeout=60_000)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "one_page: the module's tests share a page of JupyterLab")


@dataclass(frozen=True)
class Lab:
    """A JupyterLab server process, and requests to it."""

    server: LiveServer
    root: Path

    @property
    def url(self) -> str:
        return self.server.url

    def request(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Ask the server; the JSON of its answer."""
        request = urllib.request.Request(
            f"{self.url}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers=self.server.headers,
            method=method,
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            content = answer.read()
            return json.loads(content) if content else None

    def kernel_of(self, notebook: str) -> str:
        (session,) = [s for s in self.request("api/sessions") if s["path"] == notebook]
        return str(session["kernel"]["id"])


@contextmanager
def run_lab(directory: Path, port: int = 0) -> Iterator[Lab]:
    settings = directory / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    extensions = directory / "labextensions"
    extensions.mkdir()
    built = next(path for path in BUILT_EXTENSIONS if path.exists())
    (extensions / "oh-jupyter").symlink_to(built)
    root = directory / "root"
    shutil.copytree(ROOT / "notebooks", root, ignore=shutil.ignore_patterns("workspace"))
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        f"--ServerApp.root_dir={root}", f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1",
        f"--IdentityProvider.token={TOKEN}",
        f"--LabApp.extra_labextensions_path={extensions}",
        "--LabApp.expose_app_in_browser=True",
        f"--LabApp.workspaces_dir={directory / 'workspaces'}",
        f"--LabApp.user_settings_dir={directory / 'settings'}",
        # On a busy machine, a kernel takes longer than five seconds to end in order.
        "--KernelManager.shutdown_wait_time=60",
    ]  # fmt: skip
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(directory / "runtime")}
    with run_command(command, directory, environment, TOKEN) as server:
        yield Lab(server, root)


@pytest.fixture(scope="session")
def lab_port() -> int:
    """The same for each server: the browser stores compiled code by address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, lab_port: int) -> Iterator[Lab]:
    """A server with files, kernels and events of this module only."""
    with run_lab(tmp_path_factory.mktemp("lab"), lab_port) as lab:
        yield lab


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the browser, which keeps JupyterLab's compiled code in it."""
    return tmp_path_factory.mktemp("profile")


# No longer than its module: Playwright's loop must not be running in other tests.
@pytest.fixture(scope="module")
def context(profile: Path) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=find_executable(),
            args=["--no-sandbox"],
            viewport={"width": 1500, "height": 950},
        )
        context.set_default_timeout(120_000)
        yield context
        context.close()


@pytest.fixture
def page(context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    if request.node.get_closest_marker("one_page"):
        yield request.getfixturevalue("kept_page")
        return
    yield context.new_page()
    for page in context.pages[1:]:  # with its first page the browser would end
        page.close()


OPEN = """async path => {
    await jupyterapp.commands.execute('docmanager:open', { path });
    await jupyterapp.commands.execute('oh-jupyter:show-log');
}"""
CLOSE_ALL = """() => {
    for (const widget of [...jupyterapp.shell.widgets('main')]) widget.dispose();
}"""


@pytest.fixture(scope="module")
def page_of_the_module(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def kept_page(context: BrowserContext, page_of_the_module: Page) -> Iterator[Page]:
    """A page of which JupyterLab stays for the next test: loading it costs more than most do."""
    yield page_of_the_module
    page_of_the_module.unroute_all(behavior="wait")
    page_of_the_module.evaluate(CLOSE_ALL)
    for page in context.pages[1:]:
        if page is not page_of_the_module:
            page.close()


@pytest.fixture
def open_notebook(lab: Lab, page: Page) -> Any:
    """Open a notebook in JupyterLab, and the panel beside it."""

    def open_notebook(name: str) -> Page:
        is_in_lab = page.url.startswith(f"{lab.url}/lab")
        if is_in_lab:
            page.evaluate(OPEN, name)
        else:
            page.goto(f"{lab.url}/lab/tree/{name}?reset&token={TOKEN}")
        page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
        page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
        page.evaluate(
            """async () => {
                const context = jupyterapp.shell.currentWidget.sessionContext;
                await context.ready;
                await context.session.kernel.info;
            }"""
        )
        if not is_in_lab:
            page.locator('.lm-TabBar-tab[data-id="oh-jupyter-log"]').click()
        page.locator("#oh-jupyter-log").wait_for()
        return page

    return open_notebook


@pytest.fixture
def write_notebook(lab: Lab) -> Callable[..., None]:
    """Write a notebook with cells: each is the source of a code cell, or a cell as in the file."""

    def write_notebook(name: str, *sources: str | dict[str, Any]) -> None:
        cells = [
            {
                "cell_type": "code", "id": f"cell-{number}", "metadata": {}, "outputs": [],
                "execution_count": None, "source": each,
            }
            if isinstance(each, str)
            else each
            for number, each in enumerate(sources)
        ]  # fmt: skip
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        metadata = {"kernelspec": kernel}
        content = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
        (lab.root / name).write_text(json.dumps(content))

    return write_notebook


@pytest.fixture
def open_tab(lab, open_notebook, write_notebook, request):
    """Open a notebook of cells, with an agent beside it."""
    from live_tab import Tab

    def open_tab(*sources: str) -> Tab:
        # Its own file: the editor would tell of changes since another test.
        name = re.sub(r"\W", "-", request.node.name) + ".ipynb"
        write_notebook(name, *sources)
        tab = Tab(lab, open_notebook(name), name)
        tab.act("run", command="true")
        # The language of the kernel is a change, too.
        tab.save()
        return tab

    return open_tab


@pytest.fixture
def agents() -> Iterator[ThreadPoolExecutor]:
    """Threads in which agents wait for their answers."""
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def notebook(
    lab: Lab,
    open_notebook: Any,
    write_notebook: Callable[..., None],
    agents: ThreadPoolExecutor,
) -> Iterator[tuple[Page, Ask]]:
    """Open a notebook with a runtime in its kernel: the page, and an agent that asks for things."""
    write_notebook(AGENTS_NOTEBOOK, "%load_ext oh_jupyter")
    from run_cells import run_all_cells

    page = open_notebook(AGENTS_NOTEBOOK)
    run_all_cells(page)
    address = f"oh_jupyter/kernels/{lab.kernel_of(AGENTS_NOTEBOOK)}"

    def ask(type_: str = "run", **args: Any) -> Future[Any]:
        action = {"action": {"action": type_, "args": args or {"command": "sudo -n true"}}}
        return agents.submit(answered, lab, f"{address}/execute_action", action)

    yield page, ask
    # An agent that still waited would hold its thread until the time-out.
    waiting = answered(lab, f"{address}/confirmations")
    for each in waiting if isinstance(waiting, list) else ():
        lab.request(f"{address}/confirmations/{each['id']}", {"approve": False})


def answered(lab: Lab, address: str, body: Any = None) -> Any:
    """The JSON of an answer, or the status of one without."""
    try:
        return lab.request(address, body)
    except HTTPError as error:
        with error:
            return error.code
