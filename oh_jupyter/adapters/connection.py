"""The runtime that an adapter works on, its commands, and the error for a missing framework."""

from __future__ import annotations

import os
import shlex

from oh_jupyter.client import AsyncRuntimeClient
from oh_jupyter.errors import ExtraMissingError, ServerError
from oh_jupyter.events import CmdRunAction, Observation

TIMEOUT_SECONDS = 120
"""Default time limit of a command, the same as in deepagents' own shell backend."""

FAILED = 1
"""Exit code of a command that was not run, such as one that a person rejected."""


def connect(
    framework: str,
    url: str | None = None,
    token: str | None = None,
    kernel_id: str | None = None,
) -> AsyncRuntimeClient:
    """Return a framework's client of a runtime, by default that of ``OH_URL`` and ``OH_TOKEN``."""
    url = url or os.environ.get("OH_URL", "")
    if not url:
        raise ServerError(
            'No server is named: run eval "$(oh-jupyter env --notebook my.ipynb)" first, or pass '
            "url and token"
        )
    token = os.environ.get("OH_TOKEN", "") if token is None else token
    return AsyncRuntimeClient(url, token, kernel_id, client_name=framework)


async def run_command(
    client: AsyncRuntimeClient,
    command: str,
    timeout: float | None = None,
    cwd: str | None = None,
    title: str = "",
) -> Observation:
    """Run a command in a shell of its own; its output is exact, its exit code -1 after the time.

    The log shows ``title``, the command of the framework, in place of a script around it.
    """
    action = CmdRunAction(command, is_static=True, exact=True, cwd=cwd, title=title)
    action.set_hard_timeout(timeout)
    return await client.execute(action)


def removal(directory: str) -> str:
    """Return the command that removes an adapter's own directory.

    A person is asked about the removal of a tree that the command names by its absolute path.
    """
    parent, _, name = directory.rpartition("/")
    return f"{{ cd -- {shlex.quote(parent or '/')} && rm -rf -- {shlex.quote(name)}; }}"


def missing(error: ImportError, extra: str) -> ExtraMissingError:
    """Return the error for a framework that cannot be imported."""
    return ExtraMissingError(
        f"{error}. Install the framework with: pip install 'oh_jupyter[{extra}]'"
    )
