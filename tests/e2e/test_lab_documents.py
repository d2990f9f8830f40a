"""What an agent does to an open document is in the tab at once, and nobody loses anything."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Page, expect

SOURCES = "jupyterapp.shell.currentWidget.model.sharedModel.cells.map(cell => cell.getSource())"
DIRTY = "jupyterapp.shell.currentWidget.context.model.dirty"


class Tab:
    """An open notebook, and an agent beside it."""

    def __init__(self, lab: Any, page: Page, name: str) -> None:
        self.lab = lab
        self.page = page
        self.file = lab.root / name
        self.kernel = f"oh_jupyter/kernels/{lab.kernel_of(name)}"

    @property
    def sources(self) -> list[str]:
        return self.page.evaluate(SOURCES)

    @property
    def file_sources(self) -> list[str]:
        return ["".join(each["source"]) for each in json.loads(self.file.read_text())["cells"]]

    def expect(self, condition: str, value: Any) -> None:
        """Wait until an expression in the page has a value."""
        try:
            self.page.wait_for_function(
                f"wanted => JSON.stringify({condition}) === wanted",
                arg=json.dumps(value, separators=(",", ":")),
            )
        except Exception:
            print(json.dumps(self.page.evaluate(condition)), "is not", json.dumps(value))
            raise

    def act(self, kind: str, **args: Any) -> str:
        """Have the agent carry out an Action, over REST; what it reads."""
        body = {"action": {"action": kind, "args": args}}
        return str(self.lab.request(f"{self.kernel}/execute_action", body)["content"])

    def edit(self, **args: Any) -> str:
        """Have the agent edit a cell of the notebook."""
        options = {name: args.pop(name) for name in list(args) if name in OPTIONS}
        action = {
            "action": "edit",
            "args": {"path": str(self.file), "command": "notebook_edit", **args},
        }
        body = {"action": {**action, "oh_jupyter": options}}
        path = f"{self.kernel}/execute_action"
        said = str(self.lab.request(path, body)["content"])
        # The person may have changed that place since: the editor shows it, and takes a repetition.
        while said.startswith("ERROR") and "was changed by somebody else since" in said:
            said = str(self.lab.request(path, body)["content"])
        assert not said.startswith("ERROR"), said
        return said

    def call(self, tool: str, **arguments: Any) -> str:
        """Have the agent call an MCP tool; what it reads."""
        result = self.result(tool, **arguments)
        assert not result.get("isError"), result
        return "".join(block.get("text", "") for block in result["content"])

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Have the agent call an MCP tool, which may refuse."""
        arguments = {"notebook": self.file.name, **arguments}
        return call_tool(self.lab, f"{self.kernel}/mcp", tool, arguments)

    def look(self) -> None:
        """Have the person come back to the window: somebody else has written to a file."""
        self.page.evaluate("window.dispatchEvent(new Event('focus'))")

    def save(self) -> None:
        self.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        self.expect(DIRTY, False)

    def type(self, index: int, text: str) -> None:
        """Have the person type at the end of a cell."""
        self.page.evaluate(
            """index => {
                const { content } = jupyterapp.shell.currentWidget;
                content.activeCellIndex = index;
                content.mode = 'edit';
                const { editor } = content.activeCell;
                editor.focus();
                const line = editor.lineCount - 1;
                editor.setCursorPosition({ line, column: editor.getLine(line).length });
            }""",
            index,
        )
        self.page.keyboard.type(text)


def call_tool(lab: Any, path: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool, asked for in one request of streamable HTTP."""
    params = {"name": tool, "arguments": arguments, "_meta": MCP_CLIENT}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    request = urllib.request.Request(
        f"{lab.url}/{path}",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": "token end-to-end",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            "MCP-Protocol-Version": "2026-07-28",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = answer.read().decode()
    lines = [line[5:] for line in told.splitlines() if line.startswith("data:")] or [told]
    answers = [json.loads(line) for line in lines]
    results = [each["result"] for each in answers if "result" in each]
    assert results, answers
    return dict(results[0])


MCP_CLIENT = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OPTIONS = ("cell", "edit_mode", "cell_type", "to")


@pytest.fixture
def open_tab(lab, open_notebook, write_notebook, request):
    """Open a notebook of cells."""

    def open_tab(*sources: str) -> Tab:
        # Its own file: the editor would tell of changes since another test.
        name = f"{request.node.name}.ipynb"
        write_notebook(name, *sources)
        tab = Tab(lab, open_notebook(name), name)
        tab.act("run", command="true")
        # The language of the kernel is a change, too.
        tab.save()
        return tab

    return open_tab


def expect_no_dialog(page: Page) -> None:
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def test_an_agents_edits_show_at_once_and_keep_what_is_typed(open_tab) -> None:
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


def test_the_agent_reads_what_is_typed_and_not_saved(open_tab) -> None:
    tab = open_tab("one = 1")
    tab.type(0, " # typed")
    tab.expect(DIRTY, True)
    tab.page.wait_for_function("true")
    assert "# typed" in tab.act("run", command=f"cat {tab.file}")


def test_mcp_tools_change_the_open_tab(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    tab.type(0, " # typed")
    tab.expect(DIRTY, True)
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


def test_both_versions_of_what_both_changed_are_kept(open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    tab.type(0, " # mine")
    tab.file.write_text(tab.file.read_text().replace("one = 1", "one = 'agent'"))
    tab.look()
    tab.expect(SOURCES, ["one = 1 # mine", "one = 'agent'", "two = 2"])
    expect(tab.page.locator(".Toastify__toast", has_text="Both versions")).to_have_count(1)
    tab.save()
    assert tab.file_sources == tab.sources
    expect_no_dialog(tab.page)


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


def test_an_open_text_file_follows_the_agent(lab, open_tab) -> None:
    tab = open_tab("one = 1")
    path = lab.root / "open.py"
    path.write_text("a = 1\n\nb = 2\n\nc = 3\n")
    tab.page.evaluate(
        "jupyterapp.commands.execute('docmanager:open', {path: 'open.py'}).then(() => true)"
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


def test_person_and_agent_lose_nothing(open_tab) -> None:
    interleave(open_tab("# zero", "# one", "# two"), 60, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_person_and_agent_lose_nothing_in_a_long_time(open_tab) -> None:
    interleave(open_tab("# zero", "# one", "# two"), 1000, seed=2)
