"""``%oh_edit``, in a real kernel, as a person types it."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest

BLOCK = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"


@pytest.fixture
def path(kernel) -> Path:
    folder = Path(tempfile.mkdtemp(dir=kernel.directory))
    kernel.execute(f"%cd -q {folder}")
    file = folder / "f.py"
    file.write_text("one\ntwo\nthree\n")
    return file


def complete(kernel, code: str, cursor: int | None = None) -> list[str]:
    """Return the frontend's completions: whole texts that replace the typed one."""
    reply = kernel.client.complete(code, cursor, reply=True, timeout=60)["content"]
    assert reply["status"] == "ok"
    return list(reply["matches"])


def bundles(kernel, code: str) -> list[dict[str, str]]:
    data: list[dict[str, str]] = []
    kernel.client.execute_interactive(
        code, output_hook=lambda m: data.append(m["content"].get("data")), timeout=60
    )
    return [bundle for bundle in data if bundle]


def texts(html: str, kind: str) -> list[str]:
    """The lines of one kind in a diff, those that follow each other as one."""
    pattern = rf'<\w+ class="oh-Diff-line oh-mod-{kind}"[^>]*>(.*?)</'
    return re.findall(pattern, html, re.DOTALL)


def test_several_blocks_are_one_edit(kernel, path: Path) -> None:
    cell = "%%oh_edit str_replace f.py\n" + BLOCK.format("one", "1") + BLOCK.format("three", "3")
    shown = kernel.execute(cell)
    assert "-one" in shown
    assert "+3" in shown
    assert path.read_text() == "1\ntwo\n3\n"
    kernel.execute("%oh_edit undo f.py")
    assert path.read_text() == "one\ntwo\nthree\n"
    kernel.execute("%oh_edit redo f.py")
    assert path.read_text() == "1\ntwo\n3\n"


def test_if_one_block_does_not_fit_nothing_is_changed(kernel, path: Path) -> None:
    cell = "%%oh_edit str_replace f.py\n" + BLOCK.format("one", "1") + BLOCK.format("four", "4")
    assert "nothing was changed" in kernel.execute(cell)
    assert path.read_text() == "one\ntwo\nthree\n"


def test_every_occurrence(kernel, path: Path) -> None:
    kernel.execute("%%oh_edit str_replace f.py --all\n" + BLOCK.format("t", "T"))
    assert path.read_text() == "one\nTwo\nThree\n"


def test_lines_are_written_as_a_view_numbers_them(kernel, path: Path) -> None:
    kernel.execute("%%oh_edit write f.py --start 2 --end 2\ntwo and\na half\n")
    assert path.read_text() == "one\ntwo and\na half\nthree\n"
    kernel.execute("%%oh_edit write f.py --start 4\nend\n")
    assert path.read_text() == "one\ntwo and\na half\nend\n"
    kernel.execute("%%oh_edit write f.py\nall new\n")
    assert path.read_text() == "all new\n"
    kernel.execute("%%oh_edit write made/new.txt\nx\n")
    assert (path.parent / "made" / "new.txt").read_text() == "x\n"


def test_a_patch_of_several_files(kernel, path: Path) -> None:
    patch = (
        "*** Begin Patch\n*** Update File: f.py\n@@\n-two\n+zwei\n*** Add File: g.py\n+new\n"
        "*** End Patch\n"
    )
    shown = kernel.execute(f"%%oh_edit patch .\n{patch}")
    assert "+zwei" in shown
    assert "+new" in shown
    assert path.read_text() == "one\nzwei\nthree\n"
    assert (path.parent / "g.py").read_text() == "new\n"
    assert "applied before" in kernel.execute(f"%%oh_edit patch\n{patch}")
    kernel.execute("%oh_edit undo g.py")
    assert path.read_text() == "one\ntwo\nthree\n"
    assert not (path.parent / "g.py").exists()


def test_a_draft(kernel, path: Path) -> None:
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    path.write_text(text)
    kernel.execute("%%oh_edit draft f.py\n# ... existing code ...\n\n\ndef g():\n    return 3\n")
    assert path.read_text() == text.replace("return 2", "return 3")


