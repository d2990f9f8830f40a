"""Plain ``ipython``: no kernel, no server, the same magics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.thorough


def ipython(directory: Path, code: str) -> str:
    """Return the output of ``ipython`` for a few lines of input."""
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--colors=nocolor"],
        input=f"%load_ext oh_jupyter\n{code}\n",
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_commands_cells_and_edits_work_without_a_kernel(tmp_path: Path) -> None:
    shown = ipython(
        tmp_path,
        "%oh_run echo from the shell\n"
        "x = 20\n"
        "%oh_run --cell x + 1\n"
        f"print(oh.edit('create', '{tmp_path}/a.txt', file_text='text').content)\n"
        f"%oh_edit view {tmp_path}/a.txt\n"
        "%oh_log",
    )
    assert "from the shell" in shown
    assert "21\n[Jupyter current working directory" in shown
    assert "File created successfully" in shown
    assert "     1\ttext" in shown
    assert "run_ipython" in shown


@pytest.mark.thorough
def test_leaving_ipython_leaves_no_shell_behind(tmp_path: Path) -> None:
    shown = ipython(tmp_path, "print('pid', oh.run('echo $$').content)")
    (pid,) = [line.split()[-1] for line in shown.splitlines() if "pid" in line]
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the end of the shell")
