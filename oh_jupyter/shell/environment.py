"""Environment variables: those that a shell starts with, those that are set, and ours."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from oh_jupyter.errors import ConfigError, ShellError

EXCLUDED_VARIABLES = ("PROMPT_COMMAND", "PS0", "PS1", "PS2", "LINES", "COLUMNS", "HISTFILE")
"""These belong to the terminal or the shell that we were started from."""

OWN_NAMES = ("_", "OLDPWD", "PWD", "SHLVL")
"""Variables that a shell keeps itself."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class ShellSnapshot:
    """Where a shell is, and what it hands to the programs that it starts.

    Attributes:
        cwd: The working directory, absolute.
        variables: The exported variables; there may be secrets among them.
    """

    cwd: str
    variables: Mapping[str, str] = field(repr=False)


END_OF_VARIABLES = "."
"""The last entry of a file with variables, without which some are missing."""


def read_variables(file: str) -> dict[str, str]:
    """Read a file of NAME=VALUE and NUL, without functions and the shell's own (ShellError)."""
    *entries, end, _ = [b"", b"", *Path(file).read_bytes().split(b"\0")]
    if end != END_OF_VARIABLES.encode():
        raise ShellError(
            f"The shell could not write its variables to {os.path.dirname(file)}: make room there."
        )
    pairs = (entry.decode("utf-8", "surrogateescape").partition("=") for entry in entries)
    return {n: value for n, sign, value in pairs if sign and NAME.match(n) and n not in OWN_NAMES}


def shell_environment(
    env: Mapping[str, str], always: Mapping[str, str], user: str | None
) -> dict[str, str]:
    """The environment of a shell; another user gets a HOME and a name of its own (ShellError)."""
    prepared = {name: value for name, value in env.items() if name not in EXCLUDED_VARIABLES}
    prepared.update(always)
    if user is not None:
        if os.name != "posix":
            raise ShellError(
                f"The shell cannot run as {user!r}: this system has no way to change users without "
                "a password. Leave username out."
            )
        import pwd

        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            raise ShellError(
                f"There is no user {user!r} on this machine: create it, or leave username out."
            ) from None
        prepared |= {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user, "SHELL": entry.pw_shell}
    return prepared


def check_variables(variables: Mapping[str, str]) -> None:
    """Make sure that a shell can set these variables (ShellError)."""
    if not isinstance(variables, Mapping):
        raise ShellError(f"{variables!r} cannot be set: give names and values, as {{'NAME': 'x'}}.")
    for name, value in variables.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise ShellError(f"{name!r} cannot be set: name and value must be text, not {value!r}.")
        if not NAME.match(name) or "\0" in value:
            raise ShellError(
                f"{name!r} cannot be set: a variable's name has letters, digits and "
                "underscores, and its value has no NUL."
            )


def no_change_timeout(seconds: float | None) -> float:
    """Seconds without output, from an argument, the environment, or the protocol (ConfigError)."""
    given = os.environ.get("NO_CHANGE_TIMEOUT_SECONDS") or "10" if seconds is None else seconds
    try:
        value = float(given)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise ConfigError(
            f"NO_CHANGE_TIMEOUT_SECONDS is {given!r}: give a positive number of seconds."
        )
    return value
