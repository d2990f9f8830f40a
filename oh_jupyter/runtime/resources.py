"""The machine's resources of a runtime: its shell and memory."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from oh_jupyter.config import Settings, environment_without_secrets
from oh_jupyter.errors import ConfigError

if TYPE_CHECKING:
    import psutil

    from oh_jupyter.shell import ShellSession
    from oh_jupyter.shell.driver import Enclosure


def shell_user(settings: Settings) -> str | None:
    """Return the user that the shell changes to, or None; raise ConfigError if it cannot."""
    name = settings.username
    if not name or not settings.su_to_user or name == getpass.getuser():
        return None
    if os.name != "posix":
        raise ConfigError(
            f"The shell cannot run as {name!r}: this system has no way to change users without a "
            "password. Leave username out"
        )
    import pwd

    try:
        pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(
            f"There is no user {name!r} on this machine. Create it, or leave username out"
        ) from None
    if os.geteuid() != 0:
        raise ConfigError(
            f"The shell cannot run as {name!r}: only root may change users, and the kernel runs "
            f"as {getpass.getuser()!r}. Start the kernel as root, or leave username out"
        )
    return name


def shell_owner(settings: Settings) -> tuple[int, int] | None:
    """Return user and group id for the shell user's files, or None for the kernel's own."""
    name = shell_user(settings)
    if name is None:
        return None
    import pwd

    entry = pwd.getpwnam(name)
    return entry.pw_uid, entry.pw_gid


def prepare_workspace(workspace_dir: str, user: str | None) -> None:
    """Create a missing workspace, owned by the user who works there."""
    if os.path.isdir(workspace_dir):
        return
    os.makedirs(workspace_dir)
    if user is not None:
        import pwd

        entry = pwd.getpwnam(user)
        os.chown(workspace_dir, entry.pw_uid, entry.pw_gid)


def make_shell(
    settings: Settings,
    workspace_dir: str,
    *,
    env: Mapping[str, str] | None = None,
    enclosure: Enclosure | None = None,
    keep_output: Callable[[str], str] | None = None,
) -> ShellSession:
    """Return the shell session that the settings describe, not started yet.

    Args:
        settings: The operator's settings.
        workspace_dir: Directory in which it starts.
        env: Its environment; None for ours without secrets.
        enclosure: Its sandbox, if any.
        keep_output: Stores a long output in a file, and returns its path.
    """
    from oh_jupyter.shell import BashSession, PowerShellSession

    session = PowerShellSession if os.name == "nt" else BashSession
    limit = settings.max_memory_gb
    return session(
        workspace_dir,
        shell_user(settings),
        settings.no_change_timeout_seconds,
        None if limit is None else int(limit * 1024),
        env=environment_without_secrets() if env is None else env,
        enclosure=enclosure,
        keep_output=keep_output,
        path_directory=(
            os.path.dirname(os.path.abspath(sys.executable))
            if settings.shell_kernel_python
            else None
        ),
        loop=asyncio.get_running_loop(),
    )


def memory_usage(shell: ShellSession | None) -> dict[str, int]:
    """Return the resident bytes of the kernel's process, its children, and the shell."""
    import psutil

    return {
        "kernel": psutil.Process().memory_info().rss,
        "children": sum(_resident(child) for child in psutil.Process().children(recursive=True)),
        "shell": 0 if shell is None or shell.pid is None else _tree(shell.pid),
    }


def _tree(pid: int) -> int:
    import psutil

    try:
        process = psutil.Process(pid)
        return sum(_resident(each) for each in (process, *process.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0


def _resident(process: psutil.Process) -> int:
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
