"""Views of cells within a budget of characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from oh_jupyter.mcp_tools.cell_search import MAX_MATCHES, matching_lines, search
from oh_jupyter.mcp_tools.cell_views import cell_contents, fair_share, outline


def code(source: str, text: str = "") -> dict:
    outputs = [new_output("stream", text=text)] if text else []
    return dict(new_code_cell(source, outputs=outputs, execution_count=1 if text else None))


def shown(cells: list[dict], budget: int, **options) -> str:
    options = {"outputs": True, "running": {}, **options}
    blocks = cell_contents(list(enumerate(cells)), budget, **options)
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def test_a_view_that_fits_is_whole() -> None:
    text = shown([code("x = 1\nx", "1\n")], 1000)
    assert text.endswith("=== cell 0 | " + text.split(" | ")[1] + " | code [1] ===\n"
                         "x = 1\nx\n--- output ---\n1")  # fmt: skip


def test_each_cell_gets_a_fair_share() -> None:
    text = shown([code("short"), code("long\n" * 1000), code("last", "y\n" * 4000)], 1500)
    assert len(text) < 1800
    assert "short" in text
    assert "last" in text
    assert "more lines]" in text
    assert "characters ...]" in text
    assert text.endswith("[read_cells with start and end shows the rest; search finds text.]")


def test_many_cells_are_outlined() -> None:
    cells = [
        dict(new_markdown_cell("## Part\ntext")),
        *(code(f"x{n} = 1\n" * 9) for n in range(99)),
    ]
    lines = shown(cells, 6000).splitlines()
    assert lines[0].endswith("md ## Part (2 lines)")
    assert lines[99].endswith("x98 = 1 (9 lines, not run)")


def test_a_running_cell_shows_its_progress() -> None:
    cells = [code("loop()", "old")]
    text = shown(cells, 1000, running={0: "step 3\n[Running for 2 s]"})
    assert text.endswith("--- output ---\nstep 3\n[Running for 2 s]")
    assert outline(list(enumerate(cells)), {0: "x"})[0].endswith("(running, output 3 characters)")


@given(st.lists(st.integers(0, 500), max_size=20), st.integers(0, 5000))
def test_a_fair_share_fills_the_budget(lengths: list[int], budget: int) -> None:
    limit = fair_share(lengths, budget)
    used = sum(min(length, limit) for length in lengths)
    assert used <= budget
    more = sum(min(length, limit + 1) for length in lengths)
    assert more > budget or limit >= max(lengths, default=0)


def test_matching_lines_are_shortened_around_the_match() -> None:
    line = "a" * 300 + "needle" + "b" * 300
    ((index, number, text),) = matching_lines("needle", ["no", f"no\n{line}"])
    assert (index, number) == (1, 2)
    assert "needle" in text
    assert len(text) <= 160
    assert len(matching_lines("x", ["x\n" * 1000])) == MAX_MATCHES + 1


async def test_a_search_runs_apart_and_ends_in_time() -> None:
    assert await search(r"y\d", ["x1", "y2"]) == [(1, 1, "y2")]
    with pytest.raises(ValueError, match="is not a regular expression"):
        await search("(", [])
