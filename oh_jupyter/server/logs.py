"""The extension's log: without secrets, and as JSON lines where ``LOG_JSON`` asks for them.

Only the loggers of this extension are touched; how the server logs is the server's business.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

__all__ = ["HIDDEN", "JsonFormatter", "SecretFormatter", "set_up_logging"]

HIDDEN = "<secret_hidden>"
"""What stands where a secret was."""

VARIABLE = "LOG_JSON"
"""Environment variable that asks for JSON lines, as in OpenHands."""

SHORTEST = 4
"""Characters that a value must have to be taken for a secret; shorter ones are in many words."""

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
        """Wrap a formatter.

        Args:
            inner: Writes the line.
            secrets: The values that must not be in it.
        """
        super().__init__()
        self._inner = inner
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """Write a record.

        Args:
            record: The record.

        Returns:
            The line or lines.
        """
        return self.masked(self._inner.format(record))

    def masked(self, text: str) -> str:
        """Take the secrets out of a text, and whatever looks like credentials.

        Args:
            text: The text.

        Returns:
            The text with ``<secret_hidden>`` in their place.
        """
        known = {value for value in self._secrets() if len(value) >= SHORTEST}
        for value in sorted(known, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return _CREDENTIALS.sub(rf"\g<name>{HIDDEN}", text)


class JsonFormatter(SecretFormatter):
    """Writes a record as one line of JSON: timestamp, level, logger, message, exception."""

    def __init__(self, secrets: Secrets) -> None:
        """Make a formatter.

        Args:
            secrets: The values that must not be in a line.
        """
        super().__init__(logging.Formatter(), secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Write a record.

        Args:
            record: The record.

        Returns:
            One line.
        """
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": self.masked(record.getMessage()),
        }
        if record.exc_info:
            line["exception"] = self.masked(self._inner.formatException(record.exc_info))
        return json.dumps(line)


def set_up_logging(
    app_log: logging.Logger, secrets: Secrets, environ: Mapping[str, str] | None = None
) -> Callable[[], None]:
    """Make the extension's loggers write without secrets, and as JSON if that is asked for.

    Args:
        app_log: Logger of the extension's application. What the extension's modules log goes
            to the same places from now on.
        secrets: The values that must not be in a line.
        environ: Environment variables; the process's own by default.

    Returns:
        A function that puts everything back.
    """
    environ = os.environ if environ is None else environ
    as_json = environ.get(VARIABLE, "").strip().lower() in {"1", "true", "yes"}
    modules = logging.getLogger("oh_jupyter")
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
