"""A program whose global object is deleted past Python's exit handlers, where no thread runs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from oh_jupyter.background import threads_have_ended
from oh_jupyter.config import Settings
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime import Runtime
from oh_jupyter.shell import BashSession


def shell(directory: str) -> tuple[Any, list[Callable[[], object]]]:
    session = BashSession(directory)
    session.initialize()
    session.execute(CmdRunAction("sleep 1000 & echo $! > job"))
    calls = [
        lambda: session.execute(CmdRunAction("echo late")),
        lambda: session.set_env({"LATE": "1"}),
        session.interrupt,
        session.close,
        session.close,
        session.initialize,
    ]
    return session, calls


def runtime(directory: str) -> tuple[Any, list[Callable[[], object]]]:
    runtime = Runtime(Settings(workspace_dir=directory, file_store="memory"))
    runtime.submit_action(CmdRunAction("sleep 1000 & echo $! > job")).result()
    calls = [
        lambda: runtime.submit_action(CmdRunAction("echo late")).result(),
        runtime.events.close,
        runtime.close,
        runtime.close,
    ]
    return runtime, calls


class Owner:
    """It closes what it owns when it is deleted, as people's classes do."""

    def __init__(self, kind: str, directory: str) -> None:
        self.owned, self.calls = {"shell": shell, "runtime": runtime}[kind](directory)

    def __del__(self) -> None:
        begin = time.monotonic()
        failures = []
        for call in self.calls:
            try:
                call()
            except OhJupyterError as error:
                failures.append(str(error))
        text = f"{threads_have_ended()} {time.monotonic() - begin < 5} {failures}\n"
        os.write(1, text.encode())


owner = Owner(*sys.argv[1:])
