"""Cells that put out more than anybody can read."""

from __future__ import annotations

import pytest

from oh_jupyter.cells.outputs import truncation_notice

pytestmark = pytest.mark.thorough

PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"


def peak(kernel) -> int:
    """The most memory that the kernel had so far, in MiB."""
    return int(kernel.act("run_ipython", code=PEAK, include_extra=False)["content"])


def test_a_cell_that_prints_200_mb(fresh_kernel) -> None:
    before = peak(fresh_kernel)
    code = "for number in range(200): print(number, 'x' * 1_000_000)"
    observation = fresh_kernel.act("run_ipython", code=code, include_extra=False)
    content = observation["content"]
    assert content[:10] == "0 xxxxxxxx"
    assert content[-10:] == "x" * 10
    printed = sum(len(f"{number} ") + 1_000_001 for number in range(200)) - 1
    assert content == content[:15_000] + truncation_notice(printed - 30_000) + content[-15_000:]
    assert peak(fresh_kernel) - before < 120
    assert fresh_kernel.act("run", command="echo on")["content"] == "on"
    # IPython would keep it all for %notebook, as outputs of the person's next cell.
    code = "import json; sum(map(len, get_ipython().history_manager.outputs.values()))"
    assert fresh_kernel.execute(code) == "0"


@pytest.mark.thorough
def test_a_text_in_one_piece(kernel) -> None:
    text = kernel.act("run_ipython", code="print('a' + 'x' * 100_000_000 + 'z')")["content"]
    assert (text[0], "z\n[Jupyter" in text) == ("a", True)
    result = kernel.act("run_ipython", code="'y' * 80_000_000", include_extra=False)["content"]
    assert "An output (execute_result) of 80000" in result
    assert kernel.act("run_ipython", code="1 + 1", include_extra=False)["content"] == "2"


def test_a_person_gets_all_output_of_their_cell(kernel) -> None:
    assert len(kernel.execute("print('x' * 3_000_000)")) == 3_000_001
    inside = "len(oh.run_ipython(\"print('x' * 3_000_000)\").content)"
    assert 30_000 < int(kernel.execute(inside)) < 31_000


def test_the_limit_can_be_set(monkeypatch, request) -> None:
    monkeypatch.setenv("OH_JUPYTER_CELL_OUTPUT_LIMIT", "100")
    limited = request.getfixturevalue("fresh_kernel")
    code = "print('x' * 1000)"
    content = limited.act("run_ipython", code=code, include_extra=False)["content"]
    assert content == "x" * 50 + truncation_notice(900) + "x" * 50
