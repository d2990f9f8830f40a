"""W3C trace context of a call: its form, its environment variables, and their lifetime.

The names of the variables are those of OpenTelemetry's environment variable carriers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_FORMS = {
    "traceparent": re.compile(r"[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}"),
    "tracestate": re.compile(r"[ -~]{1,512}"),
    "baggage": re.compile(r"[ -~]{1,8192}"),
}

_applied: dict[str, tuple[str, str | None]] = {}
"""Value of each variable of the running cell, and its lasting value, or None."""


def trace_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the trace context in ``_meta``, without what is malformed."""
    return {
        name: fields[name]
        for name, form in _FORMS.items()
        if isinstance(fields.get(name), str) and form.fullmatch(fields[name])
    }


def trace_variables(trace: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables that pass a trace context to programs."""
    return {name.upper(): value for name, value in trace_of(trace).items()}


@contextmanager
def in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process for a while.

    Afterwards, each has its previous value again, unless it was changed meanwhile.
    """
    before = {name: os.environ.get(name) for name in variables}
    outer, lasting = dict(_applied), lasting_environment()
    _applied.update({name: (value, lasting.get(name)) for name, value in variables.items()})
    os.environ.update(variables)
    try:
        yield
    finally:
        _applied.clear()
        _applied.update(outer)
        for name, previous in before.items():
            if os.environ.get(name) != variables[name]:
                continue
            if previous is None:
                del os.environ[name]
            else:
                os.environ[name] = previous


def lasting_environment() -> dict[str, str]:
    """Return this process's environment without the variables of the running cell."""
    environment = dict(os.environ)
    for name, (value, previous) in list(_applied.items()):
        if environment.get(name) == value:
            del environment[name]
            if previous is not None:
                environment[name] = previous
    return environment
