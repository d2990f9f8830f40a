"""Questions about what an agent sends out after it has read text that others wrote.

A page or a downloaded file can contain instructions for the agent. Untrusted text, private data and
a way out, all in one turn, can leak the data; so the last of the three waits for a person.
"""

from __future__ import annotations

import math
import re
import time
from urllib.parse import urlsplit

from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileReadAction,
    IPythonRunCellAction,
    Observation,
)
from oh_jupyter.events.actor import agent_name, session_of
from oh_jupyter.runtime.cell_risk import CREDENTIALS
from oh_jupyter.runtime.turns import SESSION_PAUSE_SECONDS

MAX_HOSTS = 3
"""Maximum number of hosts that a question names."""

_URL = re.compile(r"https?://[^\s'\"<>|;)\\]+")
_LOCAL = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|.*\.localhost")
_WORD = r"(?:^|[\s;&|(!`'\"])"

_SENDING = re.compile(
    rf"{_WORD}curl(?=\s)[^\n]*(?:\s-\w*[dFT]|--data|--form|--json|--upload-file|-X\s*(?:POST|PUT|PATCH))"
    rf"|{_WORD}curl\s[^\n]*https?://\S*(?:\$|`)"
    rf"|{_WORD}wget(?=\s)[^\n]*(?:--post|--body|--method|https?://\S*(?:\$|`))"
    rf"|{_WORD}(?:scp|sftp|rsync|ftp|nc|ncat|netcat|socat|telnet|ssh|mail|sendmail|rclone)\s"
    rf"|{_WORD}git\s+(?:-\S+\s+)*push|{_WORD}docker\s+push|{_WORD}twine\s+upload"
    rf"|{_WORD}(?:aws\s+s3|gsutil|gcloud\s+storage)\s+(?:cp|mv|sync|rsync)"
    rf"|{_WORD}gh\s+(?:gist|issue|pr|release|api)"
    r"|\b(?:requests|httpx|session|client)\.(?:post|put|patch|request)\("
    r"|\burlopen\([^\n]*data|\b(?:smtplib|ftplib|paramiko|boto3|telnetlib)\."
    r"|\bsocket\.(?:create_connection|socket)\("
)
_UPLOADING = re.compile(r"\bupload_file\(")


class UntrustedText:
    """The hosts whose text each agent has read lately.

    Attributes:
        is_on: Whether it asks.
    """

    def __init__(self, *, is_on: bool) -> None:
        """Know of no host yet."""
        self.is_on = is_on
        self._hosts: dict[str, list[str]] = {}
        self._last_times: dict[str, float] = {}

    def note(self, action: Action, observation: Observation) -> None:
        """Record which hosts an Action of an agent has read."""
        hosts = self._hosts_read_by(action)
        if isinstance(action, BrowseURLAction | BrowseInteractiveAction):
            text = " ".join((_text(action), str(getattr(observation, "url", ""))))
        elif isinstance(action, CmdRunAction | IPythonRunCellAction):
            text = _text(action)
        else:
            return
        hosts += [host for host in _hosts(text) if host not in hosts]

    def questions(self, action: Action) -> list[str]:
        """Return the reasons to ask a person about an agent's Action."""
        hosts = self._hosts_read_by(action)
        if not self.is_on or not hosts:
            return []
        text = _text(action)
        after = f"after the agent has read text from {', '.join(hosts[:MAX_HOSTS])}"
        reasons = []
        if _sends_out(action, text):
            reasons.append(f"it sends data out {after}")
        if _reads_credentials(text):
            reasons.append(f"it reads credentials {after}")
        return reasons

    def _hosts_read_by(self, action: Action) -> list[str]:
        """Return the hosts of an Action's agent; a long pause forgets them."""
        actor = action.actor or {}
        agent = str(actor.get("guest") or session_of(action.actor) or agent_name(actor))
        now = time.monotonic()
        if now - self._last_times.get(agent, -math.inf) > SESSION_PAUSE_SECONDS:
            self._hosts[agent] = []
        self._last_times[agent] = now
        return self._hosts[agent]


def _text(action: Action) -> str:
    """Return the part of an Action that says what it does."""
    if isinstance(action, CmdRunAction):
        return action.command
    if isinstance(action, IPythonRunCellAction):
        return action.code
    if isinstance(action, BrowseURLAction):
        return action.url
    if isinstance(action, BrowseInteractiveAction):
        return action.browser_actions
    return action.path if isinstance(action, FileReadAction) else ""


def _hosts(text: str) -> list[str]:
    """Return the hosts of addresses in a text that are not this machine."""
    hosts = []
    for address in _URL.findall(text):
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:  # such as an open bracket
            continue
        if host and not _LOCAL.fullmatch(host):
            hosts.append(host)
    return hosts


def _sends_out(action: Action, text: str) -> bool:
    if isinstance(action, BrowseInteractiveAction):
        return bool(_UPLOADING.search(text))
    if not isinstance(action, CmdRunAction | IPythonRunCellAction) or not _SENDING.search(text):
        return False
    return not _URL.search(text) or bool(_hosts(text))


def _reads_credentials(text: str) -> bool:
    return any(path.removeprefix("~") in text for path in CREDENTIALS)
