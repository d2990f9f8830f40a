"""Messages of tornado's HTTP errors."""

from __future__ import annotations

from tornado import web


def reason_of(error: web.HTTPError) -> str:
    """Return the message of an error, a format string in tornado, or its status in words."""
    message = error.log_message or ""
    return (message % error.args if message else error.reason) or str(error)
