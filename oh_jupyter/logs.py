"""Our log, in the server and in kernels: without secrets, as JSON lines where ``LOG_JSON`` asks.

Only our own loggers are touched; how server and kernel log is their business.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from oh_jupyter.events.masking import HIDDEN, SecretMasker

LOG_JSON_VARIABLE = "LOG_JSON"
"""Environment variable that asks for JSON lines, as in OpenHands."""

PACKAGE_LOGGER = "oh_jupyter"
"""The logger above all of our modules'."""

MIN_SECRET_CHARS = 4
"""A shorter value is not taken for a secret: it would be in many words."""

_CREDENTIALS = re.compile(
    r"(?P<name>\b(?:token|tkn|password|api[-_]?key)(?:=|['\"]\s*:\s*['\"])"
    r"|\bx-session-api-key['\"]?\s*:\s*['\"]?"
    r"|\bauthorization['\"]?\s*:\s*['\"]?(?:(?:bearer|basic|token)\s+)?)"
    r"(?P<value>[^\s'\",;&]+)",
    re.IGNORECASE,
)

Secrets = Callable[[], Iterable[str]]
"""The secrets that are known now."""


class SecretFormatter(logging.Formatter):
    """Lets another formatter write the line, and takes the secrets out of it."""

    def __init__(self, inner: logging.Formatter, secrets: Secrets) -> None:
        """Wrap the formatter that writes the line; the secrets must not be in it."""
        super().__init__()
        self._inner = inner
        self._secrets = secrets
        self._masker = SecretMasker()

    def format(self, record: logging.LogRecord) -> str:
        """The line or lines of a record."""
        return self.masked(self._inner.format(record))

    def masked(self, text: str) -> str:
        """The text with ``<secret_hidden>`` for secrets and whatever looks like credentials."""
        self._masker.add(value for value in self._secrets() if len(value) >= MIN_SECRET_CHARS)
        return _CREDENTIALS.sub(rf"\g<name>{HIDDEN}", self._masker.masked_text(text))


class JsonFormatter(SecretFormatter):
    """Writes a record as one line of JSON: timestamp, level, logger, message, exception."""

    def __init__(self, secrets: Secrets, fields: Mapping[str, str] | None = None) -> None:
        """Make a formatter; the fields are in each line besides."""
        super().__init__(logging.Formatter(), secrets)
        self._fields = dict(fields or {})

    def format(self, record: logging.LogRecord) -> str:
        """The one line of a record."""
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            **self._fields,
            "message": self.masked(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = self.masked(self._inner.formatException(record.exc_info))
        return json.dumps(line)


def set_up_logging(
    app_log: logging.Logger, secrets: Secrets, environ: Mapping[str, str] | None = None
) -> Callable[[], None]:
    """Make the extension's loggers write without secrets, and as JSON if that is asked for.

    What its modules log goes to the same places as its application's log from now on. The
    function that is returned puts everything back.
    """
    as_json = _asked_for(environ)
    modules = logging.getLogger(PACKAGE_LOGGER)
    before = [(handler, handler.formatter) for handler in app_log.handlers]
    for handler, formatter in before:
        inner = formatter or logging.Formatter()
        handler.setFormatter(JsonFormatter(secrets) if as_json else SecretFormatter(inner, secrets))
        modules.addHandler(handler)

    def undo() -> None:
        for handler, formatter in before:
            handler.setFormatter(formatter)
            modules.removeHandler(handler)

    return undo


def log_json_lines(secrets: Secrets, fields: Mapping[str, str]) -> Callable[[], None]:
    """Have our modules write JSON lines to standard error, if that is asked for.

    It is the process's real one, since that of a kernel belongs to its cells; the fields, such as
    the kernel's id, are in each line. The function that is returned puts everything back.
    """
    if sys.__stderr__ is None or not _asked_for():
        return lambda: None
    modules = logging.getLogger(PACKAGE_LOGGER)
    handler = logging.StreamHandler(sys.__stderr__)
    handler.setFormatter(JsonFormatter(secrets, fields))
    before = modules.propagate
    modules.addHandler(handler)
    modules.propagate = False

    def undo() -> None:
        modules.removeHandler(handler)
        modules.propagate = before

    return undo


def _asked_for(environ: Mapping[str, str] | None = None) -> bool:
    environ = os.environ if environ is None else environ
    return environ.get(LOG_JSON_VARIABLE, "").strip().lower() in {"1", "true", "yes"}