@pytest.mark.parametrize("option", ["--dry-run", "-n"])
def test_a_dry_run_shows_the_difference_and_writes_nothing(kernel, path: Path, option: str) -> None:
    for cell in (
        f"%%oh_edit str_replace f.py {option}\n" + BLOCK.format("one", "1"),
        f"%%oh_edit str_replace f.py {option}\n" + BLOCK.format("one", "1") * 2,
        f"%%oh_edit insert f.py --line 0 {option}\n1\n",
        f"%%oh_edit write f.py {option}\n1\n",
        f"%%oh_edit patch f.py {option}\n@@\n-one\n+1\n",
        f"%%oh_edit create fresh.py {option}\n1\n",
    ):
        shown = kernel.execute(cell)
        assert "+1" in shown or "not in the file" in shown
        assert path.read_text() == "one\ntwo\nthree\n"
    assert not (path.parent / "fresh.py").exists()
    kernel.execute("%%oh_edit write f.py\nnew\n")
    assert "+one" in kernel.execute(f"%oh_edit undo f.py {option}")
    assert path.read_text() == "new\n"


def test_options_stand_before_or_after_the_path(kernel, path: Path) -> None:
    for cell in (
        "%%oh_edit create --dry-run new.py\n1\n",
        "%%oh_edit --dry-run create new.py\n1\n",
    ):
        assert "+1" in kernel.execute(cell)
        assert not (path.parent / "new.py").exists()
    assert "     2\ttwo" in kernel.execute("%oh_edit view --range 2 2 f.py")
    kernel.execute("%%oh_edit insert --line 0 f.py\nzero\n")
    assert path.read_text() == "zero\none\ntwo\nthree\n"


def test_linting(kernel, path: Path) -> None:
    path.write_text("x = 1\n")
    kernel.execute("%oh_edit view f.py")
    shown = kernel.execute("%%oh_edit write f.py --lint\nx = (\n")
    assert "Linting issues found in the changes:" in shown


def test_history_and_differences(kernel, path: Path) -> None:
    kernel.execute("%%oh_edit create h.txt\nfirst\n")
    kernel.execute("%%oh_edit insert h.txt --line 1\nsecond\n")
    kernel.execute("%oh_edit undo h.txt")
    shown = kernel.execute("%oh_edit history h.txt")
    assert re.search(r"1 +create +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n2 +insert .* undone", shown)
    steps = kernel.execute("s = %oh_edit history h.txt\n[(e['step'], e['state']) for e in s]")
    assert steps == "[(1, ''), (2, 'undone')]"
    kernel.execute("%oh_edit redo h.txt")
    assert "+second" in kernel.execute("%oh_edit diff h.txt")
    assert "+first" in kernel.execute("%oh_edit diff h.txt --steps 2")
    assert "No edit history found" in kernel.execute("%oh_edit diff h.txt --steps 3")
    assert "(nothing)" in kernel.execute("%oh_edit history never-edited")
    assert kernel.execute("d = %oh_edit diff h.txt\nisinstance(d, str), d[-9:]") == (
        r"(True, '+second\n ')"
    )


def test_the_body_is_taken_as_it_was_typed(kernel, path: Path) -> None:
    body = (
        "  def f():\n"
        '      """Do it.\n'
        "\n"
        "      >>> f()\n"
        "      1\n"
        "      ... more\n"
        '      """\n'
        ">>> top\n"
        "... dots\n"
        "In [3]: prompt\n"
        "%magic\n"
        "!shell\n"
        "x?\n"
    )
    kernel.execute(f"%%oh_edit create typed.txt\n{body}")
    file = path.parent / "typed.txt"
    assert file.read_text() == body
    kernel.execute(f"%%oh_edit insert typed.txt --line 0\n{body}")
    assert file.read_text() == body * 2
    kernel.execute("%%oh_edit str_replace typed.txt\n" + BLOCK.format(body, ">>> new"))
    assert file.read_text() == body * 2  # it is there twice: refused
    kernel.execute("%%oh_edit str_replace typed.txt --all\n" + BLOCK.format(">>> top", ">>> new"))
    assert file.read_text() == body.replace(">>> top", ">>> new") * 2
    kernel.execute("%%oh_edit create bare.txt\nno newline")
    assert (path.parent / "bare.txt").read_text() == "no newline\n"


