"""Changes of a session, compared, undone and redone in a tab."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.timeout(180)

NAME = "changes.ipynb"
OVERLAPS = """() => {
  const tab = document.querySelector('#oh-jupyter-changes .oh-Changes');
  const edge = tab.getBoundingClientRect().right;
  return [...tab.querySelectorAll('.oh-Changes-header, .oh-Change-header')].flatMap(header => {
    const boxes = [...header.children].map(each => [each, each.getBoundingClientRect()]);
    return boxes.flatMap(([node, a], n) => [
      ...(a.right > edge ? [`${node.textContent} is cut`] : []),
      ...boxes.slice(n + 1)
        .filter(([, b]) => a.left < b.right - 1 && b.left < a.right - 1
          && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        .map(([other]) => `${node.textContent} over ${other.textContent}`)
    ]);
  });
}"""


def text_of(path: Path) -> str | None:
    """Return a file's text, or None while git replaces the file."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


@pytest.mark.thorough
def test_changes_are_compared_undone_and_redone(lab, open_notebook, write_notebook) -> None:
    write_notebook(NAME, "%load_ext oh_jupyter")
    output = {"output_type": "stream", "name": "stdout", "text": "one\n"}
    cell = {"cell_type": "code", "id": "total", "metadata": {}, "execution_count": 1}
    cell |= {"source": "total = 1", "outputs": [output]}
    write_notebook("other.ipynb", cell, "print(total)")
    source = lab.root / "plot.py"
    source.write_text("".join(f"line_{number} = {number}\n" for number in range(40)))
    (lab.root / "by_command.txt").write_text("before\n")
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    address = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}/execute_action"

    def act(kind: str, **args: object) -> None:
        answer = lab.request(address, {"action": {"action": kind, "args": args}})
        assert answer["observation"] == kind, answer

    act("run", command="echo after > by_command.txt")
    act("edit", path=str(source), command="str_replace", old_str="line_7 = 7", new_str="line_7 = 8")
    act(
        "edit",
        path=str(lab.root / "other.ipynb"),
        command="str_replace",
        old_str="total = 1",
        new_str="total = 2",
    )

    panel = page.locator("#oh-jupyter-log")
    panel.get_by_text("Changes in this session").click()
    files = panel.get_by_role("list", name="Changed files").get_by_role("listitem")
    names = ["by_command.txt", "other.ipynb", "plot.py"]
    expect(files.locator(".oh-Change-name")).to_have_text(names)
    expect(files.last.locator(".oh-mod-added")).to_have_text("+1")
    take_pictures(page, "changes-list")
    files.filter(has_text="plot.py").get_by_role("button").click()
    tab = page.locator("#oh-jupyter-changes")
    expect(page.locator("#jp-main-dock-panel .lm-DockPanel-tabBar")).to_have_count(1)
    plot = tab.get_by_role("listitem", name="plot.py")
    expect(plot.locator(".cm-merge-a .cm-changedText")).to_have_text("7")
    expect(plot.locator(".cm-merge-b .cm-changedText")).to_have_text("8")
    expect(plot.locator(".cm-lineNumbers").first).to_contain_text("8")
    expect(plot.locator(".cm-merge-b .cm-changedLine span").first).to_be_visible()
    expect(tab.get_by_role("listitem", name="by_command.txt")).to_contain_text("before")
    cells = tab.get_by_role("listitem", name="other.ipynb")
    expect(cells.get_by_role("heading", name=re.compile("^Cell 1"))).to_be_visible()
    expect(cells.get_by_role("heading", name="Outputs of cell 1")).to_be_visible()
    expect(cells.locator(".oh-DiffView").nth(1)).to_contain_text("one")
    expect(cells.locator(".cm-merge-b .cm-changedText")).to_have_text("2")
    take_pictures(page, "changes")

    # Another file opens in the same tab.
    plot.get_by_role("button", name="plot.py").click()
    expect(plot.locator(".oh-DiffView")).to_have_count(0)
    files.filter(has_text="plot.py").get_by_role("button").click()
    expect(plot.locator(".oh-DiffView")).to_have_count(1)
    expect(tab).to_have_count(1)

    tab.get_by_role("button", name="Inline").click()
    expect(plot.locator(".cm-deletedChunk")).to_contain_text("line_7 = 7")
    take_pictures(page, "changes-inline")

    plot.get_by_role("button", name="Undo").click()
    expect(plot.get_by_role("button", name="Undo")).to_be_disabled()
    wait_until(lambda: "line_7 = 7" in source.read_text(), what="the edit being undone")
    plot.get_by_role("button", name="Redo").click()
    expect(plot.get_by_role("button", name="Undo")).to_be_enabled()
    assert "line_7 = 8" in source.read_text()

    by_command = lab.root / "by_command.txt"
    commanded = tab.get_by_role("listitem", name="by_command.txt")
    commanded.get_by_role("button", name="Undo").click()
    expect(commanded.get_by_role("button", name="Undo")).to_be_disabled()
    wait_until(lambda: text_of(by_command) == "before\n", what="the file as it was")
    commanded.get_by_role("button", name="Redo").click()
    expect(commanded.get_by_role("button", name="Undo")).to_be_enabled()
    wait_until(lambda: text_of(by_command) == "after\n", what="what the command wrote")

    # What the person changed since is not lost without a word.
    by_command.write_text("mine\n")
    commanded.get_by_role("button", name="Undo").click()
    dialog = page.locator(".jp-Dialog", has_text="Others changed")
    dialog.get_by_role("button", name="Cancel").click()
    assert by_command.read_text() == "mine\n"
    commanded.get_by_role("button", name="Undo").click()
    dialog.get_by_role("button", name="Undo Anyway").click()
    wait_until(lambda: text_of(by_command) == "before\n", what="the file as it was")
    commanded.get_by_role("button", name="Redo").click()
    wait_until(lambda: text_of(by_command) == "mine\n", what="what the person wrote")

    tab.get_by_role("button", name="Undo everything since…").click()
    expect(page.locator(".jp-Dialog .oh-RewindDialog-plan")).to_contain_text("by_command.txt")
    page.locator(".jp-Dialog").get_by_role("button", name="Cancel").click()

    # The turn settles after the command: what it leaves running is seen without a click.
    act(
        "run",
        command="(sleep 1; echo late > late.txt; printf 'a\\0b' > late.bin) > /dev/null 2>&1 &",
    )
    expect(tab.get_by_role("listitem", name="late.txt")).to_contain_text("late")
    binary = tab.get_by_role("listitem", name="late.bin")
    expect(binary.locator(".oh-LineCounts")).to_have_text("3 B")

    # In a narrow area nothing lies over anything else, and the columns become one.
    page.evaluate("jupyterapp.shell.collapseLeft()")
    page.set_viewport_size({"width": 760, "height": 950})
    expect(tab.get_by_role("button", name="Side by side")).to_have_count(0)
    take_pictures(page, "changes-narrow")
    page.evaluate("document.querySelector('#oh-jupyter-changes .oh-Changes').style.width = '180px'")
    assert page.evaluate(OVERLAPS) == []


