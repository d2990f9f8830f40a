"""Diffs, tables and figures as people see them."""

from __future__ import annotations

import difflib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.file_actions import edit_file
from oh_jupyter.events import (
    CmdOutputMetadata,
    CmdOutputObservation,
    FileEditAction,
    FileEditObservation,
)
from oh_jupyter.kernel.display.html import DiffHunk, diff_block, diff_lines, parse_diff
from oh_jupyter.kernel.display.observations import (
    coloured,
    observation_html,
    observation_text,
)
from oh_jupyter.kernel.display.table import Table, number_text, size_text

SQL = """--- q.sql
+++ q.sql
@@ -1,3 +1,3 @@
--- how many
+++i
 select 1

@@ -9,0 +10,2 @@ select
+@@ -1 +1 @@
+"""


@pytest.mark.thorough
@pytest.mark.parametrize("watched", [True, False])
def test_a_line_is_shown_while_something_takes_long_and_goes_away(kernel, watched: bool) -> None:
    kernel.execute(
        "import time\n"
        "from oh_jupyter.kernel.display import live\n"
        "def oh_wait(line):\n"
        "    with live.notice(get_ipython(), 'At work …') as notice:\n"
        "        while notice.watched and not notice.shown:\n"
        "            time.sleep(0.01)\n"
        "    print(line, end='')\n"
        "get_ipython().register_magic_function(oh_wait)"
    )

    def saved(code: str) -> tuple[list[str], list[dict[str, str]]]:
        """The messages about outputs, and what a notebook keeps of them."""
        kinds: list[str] = []
        outputs: list[dict[str, str]] = []

        def collect(message: dict[str, Any]) -> None:
            if (kind := message["msg_type"]) not in ("status", "execute_input"):
                kinds.append(kind)
            if kind == "clear_output":
                outputs.clear()
            elif kind == "update_display_data":
                del outputs[-1]
            if kind.endswith("display_data"):
                outputs.append(message["content"]["data"])
            elif kind == "stream":
                outputs.append({kind: message["content"]["text"]})

        kernel.client.execute_interactive(
            code, output_hook=collect, allow_stdin=watched, timeout=60
        )
        return kinds, outputs

    assert saved("%oh_wait") == ((["display_data", "clear_output"] if watched else []), [])
    assert saved("%oh_wait mine")[1] == [{"stream": "mine"}]
    first = "from IPython.display import display\ndisplay({'text/plain': 'mine'}, raw=True)"
    assert saved(f"{first}\n%oh_wait")[1] == [{"text/plain": "mine"}, *[{}] * watched]


def test_a_line_that_looks_like_a_header_is_a_line_of_the_file() -> None:
    kinds = [kind for kind, _ in diff_lines(SQL)]
    assert kinds == [
        "header", "header", "place", "removed", "added", "context", "context", "place", "added",
        "added",
    ]  # fmt: skip
    assert "\n".join(line for _, line in diff_lines(SQL)) == SQL


def test_a_line_ends_at_a_newline_only() -> None:
    page = "--- a\n+++ a\n@@ -1 +1 @@\n-one\x0ctwo\n+one\u2028two\n\\ No newline at end of file"
    assert [kind for kind, _ in diff_lines(page)] == [
        "header", "header", "place", "removed", "added", "context",
    ]  # fmt: skip
    assert "one\u2028two" in diff_block(page)


@given(
    st.lists(st.sampled_from(["", "- x", "-- x", "--- x", "++ y", "+++ y", "@@ -1 +1 @@", "z"])),
    st.lists(st.sampled_from(["", "- x", "-- x", "--- x", "++ y", "+++ y", "@@ -1 +1 @@", "z"])),
    st.integers(0, 3),
)
def test_any_diff_is_split_line_by_line(old: list[str], new: list[str], context: int) -> None:
    diff = list(difflib.unified_diff(old, new, "a", "b", n=context, lineterm=""))
    kinds = list(diff_lines("\n".join(diff)))
    before = iter(old)
    after = iter(new)
    for kind, line in kinds if diff else []:
        if kind in ("removed", "context"):
            assert line[1:] in before
        if kind in ("added", "context"):
            assert line[1:] in after
    hunks = [part for part in parse_diff("\n".join(diff)) if isinstance(part, DiffHunk)]
    assert [len(h.old) + len(h.new) for h in hunks] == [
        sum(2 - (line[:1] in "+-") for line in h.lines) for h in hunks
    ]


