"""A client that asks for an Action, and may leave before it is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit


def asked(url: str, headers: Mapping[str, str], action: Mapping[str, Any]) -> HTTPConnection:
    """Ask for an Action below the address of the extension; closing the connection leaves."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=60)
    body = json.dumps({"action": action})
    connection.request("POST", f"{parts.path}/execute_action", body, dict(headers))
    return connection
