"""A person talks with an agent in the panel, in the conversation that the magic has."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from panel_menu import choose
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.timeout(180)

NAME = "agent.ipynb"
SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"


def test_an_agent_that_is_set_later_can_be_asked_at_once(
    lab, open_notebook, write_notebook
) -> None:
    setting = "import os; os.environ['PATH'] = '/nowhere'; os.environ['OH_JUPYTER_AGENTS'] = '{}'"
    agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED)])}
    write_notebook(
        "later.ipynb", f"{setting}\n%load_ext oh_jupyter", f"%config OhJupyter.agents = {agents!r}"
    )
    page: Page = open_notebook("later.ipynb")
    run_cell = "jupyterapp.commands.execute('notebook:run-cell')"
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 0")
    page.evaluate(run_cell)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    panel = page.locator("#oh-jupyter-log")
    expect(panel.get_by_text("No agent is installed")).to_be_visible()
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 1")
    page.evaluate(run_cell)
    expect(panel.get_by_text("No agent is installed")).to_have_count(0)
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    box.fill("write pencil.txt: one")
    box.press("Enter")
    expect(panel.locator(".oh-AgentText, .oh-Card-header").first).to_be_visible()
    header = panel.locator(".oh-Card-header:not([title^='write '])", has_text="pencil.txt")
    expect(header).to_have_accessible_name(re.compile("^pencil.txt, .*(Wrote|Edited|Created)"))


@pytest.mark.thorough
def test_a_conversation_with_steps_and_costs(lab, open_notebook, write_notebook) -> None:
    agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED)])}
    setting = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps(agents)!r}"
    # An agent that obeys is not ended because a busy machine lets it obey late.
    patience = "from oh_jupyter.agents import session; session.CANCEL_TIMEOUT_SECONDS = 60"
    load = f"{setting}\n{patience}\n%load_ext oh_jupyter"
    write_notebook(NAME, load, "%oh_agent scripted prompts")
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    panel = page.locator("#oh-jupyter-log")
    turns = panel.locator(".oh-Turn")
    expect(panel.locator(".oh-AgentText")).to_have_text("That was prompt 1.")
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    expect(box).to_be_focused()

    box.fill("prompts")
    box.press("Shift+Enter")
    page.keyboard.type("plan look at the file; count its lines")
    box.press("Shift+Enter")
    page.keyboard.type("write made_by_agent.txt: one")
    box.press("Enter")
    expect(turns).to_have_count(2)
    expect(panel.locator(".oh-AgentText").last).to_contain_text("That was prompt 2.")
    sum = panel.locator(".oh-TurnSum").last
    expect(sum).to_contain_text("1 file changed · $0.01")
    expect(turns.last.get_by_role("list", name="Plan")).to_contain_text("count its lines")
    written = panel.locator(".oh-Card", has_text="made_by_agent.txt")
    expect(written).to_have_count(1)
    assert (lab.root / "made_by_agent.txt").read_text() == "one\n"
    expect(panel.locator(".oh-Header-costs")).to_have_text("$0.02")
    take_pictures(page, "agent")

    turns.last.get_by_role("button").click()
    expect(written).to_have_count(0)
    turns.last.get_by_role("button").click()
    expect(written).to_have_count(1)
    choose(page, "Log as a flat list")
    expect(turns).to_have_count(0)
    expect(written).to_have_count(1)
    choose(page, "Log as a flat list")

    box.fill("run sleep 1000")
    box.press("Enter")
    expect(panel.locator(".oh-Card").last).to_contain_text("sleep 1000")
    status = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}/server_info"

    def runs() -> bool:
        return "sleep 1000" in json.dumps(lab.request(status))

    panel.locator(".oh-Composer").get_by_role("button", name="Stop").click()
    expect(panel.locator(".oh-TurnSum").last).to_contain_text("stopped")
    wait_until(lambda: not runs(), what="the agent's command ending")
    expect(panel.get_by_role("button", name="Send")).to_be_visible()
    names = panel.locator(".oh-Badge.oh-mod-agent")
    expect(names.first).to_have_text("Scripted")
    assert set(names.all_inner_texts()) == {"Scripted"}

    undo = panel.locator(".oh-TurnSum", has_text="1 file changed")
    undo.get_by_role("button", name="Undo turn…").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Undo").click()
    expect(panel.locator(".oh-TurnSum", has_text="undone")).not_to_have_count(0)
    assert not (lab.root / "made_by_agent.txt").exists()


@pytest.mark.thorough
def test_an_agents_question_is_answered_in_the_log(open_notebook, write_notebook) -> None:
    name = "question.ipynb"
    agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED)])}
    setting = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps(agents)!r}"
    fields = {
        "region": {"type": "string", "title": "Region", "enum": ["eu", "us"]},
        "copies": {"type": "integer", "title": "Copies", "maximum": 3},
        "public": {"type": "boolean", "title": "Public"},
    }
    question = f"%oh_agent scripted question {json.dumps(fields)} &"
    write_notebook(name, f"{setting}\n%load_ext oh_jupyter", question)
    page: Page = open_notebook(name)
    run_all_cells(page)
    page.evaluate("jupyterapp.shell.activateById('oh-jupyter-log')")
    form = page.get_by_role("form", name="Answer the question of Scripted")
    form.get_by_role("combobox", name="Region").select_option("us")
    form.get_by_role("spinbutton", name="Copies").fill("4")
    form.get_by_role("checkbox", name="Public").check()
    take_pictures(page, "question")
    form.get_by_role("button", name="Answer").click()
    expect(form.get_by_role("alert")).to_contain_text("Copies must be at most 3")
    form.get_by_role("spinbutton", name="Copies").fill("2")
    form.get_by_role("button", name="Answer").click()
    expect(form).to_have_count(0)
    expect(page.locator(".jp-Notebook")).to_contain_text(
        'accept {"copies": 2, "public": true, "region": "us"}'
    )


@pytest.mark.thorough
def test_without_an_agent_the_panel_shows_install_instructions(
    open_notebook, write_notebook
) -> None:
    name = "no-agent.ipynb"
    write_notebook(name, "import os; os.environ['PATH'] = '/nowhere'\n%load_ext oh_jupyter")
    page: Page = open_notebook(name)
    run_all_cells(page)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    panel = page.locator("#oh-jupyter-log")
    expect(panel.get_by_text("No agent is installed.")).to_be_visible()
    take_pictures(page, "installations")
    agents = panel.get_by_role("list", name="Agents")
    command = agents.get_by_role("listitem").first.locator("code").text_content()
    assert command
    agents.get_by_role("button", name="Copy the installation command of").first.click()
    expect(page.locator(".Toastify__toast", has_text=command)).to_have_count(1)
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
