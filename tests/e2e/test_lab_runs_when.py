"""Changed files that a person's programs run are named wherever the person sees the changes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

pytestmark = pytest.mark.timeout(180)

NAME = "runs.ipynb"
SCRIPTED = Path(__file__).parents[2] / "examples" / "scripted_agent.py"


@pytest.mark.thorough
def test_a_person_sees_which_changed_files_run(lab, open_notebook, write_notebook) -> None:
    makefile = lab.root / "Makefile"
    makefile.write_text("all:\n\ttrue\n")
    agents = {"scripted": shlex.join([sys.executable, str(SCRIPTED)])}
    setting = f"import os; os.environ['OH_JUPYTER_AGENTS'] = {json.dumps(agents)!r}"
    write_notebook(NAME, f"{setting}\n%load_ext oh_jupyter", "%oh_agent scripted prompts")
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:ask-agent')")
    panel = page.locator("#oh-jupyter-log")
    expect(panel.locator(".oh-AgentText")).to_have_text("That was prompt 1.")
    page.evaluate(
        "jupyterapp.commands.execute('docmanager:open', {path: 'Makefile'}).then(() => 0)"
    )
    expect(page.locator(".jp-FileEditor:visible")).to_contain_text("true")

    box = panel.get_by_role("textbox", name="Prompt for the agent")
    box.fill("run sed -i s/true/false/ Makefile; echo x = 1 > conftest.py; echo x > plain.txt")
    box.press("Enter")
    runs = panel.get_by_role("list", name="Changed files that run").get_by_role("listitem")
    labels = ["Makefile · runs when you run make", "conftest.py · runs when you run pytest"]
    expect(runs).to_have_text(labels)
    bar = page.get_by_role("region", name="Review of changes")
    expect(bar.locator(".oh-RunsWhen")).to_have_text("runs when you run make")

    panel.get_by_text("Changes in this session").click()
    files = panel.get_by_role("list", name="Changed files", exact=True).get_by_role("listitem")
    label = files.filter(has_text="conftest.py").locator(".oh-RunsWhen")
    expect(label).to_have_text("runs when you run pytest")
    expect(files.filter(has_text="plain.txt").locator(".oh-RunsWhen")).to_have_count(0)
    files.filter(has_text="Makefile").get_by_role("button").click()
    change = page.locator("#oh-jupyter-changes").get_by_role("listitem", name="Makefile")
    expect(change.locator(".oh-RunsWhen")).to_have_text("runs when you run make")
