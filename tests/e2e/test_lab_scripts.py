"""Scripts in outputs of a sandboxed kernel run once a person allows them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

from oh_jupyter.boxed_kernel import KERNEL_NAME, install_kernelspec
from oh_jupyter.sandbox import find_engine

pytestmark = pytest.mark.thorough

PLANT = """\
from IPython.display import HTML, Javascript, display
class Evil:
    def _repr_html_(self):
        picture = "<img src='files/leak?data' onerror='window.ran = 1'>"
        return f"<b>shown</b>{picture}<script>window.ran = 1</script>"
formatters = get_ipython().display_formatter.formatters
formatters["text/html"].for_type(int, lambda number: Evil()._repr_html_())
display(Javascript("window.ran = 1"))"""
OPEN_COMM = """from comm import create_comm
create_comm(target_name="test.scripts", data={})"""
WATCH_COMMS = """jupyterapp.shell.currentWidget.sessionContext.session.kernel
    .registerCommTarget("test.scripts", () => { window.opened = 1; })"""
FACTS = """() => jupyterapp.shell.currentWidget.content.model.toJSON().cells
    .map(cell => cell.metadata.trusted ?? false)"""
NOTICE = ".oh-ScriptNotice:visible"


@pytest.fixture
def open_with(lab: Any, open_notebook: Any, write_notebook: Any) -> Any:
    def open_with(kernel: str, name: str, *cells: str) -> Page:
        write_notebook(name, *cells)
        path = lab.root / name
        content = json.loads(path.read_text())
        content["metadata"]["kernelspec"]["name"] = kernel
        path.write_text(json.dumps(content))
        return open_notebook(name)

    return open_with


def has_run(page: Page) -> bool:
    time.sleep(1)  # a script that is about to run would run by then
    return page.evaluate("[window.ran, window.opened].some(Boolean)")


@pytest.mark.skipif(find_engine().program is None, reason="needs bubblewrap, and user namespaces")
def test_scripts_of_a_sandboxed_kernel_wait_for_a_click(open_with) -> None:
    install_kernelspec()
    page = open_with(KERNEL_NAME, "boxed-scripts.ipynb", PLANT, "1 + 1", OPEN_COMM)
    page.evaluate(WATCH_COMMS)
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    run_all_cells(page)
    expect(page.locator(".jp-OutputArea-output b", has_text="shown")).to_be_visible()
    assert not has_run(page)
    assert page.evaluate(FACTS) == [False] * 3
    assert not [address for address in addresses if "leak" in address]
    page.locator(NOTICE).get_by_role("button").click()
    page.wait_for_function("window.ran === 1")
    expect(page.locator(NOTICE)).to_have_count(0)
    run_all_cells(page)
    page.wait_for_function("window.opened === 1")


def test_scripts_of_an_ordinary_kernel_run(open_with) -> None:
    page = open_with("python3", "scripts.ipynb", PLANT, "1 + 1", OPEN_COMM)
    page.evaluate(WATCH_COMMS)
    run_all_cells(page)
    page.wait_for_function("window.ran === 1 && window.opened === 1")
    assert page.evaluate(FACTS) == [True] * 3
    expect(page.locator(NOTICE)).to_have_count(0)


@pytest.mark.skipif(find_engine().program is None, reason="needs bubblewrap, and user namespaces")
def test_a_console_of_a_sandboxed_kernel_runs_no_scripts(open_with) -> None:
    install_kernelspec()
    page = open_with(KERNEL_NAME, "console.ipynb", "1")
    page.evaluate(
        """async ([name, code]) => {
            const panel = await jupyterapp.commands.execute(
                'console:create', { kernelPreference: { name }, activate: true });
            await panel.sessionContext.ready;
            await panel.console.inject(code);
            await panel.console.inject('1 + 1');
        }""",
        [KERNEL_NAME, PLANT],
    )
    expect(page.locator(".jp-CodeConsole b", has_text="shown")).to_be_visible()
    assert not has_run(page)
    page.locator(NOTICE).get_by_role("button").click()
    page.wait_for_function("window.ran === 1")
