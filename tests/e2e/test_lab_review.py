"""The person keeps or undoes what an agent changed in an open document, piece by piece."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from live_tab import DIRTY, SOURCES, Tab, call_tool, expect_no_dialog
from pictures import take_pictures
from playwright.sync_api import Locator, expect

from oh_jupyter.testing import wait_until

pytestmark = [pytest.mark.timeout(180), pytest.mark.one_page]

LINES = "\n".join(f"line_{number} = {number}" for number in range(8))
CHANGED = LINES.replace("line_1 = 1", "line_1 = 11").replace("line_6 = 6", "line_6 = 66")


class Review:
    """The review of an open document."""

    def __init__(self, tab: Tab) -> None:
        self.panel = tab.page.locator(
            ".jp-MainAreaWidget:visible", has=tab.page.locator(".cm-editor")
        )
        self.bar = tab.page.get_by_role("region", name="Review of changes")

    def expect_summary(self, text: str) -> None:
        try:
            expect(self.bar.get_by_role("status")).to_have_text(text)
        except AssertionError:
            print(self.panel.locator(".oh-Review-row").all_text_contents())
            raise
        expect(self.bar).to_be_in_viewport(ratio=1)

    def expect_none(self) -> None:
        try:
            expect(self.bar).to_have_count(0)
        except AssertionError:
            print(self.panel.locator(".oh-Review-row").all_text_contents())
            raise
        expect(self.panel.locator(".cm-deletedChunk")).to_have_count(0)

    def expect_announcement(self, text: str | re.Pattern[str]) -> None:
        """Wait until the live region announces a text."""
        region = self.bar.page.locator("body > .oh-Announcement[aria-live=polite]")
        expect(region).to_have_text(text)

    def button(self, name: str, index: int = 0) -> Locator:
        return self.panel.get_by_role("button", name=name, exact=True).nth(index)


def rewrite(tab: Tab, index: int, source: str) -> None:
    """Have the agent replace the text of a cell."""
    tab.call("read_cells", outputs=False)
    tab.call("edit_cell", cell=index, source=source)


def undone_in_log(tab: Tab) -> list[dict[str, Any]]:
    """The Observations of what the person undid."""
    events: list[dict[str, Any]] = []
    while page := tab.lab.request(f"{tab.kernel}/events?start_id={len(events)}")["events"]:
        events += page
    return [e for e in events if e["source"] == "user" and e.get("observation") == "edit"]


@pytest.mark.thorough
def test_hunks_are_kept_and_undone_one_by_one(open_tab) -> None:
    tab = open_tab(LINES, "two = 2")
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    tab.expect(SOURCES, [CHANGED, "two = 2"])
    review.expect_summary("2 changes by Claude in 1 cell")
    expect(review.panel.locator(".cm-deletedChunk").first).to_contain_text("line_1 = 1")
    take_pictures(tab.page, "review-hunks")
    keep_all = review.bar.get_by_role("button", name="Keep all")
    text = keep_all.evaluate("node => getComputedStyle(node).color")
    expect(review.button("Undo this change")).to_have_css("color", text)

    review.button("Undo this change", 1).click()
    tab.expect(SOURCES, [CHANGED.replace("66", "6"), "two = 2"])
    review.expect_summary("1 change by Claude in 1 cell")
    review.button("Keep this change").click()
    review.expect_none()
    tab.expect(DIRTY, True)
    tab.save()
    assert tab.file_sources == [CHANGED.replace("66", "6"), "two = 2"]
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_added_deleted_and_moved_cells_are_shown_and_undone(open_tab) -> None:
    tab = open_tab("print('out')", "two = 2", "three = 3", "four = 4")
    review = Review(tab)
    tab.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    tab.expect("jupyterapp.shell.currentWidget.content.widgets[0].model.outputs.length", 1)
    tab.save()
    rewrite(tab, 0, "print('out')  # agent")
    tab.call("delete_cell", cell="cell-1")
    tab.call("insert_cell", source="added = 5\nmore = 6", index=2)
    tab.call("move_cell", cell="cell-3", index=0)
    tab.expect(SOURCES, ["four = 4", "print('out')  # agent", "three = 3", "added = 5\nmore = 6"])
    review.expect_summary("4 changes by Claude in 4 cells")
    expect(review.panel.get_by_role("group", name="Deleted cell: two = 2")).to_be_visible()
    expect(review.panel.get_by_role("group", name="Moved")).to_be_visible()
    expect(review.panel.get_by_role("group", name="Added cell")).to_be_visible()
    expect(review.panel.locator(".oh-mod-stale")).to_have_count(1)
    take_pictures(tab.page, "review-cells")

    undo = "Undo the changes of this cell"
    review.panel.get_by_role("group", name="Moved").get_by_role("button", name=undo).click()
    tab.expect(SOURCES, ["print('out')  # agent", "three = 3", "four = 4", "added = 5\nmore = 6"])
    review.panel.get_by_role("group", name="Deleted cell").get_by_role("button", name=undo).click()
    tab.expect(f"{SOURCES}[1]", "two = 2")
    review.panel.get_by_role("group", name="Added cell").get_by_role("button", name=undo).click()
    tab.expect(SOURCES, ["print('out')  # agent", "two = 2", "three = 3", "four = 4"])
    review.expect_summary("1 change by Claude in 1 cell")
    review.button("Undo all changes").click()
    tab.expect(SOURCES, ["print('out')", "two = 2", "three = 3", "four = 4"])
    review.expect_none()
    expect(review.panel.locator(".oh-mod-stale")).to_have_count(0)
    tab.save()
    assert tab.file_sources == tab.sources
    expect_no_dialog(tab.page)


@pytest.mark.thorough
def test_text_typed_in_a_change_stays_after_its_undo(open_tab) -> None:
    tab = open_tab("one = 1\n\nother = 0", "two = 2")
    review = Review(tab)
    rewrite(tab, 0, "one = 11\n\nother = 0")
    review.expect_summary("1 change by Claude in 1 cell")
    tab.type(0, " # mine")
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.type("mine = 1")
    rewrite(tab, 1, "two = 22")
    review.expect_summary("2 changes by Claude in 2 cells")
    tab.page.keyboard.type("23")
    typed = "other = 0 # mine\nmine = 123"
    tab.expect(SOURCES, [f"one = 11\n\n{typed}", "two = 22"])
    review.button("Undo all changes").click()
    tab.expect(SOURCES, [f"one = 1\n\n{typed}", "two = 2"])
    review.expect_none()

    rewrite(tab, 1, "two = 22")
    review.expect_summary("1 change by Claude in 1 cell")
    tab.type(1, "33")
    review.button("Undo this change").click()
    tab.expect(f"{SOURCES}[1]", "two = 233")
    # An undo is an edit like any other.
    tab.page.keyboard.press("Control+z")
    tab.expect(f"{SOURCES}[1]", "two = 2233")
    tab.save()
    assert tab.file_sources == tab.sources


@pytest.mark.thorough
def test_a_review_continues_after_a_reload(lab, open_tab) -> None:
    tab = open_tab(LINES, "two = 2", "three = 3")
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    tab.call("delete_cell", cell="cell-1")
    review.expect_summary("3 changes by Claude in 2 cells")
    review.button("Keep this change").click()
    review.expect_summary("2 changes by Claude in 2 cells")
    tab.page.reload()
    tab.page.locator(".jp-NotebookPanel:visible .jp-Cell").first.wait_for()
    tab.page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel")
    review.expect_summary("2 changes by Claude in 2 cells")
    review.button("Undo all changes").click()
    tab.expect(SOURCES, [CHANGED.replace("66", "6"), "two = 2", "three = 3"])
    review.expect_none()
    # The reloaded page opens the notebook of its address at some time.
    tab.page.goto(f"{lab.url}/lab?reset")
    tab.page.wait_for_function("window.jupyterapp?.restored.then(() => true)")


@pytest.mark.thorough
def test_a_save_by_the_person_keeps_all_changes(lab, open_tab) -> None:
    tab = open_tab("one = 1", "two = 2")
    review = Review(tab)
    rewrite(tab, 0, "one = 11")
    review.expect_summary("1 change by Claude in 1 cell")
    tab.type_and_report(1, " # mine")
    assert "# mine" in tab.act("run", command=f"cat {tab.file}")
    tab.expect(DIRTY, False)
    tab.type(1, " too")
    tab.page.evaluate("jupyterapp.shell.currentWidget.context.save()")  # as JupyterLab does alone
    tab.expect(DIRTY, False)
    review.expect_summary("1 change by Claude in 1 cell")
    tab.save()
    review.expect_none()
    assert tab.file_sources == ["one = 11", "two = 2 # mine too"]

    # What another tab of the person saves is no change by an agent.
    model = lab.request(f"api/contents/{tab.file.name}")
    model["content"]["cells"][0]["source"] = "one = 111"
    wanted = {name: model[name] for name in ("type", "format", "content")}
    lab.request(f"api/contents/{tab.file.name}", wanted, "PUT")
    tab.expect(f"{SOURCES}[0]", "one = 111")
    review.expect_none()


@pytest.mark.thorough
def test_changes_are_reviewed_by_keys(open_tab) -> None:
    tab = open_tab(LINES, "two = 2", "three = 3")
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    rewrite(tab, 2, "three = 33")
    tab.call("delete_cell", cell="cell-1")
    review.expect_summary("4 changes by Claude in 3 cells")
    review.expect_announcement(re.compile(r"\d changes? by Claude in \d cells?"))
    press = tab.page.keyboard.press
    tab.page.locator(".jp-Cell .jp-InputPrompt").first.click()
    press("F7")
    line = "jupyterapp.shell.currentWidget.content.activeCell.editor.getCursorPosition().line"
    tab.expect(line, 1)
    review.expect_announcement("Change 1 of 4. Cell 1. line_1 = 11. Before: line_1 = 1")
    press("F7")
    tab.expect(line, 6)
    press("Alt+Shift+F7")
    tab.expect(f"{SOURCES}[0]", CHANGED.replace("66", "6"))
    press("Shift+F7")
    tab.expect(line, 1)
    press("Alt+F7")
    review.expect_summary("2 changes by Claude in 2 cells")
    press("F7")
    expect(review.button("Keep the changes of this cell", 0)).to_be_focused()
    review.expect_announcement("Change 1 of 2. Deleted cell")
    press("Alt+Shift+F7")
    tab.expect(SOURCES, [CHANGED.replace("66", "6"), "two = 2", "three = 33"])
    tab.page.evaluate("jupyterapp.commands.execute('oh-jupyter:review-keep-all')")
    review.expect_none()
    review.expect_announcement("No changes left to review")
    assert not tab.page.evaluate("jupyterapp.commands.isEnabled('oh-jupyter:review-next')")


@pytest.mark.thorough
def test_a_text_file_is_reviewed_in_its_editor(lab, open_tab) -> None:
    tab = open_tab("one = 1")
    path = lab.root / "reviewed.py"
    path.write_text(LINES)
    tab.page.evaluate(
        "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => true)",
        path.name,
    )
    review = Review(tab)
    source = "jupyterapp.shell.currentWidget.context.model.sharedModel.getSource()"
    tab.page.locator(".jp-FileEditor:visible .cm-content").click()
    tab.expect(source, LINES)
    for old, new in (("line_1 = 1", "line_1 = 11"), ("line_6 = 6", "line_6 = 66")):
        tab.act("edit", command="str_replace", path=str(path), old_str=old, new_str=new)
    tab.expect(source, CHANGED)
    review.expect_summary("2 changes by an agent")
    take_pictures(tab.page, "review-file")
    tab.page.keyboard.press("Control+End")
    tab.page.keyboard.type(" # mine")
    tab.page.keyboard.press("F7")
    review.expect_announcement("Change 1 of 2. line_1 = 11. Before: line_1 = 1")
    tab.page.keyboard.press("Alt+Shift+F7")
    mine = CHANGED.replace("11", "1") + " # mine"
    tab.expect(source, mine)
    review.expect_summary("1 change by an agent")
    tab.save()
    review.expect_none()
    assert path.read_text() == mine


@pytest.mark.thorough
def test_a_review_of_a_text_file_continues_after_a_reload(lab, open_tab) -> None:
    tab = open_tab("one = 1")
    path = lab.root / "reloaded.py"
    path.write_text(LINES)
    source = "jupyterapp.shell.currentWidget.context.model.sharedModel.getSource()"

    tab.page.evaluate(
        "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => true)",
        path.name,
    )
    editor = tab.page.locator(".jp-FileEditor:visible .cm-content")
    editor.click()
    tab.expect(source, LINES)
    review = Review(tab)
    for old, new in (("line_1 = 1", "line_1 = 11"), ("line_6 = 6", "line_6 = 66")):
        tab.act("edit", command="str_replace", path=str(path), old_str=old, new_str=new)
    review.expect_summary("2 changes by an agent")
    review.button("Keep this change").click()
    review.expect_summary("1 change by an agent")
    tab.page.reload()
    editor.click()  # JupyterLab opens it again by itself
    review.expect_summary("1 change by an agent")
    tab.page.keyboard.press("F7")
    tab.page.keyboard.press("Alt+Shift+F7")
    tab.expect(source, CHANGED.replace("66", "6"))
    review.expect_none()
    tab.page.goto(f"{lab.url}/lab?reset")
    tab.page.wait_for_function("window.jupyterapp?.restored.then(() => true)")


@pytest.mark.thorough
def test_an_agent_is_notified_of_kept_changes(open_tab) -> None:
    tab = open_tab(LINES, "two = 2")
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    rewrite(tab, 1, "two = 22")
    review.expect_summary("3 changes by Claude in 2 cells")
    review.button("Keep this change").click()
    review.expect_summary("2 changes by Claude in 2 cells")
    tab.page.get_by_role("button", name="Keep all changes").click()
    review.expect_none()
    notes: list[str] = []

    def has_read_all() -> bool:
        notes.extend(re.findall(r"The person kept .*?\.(?:ipynb|py)\.", tab.call("read_cells")))
        return sum(int(note.split()[3]) for note in notes) >= 3

    wait_until(has_read_all, what="the notes")
    assert all(note.endswith(f" of {tab.file.name}.") for note in notes)
    assert "The person kept" not in tab.call("read_cells")


@pytest.mark.thorough
def test_an_agent_is_notified_of_undone_changes(open_tab) -> None:
    tab = open_tab(LINES, "two = 2")
    review = Review(tab)
    rewrite(tab, 0, CHANGED)
    rewrite(tab, 1, "two = 22")
    review.expect_summary("3 changes by Claude in 2 cells")
    with tab.page.expect_response(lambda response: "oh_jupyter/unsaved" in response.url):
        review.button("Undo this change", 1).click()
    note = f"The person undid 1 change in cell 0 of {tab.file.name}."
    expect(tab.page.locator("#oh-jupyter-log .oh-Card").last).to_contain_text("Undid an edit")
    assert note in tab.call("read_cells")
    assert note not in tab.call("read_cells")
    (undone,) = undone_in_log(tab)
    assert undone["content"] == note
    assert "-line_6 = 66" in undone["extras"]["diff"]
    assert "+line_6 = 6" in undone["extras"]["diff"]
    assert undone["extras"]["path"] == str(tab.file)

    review.button("Keep this change").click()
    text = f"The person kept 1 change of {tab.file.name}."

    def decisions() -> list[dict[str, str]]:
        return list(tab.lab.request(f"{tab.kernel}/decisions")["decisions"])

    wait_until(lambda: len(decisions()) == 2, what="the second decision")
    assert [each["text"] for each in decisions()] == [note, text]
    listed = call_tool(tab.lab, f"{tab.kernel}/mcp", "changes", {"command": "decisions"})
    (block,) = listed["content"]
    assert "+line_6 = 6" in block["text"]
    assert block["text"].startswith(note)
    assert block["text"].endswith(text)


@pytest.mark.thorough
def test_a_setting_turns_reviews_off(lab, open_tab) -> None:
    tab = open_tab("one = 1")
    review = Review(tab)
    rewrite(tab, 0, "one = 11")
    review.expect_summary("1 change by Claude in 1 cell")
    settings = "lab/api/settings/oh-jupyter:review"
    try:
        lab.request(settings, {"raw": '{"review": "off"}'}, "PUT")
        tab.page.goto(f"{lab.url}/lab?reset")
        tab.page.wait_for_function("window.jupyterapp?.restored.then(() => true)")
        tab.page.evaluate(
            "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => true)",
            tab.file.name,
        )
        tab.page.wait_for_function("jupyterapp.shell.currentWidget?.sessionContext?.session")
        rewrite(tab, 0, "one = 111")
        tab.expect(SOURCES, ["one = 111"])
        review.expect_none()
    finally:
        lab.request(settings, {"raw": "{}"}, "PUT")
        tab.page.goto(f"{lab.url}/lab?reset")
        tab.page.wait_for_function("window.jupyterapp?.restored.then(() => true)")


@pytest.mark.thorough
def test_the_source_of_a_changed_markdown_cell_is_shown(lab, open_notebook, write_notebook) -> None:
    name = "review-markdown.ipynb"
    cell = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": "# Title\n\nold"}
    write_notebook(name, "one = 1", cell)
    tab = Tab(lab, open_notebook(name), name)
    tab.page.evaluate("jupyterapp.commands.execute('notebook:render-all-markdown')")
    tab.save()
    rendered = tab.page.locator(".jp-MarkdownCell.jp-mod-rendered")
    expect(rendered).to_have_count(1)
    rewrite(tab, 1, "# Title\n\nnew")
    expect(tab.page.locator(".jp-MarkdownCell .cm-deletedChunk")).to_contain_text("old")
    expect(rendered).to_have_count(0)
    Review(tab).button("Keep the changes of this cell").click()
    expect(rendered).to_have_count(1)


# In the page: what a person does in a review, in one piece.
PERSON = """({ kind, word, chance }) => {
    const { content } = jupyterapp.shell.currentWidget;
    const pick = items => items[Math.floor(chance * items.length)];
    if (kind === 'type') {
        const { model, editor } = pick(content.widgets);
        const source = model.sharedModel.getSource();
        const ends = [...source.matchAll(/$/gm)].map(match => match.index);
        const at = pick(ends);
        editor.setCursorPosition(editor.getPositionAt(at));
        editor.replaceSelection(chance < 0.5 ? ' ' + word : '\\n' + word);
        return true;
    }
    const buttons = document.querySelectorAll('.jp-NotebookPanel:not(.lm-mod-hidden) button');
    const button = pick([...buttons].filter(each => each.title.startsWith(kind)));
    button?.click();
    return button !== undefined;
}"""
KINDS = ("type",) * 3 + ("Keep this", "Undo this", "Undo this", "Keep the ch", "Undo the ch")


class Agent:
    """Edits cells by MCP tools, but leaves alone what the person has typed."""

    def __init__(self, tab: Tab, random: Random) -> None:
        self.tab, self.random = tab, random

    def do(self, word: str) -> None:
        random, tab = self.random, self.tab
        cells = tab.lab.request(f"api/contents/{tab.file.name}")["content"]["cells"]
        cell, index = random.choice(cells), random.randrange(len(cells))
        source = "".join(cell["source"])
        kind = random.choice(["edit", "edit", "edit", "insert", "move", "delete"])
        if kind == "move":
            tab.result("move_cell", cell=cell["id"], index=index)
        elif kind == "delete" and "#p" not in source and len(cells) > 3:
            tab.result("delete_cell", cell=cell["id"])
        elif kind == "edit":
            line = random.choice(source.split("\n"))
            new = f"{word}\n{line}" if "#p" in line else word
            tab.result("edit_cell", cell=cell["id"], old_str=line, new_str=new)
        elif len(cells) < 12:
            tab.result("insert_cell", source=word, index=index)


def wait_for_file(tab: Tab) -> None:
    """Wait until the tab has what is in its file."""
    address = f"api/contents/{tab.file.name}?content=0&hash=1"
    known = "jupyterapp.shell.currentWidget.context.contentsModel.hash"
    wait_until(
        lambda: tab.page.evaluate(known) == tab.lab.request(address)["hash"],
        what="the tab having its file",
    )


def review_at_random(tab: Tab, sequences: int, seed: int) -> None:
    """Have an agent work while the person types, keeps and undoes; nothing typed is lost."""
    random, agent = Random(seed), Agent(tab, Random(seed + 1))
    typed: set[str] = set()
    undone = 0
    with ThreadPoolExecutor(1) as thread:
        for sequence in range(sequences):
            for step in range(8):
                number = 8 * sequence + step
                at_work = thread.submit(agent.do, f"#a{number};")
                word, kind = f"#p{number};", random.choice(KINDS)
                action = {"kind": kind, "word": word, "chance": random.random()}
                done = tab.page.evaluate(PERSON, action)
                print(sequence, step, action, done)
                if kind == "type":
                    typed.add(word)
                elif done and kind.startswith("Undo"):
                    undone += 1
                at_work.result(120)
            tab.act("run", command="true")
            wait_for_file(tab)
            if random.random() < 0.5 and tab.page.evaluate(PERSON, {**action, "kind": "Undo all"}):
                undone += 1
                Review(tab).expect_none()
            tab.save()
            Review(tab).expect_none()
            assert tab.file_sources == tab.sources
            assert sorted(word for word in typed if word not in "\n".join(tab.sources)) == []
    assert len(undone_in_log(tab)) == undone


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("sequences", "seed"),
    [(8, 1), *(pytest.param(30, n, marks=pytest.mark.slow) for n in range(10))],
)
def test_nothing_typed_is_lost_in_a_review(open_tab, sequences: int, seed: int) -> None:
    review_at_random(open_tab("# zero", "# one\n# uno", "# two"), sequences, seed)
