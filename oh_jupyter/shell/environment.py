"""Environment variables of a shell, and snapshots of its state."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from oh_jupyter.errors import ConfigError, ShellError

EXCLUDED_VARIABLES = ("PROMPT_COMMAND", "PS0", "PS1", "PS2", "LINES", "COLUMNS", "HISTFILE")
"""Variables of the terminal or shell that started us; a new shell must not inherit them."""

OWN_NAMES = ("_", "OLDPWD", "PWD", "SHLVL")
"""Variables that a shell maintains itself."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class ShellSnapshot:
    """Working directory and exported variables of a shell.

    Attributes:
        cwd: The absolute working directory.
        variables: The exported variables; they may contain secrets.
    """

    cwd: str
    variables: Mapping[str, str] = field(repr=False)


END_OF_VARIABLES = "."
"""Last entry of a file with variables; without it the file is incomplete."""


def read_variables(file: int, directory: str) -> dict[str, str]:
    """Read NUL-terminated NAME=VALUE entries, without functions and the shell's own variables."""
    with open(file, "rb", closefd=False) as stream:
        data = stream.read()
    *entries, end, _ = [b"", b"", *data.split(b"\0")]
    if end != END_OF_VARIABLES.encode():
        raise ShellError(
            f"The shell could not write its variables to {directory}: free some disk space there."
        )
    pairs = (entry.decode("utf-8", "surrogateescape").partition("=") for entry in entries)
    return {n: value for n, sign, value in pairs if sign and NAME.match(n) and n not in OWN_NAMES}


def shell_environment(
    env: Mapping[str, str], always: Mapping[str, str], user: str | None
) -> dict[str, str]:
    """Return the environment of a shell, with HOME and the names of another user."""
    prepared = {name: value for name, value in env.items() if name not in EXCLUDED_VARIABLES}
    prepared.update(always)
    if user is not None:
        if os.name != "posix":
            raise ShellError(
                f"The shell cannot run as {user!r}: this system cannot change users without "
                "a password. Omit username."
            )
        import pwd

        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            raise ShellError(
                f"There is no user {user!r} on this machine: create it, or omit username."
            ) from None
        prepared |= {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user, "SHELL": entry.pw_shell}
    return prepared


def check_variables(variables: Mapping[str, str]) -> None:
    """Raise ShellError unless a shell can set these variables."""
    if not isinstance(variables, Mapping):
        raise ShellError(f"{variables!r} cannot be set: pass a dict such as {{'NAME': 'x'}}.")
    for name, value in variables.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise ShellError(f"{name!r} cannot be set: name and value must be text, not {value!r}.")
        if not NAME.match(name) or "\0" in value:
            raise ShellError(
                f"{name!r} cannot be set: a name may only contain letters, digits and "
                "underscores, and a value no NUL."
            )


def no_change_timeout(seconds: float | None) -> float:
    """Return the timeout without output: the argument, the environment variable, or 10."""
    setting = os.environ.get("NO_CHANGE_TIMEOUT_SECONDS") or "10" if seconds is None else seconds
    try:
        value = float(setting)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise ConfigError(
            f"NO_CHANGE_TIMEOUT_SECONDS is {setting!r}: set a positive number of seconds."
        )
    return value
