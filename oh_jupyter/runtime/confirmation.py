"""Whether an Action may begin, or has to wait until a person has looked at it."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from oh_jupyter.errors import ConfigError, ConfirmationError
from oh_jupyter.events import (
    Action,
    ActionConfirmationStatus,
    ActionSecurityRisk,
    CmdRunAction,
    EventSource,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
    NullObservation,
    Observation,
    UserRejectObservation,
)

__all__ = ["POLICIES", "RULES", "Confirmations", "PendingAction", "risk"]


_BEGIN = r"(?:^|[\s;&|(!`'\"])"

RULES: tuple[tuple[str, str], ...] = (
    (
        "it removes a whole directory tree outside of the workspace",
        _BEGIN + r"rm\s+(?=(?:\S+\s+)*-\w*[rR])(?:\S+\s+)*[\"']?(?:/|~|\$HOME|\$\{HOME\}|\.\.)",
    ),
    ("it becomes another user", _BEGIN + r"(?:sudo|doas|su)\s"),
    ("it formats or overwrites a disk", _BEGIN + r"(?:mkfs[.\w]*\s|dd\s.*of=/dev/|shred\s)"),
    ("it overwrites a device", r">\s*/dev/(?:sd|nvme|vd|hd|mmcblk)"),
    ("it stops the machine", _BEGIN + r"(?:shutdown|reboot|halt|poweroff)(?:\s|$)"),
    (
        "it runs what it downloads",
        r"(?:curl|wget)\s[^\n]*\|\s*(?:sudo\s+)?(?:ba|z|da|k)?(?:sh|python3?|perl|node)\b",
    ),
    ("it overwrites the history of a remote repository", r"git\s+push\s[^\n]*(?:--force\b|\s-f\b)"),
    ("it opens files to everybody", _BEGIN + r"chmod\s+(?:-\w+\s+)*(?:0?777|a\+\w*w)"),
    ("it kills every process it can", _BEGIN + r"kill\s+(?:-\w+\s+)*-1(?:\s|$)"),
)
"""Why, and the regular expression: it is looked for in commands and in cells."""

PROTECTED = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/sbin", "/sys", "/usr", "/var/spool",
    "~/.ssh", "~/.gnupg", "~/.aws", "~/.config", "~/.ipython", "~/.jupyter",
    "~/.bashrc", "~/.bash_profile", "~/.profile", "~/.zshrc", "~/.netrc", "~/.gitconfig",
)  # fmt: skip
"""Files and directories whose change is asked about, unless they are in the workspace."""

_COMPILED = tuple((reason, re.compile(pattern, re.MULTILINE)) for reason, pattern in RULES)


def risk(action: Action, workspace_dir: str) -> str | None:
    """The reason to ask a person about an Action; None if there is none.

    An agent may write in the workspace, where relative paths start.
    """
    if getattr(action, "security_risk", None) is ActionSecurityRisk.HIGH:
        return "the agent calls it risky"
    if isinstance(action, CmdRunAction | IPythonRunCellAction):
        text = action.command if isinstance(action, CmdRunAction) else action.code
        return next((reason for reason, rule in _COMPILED if rule.search(text)), None)
    if isinstance(action, FileWriteAction | FileEditAction):
        if getattr(action, "command", None) == "view" or "\0" in action.path:
            return None
        return _protected(action.path, workspace_dir)
    return None


def _protected(path: str, workspace_dir: str) -> str | None:
    target = os.path.realpath(os.path.join(workspace_dir, path))
    if _below(target, workspace_dir) or _below(target, tempfile.gettempdir()):
        return None
    for place in PROTECTED:
        if _below(target, os.path.expanduser(place)):
            return f"it changes {place}"
    return None


def _below(path: str, place: str) -> bool:
    place = os.path.realpath(place)
    return path == place or path.startswith(place.rstrip("/") + "/")


POLICIES = ("never", "risky", "always")
"""Which Actions of an agent wait: none, those that may do harm, all."""

REJECTED = "Action has been rejected by the user! Waiting for further user input."
"""The protocol's text; clients compare it."""


