"""Objects that a program's end deletes, after Python's exit handlers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from oh_jupyter.testing import wait_until

PROGRAM = Path(__file__).with_name("exiting_program.py")


@pytest.mark.parametrize(("kind", "rejected"), [("shell", 3), ("runtime", 1)])
def test_closing_in_the_last_deletions_of_a_program(
    tmp_path: Path, kind: str, rejected: int
) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), kind, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("True True ["), done.stdout
    assert done.stdout.count("Python is exiting") == rejected
    job = int((tmp_path / "job").read_text())
    wait_until(lambda: not psutil.pid_exists(job), what="the end of the shell's job")


@pytest.mark.skipif(sys.platform != "linux", reason="no events of files on this system")
def test_changes_of_files_are_read_until_the_last_exit_handler(tmp_path: Path) -> None:
    program = PROGRAM.with_name("late_exit_program.py")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "late.txt" in done.stdout.split()
