"""Person and agent edit one notebook at the same time: nothing is lost, and nobody is asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from live_tab import Tab
from playwright.sync_api import Page

TOKEN = re.compile(r"#[pa]\d+;")
PRINTS = "import time\nfor n in range(5):\n    print(n, flush=True)\n    time.sleep(0.05)"
MAX_CELLS = 25
EDITS_BETWEEN_LOOKS = 100

# In the page: what happens to tokens by what a person does, which is done in one piece.
SETUP = r"""() => {
    const { content, context } = jupyterapp.shell.currentWidget;
    const { commands } = jupyterapp;
    const shared = content.model.sharedModel;
    const oh = window.oh = { dialogs: [], toasts: 0, repeated: [] };
    oh.tokens = () => shared.cells.flatMap(cell => cell.getSource().match(/#[pa]\d+;/g) ?? []);
    const twice = () => oh.tokens().filter((each, index, all) => all.indexOf(each) !== index);
    let last = [];
    shared.changed.connect(() => {
        const now = oh.tokens();
        const lost = last.filter(each => !now.includes(each));
        if (lost.length) { console.log('gone', lost.join(' ')); }
        last = now;
    });
    const seen = new Set();
    new MutationObserver(() => {
        for (const dialog of document.querySelectorAll('.jp-Dialog')) {
            if (!seen.has(dialog)) { oh.dialogs.push(dialog.textContent); seen.add(dialog); }
        }
        for (const toast of document.querySelectorAll('.Toastify__toast')) {
            if (!seen.has(toast) && toast.textContent.includes('oth versions')) {
                seen.add(toast);
                oh.toasts += 1;
                oh.repeated.push(...twice());
            }
        }
    }).observe(document.body, { childList: true, subtree: true });
    oh.tracked = work => {
        const before = new Set(oh.tokens());
        const done = work();
        const after = new Set(oh.tokens());
        return { done, gone: [...before].filter(each => !after.has(each)) };
    };
    oh.activate = async chance => {
        for (;;) {
            content.activeCellIndex = Math.floor(chance * content.widgets.length);
            const cell = content.activeCell;
            cell.node.scrollIntoView();
            const gone = new Promise(resolve => cell.disposed.connect(resolve));
            await Promise.race([cell.ready, gone]);
            if (!cell.isDisposed && cell.editor) { return cell; }
        }
    };
    oh.edit = async chance => {
        const { editor } = await oh.activate(chance);
        // Nobody types before the cursor is there.
        while (!editor.hasFocus()) {
            content.mode = 'edit';
            editor.focus();
            await new Promise(requestAnimationFrame);
        }
        const line = editor.lineCount - 1;
        editor.setCursorPosition({ line, column: editor.getLine(line).length });
        return true;
    };
    oh.do = async ({ kind, word, chance }) => {
        const { editor } = await oh.activate(chance);
        const run = command => oh.tracked(() => void commands.execute(command));
        switch (kind) {
            case 'insert':
                return oh.tracked(() => {
                    void commands.execute('notebook:insert-cell-below');
                    content.activeCell.model.sharedModel.updateSource(0, 0, word);
                    return true;
                });
            case 'prepend':
                return oh.tracked(() => {
                    content.activeCell.model.sharedModel.updateSource(0, 0, word + '\n');
                    return true;
                });
            case 'delete':
                return run('notebook:delete-cell');
            case 'move':
                return run(`notebook:move-cell-${chance < 0.5 ? 'down' : 'up'}`);
            case 'retype':
                return run(`notebook:change-cell-to-${chance < 0.5 ? 'code' : 'markdown'}`);
            case 'run':
                return run('notebook:run-cell');
            case 'save':
                await commands.execute('docmanager:save');
                return { gone: [] };
            case 'undo':
                return oh.tracked(() => editor.undo());
            case 'undo cells':
                return run('notebook:undo-cell-action');
            case 'redo':
                return oh.tracked(() => editor.redo());
            case 'redo cells':
                return run('notebook:redo-cell-action');
        }
    };
}"""


class Actor:
    """Edits at random; every edit has a token of its own, so that it can be found again."""

    def __init__(self, tab: Tab, random: Random, letter: str) -> None:
        self.tab = tab
        self.random = random
        self.letter = letter
        self.written: set[str] = set()
        self.reverted: set[str] = set()
        self.done: Counter[str] = Counter()

    def token(self, step: int) -> str:
        return f"#{self.letter}{step};"


class Person(Actor):
    """Does what people do in a notebook."""

    KINDS = ("type",) * 5 + ("insert",) * 2 + ("prepend", "move", "run", "save") * 2
    KINDS += ("retype", "undo", "undo cells", "redo cells", "redo", "delete")

    def do(self, step: int) -> None:
        page, word, chance = self.tab.page, self.token(step), self.random.random()
        kind = self.random.choice(self.KINDS)
        count = page.evaluate("jupyterapp.shell.currentWidget.content.widgets.length")
        kind = "delete" if count > MAX_CELLS else kind if count > 2 else "insert"
        self.done[kind] += 1
        print(word, kind)
        if kind == "type":
            page.evaluate("chance => oh.edit(chance)", chance)
            page.keyboard.type(f"\n{word}")
            self.written.add(word)
            return
        result = page.evaluate("oh.do", {"kind": kind, "word": word, "chance": chance})
        self.reverted |= set(result["gone"])
        print(word, "removed", result["gone"])
        if kind in ("insert", "prepend"):
            self.written.add(word)


class Agent(Actor):
    """Does what agents do to a notebook: by the editor, by MCP tools, by running cells."""

    KINDS = ("edit", "insert", "edit by editor", "insert by editor") * 2
    KINDS += ("move", "move", "run", "undo", "delete")

    def do(self, step: int) -> None:
        # By the server, which waits for saves: Jupyter writes files in place.
        cells = self.tab.lab.request(f"api/contents/{self.tab.file.name}")["content"]["cells"]
        cell, index = self.random.choice(cells), self.random.randrange(len(cells))
        kind, word = self.random.choice(self.KINDS), self.token(step)
        source = "".join(cell["source"])
        if kind == "delete" and len(cells) < 4:
            kind = "insert"
        if kind == "run" and cell["cell_type"] != "code":
            kind = "edit"
        self.done[kind] += 1
        print(word, kind, cell["id"], index)
        change = {"old_str": source, "new_str": f"{source}\n{word}"}
        line = source.split("\n")[0]
        if line and source.count(line) == 1:
            change = {"old_str": line, "new_str": f"{word}\n{line}"}
        match kind:
            case "edit" if line:
                done = self.called("edit_cell", cell=cell["id"], **change)
            case "insert" | "edit":
                done = self.called("insert_cell", source=word, index=index)
            case "edit by editor":
                done = self.edited("str_replace", **change)
            case "insert by editor":
                options = {"edit_mode": "insert", "cell_type": "code"}
                done = self.edited("notebook_edit", cell=cell["id"], new_str=word, **options)
            case "move":
                self.called("move_cell", cell=cell["id"], index=index)
                return
            case "run":
                self.called("run_cell", cell=cell["id"])
                return
            case "undo":
                undone = self.edited("undo_edit")
                self.reverted |= removed(str(undone["extras"].get("diff", "")) if undone else "")
                return
            case _:
                # Not cells in which the person may be: what is typed there would go with them.
                self.called("move_cell", cell=cell["id"], index=index)
                return
        if done:
            self.written.add(word)
        else:
            self.done["refused"] += 1

    def called(self, tool: str, **arguments: Any) -> bool:
        return not self.tab.result(tool, **arguments).get("isError")

    def edited(self, command: str, **arguments: Any) -> dict[str, Any] | None:
        """Have the editor edit the notebook; None if it refused."""
        path = str(self.tab.file)
        observation = self.tab.observe("edit", command=command, path=path, **arguments)
        return None if str(observation["content"]).startswith("ERROR") else observation


def removed(diff: str) -> set[str]:
    """The tokens that a diff takes away."""
    lines = diff.splitlines()
    gone, come = (
        {token for line in lines if line.startswith(sign) for token in TOKEN.findall(line)}
        for sign in "-+"
    )
    return gone - come


def interleave(tab: Tab, steps: int, seed: int) -> None:
    """Have both work at the same time; what either wrote is there at the end."""
    tab.page.on("console", lambda message: print(message.text[:2000]))
    tab.page.evaluate(SETUP)
    person, agent = Person(tab, Random(seed), "p"), Agent(tab, Random(seed + 1), "a")
    with ThreadPoolExecutor(1) as thread:
        for step in range(2, steps + 1, 2):
            at_work = thread.submit(agent.do, step)
            person.do(step + 1)
            at_work.result()
            if step % EDITS_BETWEEN_LOOKS == 0:
                expect_nothing_lost(tab, person, agent)
    print(dict(person.done), dict(agent.done))
    expect_nothing_lost(tab, person, agent)


def expect_nothing_lost(tab: Tab, *actors: Actor) -> None:
    tab.act("run", command="true")
    settle(tab.page)
    tab.save()
    assert in_file(tab) == in_tab(tab)
    state = tab.page.evaluate("({ ...oh, tokens: oh.tokens() })")
    assert state["dialogs"] == []
    counts, reported = Counter(state["tokens"]), set(state["repeated"])
    written = set().union(*(actor.written for actor in actors))
    reverted = set().union(*(actor.reverted for actor in actors))
    print(f"{len(written)} written, {len(reverted)} reverted, {state['toasts']} conflicts")
    assert sorted(written - reverted - counts.keys()) == []
    assert (
        sorted(each for each, count in counts.items() if count > 1 and each not in reported) == []
    )
    assert sorted(counts.keys() - written) == []


def settle(page: Page) -> None:
    """Wait until no cell runs."""
    page.wait_for_function(
        "jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
    )


def in_tab(tab: Tab) -> list[dict[str, Any]]:
    return [comparable(each) for each in tab.page.evaluate(CELLS)]


def in_file(tab: Tab) -> list[dict[str, Any]]:
    return [comparable(each) for each in json.loads(tab.file.read_text())["cells"]]


CELLS = "jupyterapp.shell.currentWidget.content.model.toJSON().cells"


def comparable(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell with texts in one piece, as a file need not have them."""
    outputs = [
        {**each, **({"text": "".join(each["text"])} if "text" in each else {})}
        for each in cell.get("outputs", [])
    ]
    source = "".join(cell["source"])
    metadata = {name: value for name, value in cell["metadata"].items() if name != "trusted"}
    whole = {**cell, "source": source, "outputs": outputs, "metadata": metadata}
    return {name: value for name, value in whole.items() if value is not None}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_random_edits_are_all_kept(open_tab) -> None:
    interleave(open_tab("zero = 0", PRINTS, "two = 2"), 1000, seed=2)
