"""The magics before their first use, which imports their modules."""

from __future__ import annotations

import re
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.kernel.magics import MAGICS
from oh_jupyter.kernel.magics.recent_cells import RecentCells
from oh_jupyter.kernel.magics.transforms import MagicTransforms

if TYPE_CHECKING:
    from oh_jupyter.kernel.api import Oh
    from oh_jupyter.kernel.magics.base import OhMagics

# A line may start with an assignment, and the percent sign may be missing.
_MAGIC = re.compile(r"\s*(?:[\w, ]+=\s*)?%{0,2}(oh_\w+)\s")
_NOTHING = {"completions": [], "matched_fragment": "", "suppress": False}


class LazyMagics:
    """Registers all magics with a shell, and imports each module at its first use."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        self._shell = shell
        self._oh = oh
        self._recent_cells = RecentCells(shell)
        self._loaded: dict[str, OhMagics] = {}
        self._lock = threading.RLock()
        self._table: Any = shell.magics_manager.magics
        for name, (_, _, kinds) in MAGICS.items():
            for kind in kinds:
                self._table[kind][name] = _Stub(self, kind, name)

        @context_matcher(identifier="oh_jupyter")
        def matcher(context: CompletionContext) -> Any:
            return self._match(context)

        self._transforms = MagicTransforms(shell)
        self._matcher: Any = matcher
        self._matchers: list[Any] = shell.Completer.custom_matchers
        self._matchers.append(matcher)

    def load(self, name: str) -> OhMagics:
        """Return the loaded magics of a class, which replace their stubs."""
        module, class_name, _ = MAGICS[name]
        with self._lock:
            if class_name not in self._loaded:
                magics_class = getattr(
                    import_module(f"oh_jupyter.kernel.magics.{module}"), class_name
                )
                magics: OhMagics = magics_class(self._shell, self._oh)
                magics.recent_cells = self._recent_cells
                self._shell.register_magics(magics)
                self._loaded[class_name] = magics
            return self._loaded[class_name]

    def _match(self, context: CompletionContext) -> Any:
        """Complete the line of a magic that is not loaded; loaded ones have their own matchers."""
        text = context.full_text if context.cursor_line else context.text_until_cursor
        match = _MAGIC.match(text)
        if match is None or match[1] not in MAGICS or MAGICS[match[1]][1] in self._loaded:
            return _NOTHING
        before = len(self._matchers)
        self.load(match[1])
        for matcher in self._matchers[before:]:
            result = matcher(context)
            if result["suppress"]:
                return result
        return _NOTHING

    def close(self) -> None:
        """Remove all magics from the shell."""
        self._matchers.remove(self._matcher)
        self._transforms.close()
        self._recent_cells.close()
        for magics in self._loaded.values():
            magics.close()
        for name, (_, _, kinds) in MAGICS.items():
            for kind in kinds:
                self._table[kind].pop(name, None)


class _Stub:
    """Stands for a magic until it is called or its documentation or attributes are read."""

    def __init__(self, magics: LazyMagics, kind: str, name: str) -> None:
        self._magics = magics
        self._kind = kind
        self._name = name

    def _magic(self) -> Any:
        return self._magics.load(self._name).magics[self._kind][self._name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._magic()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._magic(), name)

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        doc: str | None = self._magic().__doc__
        return doc
