"""The story of the tour, in JupyterLab: cells on one side, REST on the other, one kernel."""

from __future__ import annotations

import json

import pytest
from pictures import take_picture
from playwright.sync_api import expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

TOUR = "00-tour.ipynb"


@pytest.mark.thorough
def test_the_tour_runs_and_the_panel_shows_every_actor(lab, open_notebook) -> None:
    page = open_notebook(TOUR)
    page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    ran = page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    errors = page.evaluate(
        """() => jupyterapp.shell.currentWidget.content.widgets
            .filter(cell => cell.model.type === 'code')
            .flatMap(cell => cell.model.outputs.toJSON())
            .filter(output => output.output_type === 'error')"""
    )
    assert errors == [], json.dumps(errors)
    assert ran is True
    cards = page.locator("#oh-jupyter-log .oh-Card")
    cards.nth(5).wait_for()

    kernel = lab.kernel_of(TOUR)
    code = "answer = 6 * 7; answer"
    action = {"action": {"action": "run_ipython", "args": {"code": code}}}
    observation = lab.request(f"oh_jupyter/kernels/{kernel}/execute_action", action)
    assert observation["content"].startswith("42")
    agents = page.locator("#oh-jupyter-log .oh-Card", has_text="answer = 6 * 7")
    agents.wait_for()
    assert agents.locator(".oh-Badge.oh-mod-agent").count() == 1


@pytest.mark.thorough
def test_the_status_stays_busy_while_the_agent_works_beside_a_cell(lab, open_notebook) -> None:
    page = open_notebook("00-tour.ipynb")
    kernel = lab.kernel_of(TOUR)
    load = {"action": {"action": "run", "args": {"command": "true"}}}
    lab.request(f"oh_jupyter/kernels/{kernel}/execute_action", load)
    page.evaluate(
        """() => new Promise(started => {
            const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
            const future = kernel.requestExecute({ code: 'import time; time.sleep(600)' });
            future.onIOPub = message => {
                if (message.header.msg_type === 'execute_input') started(null);
            };
        })"""
    )
    status = "jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
    assert page.evaluate(status) == "busy"
    action = {"action": {"action": "run", "args": {"command": "echo beside"}}}
    observation = lab.request(f"oh_jupyter/kernels/{kernel}/execute_action", action)
    assert observation["content"] == "beside"
    page.locator("#oh-jupyter-log .oh-Card", has_text="echo beside").wait_for()
    assert page.evaluate(status) == "busy"
    lab.request(f"api/kernels/{kernel}/interrupt", {})


MEASURED = "tide,height\n06:40,7.1\n12:55,0.9\n19:02,71.0\n"
CLEAN = "def clean(table):\n    return table[table.height > 0]\n"
CELLS = (
    {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# Tides of the harbour"},
    "%load_ext oh_jupyter",
    "import pandas\nfrom tides import clean\n\ntable = clean(pandas.read_csv('tides.csv'))\ntable",
)


def test_an_agent_repairs_a_file_and_its_command_waits(
    lab, open_notebook, write_notebook, agents
) -> None:
    (lab.root / "tides.csv").write_text(MEASURED)
    (lab.root / "tides.py").write_text(CLEAN)
    write_notebook("tides.ipynb", *CELLS)
    page = open_notebook("tides.ipynb")
    run_all_cells(page)
    address = f"oh_jupyter/kernels/{lab.kernel_of('tides.ipynb')}"

    def act(kind: str, **args: object) -> dict[str, object]:
        answer = lab.request(
            f"{address}/execute_action", {"action": {"action": kind, "args": args}}
        )
        return dict(answer)

    assert "71.0" in str(act("run_ipython", code="table.nlargest(1, 'height')")["content"])
    mended = {"old_str": "table.height > 0", "new_str": "table.height.between(0, 20)"}
    act("edit", command="str_replace", path=str(lab.root / "tides.py"), **mended)
    reload = "import importlib, tides\nclean = importlib.reload(tides).clean\nclean(table)"
    assert "71.0" not in str(act("run_ipython", code=reload)["content"])
    waiting = agents.submit(act, "run", command="sudo -n pip install --dry-run --upgrade pandas")

    panel = page.locator("#oh-jupyter-log")
    card = panel.locator(".oh-Card.oh-mod-waiting")
    expect(card.get_by_role("button", name="Approve").first).to_be_visible()
    edited = panel.locator(".oh-Card", has_text="Edited").locator(".oh-Card-header")
    expect(edited).to_have_attribute("title", str(lab.root / "tides.py"))
    expect(edited.locator("time")).to_have_text("now")
    edited.click()
    expect(panel.locator(".oh-Diff-line.oh-mod-added")).to_contain_text("between(0, 20)")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.evaluate("jupyterapp.shell.collapseLeft()")
    edge = panel.bounding_box()["x"] - 2
    page.mouse.move(edge, 500)
    page.mouse.down()
    page.mouse.move(edge - 80, 500)
    page.mouse.up()
    take_picture(page, "tour")
    card.get_by_role("button", name="Reject").dblclick()
    wait_until(waiting.done, what="the agent's answer")
    assert waiting.result()["observation"] == "user_rejected"