@pytest.mark.thorough
def test_a_notebook_that_a_person_moves_and_saves_is_one_moved_file(open_tab, lab) -> None:
    tab = open_tab("%load_ext oh_jupyter", "total = 1")
    old = tab.file
    tab.act("edit", path=str(old), command="str_replace", old_str="total = 1", new_str="total = 2")
    page: Page = tab.page
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-changes')")
    panel = page.locator("#oh-jupyter-changes")
    expect(panel.get_by_role("listitem", name=old.name)).to_contain_text("changed")
    new = old.with_name("moved-by-the-person.ipynb")
    page.evaluate(
        """async ([old, name]) => {
            const manager = jupyterapp.serviceManager.contents;
            await manager.rename(old, name);
            await jupyterapp.commands.execute('docmanager:open', { path: name });
        }""",
        [old.name, new.name],
    )
    tab.type(1, "  # mine")
    tab.save()
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-changes')")
    moved = panel.get_by_role("listitem", name=new.name)
    expect(moved.locator(".oh-mod-moved").first).to_have_text("moved")
    expect(moved).to_contain_text(f"from {old.name}")
    expect(moved.get_by_role("button", name="Undo")).to_be_disabled()
    expect(panel.get_by_role("listitem", name=old.name)).to_have_count(0)

    panel.get_by_role("button", name="Undo everything since…").click()
    planned = page.locator(".jp-Dialog .oh-RewindDialog-plan .oh-RewindDialog-kind")
    expect(planned.first).to_be_visible()
    assert set(planned.all_text_contents()) == {"unchanged"}
    page.locator(".jp-Dialog").get_by_role("button", name="Cancel").click()


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["at once", "slowly", "in the background"])
def test_all_of_many_files_that_a_command_made_are_listed(open_tab, how: str) -> None:
    tab = open_tab("%load_ext oh_jupyter")
    page: Page = tab.page
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-changes')")
    panel = page.locator("#oh-jupyter-changes")
    expect(panel.locator(".oh-Changes-total")).to_be_visible()
    folder, pause = how.replace(" ", "-"), 0 if how == "at once" else 0.005
    make = f"import pathlib, time; pathlib.Path('{folder}').mkdir(); "
    make += f"[(pathlib.Path(f'{folder}/{{n}}').write_text('x'), time.sleep({pause}))"
    make += " for n in range(202)]"
    command = f'python3 -c "{make}"'
    # The turn settles two seconds after the command.
    tab.act("run", command=f"{command} > /dev/null 2>&1 &" if "back" in how else command)
    expect(panel.get_by_role("listitem", name=f"{folder}/")).to_have_count(202, timeout=20_000)
