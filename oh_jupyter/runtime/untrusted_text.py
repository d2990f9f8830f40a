"""Questions about what an agent sends out after it has read text that others wrote.

A page or a downloaded file can contain instructions for the agent. Untrusted text, private data and
a way out, all in one turn, can leak the data; so the last of the three waits for a person.

What was read is remembered for the credential of the agent, which the server knows. Sessions, names
of clients and conversations are an agent's own choice, and would let it forget.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileReadAction,
    IPythonRunCellAction,
    MCPAction,
    Observation,
)
from oh_jupyter.runtime.cell_risk import CREDENTIALS
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.turns import SESSION_PAUSE_SECONDS as PAUSE_SECONDS

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


ANY_AGENT = ""
"""Principal of agents without a credential of their own, such as an agent's cell that browses."""


@dataclass
class ReadText:
    """The hosts whose text a principal has read, and the monotonic time of its last Action."""

    hosts: list[str] = field(default_factory=list)
    last_time: float = -math.inf


class UntrustedText:
    """The hosts whose text agents have read lately, by principal.

    Attributes:
        is_on: Whether it asks.
        read: What each principal has read; a runtime passes it on to its successor.
    """

    def __init__(self, *, is_on: bool) -> None:
        """Know of no host yet."""
        self.is_on = is_on
        self.read: dict[str, ReadText] = {}

    @property
    def hosts(self) -> list[str]:
        """The hosts whose text any agent has read lately."""
        now = time.monotonic()
        lately = [each for each in self.read.values() if now - each.last_time <= PAUSE_SECONDS]
        return _unique(host for each in lately for host in each.hosts)

    def turn(self, *, is_on: bool) -> None:
        """Turn it on, or off, which forgets what was read."""
        self.is_on = is_on
        if not is_on:
            self.read.clear()

    def note(self, action: Action, observation: Observation) -> None:
        """Record which hosts an Action of an agent has read."""
        hosts = self._of(_principal(action)).hosts
        if isinstance(action, BrowseURLAction | BrowseInteractiveAction):
            text = " ".join((_text(action), str(getattr(observation, "url", ""))))
        elif isinstance(action, CmdRunAction | IPythonRunCellAction | MCPAction):
            text = _text(action)
        else:
            return
        hosts += [host for host in _hosts(text) if host not in hosts]

    def questions(self, action: Action) -> list[Reason]:
        """Return the reasons to ask a person about an agent's Action."""
        hosts = self._hosts_known_to(_principal(action))
        if not self.is_on or not hosts:
            return []
        text = _text(action)
        named = (", ".join(hosts[:MAX_HOSTS]),)
        reasons = []
        if _sends_out(action, text):
            reasons.append(Reason("sends_data_after", named))
        if _reads_credentials(text):
            reasons.append(Reason("reads_credentials_after", named))
        return reasons

    def _of(self, principal: str) -> ReadText:
        """Return what a principal that acts now has read; a long pause forgets it."""
        read, now = self.read.setdefault(principal, ReadText()), time.monotonic()
        if now - read.last_time > PAUSE_SECONDS:
            read.hosts = []
        read.last_time = now
        return read

    def _hosts_known_to(self, principal: str) -> list[str]:
        """Return the hosts whose text may guide a principal.

        That of an agent without a credential may be any agent's, such as one that acts by a cell.
        """
        own = self._of(principal).hosts
        others = self.hosts if principal == ANY_AGENT else self._of(ANY_AGENT).hosts
        return _unique([*own, *others])


def _principal(action: Action) -> str:
    """Return the credential of an Action's agent, as the server has checked it."""
    return action.actor.user or ANY_AGENT


def _unique(hosts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(hosts))


def _text(action: Action) -> str:
    """Return the part of an Action that says what it does."""
    if isinstance(action, CmdRunAction):
        return action.command
    if isinstance(action, IPythonRunCellAction):
        return action.code
    if isinstance(action, MCPAction):
        return json.dumps(action.arguments, default=str)
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
