"""A person's gestures in cells: approvals and settings that the text of a request contains.

The state of this process is no evidence: an agent's cell can leave a callback, a thread or another
magic behind, which then runs during the person's next cell. The text of a request is what the
frontend sent.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from oh_jupyter.runtime.approvals import Scope

_SCOPE_OPTIONS: dict[str, Scope] = {"--session": "session", "--always": "workspace"}
_SCOPE_ARGUMENTS: dict[str, Scope] = {"for_session": "session", "for_workspace": "workspace"}
_SETTING = re.compile(r"OhJupyter\.(\w+)\s*=(?!=)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Approval:
    """An approval in the text of a cell: of Actions by their ids, and what it covers."""

    ids: frozenset[int]
    scope: Scope


class Gestures:
    """The requests of a person that run now, each with its text and the Actions that waited."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[str, tuple[int, ...]]] = {}

    def begin(self, key: str, code: str, waiting: Iterable[int]) -> None:
        """Note that a request with this text starts."""
        self._running[key] = (code, tuple(waiting))

    def end(self, key: str) -> None:
        """Note that a request has ended."""
        self._running.pop(key, None)

    def approve(self, id: int, scope: Scope) -> bool:
        """Return whether the text of a running request approves an Action with this scope."""
        return any(
            id in approval.ids and approval.scope == scope
            for code, waiting in list(self._running.values())
            for approval in _approvals(code, waiting)
        )

    def trust(self) -> bool:
        """Return whether the text of a running request trusts the settings of the folder."""
        return any(
            not line.strip()
            for code, _ in list(self._running.values())
            for line in _magic_lines(code, "oh_trust")
        )

    def set(self, name: str, value: Any) -> bool:
        """Return whether the text of a running request gives a setting this value."""
        texts = [code for code, _ in list(self._running.values())]
        return any(
            match[1] == name and _is_value(match[2], value)
            for code in texts
            for line in _magic_lines(code, "config")
            if (match := _SETTING.fullmatch(line.strip()))
        )


def _approvals(code: str, waiting: tuple[int, ...]) -> Iterator[Approval]:
    """Yield the approvals of the top-level statements of a cell."""
    for line in _magic_lines(code, "oh_confirm"):
        try:
            words = shlex.split(line.strip().rstrip(";"))
        except ValueError:
            continue
        if any(word.startswith(("-r", "--r", "--f")) for word in words):
            continue  # a rejection, or a look at the rules
        scopes = [scope for option, scope in _SCOPE_OPTIONS.items() if option in words]
        scopes += ["session"] if "-s" in words else []
        ids = [int(word) for word in words if word.isdecimal()]
        is_all = "--all" in words or "-a" in words
        yield Approval(frozenset(waiting if is_all else ids), scopes[-1] if scopes else "once")
    for call in _calls(code):
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func) == "oh.confirm":
            yield _of_call(call, waiting)


def _of_call(call: ast.Call, waiting: tuple[int, ...]) -> Approval:
    """Return the approval of ``oh.confirm(...)``, which approves the oldest Action by default."""
    named = {each.arg: _constant(each.value) for each in call.keywords}
    id = _constant(call.args[0]) if call.args else named.get("id")
    ids = waiting[:1] if id is None else [id]
    scopes = [scope for name, scope in _SCOPE_ARGUMENTS.items() if named.get(name) is True]
    return Approval(frozenset(ids), scopes[-1] if scopes else "once")


def _magic_lines(code: str, magic: str) -> Iterator[str]:
    """Yield the lines of a magic among the top-level statements of a cell."""
    # The percent sign may be missing; in a string, another one does no harm.
    explicit = re.sub(rf"^{magic}(?=\s)", f"%{magic}", code, flags=re.MULTILINE)
    for call in _calls(explicit):
        is_magic = isinstance(call.func, ast.Attribute) and call.func.attr == "run_line_magic"
        arguments = [_constant(each) for each in call.args]
        if is_magic and len(arguments) == 2 and arguments[0] == magic:
            yield str(arguments[1])


def _calls(code: str) -> Iterator[ast.Call]:
    """Yield the calls that are top-level statements of a cell, or are assigned there."""
    try:
        # Not the shell's own transformers, which an agent's cell could have extended.
        tree = ast.parse(TransformerManager().transform_cell(code))
    except SyntaxError:
        return
    for statement in tree.body:
        if isinstance(statement, ast.Expr | ast.Assign) and isinstance(statement.value, ast.Call):
            yield statement.value


def _constant(node: ast.expr) -> Any:
    """Return the value of a constant, or a value that no Action has."""
    return node.value if isinstance(node, ast.Constant) else -1


def _is_value(text: str, value: Any) -> bool:
    """Return whether a literal is a value; other expressions say nothing that a person reads."""
    try:
        literal = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return False
    as_lists = [list(each) if isinstance(each, tuple) else each for each in (literal, value)]
    return bool(as_lists[0] == as_lists[1])
