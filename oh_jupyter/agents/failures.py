"""What an agent says when it fails, and what a person can do about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import acp

from oh_jupyter.ansi import strip_ansi

MAX_CHARS = 2000
NODE_SECONDS = 5.0
ADVICE = (
    (r"\b(401|403)\b|invalid.api.key|unauthorized|authentication", (
        "Its key or login is missing or was refused: log in with the agent's own program, or set "
        "its key in the environment of the Jupyter server."
    )),
    (r"\b(429|529)\b|rate.limit|overloaded|quota", (
        "Its model's provider takes no more requests now: wait, or look at your plan."
    )),
    (r"\b5\d\d\b|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|error sending request", (
        "Its model cannot be reached: check the network and the provider's status."
    )),
    (r"\b400\b", "Its provider refuses the request: check the name of the model."),
)  # fmt: skip
"""Advice by a pattern of what an agent says of its model's provider."""

_BARE_MESSAGE = "Internal error"
_OLD_NODE = re.compile(
    r"SyntaxError|ERR_UNKNOWN_BUILTIN_MODULE|is not a function.*node:", re.DOTALL
)
_TROUBLE = re.compile(r"error|retry|reconnect|rate.limit|unauthorized|overloaded", re.IGNORECASE)
_PREFIX = re.compile(r"^\S*\d{4}-\d\d-\d\dT\S+\s+(?:ERROR|WARN)\s+\S+\s+")


def failure_message(name: str, error: acp.RequestError) -> str:
    """Say what an agent's error response says, its data included, and what to do."""
    details = error.data
    if isinstance(details, dict):
        details = details.get("details") or details.get("message") or details
    if isinstance(details, dict | list):
        # Claude's message says it all; its data only classify it.
        details = json.dumps(details) if str(error) == _BARE_MESSAGE else ""
    text = ": ".join(str(part) for part in (error, details) if part)[:MAX_CHARS].rstrip(".")
    return f"{name}: {text}{advice(text)}"


def advice(text: str) -> str:
    """Return what a person can do about a failure, to follow it; "" if nothing is known."""
    if _OLD_NODE.search(text):
        return f". {_node_advice()}"
    for pattern, words in ADVICE:
        if re.search(pattern, text, re.IGNORECASE):
            return f". {words}"
    return ""


def trouble(words: str) -> str:
    """Return the last line that speaks of a failure or a retry, without time and colours."""
    lines = [line.strip() for line in strip_ansi(words).splitlines() if _TROUBLE.search(line)]
    return _PREFIX.sub("", lines[-1])[:MAX_CHARS] if lines else ""


def _node_advice() -> str:
    node = shutil.which("node")
    version = "not on the PATH"
    if node is not None:
        done = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=NODE_SECONDS
        )
        version = done.stdout.strip() or "unknown"
    return f"It needs a newer Node.js than the one here ({version}): install Node.js 20 or newer."
