"""Line diffs are right, as short as can be where nothing is unique, and never slow."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oh_jupyter.editor.history.edit import apply, compare, invert, moved
from oh_jupyter.editor.text import changed_lines, unified_diff
from oh_jupyter.editor.text.line_diff import changed_ranges, common_lengths

LINES = st.lists(st.sampled_from("abc"), max_size=25)


@given(LINES, LINES)
@settings(max_examples=500)
def test_lines_between_changes_are_equal(old, new):
    i = j = 0
    for i1, i2, j1, j2 in [*changed_ranges(old, new), (len(old), len(old), len(new), len(new))]:
        assert old[i:i1] == new[j:j1]
        i, j = i2, j2


@pytest.mark.thorough
@given(st.integers(0, 2**32), st.sampled_from([0.001, 0.03, 0.3]))
@settings(max_examples=30)
def test_large_files_that_are_compared_in_step_give_a_right_diff(seed, share):
    draw = random.Random(seed)
    old = [str(draw.randrange(9)) for _ in range(25_000)]
    new = list(old)
    if seed % 3 != 1:
        new = [f"x{line}" if draw.random() < share else line for line in new]
    if seed % 3:
        new = [line for line in new if draw.random() >= share]
    for one, other in ((old, new), (new, old)):
        i = j = 0
        end = (len(one), len(one), len(other), len(other))
        for i1, i2, j1, j2 in [*changed_ranges(one, other), end]:
            assert one[i:i1] == other[j:j1]
            i, j = i2, j2


def test_few_changes_in_a_large_file_of_few_different_lines_are_found_one_by_one(seconds):
    draw = random.Random(1)
    old = [str(draw.randrange(7)) for _ in range(MANY)]
    new = [line for number, line in enumerate(old) if number % 1000 != 500]
    assert seconds(lambda: changed_ranges(old, new)) < 0.5
    for one, other in ((old, new), (new, old)):
        changed = changed_ranges(one, other)
        assert sum(i2 - i1 + j2 - j1 for i1, i2, j1, j2 in changed) == MANY // 1000


def longest(a, b):
    row = [0] * (len(b) + 1)
    for line in a:
        above, row = row, [0]
        for number, other in enumerate(b):
            row.append(above[number] + 1 if line == other else max(above[number + 1], row[-1]))
    return row[-1]


@given(LINES, LINES)
@settings(max_examples=300)
def test_the_common_subsequence_is_the_longest(old, new):
    assert common_lengths([old], new) == [longest(old, new)]


@given(LINES, LINES, LINES)
@settings(max_examples=300)
def test_changes_of_one_text_that_do_not_touch_are_merged(first, second, third):
    a, b, c = ("".join(f"{line}\n" for line in lines).encode() for lines in (first, second, third))
    one, two = compare(a, b, lines=True), compare(a, c, lines=True)
    assert apply(one, a) == b
    assert apply(invert(one), b) == a
    ours, theirs = moved(one, two), moved(two, one)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert apply(ours, c) == apply(theirs, b)


MANY = 180_000  # lines, 9 MB
WORST = {
    "all lines alike": (["x" * 50] * MANY, ["x" * 50] * (MANY // 2) + ["y"] * (MANY // 2)),
    "every second line changed": (
        [f"{n:08} the quick brown fox jumps over the lazy" for n in range(MANY)],
        [f"{'other' * (n % 2)}{n:08} the quick brown fox jumps over the lazy" for n in range(MANY)],
    ),
    "every second line changed, the others alike": (
        [f"{n * (n % 2):08} the quick brown fox jumps" for n in range(MANY)],
        [f"{'other' * (n % 2)}{n * (n % 2):08} the quick brown fox jumps" for n in range(MANY)],
    ),
    "few different lines, one of a hundred gone": (
        [str(n * n * n % 101 % 7) for n in range(MANY)],
        [str(n * n * n % 101 % 7) for n in range(MANY) if n * 7919 % 104_729 % 100],
    ),
    "few different lines": (
        [str(n * n % 7) for n in range(9000)],
        [str(n * n * n % 11 % 7) for n in range(9000)],
    ),
}


@pytest.mark.parametrize("name", WORST)
def test_no_diff_is_slow(name, seconds):
    old, new = ("\n".join(lines) for lines in WORST[name])
    assert seconds(lambda: changed_lines(old, new)) < 5
    assert seconds(lambda: unified_diff(old, new, "file", 3)) < 8


def test_a_key_that_is_everywhere_is_replaced_at_once(editor, write, seconds):
    path = write("a.json", '  {\n    "name": "x",\n    "kind": "y"\n  },\n' * 600)
    arguments = {"old_str": '"name"', "new_str": '"title"', "replace_all": True}
    assert seconds(lambda: editor(command="str_replace", path=path, **arguments).diff) < 2


def test_an_edit_after_a_change_of_every_second_line_is_fast(editor, write, seconds):
    lines = ["same line" if n % 2 else f"value = {n % 10}" for n in range(3000)]
    path = write("a.txt", "\n".join([*lines, "here\n"]))
    editor(command="view", path=path)
    path.write_text(path.read_text().replace("value", "result"))

    def edit():
        editor(command="str_replace", path=path, old_str="here", new_str="there")
        editor(command="undo_edit", path=path)

    assert seconds(edit) < 3
    assert path.read_text().endswith("here\n")


def test_many_places_are_compared_once_with_the_displayed_text(editor, write, seconds):
    path = write("a.txt", "key = 1\n\n" * 2000)
    editor(command="view", path=path)
    path.write_text("new\n" + path.read_text() + "more\n" * 2000)
    arguments = {"old_str": "key", "new_str": "name", "replace_all": True}
    assert seconds(lambda: editor(command="str_replace", path=path, **arguments)) < 2


def test_an_edit_below_a_change_in_many_places_is_undone_at_once(editor, write, seconds):
    path = write("a.txt", "".join(f"{n}\n-\n-\n-\n" for n in range(3000)))
    editor(command="str_replace", path=path, old_str="1000\n", new_str="thousand\n")
    path.write_text(path.read_text().replace("2\n", "two\n"))
    assert seconds(lambda: editor(command="undo_edit", path=path)) < 3
    assert "\n1000\n" in path.read_text()
    assert "two\n" in path.read_text()


def test_a_long_text_that_is_not_there_is_explained_at_once(editor, write, seconds):
    path = write("a.txt", "aaaa bbbb aaaa bbbb\n" * 3000)
    wanted = "aaaa bbbb aaba bbbb\n" * 190

    def edit():
        with pytest.raises(Exception, match="did not appear verbatim"):
            editor(command="str_replace", path=path, old_str=wanted, new_str="")

    assert seconds(edit) < 5
