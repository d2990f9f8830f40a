"""The deterministic merge: exactly what the draft says, or a refusal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oh_jupyter.editor.draft.merge import Merged, Refused, merge
from oh_jupyter.editor.draft.model import LineKind, line_kind, read_draft

FILE = """\
import os

def first():
    result = 2
    return result

def second(a):
    y = a
    return y + 1

def last():
    return 0
""".removesuffix("\n").split("\n")


def merged(draft: str, original: list[str] = FILE) -> str | None:
    outcome = merge(original, read_draft(draft, original))
    return "\n".join(outcome.lines) if isinstance(outcome, Merged) else None


def reason(draft: str, original: list[str] = FILE) -> str:
    outcome = merge(original, read_draft(draft, original))
    assert isinstance(outcome, Refused)
    return outcome.reason


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "    // ... existing code ...",
        "# no changes before",
        "# no changes after",
        "# no changes needed before this line",
        "<!-- ... existing code ... -->",
        "# ... rest of code unchanged ...",
        "/* ... rest of the file ... */",
        "{/* ... existing JSX ... */}",
        "-- ... existing code ...",
        "; ... existing code ...",
        "# ... (rest of the code remains unchanged)",
        "# … existing code …",
        "# ...",
        "# [... existing code ...]",
        "// ... keep existing code",
        "# Rest of the code unchanged",
        "(* ... existing code ... *)",
        "% ... existing code ...",
        "{# ... existing blocks ... #}",
    ],
)
def test_lines_that_stand_for_unchanged_code(line):
    assert line_kind(line) is LineKind.MARKER


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("# ... and so on ...", LineKind.DOUBTFUL),
        ("# keep existing code working", LineKind.DOUBTFUL),
        ("x = 1  # ... existing code ...", LineKind.DOUBTFUL),
        ("...", LineKind.TEXT),
        ('    "...",', LineKind.TEXT),
        ("'... existing code ...'", LineKind.TEXT),
        ("* ...", LineKind.DOUBTFUL),
        (" * ... existing code ...", LineKind.MARKER),
        ("# more...", LineKind.TEXT),
        ("# ---", LineKind.TEXT),
        ('"""', LineKind.TEXT),
        ("print('existing code')", LineKind.TEXT),
        ("# the same colour as before the change", LineKind.TEXT),
        ("", LineKind.TEXT),
    ],
)
def test_lines_that_do_not(line, kind):
    assert line_kind(line) is kind


def test_long_lines_are_read_quickly():
    for line in ("#" + " " * 10**6 + "x", "# ..." + " unchanged" * 10**5 + " x", "#" * 10**6):
        assert line_kind(line) is LineKind.TEXT
    assert line_kind("# ... " + "unchanged " * 19 + "x") is LineKind.DOUBTFUL


def test_a_change_in_the_middle():
    draft = (
        "# ... existing code ...\ndef second(a):\n    y = a * 2\n    return y + 1\n"
        "# ... rest of code unchanged ...\n"
    )
    assert merged(draft) == "\n".join(FILE).replace("y = a", "y = a * 2")


def test_blank_lines_beside_markers_are_not_enough_but_do_not_hurt():
    draft = (
        "# ... existing code ...\n\ndef second(a):\n    y = a * 2\n    return y + 1\n\n"
        "# ... existing code ..."
    )
    assert merged(draft) == "\n".join(FILE).replace("y = a", "y = a * 2")
    assert "only blank lines before" in reason("\n\n# ... existing code ...\n    return 1")


def test_text_at_either_end():
    added = "# ... existing code ...\ndef last():\n    return 0\n\ndef new():\n    return 1\n"
    assert merged(added) == "\n".join([*FILE, "", "def new():", "    return 1"])
    first = "import os\nimport sys\n\ndef first():\n    result = 2\n# ... existing code ..."
    assert merged(first) == "\n".join(FILE).replace("import os", "import os\nimport sys")
    cut = "# no changes before\ndef last():\n    return 7"
    assert merged(cut) == "\n".join(FILE).replace("return 0", "return 7")


def test_lines_between_anchors_that_are_not_shown_are_deleted():
    draft = "#EDIT: smaller\nimport os\n\ndef second(a):\n    y = a\n# ... existing code ..."
    small = ["import os", "", "x = 1", "", "print(x)", "print(os)"]
    assert merged("import os\n\nprint(x)\n# ... existing code ...", small) == (
        "import os\n\nprint(x)\nprint(os)"
    )
    assert merged(draft) is not None
    assert "def first" not in str(merged(draft))


def test_a_draft_without_markers_is_the_new_text():
    assert merged("one\ntwo\n", ["zero", "one"]) == "one\ntwo"
    assert merged("#EDIT: why\none", ["zero", "one"]) == "one"


def test_a_draft_without_markers_does_not_delete_definitions_in_silence():
    only_second = "def second(a):\n    return 7\n"
    assert "would delete `first`, `last`" in reason(only_second)
    assert "# ... existing code ..." in reason(only_second)
    assert merged("def renamed():\n    return 0", ["def last():", "    return 0"]) is not None
    last = ["def last():", "    return 0"]
    assert isinstance(merge(last, read_draft("def new(): ...", last), whole_file=True), Refused)
    everything = "\n".join(FILE).replace("y + 1", "y + 2")
    assert merged(everything) == everything


