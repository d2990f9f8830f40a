"""The paths that a box sees, for what other programs would read or change on an agent's behalf."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from oh_jupyter.containment import is_within, is_within_any


@dataclass(frozen=True)
class Visibility:
    """The rules by which `mounts` hides paths, without the cost of mounts.

    Attributes:
        hidden: Invisible paths.
        homes: Home directories, of which only shown paths and writable directories are visible.
        shown: Visible paths in homes.
        roots: Writable directories.
    """

    hidden: Sequence[str]
    homes: Sequence[str]
    shown: Sequence[str]
    roots: Sequence[str]

    def hides(self, path: str) -> bool:
        """Return whether a box cannot see a real path."""
        hidden, homes, shown, roots = self._real
        if is_within_any(path, hidden):
            return True
        if not is_within_any(path, homes) or is_within_any(path, shown):
            return False
        root = max((each for each in roots if is_within(path, each)), key=len, default="")
        if not root:
            return True
        # In a writable home, only its dot files are hidden.
        home = max((each for each in homes if is_within(path, each)), key=len)
        name = os.path.relpath(path, home)
        return is_within(home, root) and name.startswith(".") and name != "."

    @cached_property
    def _real(self) -> list[list[str]]:
        """The attributes, each resolved once for all questions."""
        attributes = (self.hidden, self.homes, self.shown, self.roots)
        return [[os.path.realpath(path) for path in paths] for paths in attributes]
