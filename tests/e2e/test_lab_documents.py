"""An agent's edits of an open document appear in the tab at once, and no text is lost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from live_tab import DIRTY, SOURCES, Tab, expect_no_dialog
from playwright.sync_api import expect

pytestmark = pytest.mark.one_page


@pytest.mark.thorough
def test_an_agents_edits_show_at_once_and_keep_typed_text(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2", "three = 3")
    tab.edit(cell="cell-0", new_str="one = 11")
    tab.expect(SOURCES, ["one = 11", "two = 2", "three = 3"])
    tab.expect(DIRTY, False)

    tab.type(1, " # mine")
    tab.edit(cell="cell-2", new_str="three = 33")
    tab.expect(SOURCES, ["one = 11", "two = 2 # mine", "three = 33"])
    tab.save()
    assert tab.file_sources == tab.sources
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_the_agent_reads_unsaved_text(open_tab) -> None:
    tab = open_tab("one = 1")
    tab.type_and_report(0, " # typed")
    assert "# typed" in tab.act("run", command=f"cat {tab.file}")


@pytest.mark.thorough
def test_mcp_tools_change_the_open_tab(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    tab.type_and_report(0, " # typed")
    assert "# typed" in tab.call("read_cells")
    tab.call("insert_cell", source="three = 3")
    tab.expect(SOURCES, ["one = 1 # typed", "two = 2", "three = 3"])
    tab.call("move_cell", cell=2, index=0)
    tab.expect(SOURCES, ["three = 3", "one = 1 # typed", "two = 2"])
    tab.call("delete_cell", cell=2)
    tab.expect(SOURCES, ["three = 3", "one = 1 # typed"])
    tab.call("run_cell", cell=0)
    tab.expect("jupyterapp.shell.currentWidget.content.widgets[0].model.executionCount > 0", True)
    tab.expect(DIRTY, False)
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_an_agents_edit_is_undone_by_a_key(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    tab.edit(cell="cell-1", new_str="two = 22")
    tab.edit(edit_mode="insert", cell="cell-1", new_str="three = 3", cell_type="code")
    tab.expect(SOURCES, ["one = 1", "two = 22", "three = 3"])
    tab.type(1, "")
    tab.page.keyboard.press("Control+z")
    tab.expect(SOURCES, ["one = 1", "two = 2", "three = 3"])
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("z")
    tab.expect(SOURCES, ["one = 1", "two = 2"])
    tab.save()
    assert tab.file_sources == ["one = 1", "two = 2"]
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_a_cell_that_was_undone_is_redone_after_another_edit_of_the_agent(open_tab) -> None:
    tab = open_tab("one = 1")
    tab.edit(edit_mode="insert", cell="cell-0", new_str="two = 2", cell_type="code")
    tab.expect(SOURCES, ["one = 1", "two = 2"])
    tab.page.evaluate("jupyterapp.commands.execute('notebook:undo-cell-action')")
    tab.expect(SOURCES, ["one = 1"])
    tab.edit(edit_mode="insert", new_str="zero = 0", cell_type="code")
    tab.expect(SOURCES, ["zero = 0", "one = 1"])
    tab.page.evaluate("jupyterapp.commands.execute('notebook:redo-cell-action')")
    tab.expect(SOURCES, ["zero = 0", "one = 1", "two = 2"])
    tab.save()
    assert tab.file_sources == tab.sources


@pytest.mark.thorough
def test_typing_ends_when_an_agent_deletes_its_cell(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2", "three = 3")
    tab.type(1, "")
    tab.call("edit_cell", cell="cell-1", delete=True)
    tab.expect(SOURCES, ["one = 1", "three = 3"])
    tab.page.keyboard.type("ddx")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".Toastify__toast", has_text="was deleted in the file")).to_have_count(
        1
    )
    tab.save()
    assert tab.sources == ["one = 1", "three = 3"]
    assert tab.file_sources == tab.sources


@pytest.mark.thorough
def test_both_versions_of_a_conflict_are_kept(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    tab.type(0, " # mine")
    tab.file.write_text(tab.file.read_text().replace("one = 1", "one = 'agent'"))
    tab.look()
    tab.expect(SOURCES, ["one = 1 # mine", "one = 'agent'", "two = 2"])
    expect(tab.page.locator(".Toastify__toast", has_text="both versions")).to_have_count(1)
    tab.save()
    assert tab.file_sources == tab.sources
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_outputs_and_the_cursor_stay(open_tab) -> None:
    tab = open_tab("print('out')", "two = 2", "three = 3")
    tab.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    outputs = "jupyterapp.shell.currentWidget.content.widgets[0].model.outputs.length"
    tab.expect(outputs, 1)
    tab.type(1, " # he")
    tab.edit(cell="cell-0", new_str="print('out') # agent")
    tab.edit(edit_mode="insert", cell="cell-0", new_str="between", cell_type="markdown")
    tab.expect(f"{SOURCES}.length", 4)
    tab.page.keyboard.type("re")
    tab.expect(SOURCES, ["print('out') # agent", "between", "two = 2 # here", "three = 3"])
    tab.expect(outputs, 1)
    tab.save()
    assert json.loads(tab.file.read_text())["cells"][0]["outputs"]


@pytest.mark.thorough
def test_an_open_text_file_follows_the_agent(lab, open_tab) -> None:
    tab = open_tab("one = 1")
    for name in ("open.py", "open.md"):
        follow_in_a_text_file(tab, lab.root / name)
    expect_no_dialog(tab.page)


def follow_in_a_text_file(tab: Tab, path: Path) -> None:
    path.write_text("a = 1\n\nb = 2\n\nc = 3\n")
    tab.page.evaluate(
        "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => true)",
        path.name,
    )
    source = "jupyterapp.shell.currentWidget.context.model.sharedModel.getSource()"
    tab.page.locator(".jp-FileEditor:visible .cm-content").click()
    tab.expect(source, path.read_text())
    tab.act("edit", command="str_replace", path=str(path), old_str="b = 2", new_str="b = 22")
    tab.expect(source, "a = 1\n\nb = 22\n\nc = 3\n")
    tab.page.keyboard.press("Control+End")
    tab.page.keyboard.type("typed")
    path.write_text(path.read_text().replace("a = 1", "a = 11"))
    tab.look()
    tab.expect(source, "a = 11\n\nb = 22\n\nc = 3\ntyped")
    path.write_text("a = 11\n\nb = 22\n\nc = 3\nd = 4\n")
    tab.look()
    tab.page.wait_for_function(f"{source}.includes('<<<<<<<')")
    assert "typed" in tab.page.evaluate(source)
    assert "d = 4" in tab.page.evaluate(source)
    tab.save()
    assert path.read_text() == tab.page.evaluate(source)


@pytest.mark.thorough
def test_text_typed_during_a_save_is_kept(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    tab.type(0, " # mine")
    changed = [tab.file.read_text().replace("two = 2", "two = 'agent'")]

    def write_first(route: Any) -> None:
        if route.request.method == "PUT" and changed:
            tab.file.write_text(changed.pop())
        route.continue_()

    tab.page.route("**/api/contents/**", write_first)
    tab.save()
    tab.expect(SOURCES, ["one = 1 # mine", "two = 'agent'"])
    assert (changed, tab.file_sources) == ([], tab.sources)
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_the_cell_in_which_a_person_types_keeps_the_cursor(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2", "three = 3")
    tab.type(0, " # he")
    tab.call("move_cell", cell="cell-0", index=2)
    tab.expect(SOURCES, ["two = 2", "three = 3", "one = 1 # he"])
    tab.page.keyboard.type("re")
    tab.expect(SOURCES, ["two = 2", "three = 3", "one = 1 # here"])


@pytest.mark.thorough
def test_cells_that_move_above_leave_the_cursor_where_it_is(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2", "three = 3", "four = 4")
    tab.type(2, " # he")
    tab.call("move_cell", cell="cell-0", index=1)
    tab.expect(SOURCES, ["two = 2", "one = 1", "three = 3 # he", "four = 4"])
    tab.page.keyboard.type("re")
    tab.expect(SOURCES, ["two = 2", "one = 1", "three = 3 # here", "four = 4"])
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("z")
    tab.expect(SOURCES, ["one = 1", "two = 2", "three = 3 # here", "four = 4"])


def second_window(lab: Any, first: Tab) -> Tab:
    """Open the notebook of a tab in another window."""
    page = first.page.context.new_page()
    page.goto(f"{lab.url}/lab/workspaces/second/tree/{first.file.name}?reset")
    page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    return Tab(lab, page, first.file.name)


TOASTS = """() => {
    window.toasts = [];
    const earlier = new Set(document.querySelectorAll('.Toastify__toast'));
    new MutationObserver(() => {
        for (const toast of document.querySelectorAll('.Toastify__toast')) {
            const { textContent } = toast;
            if (!earlier.has(toast) && textContent && !window.toasts.includes(textContent)) {
                window.toasts.push(textContent);
            }
        }
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""


@pytest.mark.thorough
def test_another_window_reports_no_conflict_for_the_persons_edits(lab, open_tab) -> None:
    first = open_tab("one = 1", "two = 2", "three = 3")
    second = second_window(lab, first)
    second.expect(SOURCES, ["one = 1", "two = 2", "three = 3"])
    for tab in (first, second):
        tab.page.evaluate(TOASTS)
    first.type(0, " # first")
    first.save()
    second.expect(SOURCES, ["one = 1 # first", "two = 2", "three = 3"])
    assert second.page.evaluate("window.toasts") == []

    second.type(2, "")  # the person was in that cell last
    first.page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 2")
    first.page.evaluate("jupyterapp.commands.execute('notebook:delete-cell').then(() => null)")
    first.save()
    second.expect(SOURCES, ["one = 1 # first", "two = 2"])
    second.type(1, " # in the second")
    first.type(1, " # in the first")
    first.save()
    second.page.wait_for_function("window.toasts.length === 2")
    second.save()
    first.expect(f"{SOURCES}.length", 3)
    deleted, conflict = second.page.evaluate("window.toasts")
    assert "was deleted in the file" in deleted
    assert "both versions" in conflict
    assert "agent" not in f"{deleted}{conflict}".lower()
    assert first.page.evaluate("window.toasts") == []


@pytest.mark.slow
def test_two_windows_on_one_notebook(lab, open_tab) -> None:
    first = open_tab("one = 1", "two = 2")
    second = second_window(lab, first)
    second.expect(SOURCES, ["one = 1", "two = 2"])
    first.edit(cell="cell-1", new_str="two = 22")
    for tab in (first, second):
        tab.expect(SOURCES, ["one = 1", "two = 22"])
    first.type(0, " # first")
    first.save()
    second.expect(SOURCES, ["one = 1 # first", "two = 22"])
    first.type(0, " # a")
    second.type(1, " # b")
    second.save()
    first.expect(SOURCES, ["one = 1 # first # a", "two = 22 # b"])
    first.call("insert_cell", source="three = 3", index=1)
    for tab in (first, second):
        tab.expect(f"{SOURCES}.length", 3)
    first.save()
    second.expect(SOURCES, ["one = 1 # first # a", "three = 3", "two = 22 # b"])
    assert first.file_sources == first.sources == second.sources
    for tab in (first, second):
        expect_no_dialog(tab.page)


class Person:
    """Does at random what people do in a notebook."""

    def __init__(self, tab: Tab, random: Random) -> None:
        self.tab = tab
        self.random = random
        self.written: list[str] = []

    def do(self, step: int) -> None:
        word = f"# person{step}"
        kind = self.random.choice(["type", "type", "insert", "move", "run", "undo"])
        done = self.tab.page.evaluate(
            PERSON, {"kind": kind, "word": word, "chance": self.random.random()}
        )
        if done:
            self.written.append(word)


PERSON = """async ({kind, word, chance}) => {
    const { content } = jupyterapp.shell.currentWidget;
    const { commands } = jupyterapp;
    content.activeCellIndex = Math.floor(chance * content.widgets.length);
    const { editor, model } = content.activeCell;
    switch (kind) {
        case 'type': {
            const end = model.sharedModel.getSource().length;
            editor.setCursorPosition(editor.getPositionAt(end));
            editor.replaceSelection('\\n' + word);
            return true;
        }
        case 'insert':
            await commands.execute('notebook:insert-cell-below');
            content.activeCell.model.sharedModel.updateSource(0, 0, word);
            return true;
        case 'move':
            await commands.execute(`notebook:move-cell-${chance < 0.5 ? 'down' : 'up'}`);
            return false;
        case 'run':
            await commands.execute('notebook:run-cell');
            return false;
        case 'undo':
            if (model.sharedModel.canUndo() && editor.undo) {
                editor.undo();
                editor.redo();
            }
            return false;
    }
}"""


class Agent:
    """Does at random what agents do to a notebook, by an edit of the file or an MCP tool."""

    def __init__(self, tab: Tab, random: Random) -> None:
        self.tab = tab
        self.random = random
        self.written: list[str] = []

    def do(self, step: int) -> None:
        word = f"# agent{step}"
        kind, by_tool = self.random.choice(["edit", "insert", "move"]), self.random.random() < 0.5
        cells = json.loads(self.tab.file.read_text())["cells"]
        cell = self.random.choice(cells)["id"]
        if kind == "move":
            index = self.random.randrange(len(cells))
            self.tab.call("move_cell", cell=cell, index=index)
            return
        if kind == "insert" and by_tool:
            self.tab.call("insert_cell", source=word, index=self.random.randrange(len(cells)))
        elif kind == "insert":
            self.tab.edit(edit_mode="insert", cell=cell, new_str=word, cell_type="code")
        else:
            first = "".join(next(c["source"] for c in cells if c["id"] == cell)).split("\n")[0]
            arguments = {"cell": cell, "old_str": first, "new_str": f"{first}\n{word}"}
            if self.tab.result("edit_cell", **arguments).get("isError"):
                # The person has changed that line, or it is there twice by now.
                self.tab.call("insert_cell", source=word)
        self.written.append(word)


def interleave(tab: Tab, steps: int, seed: int) -> None:
    """Have both work at the same time; what either wrote is there at the end, once saved."""
    random = Random(seed)
    person, agent = Person(tab, Random(seed + 1)), Agent(tab, Random(seed + 2))
    tab.page.evaluate(
        """() => new MutationObserver(() => {
            window.sawDialog ||= document.querySelector('.jp-Dialog')?.textContent;
        }).observe(document.body, { childList: true })"""
    )
    with ThreadPoolExecutor(1) as thread:
        for step in range(0, steps, 2):
            at_work = thread.submit(agent.do, step)
            person.do(step)
            if random.random() < 0.5:
                person.do(steps + step)
            at_work.result(120)
            if random.random() < 0.2:
                tab.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    tab.act("run", command="true")
    tab.save()
    assert tab.page.evaluate("window.sawDialog ?? null") is None
    assert tab.file_sources == tab.sources
    text = "\n".join(tab.sources).split("\n")
    assert [word for word in person.written + agent.written if word not in text] == []


@pytest.mark.thorough
@pytest.mark.parametrize("steps", [24, pytest.param(60, marks=pytest.mark.slow)])
def test_person_and_agent_lose_nothing(open_tab, steps: int) -> None:
    interleave(open_tab("# zero", "# one", "# two"), steps, seed=1)
