"""File attributes besides the content: permissions, owner, extended attributes."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Attributes"]


@dataclass(frozen=True)
class Attributes:
    """The attributes of a file."""

    mode: int
    owner: tuple[int, int]
    extended: Mapping[str, bytes]

    @classmethod
    def of(cls, path: Path) -> Attributes | None:
        """Attributes of a file; None if it is not there."""
        try:
            info = os.stat(path)
        except OSError:
            return None
        extended: dict[str, bytes] = {}
        if hasattr(os, "listxattr"):
            with suppress(OSError):  # a file system without them
                extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        return cls(stat.S_IMODE(info.st_mode), (info.st_uid, info.st_gid), extended)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Attributes:
        """Inverse of ``to_json``."""
        user, group = data["owner"]
        extended = {name: base64.b64decode(value) for name, value in data["extended"].items()}
        return cls(data["mode"], (user, group), extended)

    def to_json(self) -> dict[str, Any]:
        """JSON object."""
        extended = {
            name: base64.b64encode(value).decode("ascii") for name, value in self.extended.items()
        }
        return {"mode": self.mode, "owner": self.owner, "extended": extended}

    def give_to(self, path: Path) -> None:
        """Apply them to a new file, as far as the system allows."""
        if hasattr(os, "chown"):
            with suppress(OSError):  # only root may give a file away
                os.chown(path, *self.owner)
        for name, value in self.extended.items():
            with suppress(OSError):  # one that only the system may set, such as a label
                os.setxattr(path, name, value)
        os.chmod(path, self.mode)