def test_a_body_need_not_be_python(kernel, path: Path) -> None:
    for body in ("x = (\n", "it's\n", "int x = 1;\n", '"""\n'):
        shown = kernel.execute(f"%%oh_edit write f.py\n{body}")
        assert shown.startswith("--- ")
        assert path.read_text() == body
    assert kernel.execute("%oh_edit undo f.py;") == ""
    assert path.read_text() == "int x = 1;\n"


def test_the_difference_is_shown_in_colours(kernel, path: Path) -> None:
    (bundle,) = bundles(kernel, "%%oh_edit write f.py\n<b>one</b>\n")
    assert "+<b>one</b>" in bundle["text/plain"]
    assert "\x1b" not in bundle["text/plain"]
    assert "&lt;b&gt;one&lt;/b&gt;" in bundle["text/html"]
    assert '<ins class="oh-Diff-line oh-mod-added"' in bundle["text/html"]
    assert '<del class="oh-Diff-line oh-mod-removed"' in bundle["text/html"]
    (bundle,) = bundles(kernel, "%oh_edit diff f.py")
    assert '<ins class="oh-Diff-line oh-mod-added"' in bundle["text/html"]
    assert bundle["text/plain"].startswith("--- ")


def test_the_lines_around_a_change_are_shown(kernel, path: Path) -> None:
    (bundle,) = bundles(kernel, "%%oh_edit str_replace f.py\n" + BLOCK.format("two", "zwei"))
    assert texts(bundle["text/html"], "context") == [" one\n", " three\n"]
    assert texts(bundle["text/html"], "added") == ["+zwei\n"]
    # The text is that of the protocol, for programs.
    assert " one" not in bundle["text/plain"]


def test_a_patch_shows_each_of_its_files(kernel, path: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: f.py\n@@\n-two\n+2\n*** Add File: blank.py\n"
    patch += "+a\n+\n+\n+b\n*** End Patch\n"
    (bundle,) = bundles(kernel, f"%%oh_edit patch . --dry-run\n{patch}")
    assert texts(bundle["text/html"], "added") == ["+2\n", "+a\n+\n+\n+b\n"]
    assert texts(bundle["text/html"], "header")[1].endswith("/blank.py\n")


def test_a_dry_run_looks_like_one(kernel, path: Path) -> None:
    (bundle,) = bundles(kernel, "%%oh_edit write f.py --dry-run\n1\n")
    assert "oh-mod-dry-run" in bundle["text/html"]
    assert "dry run: nothing was written" in bundle["text/html"]
    assert bundle["text/plain"].endswith("DRY RUN: nothing was written.")
    (bundle,) = bundles(kernel, "%%oh_edit write f.py\n1\n")
    assert "dry" not in bundle["text/html"]


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("%oh_edit undo", "say which file"),
        ("%oh_edit write f.py", "%%oh_edit write f.py"),
        ("%%oh_edit view f.py\ntext", "takes no text"),
        ("%%oh_edit write f.py --start 0\nx", "--start counts from 1"),
        ("%%oh_edit write f.py --start 3 --end 1\nx", "--start counts from 1"),
        ("%%oh_edit str_replace f.py\n<<<<<<< SEARCH\nx\n=======\n", "REPLACE"),
        ("%%oh_edit str_replace f.py --all\n" + BLOCK.format("a", "b") * 2, "single block"),
        ("%%oh_edit patch f.py\nnonsense", "format of the patch is unknown"),
        ("%oh_edit redo f.py", "No undone edit found"),
    ],
)
def test_wrong_input_gets_one_clear_answer(kernel, path: Path, cell: str, word: str) -> None:
    path.write_text("x\n")
    shown = kernel.execute(cell)
    assert word in shown
    assert "Traceback" not in shown
    assert path.read_text() == "x\n"


