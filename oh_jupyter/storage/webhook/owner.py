"""Owner of changes: the process whose store applies them, recognized by id and start time."""

from __future__ import annotations

import os
import uuid

import psutil

_CLOCK_SECONDS = 2.0


def new_owner() -> str:
    """Return a new identity of this process as an owner."""
    return f"{process_identity()}#{uuid.uuid4().hex[:8]}"


def process_identity() -> str:
    """Return a unique identity of this process, from its id and start time."""
    return f"{os.getpid()}@{psutil.Process().create_time():.2f}"


def is_alive(owner: str) -> bool:
    """Return whether the process of an owner exists."""
    return _status(owner) not in (None, psutil.STATUS_ZOMBIE)


def is_stopped(owner: str) -> bool:
    """Return whether the process of an owner exists and does not run until it is resumed."""
    return _status(owner) in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


def _status(owner: str) -> str | None:
    """Return the status of the process of an owner, or None if it has ended."""
    pid, _, started = owner.partition("#")[0].partition("@")
    try:
        process = psutil.Process(int(pid))
        # A clock adjustment shifts the reported start time.
        is_same = abs(process.create_time() - float(started)) < _CLOCK_SECONDS
        return str(process.status()) if is_same else None
    except (psutil.Error, ValueError):
        return None
