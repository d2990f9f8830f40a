"""The persona in Jupyter AI's chat, beside the notebook in whose kernel it works."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from pictures import take_pictures
from playwright.sync_api import Locator, Page, expect
from run_cells import run_all_cells

pytest.importorskip("jupyter_ai_persona_manager", reason="needs Jupyter AI, see scripts/check")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NAME = "persona.ipynb"
SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"
SPLIT = """async name => {
    await jupyterapp.commands.execute('jupyterlab-chat:createAndOpen', { name });
    const chat = jupyterapp.shell.currentWidget;
    const [notebook] = [...jupyterapp.shell.widgets('main')].filter(each => each !== chat);
    jupyterapp.shell.add(chat, 'main', { mode: 'split-right', ref: notebook.id });
}"""


class Chat:
    """A chat in JupyterLab."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.widget = page.locator(".jp-chat-widget:visible")
        self._input = self.widget.get_by_placeholder("Type a chat message")
        expect(self.widget).to_contain_text("Notebook agent")

    @property
    def messages(self) -> Locator:
        return self.widget.locator(".jp-chat-message-container")

    def send(self, text: str) -> Locator:
        """Send a message; the persona's answer, which may still change."""
        before = self.messages.count()
        self._input.fill(text)
        self.widget.locator(".jp-chat-send-button").click()
        expect(self.messages).to_have_count(before + 2)
        return self.messages.last


@pytest.fixture
def open_chat(lab, open_notebook, write_notebook):
    """Opens a notebook whose kernel has the scripted agent, and a chat beside it."""

    def open_chat(name: str) -> Chat:
        agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED), "--options"])}
        setting = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps(agents)!r}"
        # An agent that obeys is not ended because a busy machine lets it obey late.
        patience = "from oh_jupyter.agents import session; session.CANCEL_TIMEOUT_SECONDS = 60"
        load = f"{setting}\n{patience}\n%load_ext oh_jupyter\n%oh_agent use scripted\nanswer = 41"
        write_notebook(NAME, load)
        page: Page = open_notebook(NAME)
        run_all_cells(page)
        page.evaluate(SPLIT, name)
        return Chat(page)

    return open_chat


def test_it_works_in_the_notebooks_kernel_and_is_undone(lab, open_chat) -> None:
    chat = open_chat("work")
    answer = chat.send(
        'say I add one.\ntool run_ipython {"code": "answer = answer + 1"}\nwrite made.txt: one'
    )
    expect(answer).to_contain_text("Changed made.txt. /undo undoes the turn.")
    expect(answer).to_contain_text("I add one.")
    expect(answer).to_contain_text("✓ run_ipython code: answer = answer + 1")
    assert (lab.root / "made.txt").read_text() == "one\n"
    kernel = lab.kernel_of(NAME)
    events = lab.request(f"oh_jupyter/kernels/{kernel}/events")["events"]
    actors = [each.get("oh_jupyter", {}).get("actor") or {} for each in events if "action" in each]
    assert {actor["guest"].rpartition("-")[0] for actor in actors if actor} == {"scripted"}
    take_pictures(chat.page, "persona")

    # It is the conversation of %oh_agent.
    answer = chat.send("prompts")
    expect(answer).to_contain_text("That was prompt 2.")

    # Its options are the agent's.
    expect(chat.send("options")).to_contain_text("model small")
    # In a narrow chat they are behind a menu.
    chat.page.evaluate("jupyterapp.shell.collapseLeft(); jupyterapp.shell.collapseRight()")
    chat.widget.get_by_role("button", name="The small").click()
    chat.page.get_by_text("The large", exact=True).click()
    expect(chat.send("options")).to_contain_text("model large")

    for _ in range(3):
        expect(chat.send("/undo")).to_contain_text("The last turn is undone.")
    expect(chat.send("/undo")).to_contain_text("The last turn is undone: made.txt")
    assert not (lab.root / "made.txt").exists()
    action = {"action": "run_ipython", "args": {"code": "print(answer)"}}
    path = f"oh_jupyter/kernels/{kernel}/execute_action"
    assert lab.request(path, {"action": action})["content"].startswith("41")

    chat.send("/new")
    expect(chat.send("prompts")).to_contain_text("That was prompt 1.")


def test_a_risky_step_waits_in_the_panel_and_is_reported_in_the_chat(open_chat) -> None:
    chat = open_chat("risky")
    answer = chat.send("run sudo -n true")
    expect(answer).to_contain_text(
        "Waits for your approval in the notebook or its panel: Running command: sudo"
    )
    card = chat.page.locator("#oh-jupyter-log .oh-Card.oh-mod-waiting")
    card.get_by_role("button", name="Reject").dblclick()
    expect(answer).not_to_contain_text("Waits for your approval")
    expect(answer).to_contain_text("rejected by the user")


def test_the_stop_button_interrupts_the_agent(lab, open_chat) -> None:
    chat = open_chat("stop")
    answer = chat.send("run sleep 1000")
    expect(answer).to_contain_text("… sleep 1000")
    chat.widget.locator(".jp-jai-stopButton").click()
    expect(answer).to_contain_text("Stopped.")
    assert "sleep 1000" not in json.dumps(
        lab.request(f"oh_jupyter/kernels/{lab.kernel_of(NAME)}/server_info")
    )


def test_without_a_notebook_it_explains_the_next_step(lab, open_chat) -> None:
    chat = open_chat("none")
    for session in lab.request("api/sessions"):
        lab.request(f"api/sessions/{session['id']}", method="DELETE")
    expect(chat.send("say hello")).to_contain_text("No notebook is open. Open one, then ask again.")
