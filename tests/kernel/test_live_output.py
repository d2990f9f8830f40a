"""``%oh_run`` shows its output so far in the cell, and the complete output once at the end."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.testing import wait_until

PROGRESS = "for n in 1 2 3 4 5; do printf '\\rstep %s of 5' $n; done; echo; echo started"
"""A command that prints a progress bar."""


class NotebookCell:
    """A cell of a notebook's frontend: its messages, and what it shows and saves."""

    def __init__(self, kernel: Any, code: str, *, allow_stdin: bool, cell_id: str = "c1") -> None:
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": allow_stdin,
            "stop_on_error": True,
        }
        self._client = kernel.client
        metadata = {"cellId": cell_id} if cell_id else {}
        message = self._client.session.msg("execute_request", content, metadata=metadata)
        self._id = message["header"]["msg_id"]
        self._client.shell_channel.send(message)
        self.kinds: list[str] = []
        self.outputs: list[dict[str, Any]] = []
        self.is_idle = False

    def read(self, until: Callable[[], object]) -> None:
        """Read messages until a condition holds."""
        while not until():
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") == self._id:
                self._handle(message["msg_type"], message["content"])

    def _handle(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "status":
            self.is_idle = content["execution_state"] == "idle"
            return
        if kind not in ("clear_output", "display_data", "update_display_data", "execute_result"):
            return
        self.kinds.append(kind)
        if kind == "clear_output":
            self.outputs.clear()
        elif kind == "update_display_data":
            self.outputs[-1] = content["data"]
        else:
            self.outputs.append(content["data"])

    @property
    def text(self) -> str:
        """The text of the outputs."""
        return "\n".join(str(each.get("text/plain", "")) for each in self.outputs)

    def finish(self) -> None:
        """Read to the end."""
        self.read(lambda: self.is_idle)


@pytest.fixture
def gate(kernel: Any) -> Path:
    path = Path(kernel.directory, "gate")
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("before", ["", "x = 1\n"])
def test_a_notebook_shows_the_output_while_it_comes(kernel: Any, gate: Path, before: str) -> None:
    code = f"{before}%oh_run --blocking {PROGRESS}; cat {gate}; seq 30; echo last"
    cell = NotebookCell(kernel, code, allow_stdin=True)
    cell.read(lambda: "started" in cell.text)
    assert cell.text.splitlines() == ["step 5 of 5", "started"]
    gate.write_text("through\n")
    cell.finish()
    *emptied, final = cell.outputs
    assert emptied == ([{}] if before else [])
    lines = final["text/plain"].splitlines()
    assert lines == ["step 5 of 5", "started", "through", *map(str, range(1, 31)), "last"]
    assert cell.kinds[-1] == "execute_result"
    assert cell.kinds.count("display_data") == 1
    assert kernel.execute("print(_.exit_code, type(_).__name__)") == "0 CmdOutputObservation\n"


def test_an_interrupt_ends_the_command_and_its_output(kernel: Any, gate: Path) -> None:
    cell = NotebookCell(kernel, f"%oh_run --blocking echo started; cat {gate}", allow_stdin=True)
    cell.read(lambda: "started" in cell.text)
    kernel.manager.interrupt_kernel()
    cell.finish()
    assert "started" not in cell.text
    assert kernel.execute("print(oh.run('echo well').content)") == "well\n"


@pytest.mark.parametrize(
    ("allow_stdin", "cell_id"), [(False, "c1"), (True, "")], ids=["unwatched", "console"]
)
def test_other_frontends_get_the_outcome_only(
    kernel: Any, gate: Path, allow_stdin: bool, cell_id: str
) -> None:
    code = f"%oh_run --blocking echo started; cat {gate}"
    cell = NotebookCell(kernel, code, allow_stdin=allow_stdin, cell_id=cell_id)
    wait_until(lambda: "started" in str(kernel.ask("peek", id=latest(kernel))[1]["text"]))
    gate.write_text("through\n")
    cell.finish()
    assert cell.kinds == ["execute_result"]
    assert cell.text == "started\nthrough"


def latest(kernel: Any) -> int:
    """The id of the last event."""
    return int(kernel.ask("events", start_id=0)[1]["events"][-1]["id"])


def test_a_frontend_that_shows_the_output_itself_sees_it_once(kernel: Any, gate: Path) -> None:
    code = f"%oh_run --blocking echo started; cat {gate}"
    cell = NotebookCell(kernel, code, allow_stdin=True)
    wait_until(lambda: kernel.ask("peek", id=latest(kernel))[1]["text"] == "started")
    seen = {"state": "running", "text": "started"}
    kernel.ask("peek", id=latest(kernel), seen=seen, wait=1.5)  # longer than the delay
    gate.write_text("through\n")
    cell.finish()
    assert cell.kinds == ["execute_result"]


def test_a_terminal_shows_the_output_while_it_comes(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = tmp_path / "script.ipy"
    script.write_text(
        "%load_ext oh_jupyter\n"
        f"out = %oh_run --blocking {PROGRESS}; cat {gate}\n"
        "print('outcome', out.content, 'end')\n"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=nocolor", str(script)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path) as run:
        os.close(theirs)
        shown = ""
        while "started" not in shown:
            assert select.select([ours], [], [], 120)[0]
            shown += os.read(ours, 4096).decode()
        gate.write_text("through\n")
        while chunk := _read(ours):
            shown += chunk
        assert run.wait(60) == 0
    os.close(ours)
    assert "step 1 of 5" not in shown
    *_, last = re.split(r"\x1b\[\d+F\x1b\[J", shown)
    assert last.partition(" end")[0].split() == [
        "outcome",
        "step",
        "5",
        "of",
        "5",
        "started",
        "through",
    ]


def _read(terminal: int) -> str:
    """Read from a terminal, "" at its end."""
    try:
        return os.read(terminal, 4096).decode()
    except OSError:
        return ""
