"""Skill calls by tools: JSON arguments in, an MCP result out.

Skills run concurrently with the user's cells, and both print to ``sys.stdout``; a context variable
separates their output.
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
    """Stream that writes to the buffer of the current context, or to the original stream."""

    def __init__(self, stream: Any) -> None:
        self.original = stream

    def write(self, text: str) -> int:
        target = _captured.get()
        count: int = (self.original if target is None else target).write(text)
        return count

    def flush(self) -> None:
        if _captured.get() is None:
            self.original.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


@contextmanager
def captured_output() -> Iterator[StringIO]:
    """Capture the output of this thread or task, but not of threads that it starts."""
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
            # Do not remove a stream that other code has installed in the meantime.
            if not _running and isinstance(sys.stdout, _ContextStream):
                sys.stdout = sys.stdout.original
        _captured.reset(token)


def call_skill(
    name: str, function: Callable[..., Any], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call a skill, and collect its output and its return value.

    Args:
        name: Its name, for error messages.
        function: The skill; it may be a coroutine function.
        arguments: Its arguments by name.

    Returns:
        An MCP ``CallToolResult`` as JSON-ready data: first the printed text, then the return
        value. An exception is an error result, as in MCP.
    """
    with captured_output() as printed:
        mismatch = _argument_error(function, arguments)
        if mismatch:
            text = f"{name}: {mismatch}. Its signature is {name}{signature_of(function)}"
            return _tool_result(text, failed=True)
        try:
            value = function(**arguments)
            if inspect.iscoroutine(value):
                import asyncio

                value = asyncio.run(value)
        except Exception as error:
            text = _lines(printed.getvalue(), f"{type(error).__name__}: {error}")
            return _tool_result(text, failed=True)
    plain = _jsonable(value)
    structured = plain if isinstance(plain, dict) else {"result": plain}
    return _tool_result(
        _lines(printed.getvalue(), _value_text(value, plain)),
        structured=None if plain is None or isinstance(value, str) else structured,
    )


def _argument_error(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return the reason why the arguments do not fit the signature, or ""."""
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        return str(error)
    except ValueError:
        return ""  # a C function without a signature
    return ""


def _tool_result(
    text: str, *, failed: bool = False, structured: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a result with one text and the keys of MCP's ``CallToolResult``."""
    return {
        "meta": None,
        "content": [{"type": "text", "text": text, "annotations": None, "meta": None}],
        "structuredContent": structured,
        "isError": failed,
    }


def _lines(printed: str, returned: str) -> str:
    """Join the printed text and the return value."""
    if not returned:
        return printed.removesuffix("\n")
    return printed + ("\n" if printed and not printed.endswith("\n") else "") + returned


def _value_text(value: Any, plain: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return repr(value) if plain is None else json.dumps(plain, ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    """Return the value as JSON data; None if that is not possible."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