@dataclass(frozen=True)
class PendingAction:
    """An Action that waits, and the reason why."""

    action: Action
    reason: str


class Confirmations:
    """Decides which Actions wait, and holds them. It lives on the runtime's loop.

    Attributes:
        policy: One of ``POLICIES``.
    """

    def __init__(self, policy: str, timeout_seconds: float, workspace_dir: str) -> None:
        """Begin with none waiting; a ConfigError if there is no such policy.

        An Action that nobody has looked at within ``timeout_seconds`` is rejected. In the
        workspace an agent may write.
        """
        if policy not in POLICIES:
            raise ConfigError(
                f"The setting confirmation must be one of {', '.join(POLICIES)}, not {policy!r}"
            )
        self.policy = policy
        self._timeout_seconds = timeout_seconds
        self._workspace_dir = workspace_dir
        self._waiting: dict[int, tuple[PendingAction, asyncio.Future[bool]]] = {}
        self._watchers: list[Callable[[int, bool], None]] = []
        self._askers: list[Callable[[], None]] = []

    def on_decision(self, callback: Callable[[int, bool], None]) -> None:
        """Have the id of each decided Action told on the loop, and whether it may begin."""
        self._watchers.append(callback)

    def on_question(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have it told on the loop when other Actions wait than before; the result ends that."""
        self._askers.append(callback)
        return lambda: self._askers.remove(callback)

    def _tell_askers(self) -> None:
        for callback in list(self._askers):
            callback()

    @property
    def waiting(self) -> dict[int, PendingAction]:
        """The Actions that wait, by id."""
        return {id: entry for id, (entry, _) in self._waiting.items()}

    def require(self, action: Action, principal: EventSource) -> str | None:
        """The reason why an Action has to wait, which marks it as awaiting; None if it need not.

        ``principal`` is who really asks: what a person does in a notebook never waits.
        """
        reason = self._reason(action, principal)
        if reason is not None and hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.AWAITING_CONFIRMATION
        return reason

    def _reason(self, action: Action, principal: EventSource) -> str | None:
        if principal == "user" or self.policy == "never":
            return None
        if self.policy == "always":
            return "every action of an agent waits"
        return risk(action, self._workspace_dir)

    async def decide(self, action: Action, reason: str | None) -> Observation | None:
        """Wait for the person if there is a reason to; the Observation if it is not to begin."""
        if reason is None:
            return _decided_before(action)
        future = asyncio.get_running_loop().create_future()
        id = action.id if action.id is not None else -1
        self._waiting[id] = (PendingAction(action, reason), future)
        self._tell_askers()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                approved = await future
        except TimeoutError:
            return UserRejectObservation(
                f"{REJECTED} (Nobody looked at it within {self._timeout_seconds:g} s; it waited "
                f"because {reason}.)"
            )
        finally:
            del self._waiting[id]
            self._tell_askers()
        if not approved:
            return UserRejectObservation(REJECTED)
        if hasattr(action, "confirmation_state"):
            action.confirmation_state = ActionConfirmationStatus.CONFIRMED
        return None

    def resolve(self, id: int, approved: bool) -> None:
        """Let a waiting Action begin, or reject it; a ConfirmationError if it does not wait."""
        if id not in self._waiting:
            names = ", ".join(str(id) for id in self._waiting) or "none"
            raise ConfirmationError(f"No action {id} waits for confirmation. Waiting: {names}")
        future = self._waiting[id][1]
        if not future.done():
            future.set_result(approved)
            for callback in self._watchers:
                callback(id, approved)


def _decided_before(action: Action) -> Observation | None:
    """The Observation of an Action on which the client's person has decided, or still has to."""
    state = getattr(action, "confirmation_state", ActionConfirmationStatus.CONFIRMED)
    if state is ActionConfirmationStatus.REJECTED:
        return UserRejectObservation(REJECTED)
    if state is ActionConfirmationStatus.AWAITING_CONFIRMATION:
        return NullObservation("")
    return None