def test_a_malformed_hunk_ends_where_it_is_no_hunk_any_more() -> None:
    assert [kind for kind, _ in diff_lines("@@ -1,9 +1,9 @@\n-a\nwords\n+b")] == [
        "place", "removed", "context", "context",
    ]  # fmt: skip


def test_a_terminal_gets_the_same_kinds_in_colours(monkeypatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    shown = coloured(SQL).split("\n")
    assert shown[3] == "\x1b[31m--- how many\x1b[0m"
    assert shown[4] == "\x1b[32m+++i\x1b[0m"
    assert shown[5] == " select 1"


# Context


class Editing:
    """An editor, and its Observations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.editor = FileEditor()

    def __call__(self, name: str, command: str, **args: object) -> FileEditObservation:
        action = FileEditAction(str(self.folder / name), command=command, **args)  # type: ignore[arg-type]
        observation = edit_file(action, cwd=str(self.folder), editor=self.editor)
        assert isinstance(observation, FileEditObservation)
        assert not observation.content.startswith("ERROR"), observation.content
        return observation


@pytest.fixture
def edit(tmp_path: Path) -> Editing:
    return Editing(tmp_path)


def body(observation: FileEditObservation) -> list[str]:
    return (observation.context_diff or "").split("\n")[2:]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\n\n-- sql\n++i\n", ["@@ -0,0 +1,5 @@", "+a", "+", "+", "+-- sql", "+++i"]),
        ("\n\na\n\n", ["@@ -0,0 +1,4 @@", "+", "+", "+a", "+"]),
        ("x", ["@@ -0,0 +1 @@", "+x"]),
        ("x\n", ["@@ -0,0 +1 @@", "+x"]),
        ("\n", ["@@ -0,0 +1 @@", "+"]),
    ],
)
def test_a_new_file_is_one_piece(edit: Editing, text: str, shown: list[str], dry_run: bool) -> None:
    assert body(edit("new", "create", file_text=text, dry_run=dry_run)) == shown


def test_a_deleted_file_is_one_piece(edit: Editing) -> None:
    edit("old", "create", file_text="a\n\nb\n")
    patch = "*** Begin Patch\n*** Delete File: old\n*** End Patch\n"
    assert body(edit("", "apply_patch", content=patch)) == ["@@ -1,3 +0,0 @@", "-a", "-", "-b"]


@pytest.mark.parametrize("dry_run", [False, True])
def test_changes_have_lines_around_them(edit: Editing, dry_run: bool) -> None:
    edit("f", "create", file_text="".join(f"{n}\n" for n in range(1, 31)))
    shown = body(edit("f", "str_replace", old_str="\n10\n", new_str="\nten\n", dry_run=dry_run))
    assert shown == [
        "@@ -7,7 +7,7 @@", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13",
    ]  # fmt: skip
    shown = body(edit("f", "insert", insert_line=0, new_str="top", dry_run=dry_run))
    assert shown == ["@@ -1,3 +1,4 @@", "+top", " 1", " 2", " 3"]


def test_near_changes_are_shown_together(edit: Editing) -> None:
    edit("f", "create", file_text="".join(f"{n}\n" for n in range(1, 31)))
    observation = edit("f", "write", content="A\n13\n14\nB\n", start=12, end=15)
    assert (observation.diff or "").count("@@ -") == 2
    assert body(observation) == [
        "@@ -9,10 +9,10 @@",
        " 9", " 10", " 11", "-12", "+A", " 13", " 14", "-15", "+B", " 16", " 17", " 18",
    ]  # fmt: skip


@pytest.mark.thorough
@given(st.data())
def test_a_diff_with_context_fits_the_file(tmp_path_factory, data: st.DataObject) -> None:
    line = st.sampled_from(["", "a", "b", "--", "++i", "     5\tc", "@@ -1 +1 @@"])
    text = st.lists(line, min_size=1, max_size=14).map(lambda lines: "\n".join([*lines, ""]))
    edit = Editing(tmp_path_factory.mktemp("edit"))
    edit("f", "create", file_text=data.draw(text))
    start = data.draw(st.integers(1, 14))
    observation = None
    before = (edit.folder / "f").read_text().split("\n")
    if start < len(before):
        end = data.draw(st.integers(start - 1, len(before) - 1))
        observation = edit("f", "write", content=data.draw(text), start=start, end=end)
    if observation is None or not observation.diff:
        return
    assert observation.context_diff
    after = (edit.folder / "f").read_text().split("\n")
    for part in parse_diff(observation.context_diff):
        if isinstance(part, DiffHunk):
            signed = [(row[:1] or " ", row[1:]) for row in part.lines]
            assert [t for s, t in signed if s in " -"] == before[part.old.start : part.old.stop]
            assert [t for s, t in signed if s in " +"] == after[part.new.start : part.new.stop]


# HTML


def command(content: str, text: str, exit_code: int) -> CmdOutputObservation:
    return CmdOutputObservation(
        content, command=text, metadata=CmdOutputMetadata(exit_code=exit_code)
    )


def styles(html: str) -> str:
    return " ".join(re.findall(r'style="([^"]*)"', html))


def test_styles_are_literals_that_a_sanitizer_lets_through(edit: Editing) -> None:
    html = observation_html(edit("f", "create", file_text="$5 and $6\n"))
    html += observation_html(command("no $x$", "$HOME", 3))
    html += Table(("a",), (("$1 $2",),))._repr_html_()
    assert "var(" not in styles(html)
    assert "color-mix" not in styles(html)
    assert "<style" not in html


def test_dollars_are_not_rendered_as_mathematics(edit: Editing) -> None:
    html = observation_html(edit("f", "create", file_text="$5 and $6\n"))
    html += observation_html(command("no $x$", "$HOME $PATH", 3))
    html += Table(("a",), (("$1 $2",), ("$3$",)))._repr_html_()
    elsewhere = re.sub(r"<(pre|code)\b.*?</\1>", "", html, flags=re.DOTALL)
    assert html.count("$") >= 8
    assert "$" not in elsewhere


def test_without_any_style_a_diff_is_still_lines() -> None:
    bare = re.sub(r"<(/?\w+)[^>]*>", r"<\1>", diff_block(SQL))
    assert bare.startswith("<pre><span>--- q.sql\n+++ q.sql\n</span>")
    assert "<del>--- how many\n</del><ins>+++i\n</ins>" in bare


def test_a_command_of_several_lines_keeps_them() -> None:
    html = observation_html(command("", "if true\nthen ls\nfi", 0))
    assert "$ if true\nthen ls\nfi" in re.sub(r"<[^>]*>", "", html)


# Tables and figures


def test_a_long_table_is_shown_by_its_ends() -> None:
    table = Table(("n",), tuple((n,) for n in range(4000)), summary="4,000 numbers")
    lines = repr(table).split("\n")
    assert lines[:3] == ["4,000 numbers", "n", "0"]
    assert lines[-1] == "3999"
    assert "… 3,800 more, all of them in the value" in lines
    html = table._repr_html_()
    assert "<caption" in html
    assert html.count("<tr>") == 202
    assert len(html) < 100_000
    assert (len(table), table[2000]) == (4000, {"n": 2000})


def test_a_short_table_is_shown_as_it_is() -> None:
    table = Table(("n", "x"), ((1, 0.123456), (2, 1234.5678)), summary="2 numbers")
    assert repr(table) == "n  x\n1  0.123\n2  1235"
    assert "caption" not in table._repr_html_()
    assert table[0] == {"n": 1, "x": 0.123456}
    assert repr(Table(("n",), ())) == "(nothing)"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"), (1.0, "1"), (0.5, "0.5"), (12.345, "12.3"), (-0.01234, "-0.0123"),
        (1234.5, "1234"), (float("inf"), "inf"), (float("nan"), "nan"),
    ],
)  # fmt: skip
def test_numbers_are_rounded(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1536, "1.54 kB"), (999_499, "999 kB"),
        (999_999, "1 MB"), (20_000_000, "20 MB"), (5 * 10**18, "5000 PB"),
    ],
)  # fmt: skip
def test_sizes_have_units(size: int, text: str) -> None:
    assert size_text(size) == text


def test_paths_are_relative_to_the_workspace_and_absolute_outside_of_it() -> None:
    observation = FileEditObservation("", path="/w/site/index.html")
    observation.diff = (
        "--- /w/site/index.html\n+++ /w/site/index.html\n@@ -1 +1 @@\n--- /w/a line\n+++ /w/b\n"
        "--- /etc/hosts\n+++ /etc/hosts\n@@ -0,0 +1 @@\n+x"
    )
    text = observation_text(observation, "/w")
    assert text == observation.diff.replace("- /w/site", "- site").replace("+ /w/site", "+ site")
    html = observation_html(observation, "/w")
    assert ' title="/w/site/index.html">site/index.html</span>' in html
    assert "/etc/hosts" in html
    outside = observation_html(observation, "/another")
    assert "/w/site/index.html</span>" in outside
    assert "title=" not in outside
