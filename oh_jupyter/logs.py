"""Our log in the server and in kernels: without secrets, as JSON lines if ``LOG_JSON`` is set.

Only our own loggers are configured.
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
"""Environment variable that enables JSON lines, as in OpenHands."""

PACKAGE_LOGGER = "oh_jupyter"
"""Parent of all our loggers."""

MIN_SECRET_CHARS = 4
"""Shorter values are not masked: they occur in many words."""

_CREDENTIALS = re.compile(
    r"(?P<name>\b(?:token|tkn|password|api[-_]?key)(?:=|['\"]\s*:\s*['\"])"
    r"|\bx-session-api-key['\"]?\s*:\s*['\"]?"
    r"|\bauthorization['\"]?\s*:\s*['\"]?(?:(?:bearer|basic|token)\s+)?)"
    r"(?P<value>[^\s'\",;&]+)",
    re.IGNORECASE,
)

Secrets = Callable[[], Iterable[str]]
"""Returns the currently known secrets."""


class SecretFormatter(logging.Formatter):
    """Masks secrets in the output of another formatter."""

    def __init__(self, inner: logging.Formatter, secrets: Secrets) -> None:
        """Wrap the formatter that writes the lines."""
        super().__init__()
        self._inner = inner
        self._secrets = secrets
        self._masker = SecretMasker()

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return self.masked(self._inner.format(record))

    def masked(self, text: str) -> str:
        """Replace secrets and apparent credentials by ``<secret_hidden>``."""
        self._masker.add(value for value in self._secrets() if len(value) >= MIN_SECRET_CHARS)
        return _CREDENTIALS.sub(rf"\g<name>{HIDDEN}", self._masker.masked_text(text))


class JsonFormatter(SecretFormatter):
    """Formats a record as one line of JSON: timestamp, level, logger, message, exception."""

    def __init__(self, secrets: Secrets, fields: Mapping[str, str] | None = None) -> None:
        """Take additional fields of each line."""
        super().__init__(logging.Formatter(), secrets)
        self._fields = dict(fields or {})

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
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
    """Send our modules' log to the application's handlers, masked, and as JSON if enabled.

    Return a function that undoes this.
    """
    as_json = _json_enabled(environ)
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
    """Have our modules write JSON lines with more fields to standard error, if enabled.

    This is the process's stream: a kernel's ``sys.stderr`` belongs to its cells. Return a function
    that undoes this.
    """
    if sys.__stderr__ is None or not _json_enabled():
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


def _json_enabled(environ: Mapping[str, str] | None = None) -> bool:
    environ = os.environ if environ is None else environ
    return environ.get(LOG_JSON_VARIABLE, "").strip().lower() in {"1", "true", "yes"}
