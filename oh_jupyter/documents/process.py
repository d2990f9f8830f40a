"""Start of the process that reads one document."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import IO, Any

from oh_jupyter.errors import ChildStartError, DocumentError
from oh_jupyter.installed import python_command, python_environment
from oh_jupyter.process import spawn

TIMEOUT_SECONDS = 120.0
"""Time that reading a document may take."""

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
"""Environment variables of the process: no secrets."""

MAX_REASON_CHARS = 300

Enclose = Callable[[list[str]], list[str]]
"""Function that returns the command line which runs another one in a sandbox."""

_enclose: ContextVar[Enclose | None] = ContextVar("enclose", default=None)


@contextmanager
def enclosed_by(enclose: Enclose | None) -> Iterator[None]:
    """Read documents in a sandbox within the context."""
    token = _enclose.set(enclose)
    try:
        yield
    finally:
        _enclose.reset(token)


def read_document(kind: str, data: bytes, *arguments: str) -> Any:
    """Read a document in a process of its own.

    Args:
        kind: Name of a reader in ``oh_jupyter.documents.program``.
        data: Content of the document.
        arguments: Further arguments of the reader.

    Raises:
        DocumentError: The document cannot be read.
    """
    argv = python_command("oh_jupyter.documents.program", kind, *arguments)
    enclose = _enclose.get()
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as target,
        tempfile.TemporaryFile() as errors,
    ):
        source.write(data)
        source.seek(0)
        try:
            _run(argv if enclose is None else enclose(argv), source, target, errors)
        except ChildStartError as error:
            raise DocumentError(str(error)) from None
        target.seek(0)
        try:
            response = json.loads(target.read())
        except ValueError:  # it was killed, or crashed
            errors.seek(0)
            text = errors.read().decode("utf-8", "replace").strip()
            reason = text.rpartition("\n")[2][:MAX_REASON_CHARS]
            raise DocumentError(reason or "the process that reads it has crashed") from None
    if "error" in response:
        raise DocumentError(response["error"])
    return response["result"]


def _run(argv: list[str], source: IO[bytes], target: IO[bytes], errors: IO[bytes]) -> None:
    variables = python_environment()
    child = spawn(
        argv,
        cwd=os.path.abspath(os.sep),
        env={name: variables[name] for name in INHERITED if name in variables},
        stdin=source, stdout=target, stderr=errors,
    )  # fmt: skip
    try:
        child.wait(TIMEOUT_SECONDS)
    except TimeoutError:
        raise DocumentError(f"reading it took longer than {TIMEOUT_SECONDS:g} s") from None
    finally:
        child.terminate(0)