# Tab


@pytest.fixture
def tree(kernel) -> Path:
    kernel.execute(f"%cd -q {kernel.directory}")
    folder = kernel.directory / "tree"
    for name in ("alpha/deep.txt", "alpha/.hidden", "alto.txt", "beta with blank.txt"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("%oh_edit str", ["str_replace"]),
        ("%%oh_edit d", ["diff", "draft"]),
        ("  %oh_edit und", ["undo"]),
        ("x = %oh_edit hi", ["history"]),
        ("%oh_edit view tree/al", ["tree/alpha/", "tree/alto.txt"]),
        ("%oh_edit view tree/alpha/", ["tree/alpha/deep.txt"]),
        ("%oh_edit view tree/alpha/.h", ["tree/alpha/.hidden"]),
        ("%%oh_edit patch tre", ["tree/"]),
        ("%oh_edit --dry-run undo tree/alt", ["tree/alto.txt"]),
        ("%oh_edit undo --dr", ["--dry-run"]),
        ("%%oh_edit write --st", ["--start"]),
        ('%oh_edit view "tree/beta', ['"tree/beta with blank.txt"']),
        ('%oh_edit view "tree/beta with b', ['"tree/beta with blank.txt"']),
        ("%oh_edit view 'tree/be", ["'tree/beta with blank.txt'"]),
    ],
)
def test_commands_options_and_paths_are_completed(
    kernel, tree: Path, code: str, expected: list[str]
) -> None:
    assert complete(kernel, code) == expected


@pytest.mark.thorough
def test_the_body_of_a_cell_is_not_completed_as_a_path(kernel, tree: Path) -> None:
    assert "tree/" not in complete(kernel, "%%oh_edit create x\ntre")
    assert complete(kernel, "%%oh_edit create tre\nbody", 20) == ["tree/"]


@pytest.mark.thorough
def test_reloading_leaves_one_completion(fresh_kernel) -> None:
    assert complete(fresh_kernel, "%oh_edit und") == ["undo"]
    fresh_kernel.execute("%reload_ext oh_jupyter")
    assert complete(fresh_kernel, "%oh_edit und") == ["undo"]
    fresh_kernel.execute("%unload_ext oh_jupyter")
    assert complete(fresh_kernel, "%oh_edit und") == []
    assert json.loads(fresh_kernel.execute("1")) == 1


# The wire


def test_extension_fields_are_on_the_wire_only_when_set(kernel) -> None:
    own = {"dry_run", "enable_linting", "replace_all", "cell", "edit_mode", "cell_type", "to"}
    args = kernel.execute(
        "from oh_jupyter.events import FileEditAction\n"
        "from oh_jupyter.events.wire import to_wire\n"
        "print(*to_wire(FileEditAction('/f', command='undo_edit'))['args'])"
    )
    assert not own & set(args.split())
    wire = "to_wire(FileEditAction('/f', dry_run=True))"
    args, ours = kernel.execute(f"print(*{wire}['args']); print({wire}['oh_jupyter'])").splitlines()
    assert not own & set(args.split())
    assert ours == "{'dry_run': True}"


def test_a_patch_and_a_write_from_outside(kernel, path: Path) -> None:
    observation = kernel.act(
        "edit",
        path=str(path.parent),
        command="apply_patch",
        content="f.py\n" + BLOCK.format("one", "1"),
    )
    assert observation["content"].startswith("The patch was applied.")
    assert "-one\n+1" in observation["extras"]["diff"]
    kernel.act("edit", path=str(path), command="write", content="2\n", start=2, end=2)
    assert path.read_text() == "1\n2\nthree\n"
    observation = kernel.act("edit", path=str(path), command="apply_patch")
    assert "Parameter `content` is required for command: apply_patch." in observation["content"]
    dry = kernel.act("edit", path=str(path), command="undo_edit", dry_run=True)
    assert "DRY RUN" in dry["content"]
    assert path.read_text() == "1\n2\nthree\n"
