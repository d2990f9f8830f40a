"""A person talks with an agent in the panel, in the conversation that the magic has."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.timeout(180)

NAME = "agent.ipynb"
SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"


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
    panel = page.locator("#oh-jupyter-agent")
    turns = panel.locator(".oh-Turn")
    expect(turns).to_contain_text("That was prompt 1.")
    box = panel.get_by_role("textbox", name="Prompt for the agent")
    expect(box).to_be_focused()

    box.fill("prompts")
    box.press("Shift+Enter")
    page.keyboard.type("plan look at the file; count its lines")
    box.press("Shift+Enter")
    page.keyboard.type("write made_by_agent.txt: one")
    box.press("Enter")
    expect(turns).to_have_count(2)
    last = turns.last
    expect(last).to_contain_text("That was prompt 2.")
    expect(last.locator(".oh-Turn-facts")).to_contain_text("1 step · 1 file changed · $0.01")
    expect(last.get_by_role("list", name="Plan")).to_contain_text("count its lines")
    last.locator(".oh-Step summary").click()
    expect(last.locator(".oh-Step")).to_contain_text("Write made_by_agent.txt")
    assert (lab.root / "made_by_agent.txt").read_text() == "one\n"
    expect(panel.locator(".oh-Agent-costs")).to_have_text("$0.02")
    take_pictures(page, "agent")

    box.fill("run sleep 1000")
    box.press("Enter")
    expect(turns.last.locator(".oh-Step")).to_contain_text("sleep 1000")
    status = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}/server_info"

    def runs() -> bool:
        return "sleep 1000" in json.dumps(lab.request(status))

    panel.get_by_role("button", name="Stop").click()
    expect(turns.last.locator(".oh-Turn-facts")).to_contain_text("stopped")
    wait_until(lambda: not runs(), what="the agent's command ending")
    expect(panel.get_by_role("button", name="Send")).to_be_visible()
    page.evaluate("jupyterapp.shell.activateById('oh-jupyter-log')")
    names = page.locator("#oh-jupyter-log .oh-Badge.oh-mod-agent")
    expect(names.first).to_have_text("Scripted")
    assert set(names.all_inner_texts()) == {"Scripted"}


@pytest.mark.thorough
def test_without_an_agent_the_panel_says_how_to_get_one(open_notebook, write_notebook) -> None:
    name = "no-agent.ipynb"
    write_notebook(name, "import os; os.environ['PATH'] = '/nowhere'\n%load_ext oh_jupyter")
    page: Page = open_notebook(name)
    run_all_cells(page)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    agents = page.locator("#oh-jupyter-agent").get_by_role("region", name="Agents")
    command = agents.get_by_role("listitem").first.locator("code").text_content()
    assert command
    agents.get_by_role("button", name="Copy the installation command of").first.click()
    expect(page.locator(".Toastify__toast", has_text=command)).to_have_count(1)
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
