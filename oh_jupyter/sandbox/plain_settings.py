"""Settings of a person's programs that a box may see: copies with what holds no secrets.

A configuration of git, pip or npm also has tokens, passwords and programs to run. Only the named
settings are copied, and no value with a user name or a password in an address.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

GIT_SETTINGS = (
    r"^(user\.(name|email)|init\.defaultbranch|core\.(autocrlf|eol|quotepath)|safe\.directory"
    r"|pull\.(rebase|ff)|push\.default|merge\.conflictstyle|rebase\.autostash|diff\.algorithm)$"
)

LINES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        ".config/pip/pip.conf": r"\[[\w-]+\]|(index-url|extra-index-url|find-links|no-index|cert"
        r"|trusted-host|timeout|retries|constraint|prefer-binary|only-binary)\s*=.*|\s+\S.*",
        ".npmrc": r"(registry|@[\w.-]+:registry|cafile|strict-ssl|maxsockets|prefer-offline"
        r"|nodedir|fund|audit|yes|update-notifier|engine-strict|legacy-peer-deps)\s*=.*",
    }.items()
}
"""Lines that are copied of each file, as patterns of whole lines."""

_PASSWORD = re.compile(r"://[^/\s]*@")

TIMEOUT_SECONDS = 5


def copy_settings(homes: Iterable[str], folder: str) -> list[tuple[str, str]]:
    """Write the copies.

    Args:
        homes: Home directories.
        folder: Where to write them.

    Returns:
        The path of each copy, and of its original.
    """
    copies = []
    for number, home in enumerate(homes):
        for name, text in _copied(home):
            target = Path(folder, f"{number}-{name.replace('/', '-')}")
            target.write_text(text, encoding="utf-8")
            copies.append((str(target), os.path.join(home, name)))
    return copies


def _copied(home: str) -> Iterator[tuple[str, str]]:
    if text := _git_settings(home):
        yield ".gitconfig", text
    for name, pattern in LINES.items():
        try:
            lines = Path(home, name).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            continue
        yield name, "".join(f"{line}\n" for line in _harmless(lines, pattern))


def _harmless(lines: Iterable[str], pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines that are copied; an indented one continues the one above it."""
    continues = False
    for line in lines:
        is_copied = pattern.fullmatch(line) is not None and not _PASSWORD.search(line)
        if line[:1].isspace():
            is_copied = is_copied and continues
        else:
            continues = is_copied and not line.startswith("[")
        if is_copied:
            yield line


def _git_settings(home: str) -> str:
    """Return harmless settings of git's configuration of a user as a file of its own."""
    names = (".gitconfig", ".config/git/config")
    if not any(os.path.isfile(os.path.join(home, name)) for name in names):
        return ""
    command = ["git", "config", "--global", "--includes", "-z", "--get-regexp", GIT_SETTINGS]
    env = {"HOME": home, "PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        listed = subprocess.run(
            command, env=env, cwd="/", capture_output=True, timeout=TIMEOUT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    settings = [
        entry.partition("\n") for entry in listed.stdout.decode(errors="replace").split("\0")
    ]
    return "".join(
        f"[{name.partition('.')[0]}]\n\t{name.partition('.')[2]} = {_quoted(value)}\n"
        for name, _, value in settings
        if name and not _PASSWORD.search(value)
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
