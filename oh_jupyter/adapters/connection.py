"""The runtime that an adapter works on, and the error for a framework that is not installed."""

from __future__ import annotations

import os

from oh_jupyter.client import AsyncRuntimeClient
from oh_jupyter.errors import ExtraMissingError, ServerError


def connect(
    url: str | None = None, token: str | None = None, kernel_id: str | None = None
) -> AsyncRuntimeClient:
    """Return a client of a runtime, by default the one that ``OH_URL`` and ``OH_TOKEN`` name."""
    url = url or os.environ.get("OH_URL", "")
    if not url:
        raise ServerError(
            'No server is named: run eval "$(oh-jupyter env --notebook my.ipynb)" first, or pass '
            "url and token"
        )
    token = os.environ.get("OH_TOKEN", "") if token is None else token
    return AsyncRuntimeClient(url, token, kernel_id)


def missing(error: ImportError, extra: str) -> ExtraMissingError:
    """Return the error for a framework that cannot be imported."""
    return ExtraMissingError(
        f"{error}. Install the framework with: pip install 'oh_jupyter[{extra}]'"
    )
