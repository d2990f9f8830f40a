"""Settings in a folder's ``config.toml``.

An agent that writes in the folder can write this file. So its settings only tighten limits until a
person trusts the contents, see ``oh_jupyter.trust``.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oh_jupyter.errors import ConfigError
from oh_jupyter.text import visible

FILE_NAME = "config.toml"

MAX_BYTES = 1 << 20
"""Size above which a file is not read."""


@dataclass(frozen=True)
class SettingsFile:
    """The settings in an OpenHands configuration file.

    Attributes:
        path: Its real path.
        digest: Digest of the path and the contents.
        values: The settings of ``[core]``, as in the file.
        unknown: Keys of ``[core]`` that are no settings of ours; OpenHands has many.
    """

    path: str
    digest: str
    values: dict[str, Any]
    unknown: tuple[str, ...] = ()


IsTrusted = Callable[[SettingsFile], bool]
"""Returns whether a person trusts a file with these contents."""


def read_settings_file(path: Path, known: Collection[str]) -> SettingsFile:
    """Read a file once.

    Args:
        path: The file.
        known: Names of all settings.

    Raises:
        FileNotFoundError: There is none.
        ConfigError: It cannot be read.
    """
    import tomllib

    real = os.path.realpath(path)
    try:
        contents = _contents(real)
        table = tomllib.loads(contents.decode())
    except FileNotFoundError:
        raise
    except (ValueError, OSError) as error:  # malformed, not UTF-8, or not a file
        raise ConfigError(f"Config file {path} cannot be read: {error}") from error
    core = table.get("core")
    values = dict(core) if isinstance(core, dict) else {}
    mcp = table.get("mcp")
    if isinstance(mcp, dict) and "stdio_servers" in mcp:
        values["mcp_servers"] = mcp["stdio_servers"]
    return SettingsFile(
        path=real,
        digest=hashlib.sha256(os.fsencode(real) + b"\0" + contents).hexdigest(),
        values={name: value for name, value in values.items() if name in known},
        unknown=tuple(name for name in values if name not in known),
    )


def _contents(path: str) -> bytes:
    """Return the contents of a regular file of a sensible size."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if status.st_size > MAX_BYTES:
            raise OSError(f"it has {status.st_size} bytes, and may have {MAX_BYTES}")
        return file.read(MAX_BYTES)


def shown_settings(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return names and values as a person sees them before trusting them."""
    return [
        (name, visible(json.dumps(value, ensure_ascii=False, default=str)))
        for name, value in values.items()
    ]
