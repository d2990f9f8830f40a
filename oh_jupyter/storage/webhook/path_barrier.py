"""Which paths have to wait because a change before is not through yet."""

from __future__ import annotations

from oh_jupyter.storage.paths import parent

__all__ = ["PathBarrier"]


class PathBarrier:
    """Paths of which a change waits, so that later ones have to wait as well."""

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._above: set[str] = set()

    def add(self, key: str) -> None:
        """Block a path."""
        self._keys.add(key)
        while key:
            key = parent(key)
            self._above.add(key)

    def __contains__(self, key: str) -> bool:
        """Whether the path itself, one above or one below it is blocked."""
        if key in self._above:
            return True
        while key not in self._keys:
            if not key:
                return False
            key = parent(key)
        return True
