"""Errors of agents, and advice for a person."""

from __future__ import annotations

import json
import re
import subprocess

import acp

from oh_jupyter.ansi import strip_ansi
from oh_jupyter.installed import find_program, python_environment

MAX_CHARS = 2000
NODE_SECONDS = 5.0
UNSUPPORTED_VERSION = -32022
"""Code with which an agent rejects our version of the protocol."""

ADVICE = (
    (r"\b(401|403)\b|invalid.api.key|unauthorized|authentication", (
        "Its key or login is missing or was refused: log in with the agent's own program, or set "
        "its key in the environment of the Jupyter server."
    )),
    (r"\b(429|529)\b|rate.limit|overloaded|quota", (
        "Its model's provider rejects further requests for now: wait, or check your plan."
    )),
    (r"\b5\d\d\b|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|error sending request", (
        "Its model cannot be reached: check the network and the provider's status."
    )),
    (r"\b400\b", "Its provider rejects the request: check the name of the model."),
)  # fmt: skip
"""Advice by a pattern in the agent's message about its model's provider."""

_BARE_MESSAGE = "Internal error"
_OLD_NODE = re.compile(r"SyntaxError|ERR_UNKNOWN_BUILTIN_MODULE|is not a function")
_NODE_FRAME = re.compile(r"\bnode:|\.[cm]?js:\d+|\bNode\.js v")
"""Trace of JavaScript in an output: a SyntaxError may be Python's."""
_NODE_VERSION = re.compile(r"\bNode\.js (v[\d.]*\d)")
_TROUBLE = re.compile(r"error|retry|reconnect|rate.limit|unauthorized|overloaded", re.IGNORECASE)
_PREFIX = re.compile(r"^\S*\d{4}-\d\d-\d\dT\S+\s+(?:ERROR|WARN)\s+\S+\s+")


def failure_message(name: str, error: acp.RequestError) -> str:
    """Return an agent's error response with its data and advice."""
    if error.code == UNSUPPORTED_VERSION:
        return version_message(name)
    details = error.data
    if isinstance(details, dict):
        details = details.get("details") or details.get("message") or details
    if isinstance(details, dict | list):
        # Claude's message is complete; its data only classify it.
        details = json.dumps(details) if str(error) == _BARE_MESSAGE else ""
    text = ": ".join(str(part) for part in (error, details) if part)[:MAX_CHARS].rstrip(".")
    return f"{name}: {text}{advice(text)}"


def version_message(name: str, version: int | None = None) -> str:
    """Return an error about the protocol's version of an agent, which may be unknown."""
    ours = acp.PROTOCOL_VERSION
    spoken = f"speaks version {version}" if version is not None else "speaks another version"
    return (
        f"{name} {spoken} of the Agent Client Protocol, and oh_jupyter only version {ours}: "
        f"install a release of {name} that speaks version {ours}"
    )


def advice(text: str) -> str:
    """Return advice to append to a failure, or ""."""
    if _OLD_NODE.search(text) and _NODE_FRAME.search(text):
        return f". {_node_advice(text)}"
    for line in reversed(text.splitlines()):
        for pattern, hint in ADVICE:
            if re.search(pattern, line, re.IGNORECASE):
                return f". {hint}"
    return ""


def trouble(text: str) -> str:
    """Return the last line about a failure or a retry, without time and colours."""
    lines = [line.strip() for line in strip_ansi(text).splitlines() if _TROUBLE.search(line)]
    return _PREFIX.sub("", lines[-1])[:MAX_CHARS] if lines else ""


def _node_advice(text: str) -> str:
    return (
        f"It needs a newer Node.js than the one here ({_node_version(text)}): install Node.js 20 "
        "or newer."
    )


def _node_version(text: str) -> str:
    """Return the version that an output names; else that of the program on the PATH."""
    match = _NODE_VERSION.search(text)
    if match is not None:
        return match[1]
    node = find_program("node")
    if node is None:
        return "not on the PATH"
    result = subprocess.run(
        [node, "--version"],
        capture_output=True,
        env=python_environment(),
        text=True,
        timeout=NODE_SECONDS,
    )
    return result.stdout.strip() or "unknown"
