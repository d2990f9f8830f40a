"""Which paths have to wait because a change before is not through yet."""

from __future__ import annotations

from oh_jupyter.storage.paths import parent

__all__ = ["PathBarrier"]


class PathBarrier:
    """Paths of which a change waits, so that later ones have to wait as well."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._ancestors: set[str] = set()

    def add(self, key: str) -> None:
        """Block a path."""
        if key in self._keys:
            return
        self._keys.add(key)
        while key:
            key = parent(key)
            self._ancestors.add(key)

    def __contains__(self, key: str) -> bool:
        """Whether the path itself, one above or one below it is blocked."""
        return key in self._keys or self.blocks_around(key)

    def blocks_around(self, key: str) -> bool:
        """Whether a path above or below it is blocked, itself aside."""
        if key in self._ancestors:
            return True
        while key:
            key = parent(key)
            if key in self._keys:
                return True
        return False
