"""Approvals that also cover later Actions: for the session, or for the workspace on disk."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from oh_jupyter.config import state_home
from oh_jupyter.errors import ConfirmationError
from oh_jupyter.locks import file_lock
from oh_jupyter.runtime.reasons import Reason

logger = logging.getLogger(__name__)

Scope = Literal["once", "session", "workspace"]
"""What an approval covers: its Action, or also later ones of the type with the same reasons."""


Pair = tuple[str, Reason]
"""A type of Actions with a reason."""

Pairs = set[Pair]

LOCK_SECONDS = 2.0
"""Time that another kernel may take to save a rule."""


class ApprovalRule(NamedTuple):
    """A type of Actions and the text of a reason that need no more questions, and for how long."""

    kind: str
    reason: str
    scope: Scope


class ApprovalRules:
    """The rules of one workspace; those on disk hold for all kernels in it."""

    def __init__(self, workspace_dir: str) -> None:
        self._session: Pairs = set()
        digest = hashlib.sha256(os.path.realpath(workspace_dir).encode()).hexdigest()[:16]
        self._path = state_home() / "approvals" / f"{digest}.json"

    def covers(self, kind: str, reasons: Iterable[Reason]) -> bool:
        """Return whether an Action needs no question, because rules cover all of its reasons."""
        pairs = {(kind, reason) for reason in reasons}
        return pairs <= self._session or pairs <= self._session | self._saved()

    def add(self, kind: str, reasons: Iterable[Reason], scope: Scope) -> None:
        """Add rules; raise ConfirmationError if they cannot be saved for the workspace."""
        pairs = {(kind, reason) for reason in reasons}
        if scope == "session":
            self._session |= pairs
        elif scope == "workspace":
            self._change_saved(lambda saved: saved | pairs)

    def list(self) -> list[ApprovalRule]:
        """Return the rules, those of the session first."""
        return [ApprovalRule(kind, str(reason), scope) for (kind, reason), scope in self._scoped()]

    def forget(self, number: int | None = None) -> None:
        """Remove the rule with a number in ``list``, counted from 1, or all rules."""
        rules = self._scoped()
        if number is None:
            removed = rules
        elif number in range(1, len(rules) + 1):
            removed = [rules[number - 1]]
        else:
            raise ConfirmationError(
                f"There is no approval {number!r:.100}; %oh_confirm --rules lists them by number."
            )
        self._session -= {pair for pair, scope in removed if scope == "session"}
        gone = {pair for pair, scope in removed if scope == "workspace"}
        if gone:
            self._change_saved(lambda saved: saved - gone)

    def _scoped(self) -> Sequence[tuple[Pair, Scope]]:
        """Return the rules in the order of ``list``."""
        session: Sequence[tuple[Pair, Scope]] = [
            (pair, "session") for pair in sorted(self._session)
        ]
        return [*session, *((pair, "workspace") for pair in sorted(self._saved()))]

    def _saved(self) -> Pairs:
        try:
            entries = [
                (str(kind), code, tuple(map(str, parameters)))
                for kind, code, parameters in json.loads(self._path.read_bytes())
            ]
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, TypeError) as error:
            logger.warning("The approvals in %s are ignored: %s", self._path, error)
            return set()
        pairs: Pairs = set()
        for kind, code, parameters in entries:
            try:
                pairs.add((kind, Reason(code, parameters)))
            except (TypeError, ValueError) as error:
                logger.warning(
                    "An approval in %s is ignored, so its actions wait again: %s", self._path, error
                )
        return pairs

    def _change_saved(self, change: Callable[[Pairs], Pairs]) -> None:
        """Change the rules on disk; other kernels of the workspace do the same meanwhile."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with file_lock(self._path.with_suffix(".lock"), LOCK_SECONDS):
                self._save(change(self._saved()))
        except OSError as error:
            raise ConfirmationError(
                f"The approval cannot be saved in {str(self._path)!r}: "
                f"{error.strerror or 'another kernel holds its lock'}. Approve for the session, or "
                "make that folder writable."
            ) from error

    def _save(self, pairs: Pairs) -> None:
        fresh = self._path.with_suffix(f".{os.getpid()}")
        with open(fresh, "w", encoding="utf-8", opener=_open_private) as file:
            rows = [(kind, each.code, each.parameters) for kind, each in sorted(pairs)]
            json.dump(rows, file)
        fresh.replace(self._path)


def _open_private(path: str | Path, flags: int) -> int:
    return os.open(path, flags, 0o600)
