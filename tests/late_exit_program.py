"""A program in whose last exit handler files change beside an agent's runtime."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oh_jupyter.runtime import Runtime

WORKSPACE = Path(sys.argv[1])
runtimes: list[Runtime] = []


def change_files() -> None:
    runtime = runtimes.pop()
    (WORKSPACE / "late.txt").write_text("late\n")
    print(*runtime.executor.turns.checkpoints.collect() or ())
    runtime.close()


atexit.register(change_files)  # before the imports, so that it is called after their handlers


def main() -> None:
    from oh_jupyter.config import Settings
    from oh_jupyter.events import CmdRunAction
    from oh_jupyter.runtime import Runtime

    runtime = Runtime(Settings(workspace_dir=str(WORKSPACE), file_store="memory"))
    runtime.submit_action(CmdRunAction("echo early > early.txt")).result()
    runtimes.append(runtime)


main()
