"""Calling a skill by name, as a tool: arguments as JSON in, an MCP result out.

Skills run beside the person's cells, and both print to ``sys.stdout``: by context it is told whose
words go to the result.
"""

from __future__ import annotations

import inspect
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import Any

from oh_jupyter.skills.catalog import signature_of

_captured: ContextVar[StringIO | None] = ContextVar("oh_jupyter_skill_output", default=None)
_lock = threading.Lock()
_running = 0


class _ContextStream:
    """Writes to the buffer of the context that prints, else to the stream behind it."""

    def __init__(self, stream: Any) -> None:
        self.behind = stream

    def write(self, text: str) -> int:
        target = _captured.get()
        written: int = (self.behind if target is None else target).write(text)
        return written

    def flush(self) -> None:
        if _captured.get() is None:
            self.behind.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)


@contextmanager
def captured_output() -> Iterator[StringIO]:
    """Collect what this thread (or task) prints; threads that it starts are not collected."""
    global _running
    buffer = StringIO()
    token = _captured.set(buffer)
    with _lock:
        _running += 1
        if not isinstance(sys.stdout, _ContextStream):
            sys.stdout = _ContextStream(sys.stdout)
    try:
        yield buffer
    finally:
        with _lock:
            _running -= 1
            # Whoever put another stream there meanwhile takes it away again themselves.
            if not _running and isinstance(sys.stdout, _ContextStream):
                sys.stdout = sys.stdout.behind
        _captured.reset(token)


def call_skill(
    name: str, function: Callable[..., Any], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call a skill and collect what it prints and returns.

    Args:
        name: Its name, for errors.
        function: The skill; it may be a coroutine function.
        arguments: Its arguments by name.

    Returns:
        An MCP ``CallToolResult`` as JSON-ready data. What was printed comes before what was
        returned; an exception is an error result, as in MCP.
    """
    with captured_output() as printed:
        problem = _misfit(function, arguments)
        if problem:
            said = f"{name}: {problem}. It takes {name}{signature_of(function)}"
            return _tool_result(said, failed=True)
        try:
            value = function(**arguments)
            if inspect.iscoroutine(value):
                import asyncio

                value = asyncio.run(value)
        except Exception as error:
            said = _lines(printed.getvalue(), f"{type(error).__name__}: {error}")
            return _tool_result(said, failed=True)
    plain = _jsonable(value)
    structured = plain if isinstance(plain, dict) else {"result": plain}
    return _tool_result(
        _lines(printed.getvalue(), _shown(value, plain)),
        structured=None if plain is None or isinstance(value, str) else structured,
    )


def _misfit(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Why these are not the arguments of the function; "" if they are."""
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as problem:
        return str(problem)
    except ValueError:
        return ""  # a function in C that does not tell
    return ""


def _tool_result(
    text: str, *, failed: bool = False, structured: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A result of one text, with the keys of MCP's ``CallToolResult``."""
    return {
        "meta": None,
        "content": [{"type": "text", "text": text, "annotations": None, "meta": None}],
        "structuredContent": structured,
        "isError": failed,
    }


def _lines(printed: str, returned: str) -> str:
    """One text of both, the printed one first."""
    if not returned:
        return printed.removesuffix("\n")
    return printed + ("\n" if printed and not printed.endswith("\n") else "") + returned


def _shown(value: Any, plain: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return repr(value) if plain is None else json.dumps(plain, ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    """The value as JSON has it; None where it cannot."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
