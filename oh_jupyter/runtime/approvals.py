"""Approvals that also cover later Actions: for the session, or for the workspace in the ledger."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, cast

from oh_jupyter.errors import ConfirmationError, LedgerError
from oh_jupyter.runtime.reasons import Reason, ReasonCode
from oh_jupyter.state.shared import open_ledger

logger = logging.getLogger(__name__)

Scope = Literal["once", "session", "workspace"]
"""What an approval covers: its Action, or also later ones of the type with the same reasons."""


Pair = tuple[str, Reason]
"""A type of Actions with a reason."""

Pairs = set[Pair]


class ApprovalRule(NamedTuple):
    """A type of Actions and the text of a reason that need no more questions, and for how long."""

    kind: str
    reason: str
    scope: Scope


class ApprovalRules:
    """The rules of one workspace; those in the ledger hold for all kernels in it."""

    def __init__(self, workspace_dir: str) -> None:
        self._session: frozenset[Pair] = frozenset()
        self._workspace = os.fsencode(os.path.realpath(workspace_dir))

    def covers(self, kind: str, reasons: Iterable[Reason]) -> bool:
        """Return whether an Action needs no question, because rules cover all of its reasons."""
        pairs = {(kind, reason) for reason in reasons}
        return pairs <= self._session or pairs <= self._session | self._saved()

    def add(self, kind: str, reasons: Iterable[Reason], scope: Scope) -> None:
        """Add rules; raise ConfirmationError if they cannot be saved for the workspace.

        Those of the workspace wait for the ledger.
        """
        pairs = {(kind, reason) for reason in reasons}
        if scope == "session":
            self._session |= pairs
        elif scope == "workspace":
            self._change(
                "INSERT OR IGNORE INTO approvals VALUES (?, ?, ?, ?)",
                pairs,
                "Approve for the session, because the approval cannot be saved",
            )

    def list(self) -> list[ApprovalRule]:
        """Return the rules, those of the session first."""
        return [ApprovalRule(kind, str(reason), scope) for (kind, reason), scope in self._scoped()]

    def forget(self, number: int | None = None) -> None:
        """Remove the rule with a number in ``list``, counted from 1, or all rules.

        Those of the workspace wait for the ledger.
        """
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
        self._change(
            "DELETE FROM approvals WHERE (workspace, kind, code, parameters) = (?, ?, ?, ?)",
            {pair for pair, scope in removed if scope == "workspace"},
            "The approval still holds, because it cannot be removed",
        )

    def _scoped(self) -> Sequence[tuple[Pair, Scope]]:
        """Return the rules in the order of ``list``."""
        session: Sequence[tuple[Pair, Scope]] = [
            (pair, "session") for pair in sorted(self._session)
        ]
        return [*session, *((pair, "workspace") for pair in sorted(self._saved()))]

    def _saved(self) -> Pairs:
        query = "SELECT kind, code, parameters FROM approvals WHERE workspace = ?"
        try:
            rows = open_ledger().rows(query, (self._workspace,))
        except LedgerError as error:
            logger.warning("The approvals of the workspace are ignored: %s", error)
            return set()
        pairs: Pairs = set()
        for kind, code, parameters in rows:
            try:
                pairs.add((kind, _reason(code, parameters)))
            except (TypeError, ValueError) as error:
                logger.warning(
                    "An approval in %s is ignored, so its actions wait again: %s",
                    *(open_ledger().path, error),
                )
        return pairs

    def _change(self, statement: str, pairs: Pairs, failure: str) -> None:
        """Change rows in the ledger; other kernels of the workspace do the same meanwhile."""
        if not pairs:
            return
        rows = [
            (self._workspace, kind, reason.code, json.dumps(reason.parameters))
            for kind, reason in pairs
        ]
        try:
            with open_ledger().transaction() as connection:
                connection.executemany(statement, rows)
        except LedgerError as error:
            raise ConfirmationError(f"{failure}: {error}") from error


def _reason(code: str, parameters: str) -> Reason:
    """Return a saved reason; raise TypeError or ValueError if this version does not have it."""
    texts = json.loads(parameters)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"its parameters are no texts: {parameters!r:.200}")
    return Reason(cast("ReasonCode", code), tuple(texts))
