"""The story of the tour, in JupyterLab: cells on one side, REST on the other, one kernel."""

from __future__ import annotations

import json
import os

TOUR = "00-tour.ipynb"


def picture_of_the_tour(page, path: str) -> None:
    """The picture of the README: the page in the notebook, the agent's cell in the panel."""
    page.evaluate("jupyterapp.shell.collapseLeft()")
    panel = page.locator("#oh-jupyter-log").bounding_box()
    page.mouse.move(panel["x"] - 2, 500)
    page.mouse.down()
    page.mouse.move(panel["x"] - 180, 500)
    page.mouse.up()
    page.locator(".jp-OutputArea-output img").last.evaluate("e => e.scrollIntoView({block: 'end'})")
    page.locator("#oh-jupyter-log .oh-Card", has_text="str_replace").first.click()
    page.locator("#oh-jupyter-log .oh-Diff-line").first.wait_for()
    page.screenshot(path=path)


def test_the_tour_runs_and_the_panel_shows_whoever_acts(lab, open_notebook) -> None:
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

    if folder := os.environ.get("OH_JUPYTER_PICTURES"):
        picture_of_the_tour(page, f"{folder}/tour.png")


def test_the_status_stays_busy_while_the_agent_works_beside_a_cell(lab, open_notebook) -> None:
    page = open_notebook("00-tour.ipynb")
    kernel = lab.kernel_of(TOUR)
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
