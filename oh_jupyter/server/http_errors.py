"""What tornado's HTTP errors say."""

from __future__ import annotations

from tornado import web


def reason_of(problem: web.HTTPError) -> str:
    """The message of an error, or its status in words; tornado keeps it as a format string."""
    message = problem.log_message or ""
    return (message % problem.args if message else problem.reason) or str(problem)
