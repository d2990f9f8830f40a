"""States of the shell at checkpoints, for a rewind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from oh_jupyter.errors import ShellError

if TYPE_CHECKING:
    from oh_jupyter.shell import ShellSession, ShellSnapshot

SHELL_SECONDS = 10.0
"""Timeout of saving or restoring the shell's state."""


class ShellStates:
    """The shell's directory and exported variables by checkpoint.

    They are in memory only: the shell ends with the kernel, and its variables may be secrets.
    """

    def __init__(self, find_shell: Callable[[], ShellSession | None], workspace_dir: str) -> None:
        self._find_shell = find_shell
        self._workspace_dir = workspace_dir
        self._states: dict[int, ShellSnapshot | None] = {}

    async def save(self, checkpoint: int) -> None:
        """Save the shell's state, if the shell is idle."""
        shell = self._find_shell()
        if shell is None:
            self._states[checkpoint] = None
        elif not shell.running:
            with contextlib.suppress(ShellError, TimeoutError):
                async with asyncio.timeout(SHELL_SECONDS):
                    self._states[checkpoint] = await shell.snapshot_async()

    def notes(self, checkpoint: int) -> list[str]:
        """Return a sentence if the shell's directory is another one than at a checkpoint."""
        shell = self._find_shell()
        if shell is None or checkpoint not in self._states:
            return []
        snapshot = self._states[checkpoint]
        cwd = self._workspace_dir if snapshot is None else snapshot.cwd
        return [f"The shell returns to {cwd}."] if cwd != shell.cwd else []

    async def restore(self, checkpoint: int) -> list[str]:
        """Restore the shell's state; return failures as notes."""
        shell = self._find_shell()
        if shell is None:
            return []
        if checkpoint not in self._states:
            return ["The shell's directory and variables stay as they are: they were not saved."]
        try:
            async with asyncio.timeout(SHELL_SECONDS):
                snapshot = self._states[checkpoint]
                if snapshot is None:  # the shell had not started yet
                    current = await shell.snapshot_async()
                    snapshot = replace(current, cwd=self._workspace_dir)
                await shell.restore_async(snapshot)
        except (ShellError, TimeoutError) as error:
            reason = str(error) or "a command runs in it"
            return [f"The shell's directory and variables stay as they are: {reason}"]
        return []
