"""An interrupt ends the code of an agent's cell whenever it comes, and only that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oh_jupyter.testing import LiveKernel, wait_until

BEFORE_THE_CODE = """
def before_the_code(info):
    if "time.sleep(300)" in info.raw_cell:
        {waiting}
get_ipython().events.register("pre_run_cell", before_the_code)
"""
"""Holds a cell before its code, in a callback from which IPython lets no interrupt out."""

UNREGISTER = "get_ipython().events.unregister('pre_run_cell', before_the_code)"

SLEEP = "import time; time.sleep(300)"


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def running(kernel: LiveKernel) -> list[object]:
    return list(kernel.ask("status")[1]["running"])


ASYNC_SLEEP = "import asyncio; await asyncio.sleep(300)  # instead of time.sleep(300)"


@pytest.mark.parametrize("code", [SLEEP, ASYNC_SLEEP], ids=["plain", "async"])
def test_a_cell_that_is_cancelled_before_its_code_does_not_run(
    kernel: LiveKernel, gate: Path, code: str
) -> None:
    kernel.execute(BEFORE_THE_CODE.format(waiting=f"open({str(gate)!r}).read()"))
    try:
        action = {"action": "run_ipython", "args": {"code": f"ran = True\n{code}"}}
        msg_id = kernel.send("execute_action", {"action": action})
        with gate.open("w"):  # opens when the cell waits
            kernel.ask("cancel", key=msg_id)
            wait_until(lambda: not running(kernel))
        assert kernel.act("run_ipython", code="'ran' in globals()")["content"].startswith("False")
    finally:
        kernel.execute(UNREGISTER)


def test_a_cell_within_a_cell_whose_time_is_over_before_its_code_does_not_run(
    kernel: LiveKernel,
) -> None:
    waiting = (
        "while any(t.name == 'oh-kernel-cell-timeout' for t in threading.enumerate()): "
        "time.sleep(0.01)"
    )
    kernel.execute("import threading, time\n" + BEFORE_THE_CODE.format(waiting=waiting))
    try:
        output = kernel.execute(f"%%oh_run --cell --timeout 0.3\nran_within = True\n{SLEEP}")
        assert "KeyboardInterrupt" in output
        assert kernel.execute("'ran_within' in globals()") == "False"
    finally:
        kernel.execute(UNREGISTER)
