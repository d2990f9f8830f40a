"""Rules for the agents' Actions that a person should see before they start."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from functools import partial

from oh_jupyter.events import (
    Action,
    ActionSecurityRisk,
    CmdRunAction,
    IPythonRunCellAction,
)
from oh_jupyter.runtime.cell_risk import Lookup, cell_risks
from oh_jupyter.runtime.effects import Effects
from oh_jupyter.runtime.effects import effects as effects_of

_BEGIN = r"(?:^|[\s;&|(!`'\"])"

FORCED_PUSH = "it overwrites the history of a remote repository"

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
    (FORCED_PUSH, r"git\s+push\s[^\n]*(?:--force\b|\s-f\b)"),
    ("it opens files to everybody", _BEGIN + r"chmod\s+(?:-\w+\s+)*(?:0?777|a\+\w*w)"),
    ("it kills every process it can", _BEGIN + r"kill\s+(?:-\w+\s+)*-1(?:\s|$)"),
)
"""Reasons to ask about a shell command, each with its regular expression."""

_COMPILED = tuple((reason, re.compile(pattern, re.MULTILINE)) for reason, pattern in RULES)

_WORDS = {
    "it removes a whole directory tree outside of the workspace": ("rm",),
    "it becomes another user": ("sudo", "doas", "su"),
    "it formats or overwrites a disk": ("mkfs", "of=/dev/", "shred"),
    "it overwrites a device": ("/dev/",),
    "it stops the machine": ("shutdown", "reboot", "halt", "poweroff"),
    "it runs what it downloads": ("curl", "wget"),
    FORCED_PUSH: ("push",),
    "it opens files to everybody": ("chmod",),
    "it kills every process it can": ("kill",),
}
"""Words without which a rule cannot match; looking for them takes a hundredth of the time."""


def risks(
    action: Action,
    workspace_dir: str,
    lookup: Lookup = lambda name: None,
    *,
    effects: Effects | None = None,
    roots: Sequence[str] | None = None,
) -> list[str]:
    """Return the reasons to ask a person about an Action.

    Args:
        action: The Action.
        workspace_dir: Directory in which files may be changed.
        lookup: Returns a variable of the notebook by name, to analyse what a cell does.
        effects: Its effects, by default with the workspace as the base of relative paths.
        roots: Directories in which files may be changed, by default the workspace and that for
            temporary files.

    Returns:
        The reasons as clauses, such as "it becomes another user".
    """
    reasons = []
    if getattr(action, "security_risk", None) is ActionSecurityRisk.HIGH:
        reasons.append("the agent calls it risky")
    if isinstance(action, CmdRunAction):
        reasons += command_risks(action.command, workspace_dir)
    elif isinstance(action, IPythonRunCellAction):
        commands = partial(command_risks, workspace_dir=workspace_dir)
        reasons += cell_risks(action.code, workspace_dir, commands, lookup)
    else:
        known = effects_of(action, workspace_dir) if effects is None else effects
        allowed = [workspace_dir, tempfile.gettempdir()] if roots is None else roots
        changed = dict.fromkeys(known.outside(known.writes, allowed))
        reasons += [f"it changes {path}" for path in changed]
    return reasons


def command_risks(command: str, workspace_dir: str) -> list[str]:
    """Return the reasons to ask a person about a shell command."""
    likely = [
        (reason, rule)
        for reason, rule in _COMPILED
        if any(word in command for word in _WORDS[reason])
    ]
    text = _without_own_paths(command, workspace_dir) if likely else ""
    return [reason for reason, rule in likely if rule.search(text)]


def remote_risks(action: Action) -> list[str]:
    """Return the reasons to ask about what a command does to other machines."""
    if not isinstance(action, CmdRunAction):
        return []
    return [reason for reason in command_risks(action.command, "/") if reason == FORCED_PUSH]


def _without_own_paths(text: str, workspace_dir: str) -> str:
    """Return a command with plain paths below the workspace made relative to it."""
    own = re.escape(os.path.abspath(workspace_dir).rstrip("/"))
    # Keep the workspace itself, and paths with a glob, a variable or two dots.
    return re.sub(rf"(?<![^\s\"'=]){own}/(?=[\w.-])(?!\S*(?:\.\.|[$*?\[{{~`]))", "", text)