def test_a_new_line_beside_a_marker_is_refused():
    draft = "# ... existing code ...\ndef second(a):\n    return 7\n# ... existing code ..."
    assert "`return 7`, is not in the file" in reason(draft)


def test_an_anchor_that_is_there_twice_is_refused():
    original = ["if a:", "    go()", "if b:", "    go()", "done = True"]
    draft = "# ... existing code ...\n    go()\n    stop()\ndone = True"
    assert "more than once" in reason(draft, original)
    draft = "if a:\n    x()\n    go()\n# ... existing code ..."
    assert "more than once" in reason(draft, original)


def test_a_new_function_that_ends_like_an_old_one_does_not_replace_it():
    draft = "import os\n\ndef new():\n    result = 1\n    return result\n\n# ... existing code ..."
    assert "may be new lines" in reason(draft)


def test_a_generic_line_is_no_anchor_on_its_own():
    original = ["import os", "class A(Exception):", "    pass", "x = os.name", "print(x)"]
    draft = "import os\n\ndef g():\n    pass\n# ... existing code ..."
    assert "may be new lines" in reason(draft, original)


def test_a_draft_that_changes_nothing_is_refused():
    assert "equals the file" in reason("# ... existing code ...\ndef last():\n    return 0")


def test_a_marker_that_is_a_line_of_the_file_is_refused():
    original = ["a = 1", "# ... existing code ...", "b = 2"]
    assert "may stand for unchanged lines" in reason(
        "a = 1\n# ... existing code ...\nb = 3", original
    )


# Files full of lines that are there several times, and of blank and generic ones.
LINES = st.sampled_from(
    [
        "",
        "    pass",
        "}",
        "x = 1",
        "y = 2",
        "    return x",
        "alpha()",
        "beta()",
        "def f():",
        "if x:",
    ]
)


def text_lines(minimum: int) -> st.SearchStrategy[list[str]]:
    return st.lists(
        LINES | st.integers(0, 40).map("value_{}".format), min_size=minimum, max_size=25
    )


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[str], list[str], str]:
    """A file, what it becomes, and a draft of that.

    Around every change one to three unchanged lines that are not blank are shown; runs of
    unchanged lines are left out in places, never all of them.
    """
    original = draw(text_lines(1))
    steps: list[tuple[str, list[str], list[str]]] = []  # what, old lines, new lines
    position = 0
    while position < len(original):
        keep = draw(st.integers(1, 8))
        steps.append(("keep", original[position : position + keep], []))
        position += keep
        drop = draw(st.integers(0, 3))
        new = draw(st.lists(LINES | st.just("fresh_line()"), max_size=3))
        old = original[position : position + drop]
        steps.append(("change", old, new))
        position += drop
    edited = [line for what, old, new in steps for line in (old if what == "keep" else new)]
    draft: list[str] = []
    for number, (what, old, new) in enumerate(steps):
        if what == "change":
            draft += new
            continue
        context = draw(st.integers(1, 3))
        head = shown(old, context) if number else 0
        later = any(step[1] or step[2] for step in steps[number + 1 :])
        tail = shown(old[::-1], context) if later else 0
        if head + tail < len(old) and draw(st.booleans()):
            marker = draw(st.sampled_from(["# ... existing code ...", "// ... rest of code ..."]))
            draft += [*old[:head], marker, *old[len(old) - tail :]]
        else:
            draft += old
    return original, edited, "\n".join(draft) + "\n"


def shown(lines: list[str], context: int) -> int:
    """Return the number of lines that contain so many nonblank ones."""
    for number, line in enumerate(lines):
        context -= bool(line.strip())
        if not context:
            return number + 1
    return len(lines)


@pytest.mark.thorough
@settings(max_examples=1500)
@given(edits())
def test_a_merge_is_exact_or_refused(case):
    original, edited, draft = case
    outcome = merge(original, read_draft(draft, original))
    if isinstance(outcome, Merged):
        assert outcome.lines == edited


@pytest.mark.thorough
@settings(max_examples=500)
@given(
    st.lists(st.integers(0, 10**6), min_size=6, max_size=60, unique=True),
    st.data(),
)
def test_a_change_between_unique_lines_is_always_merged(numbers, data):
    original = [f"value_{number} = load({number})" for number in numbers]
    first = data.draw(st.integers(1, len(original) - 3))
    last = data.draw(st.integers(first, len(original) - 2))
    new = data.draw(st.lists(st.integers(0, 99).map("fresh({})".format), max_size=4))
    edited = original[:first] + new + original[last:]
    lines = [original[first - 1], *new, original[last]]
    if first > 1:
        lines.insert(0, "# ... existing code ...")
    if last < len(original) - 1:
        lines.append("# ... existing code ...")
    outcome = merge(original, read_draft("\n".join(lines), original))
    if edited == original or (first == 1 and last == len(original) - 1):
        return
    assert isinstance(outcome, Merged)
    assert outcome.lines == edited


def test_a_marker_behind_the_last_line_stands_for_nothing():
    original = ["a = 1", "b = 2", "c = 3"]
    draft = "a = 10\nb = 2\nc = 3\n# ... existing code ..."
    assert merged(draft, original) == "a = 10\nb = 2\nc = 3"
    # A line that occurs twice may be the other one, after which something stays.
    assert merged(draft, ["c = 3", "x = 1", "c = 3"]) == "a = 10\nb = 2\nc = 3\nx = 1\nc = 3"
