"""Files of the package and calls that a magic enters: ``python tests/benchmarks/count_files.py``.

Each magic runs once before it is counted, so that imports and the runtime's start are left out.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

import oh_jupyter

PACKAGE = str(Path(oh_jupyter.__file__).parent)
EDIT = "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n"


class CallCounter:
    """Counts calls by file of the package, in all threads that start after it."""

    def __init__(self) -> None:
        self.calls: Counter[str] | None = None
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def count(self, run: Callable[[], Any]) -> Counter[str]:
        """Return the calls that a function makes; what it prints is dropped."""
        self.calls = calls = Counter[str]()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run()
        finally:
            self.calls = None
        return calls

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        calls = self.calls
        if calls is not None and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls[frame.f_code.co_filename] += 1


def main() -> None:
    """Print a line for each magic."""
    counter = CallCounter()
    with tempfile.TemporaryDirectory() as workspace, contextlib.ExitStack() as stack:
        os.environ["XDG_STATE_HOME"] = str(Path(workspace, "state"))
        work = Path(workspace, "work")
        work.mkdir()
        stack.enter_context(contextlib.chdir(work))
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "oh_jupyter")

        def edit() -> Any:
            (work / "note.txt").write_text("one\n")
            return shell.run_cell_magic("oh_edit", "str_replace note.txt", EDIT)

        magics: dict[str, Callable[[], Any]] = {
            "%oh_run echo hi": lambda: shell.run_line_magic("oh_run", "echo hi"),
            "%%oh_edit str_replace": edit,
            "%oh_rewind": lambda: shell.run_line_magic("oh_rewind", ""),
        }
        for name, run in magics.items():
            counter.count(run)
            calls = counter.count(run)
            print(f"{name:24}{len(calls):4} files{sum(calls.values()):6} calls")
        shell.run_line_magic("unload_ext", "oh_jupyter")


if __name__ == "__main__":
    main()
