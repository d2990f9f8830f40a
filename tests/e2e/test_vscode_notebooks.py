"""Notebooks in VS Code: diffs, pages, tables and approvals in a real code-server, in Chromium.

An extension of ours runs the cells, because Microsoft's cannot be installed; see
``vscode_kernel/extension.js``. ``OH_JUPYTER_TEST_VSCODE`` names a code-server.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
import requests
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import FrameLocator, Page, expect, sync_playwright

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.testing import LiveServer, run_server
from oh_jupyter.testing.server import TOKEN

REAL = os.environ.get("OH_JUPYTER_TEST_VSCODE") or shutil.which("code-server")
HERE = Path(__file__).parent
SERVICES = HERE.parents[1] / "labextension" / "node_modules"
SCRIPTED = HERE.parents[1] / "examples" / "scripted_agent.py"
THEMES = {"light": "Default Light Modern", "dark": "Default Dark Modern"}
ANNOUNCEMENT = re.compile(r"HTTP server listening on (http://\S+?)/?\s")
LOAD = "%load_ext oh_jupyter"
CREATE = "%%oh_edit create tides.py\nHIGH = 7.1\nLOW = 0.9\nMEAN = (HIGH + LOW) / 2"
EDIT = """\
%%oh_edit str_replace tides.py
<<<<<<< SEARCH
HIGH = 7.1
=======
HIGH = 7.25
>>>>>>> REPLACE"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not REAL, reason="no code-server on the PATH or in OH_JUPYTER_TEST_VSCODE"),
    pytest.mark.skipif(
        not SERVICES.exists(), reason="@jupyterlab/services is missing: run jlpm in labextension/"
    ),
]


@dataclass(frozen=True)
class Window:
    """VS Code's page, the folder that it shows, and the server of its kernels."""

    page: Page
    folder: Path
    server: LiveServer
    address: str

    def open(self, name: str, *cells: str) -> None:
        """Write a notebook, open it, and select the kernel."""
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        book = new_notebook(
            cells=[new_code_cell(cell) for cell in cells], metadata={"kernelspec": kernel}
        )
        nbformat.write(book, self.folder / name)
        self.page.goto(f"{self.address}/?folder={self.folder}")
        self.page.get_by_text("Kernels are ready").wait_for()
        self.page.get_by_role("treeitem", name=name).first.dblclick()
        self.page.locator(".notebookOverlay .cell").first.wait_for()

    def run(self, *indexes: int) -> None:
        """Click on the run buttons of cells."""
        for index in indexes:
            cell = self.page.locator(f'.notebookOverlay .monaco-list-row[data-index="{index}"]')
            cell.hover()
            cell.get_by_role("button", name="Execute Cell", exact=False).first.click()

    @property
    def outputs(self) -> FrameLocator:
        """The web view with the outputs of all cells."""
        return self.page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")

    def act(self, kind: str, **args: object) -> dict[str, object]:
        """Execute an Action in the notebook's kernel like an agent from outside."""
        address = f"{self.server.url}/oh_jupyter"
        (notebook,) = requests.get(
            f"{address}/notebooks", headers=self.server.headers, timeout=60
        ).json()
        answer = requests.post(
            f"{address}/kernels/{notebook['kernel_id']}/execute_action",
            json={"action": {"action": kind, "args": args}},
            headers=self.server.headers,
            timeout=300,
        )
        answer.raise_for_status()
        return dict(answer.json())


@contextmanager
def run_code_server(folder: Path, server: LiveServer, home: Path, theme: str) -> Iterator[str]:
    """Run a code-server with the extension until the block ends; yield its address."""
    extension = home / "extensions" / "oh-jupyter-tests.kernel-stand-in-0.0.1"
    shutil.copytree(HERE / "vscode_kernel", extension)
    (extension / "node_modules").symlink_to(SERVICES)
    settings = home / "data" / "User" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        json.dumps(
            {
                "workbench.colorTheme": THEMES[theme],
                "window.autoDetectColorScheme": False,
                "workbench.startupEditor": "none",
                "workbench.secondarySideBar.defaultVisibility": "hidden",
                "chat.disableAIFeatures": True,
                "files.autoSave": "afterDelay",
                "remote.autoForwardPorts": False,
                "notebook.output.scrolling": False,
            }
        )
    )
    command = [
        str(REAL), "--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry",
        "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override",
        "--config", str(home / "config.yaml"), "--user-data-dir", str(home / "data"),
        "--extensions-dir", str(home / "extensions"),
        "--session-socket", str(home / "socket"), str(folder),
    ]  # fmt: skip
    (home / "config.yaml").write_text("auth: none\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VSCODE_")},
        "STAND_IN_URL": server.url,
        "STAND_IN_TOKEN": TOKEN,
    }
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            lines = []
            for line in process.stdout:
                lines.append(line)
                if match := ANNOUNCEMENT.search(line):
                    break
            else:
                pytest.fail("code-server did not start:\n" + "".join(lines))
            yield match[1]
        finally:
            process.terminate()


@pytest.fixture(params=THEMES)
def window(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Window]:
    agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED)])}
    environment = {
        "OH_JUPYTER_CONFIRMATION": "always",
        "OH_JUPYTER_AGENTS": json.dumps(agents),
    }
    theme = request.param
    with (
        run_server(tmp_path, environment=environment) as server,
        run_code_server(tmp_path / "root", server, tmp_path, theme) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=find_executable(), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1300, "height": 1900}, color_scheme=theme)
        page.set_default_timeout(60_000)
        yield Window(page, tmp_path / "root", server, address)
        browser.close()


def test_diffs_tables_and_approvals_are_shown(window: Window) -> None:
    reject = "%oh_confirm --reject --all"
    window.open(
        "analysis.ipynb", LOAD, CREATE, EDIT, "%oh_run ls; false", "%oh_log --last 4", reject
    )
    window.run(0, 1, 2, 3, 4)
    outputs = window.outputs
    outputs.locator("ins.oh-Diff-line", has_text="HIGH = 7.25").wait_for()
    outputs.locator(".oh-Output-badge", has_text="exit 1").wait_for()
    outputs.locator("table.oh-Output-table").wait_for()
    with ThreadPoolExecutor(1) as agents:
        command = "git push --force"
        answer = agents.submit(window.act, "run", command=command)
        notice = outputs.locator(".oh-Output", has_text="waits for your decision")
        expect(notice).to_contain_text(command)
        expect(notice).to_contain_text("%oh_confirm")
        window.run(5)
        assert "rejected" in str(answer.result()["content"])


def test_a_waiting_cell_asks_in_an_input_box(window: Window) -> None:
    ask = "%oh_agent scripted ask write asked.txt: from VS Code"
    window.open("asking.ipynb", LOAD, ask, "%oh_rewind last --yes")
    window.run(0, 1)
    box = window.page.locator(".quick-input-widget")
    expect(box).to_contain_text("May Scripted do that?")
    expect(box).not_to_contain_text("+from VS Code")
    window.outputs.locator("ins.oh-Diff-line", has_text="from VS Code").first.wait_for()
    box.locator("input[type=text]").fill("y")
    window.page.keyboard.press("Enter")
    window.outputs.get_by_text("The answer was once").first.wait_for()
    window.run(2)
    window.outputs.get_by_text("undoes this").wait_for()
    assert not (window.folder / "asked.txt").exists()
