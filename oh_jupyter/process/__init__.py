"""How children are started, and how it is made sure that they end.

Every child gets a session of its own (the person's Interrupt goes to the kernel's process
group and must not reach it), default signal dispositions (an idle kernel ignores SIGINT, and
that is inherited), and something that ends it, and everything below it, when this process closes,
crashes or is killed: a guardian process on POSIX systems (``posix.py``), a job object on
Windows (``windows.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from oh_jupyter.errors import ChildStartError
from oh_jupyter.process.child import Child

__all__ = ["PIPE", "Child", "spawn"]

PIPE = subprocess.PIPE
"""Ask :func:`spawn` for a pipe, as with ``subprocess``."""


def spawn(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    pass_fds: Iterable[int] = (),
    controlling_terminal: int | None = None,
    user: str | None = None,
    resume: bool = False,
    remove_when_orphaned: str | os.PathLike[str] | None = None,
) -> Child:
    """Start a program that cannot outlive this process.

    Args:
        argv: Program and arguments; the program is searched on the PATH of ``env``.
        cwd: Working directory.
        env: The whole environment; None for a copy of ours.
        stdin: As for ``subprocess.Popen``.
        stdout: As for ``subprocess.Popen``.
        stderr: As for ``subprocess.Popen``.
        pass_fds: Descriptors to keep open in the child, under the same numbers. POSIX only.
        controlling_terminal: Descriptor of a terminal that becomes the child's own; it is
            closed in the child unless it is one of ``pass_fds``. POSIX only.
        user: Name of the user to run as, if not ours; this needs root. POSIX only.
        resume: Continue the child itself whenever it is stopped, also by itself. POSIX only.
        remove_when_orphaned: A folder that nobody else removes if this process is killed; left
            alone on Windows.

    Returns:
        The running child.

    Raises:
        ChildStartError: No such program, directory or user, or it may not be used.
    """
    if sys.platform != "win32":
        from oh_jupyter.process import posix

        return posix.spawn(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            controlling_terminal=controlling_terminal,
            user=user,
            resume=resume,
            remove_when_orphaned=remove_when_orphaned,
        )
    if user is not None or controlling_terminal is not None or list(pass_fds):
        raise ChildStartError(
            "This system gives a child no other user, no terminal and no descriptors: start "
            "it without them."
        )
    from oh_jupyter.process import windows

    return windows.spawn(argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
