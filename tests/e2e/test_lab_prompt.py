"""The prompt box: context, options of the agent, and prompts that wait for their turn."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pictures import take_pictures
from playwright.sync_api import Locator, Page, expect
from run_cells import OUTPUTS

pytestmark = pytest.mark.timeout(180)

SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
COMMAND = shlex.join([sys.executable, str(SCRIPTED), "--options"])
LOAD = f"""import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps({"scripted": COMMAND})!r}
from oh_jupyter.agents import session; session.CANCEL_TIMEOUT_SECONDS = 60
%load_ext oh_jupyter"""


@pytest.fixture
def open_box(
    lab, open_notebook, write_notebook: Callable[..., None]
) -> Callable[..., tuple[Page, Locator, Locator]]:
    """Open a notebook whose cells have run; return the page, the panel and the prompt box."""

    def open_box(name: str, *cells: str) -> tuple[Page, Locator, Locator]:
        write_notebook(name, LOAD, *cells)
        page: Page = open_notebook(name)
        page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
        panel = page.locator("#oh-jupyter-log")
        box = panel.get_by_role("textbox", name="Prompt for the agent")
        expect(box, str(page.evaluate(OUTPUTS))).to_be_focused()
        return page, panel, box

    return open_box


def select_cell(page: Page, index: int) -> None:
    page.evaluate(f"jupyterapp.shell.currentWidget.content.activeCellIndex = {index}")


def answer(panel: Locator) -> Locator:
    return panel.locator(".oh-AgentText").last


@pytest.mark.thorough
def test_context_goes_with_a_prompt(lab, open_box: Any) -> None:
    (lab.root / "prices.csv").write_text("price\n1\n")
    page, panel, box = open_box("context.ipynb", "total = 42", "total / 0")
    expect(page.locator(".jp-Cell.jp-mod-active [data-jp-item-name='oh-ask']")).to_be_visible()
    select_cell(page, 2)
    chips = panel.locator(".oh-Composer .oh-Chip-name")
    offers = panel.get_by_role("listbox", name="Add to the prompt")

    box.press_sequentially("context @cell")
    expect(offers.get_by_role("option", name="Cell 3 code", exact=True)).to_be_visible()
    error = offers.get_by_role("option", name="Error of cell 3 ZeroDivisionError")
    expect(error).to_be_visible()
    take_pictures(page, "offers")
    box.press("ArrowDown")
    box.press("Enter")
    expect(chips).to_have_text(["Error of cell 3"])
    expect(box).to_have_value("context @Error-of-cell-3 ")
    for name in ("tot", "pric"):
        box.press_sequentially(f"@{name}")
        expect(offers.get_by_role("option")).to_have_count(1)
        box.press("Tab")
    panel.get_by_role("button", name="@ Add context").click()
    offers.get_by_role("option", name="Cell 3 code", exact=True).click()
    expect(chips).to_have_text(["Error of cell 3", "total", "prices.csv", "Cell 3"])
    take_pictures(page, "chips")
    panel.get_by_role("button", name="Remove Cell 3 from the prompt").click()
    box.press("Enter")
    expect(answer(panel)).to_contain_text("Embedded: Error of cell 3:")
    expect(answer(panel)).to_contain_text("ZeroDivisionError: division by zero")
    expect(answer(panel)).to_contain_text("Embedded: Variable total:")
    expect(answer(panel)).to_contain_text("Link: prices.csv file://")
    expect(chips).to_have_count(0)
    expect(panel.locator(".oh-Turn .oh-Chip")).to_have_text(
        ["Error of cell 3", "Variable total", "prices.csv"]
    )
    box.press_sequentially("@nothing-has-this-name")
    expect(panel.get_by_text("No cell, variable or file has this name.")).to_be_visible()
    box.press("Escape")
    expect(panel.get_by_text("No cell, variable")).to_have_count(0)


@pytest.mark.thorough
def test_cells_and_files_are_dragged_into_the_prompt(lab, open_box: Any) -> None:
    (lab.root / "dragged.csv").write_text("price\n1\n")
    page, panel, box = open_box("dragged.ipynb", "total = 42", "total + 1")
    chips = panel.locator(".oh-Composer .oh-Chip-name")
    drag(page, page.locator(".jp-InputPrompt").nth(1), panel)
    expect(panel).to_have_class(re.compile("oh-mod-drop"))
    take_pictures(page, "drop")
    page.mouse.up()
    expect(panel).not_to_have_class(re.compile("oh-mod-drop"))
    expect(chips).to_have_text(["Cell 2"])
    expect(box).to_be_focused()
    assert len(page.locator(".jp-Notebook .jp-Cell").all()) == 3

    page.evaluate("jupyterapp.commands.execute('filebrowser:refresh')")
    listing = page.locator(".jp-DirListing-item:visible")
    drag(page, listing.filter(has_text="dragged.csv"), panel)
    page.mouse.up()
    expect(chips).to_have_text(["Cell 2", "dragged.csv"])
    folder = lab.root / "a-folder"
    folder.mkdir()
    page.evaluate("jupyterapp.commands.execute('filebrowser:refresh')")
    drag(page, listing.filter(has_text="a-folder"), panel)
    page.mouse.up()
    failure = panel.get_by_role("alert")
    expect(failure).to_have_text("a-folder is not a file of the workspace of this kernel.")
    assert folder.exists()
    expect(chips).to_have_count(2)


def drag(page: Page, source: Locator, target: Locator) -> None:
    """Drag a node over another one, and hold it there."""
    for at, steps in ((source, 1), (target, 10)):
        box = at.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2, steps=steps)
        if at is source:
            page.mouse.down()


@pytest.mark.thorough
def test_prompts_wait_for_their_turn(open_box: Any) -> None:
    page, panel, box = open_box("queue.ipynb")
    box.fill("options")
    box.press("Enter")
    expect(answer(panel)).to_have_text("Set: mode default, model small, reasoning low, web False.")
    panel.get_by_role("combobox", name="Mode", exact=True).select_option("The plan")
    panel.get_by_role("checkbox", name="Web").check()
    box.fill("options\nrun sleep 1000")
    box.press("Enter")
    expect(answer(panel)).to_have_text("Set: mode plan, model small, reasoning low, web True.")

    queue = panel.get_by_role("list", name="Next prompts")
    for prompt in ("say later", "say never"):
        box.fill(prompt)
        box.press("Enter")
    expect(queue.get_by_role("listitem")).to_have_count(2)
    take_pictures(page, "queue")
    queue.get_by_role("button", name="Remove the prompt say never").click()
    expect(queue.get_by_role("listitem")).to_have_count(1)
    box.press("Escape")
    expect(panel.locator(".oh-TurnSum").last).to_contain_text("stopped")
    # A stop also holds what waits.
    expect(queue).to_contain_text("Next: say later")
    queue.get_by_role("button", name="Send now").click()
    expect(answer(panel)).to_have_text("later")
    expect(queue).to_have_count(0)

    box.fill("run sleep 1")
    box.press("Enter")
    box.fill("say at once")
    box.press("Enter")
    expect(answer(panel)).to_have_text("at once")


@pytest.mark.thorough
def test_a_prompt_that_fails_is_not_lost(open_box: Any) -> None:
    page, panel, box = open_box("lost.ipynb", "gone = 1")
    box.press_sequentially("context @gon")
    expect(panel.get_by_role("option", name="gone")).to_have_count(1)
    box.press("Enter")
    page.evaluate(
        """() => jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({ code: 'del gone' }).done.then(() => true)"""
    )
    box.press("Enter")
    expect(panel.get_by_role("alert")).to_contain_text("There is no variable 'gone'")
    expect(box).to_have_value("context @gone ")
    expect(panel.locator(".oh-Composer .oh-Chip-name")).to_have_text(["gone"])


@pytest.mark.thorough
def test_a_reload_keeps_the_draft_and_the_queue(lab, open_box: Any, context: Any) -> None:
    page, panel, box = open_box("reloaded.ipynb", "total = 42")
    # Until the file exists.
    box.fill("run until [ -e go ]; do sleep 0.1; done")
    box.press("Enter")
    box.fill("say later")
    box.press("Enter")
    box.press_sequentially("about @tot")
    expect(panel.get_by_role("option", name="total")).to_have_count(1)
    box.press("Tab")
    queue = panel.get_by_role("list", name="Next prompts")
    expect(queue.get_by_role("listitem")).to_have_count(1)
    page.reload()
    # A window that is duplicated has the same queue.
    stored = page.evaluate("JSON.stringify(sessionStorage)")
    other = context.new_page()
    other.add_init_script(f"Object.assign(sessionStorage, {stored})")
    other.goto(f"{lab.url}/lab/workspaces/second/tree/reloaded.ipynb?reset")
    for window in (page, other):
        window.wait_for_function("window.jupyterapp?.restored.then(() => true)")
        window.evaluate("jupyterapp.commands.execute('oh-jupyter:show-log')")
        expect(window.locator(".oh-Composer textarea")).to_have_value("about @total ")
        expect(window.locator(".oh-Composer .oh-Chip-name")).to_have_text(["total"])
        expect(window.locator(".oh-Queue-text")).to_have_text(["Next: say later"])
    (lab.root / "go").touch()
    for window in (page, other):
        expect(window.locator(".oh-AgentText").last).to_have_text("later")
        expect(window.locator(".oh-Queue li")).to_have_count(0)
        expect(window.locator(".oh-Turn-prompt", has_text="say later")).to_have_count(1)
        expect(window.locator(".oh-Agent-failure")).to_have_count(0)


@pytest.mark.thorough
def test_a_cell_and_its_error_become_a_prompt(open_box: Any) -> None:
    page, panel, box = open_box("cell.ipynb", "total = 42", "total / 0")
    bar = page.locator(".oh-ErrorBar")
    expect(bar).to_have_count(1)
    take_pictures(page, "error-bar")
    bar.get_by_role("button", name="Let an agent fix the error of this cell").click()
    expect(panel.locator(".oh-Turn-prompt")).to_have_text("Fix the error of Cell 3.")
    expect(panel.locator(".oh-Turn .oh-Chip")).to_have_text(["Cell 3", "Error of cell 3"])
    expect(answer(panel)).to_contain_text("Fix the error of Cell 3.")

    select_cell(page, 1)
    page.locator(".jp-Cell-Prompt, .jp-InputPrompt").nth(1).click(button="right")
    menu = page.locator(".lm-Menu")
    expect(menu.get_by_text("Agent: Fix This Error")).to_be_hidden()
    menu.get_by_text("Agent: Ask About This Cell").click()
    expect(panel.locator(".oh-Composer .oh-Chip-name")).to_have_text(["Cell 2"])
    expect(box).to_be_focused()
    box.press_sequentially("say hi")
    box.press("Enter")
    expect(answer(panel)).to_have_text("hi")

    page.evaluate("jupyterapp.commands.execute('oh-jupyter:explain-cell')")
    expect(answer(panel)).to_contain_text("Explain Cell 2. Change nothing.")
    page.evaluate("jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
    expect(bar).to_have_count(0)


@pytest.mark.thorough
def test_an_empty_panel_offers_prompts_for_the_data(open_box: Any) -> None:
    table = "class DataFrame(list): pass\nsales = DataFrame([1])"
    page, panel, box = open_box("first-use.ipynb", table)
    examples = panel.get_by_role("list", name="Examples").get_by_role("button")
    expect(examples).to_have_count(3)
    take_pictures(page, "first-use")
    examples.first.click()
    expect(box).to_have_value("Describe sales: columns, missing values, outliers")
    expect(box).to_be_focused()
    expect(panel.locator(".oh-Composer .oh-Chip-name")).to_have_text(["sales"])
    box.press("Enter")
    expect(answer(panel)).to_contain_text("Describe sales")
    expect(examples).to_have_count(0)
