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
from oh_jupyter.runtime.reasons import Reason, ReasonCode

_BEGIN = r"(?:^|[\s;&|(!`'\"])"

RULES: tuple[tuple[ReasonCode, str], ...] = (
    (
        "removes_tree_outside",
        _BEGIN + r"rm\s+(?=(?:\S+\s+)*-\w*[rR])(?:\S+\s+)*[\"']?(?:/|~|\$HOME|\$\{HOME\}|\.\.)",
    ),
    ("becomes_other_user", _BEGIN + r"(?:sudo|doas|su)\s"),
    ("overwrites_disk", _BEGIN + r"(?:mkfs[.\w]*\s|dd\s.*of=/dev/|shred\s)"),
    ("overwrites_device", r">\s*/dev/(?:sd|nvme|vd|hd|mmcblk)"),
    ("stops_machine", _BEGIN + r"(?:shutdown|reboot|halt|poweroff)(?:\s|$)"),
    (
        "runs_download",
        r"(?:curl|wget)\s[^\n]*\|\s*(?:sudo\s+)?(?:ba|z|da|k)?(?:sh|python3?|perl|node)\b",
    ),
    ("forces_push", r"git\s+push\s[^\n]*(?:--force\b|\s-f\b)"),
    ("opens_files", _BEGIN + r"chmod\s+(?:-\w+\s+)*(?:0?777|a\+\w*w)"),
    ("kills_all", _BEGIN + r"kill\s+(?:-\w+\s+)*-1(?:\s|$)"),
)
"""Codes of the reasons to ask about a shell command, each with its regular expression."""

_COMPILED = tuple((code, re.compile(pattern, re.MULTILINE)) for code, pattern in RULES)

_WORDS: dict[ReasonCode, tuple[str, ...]] = {
    "removes_tree_outside": ("rm",),
    "becomes_other_user": ("sudo", "doas", "su"),
    "overwrites_disk": ("mkfs", "of=/dev/", "shred"),
    "overwrites_device": ("/dev/",),
    "stops_machine": ("shutdown", "reboot", "halt", "poweroff"),
    "runs_download": ("curl", "wget"),
    "forces_push": ("push",),
    "opens_files": ("chmod",),
    "kills_all": ("kill",),
}
"""Words without which a rule cannot match; looking for them takes a hundredth of the time."""


def risks(
    action: Action,
    workspace_dir: str,
    lookup: Lookup = lambda name: None,
    *,
    effects: Effects | None = None,
    roots: Sequence[str] | None = None,
) -> list[Reason]:
    """Return the reasons to ask a person about an Action.

    Args:
        action: The Action.
        workspace_dir: Directory in which files may be changed.
        lookup: Returns a variable of the notebook by name, to analyse what a cell does.
        effects: Its effects, by default with the workspace as the base of relative paths.
        roots: Directories in which files may be changed, by default the workspace and that for
            temporary files.

    Returns:
        The reasons.
    """
    reasons: list[Reason] = []
    if getattr(action, "security_risk", None) is ActionSecurityRisk.HIGH:
        reasons.append(Reason("called_risky"))
    if isinstance(action, CmdRunAction):
        reasons += command_risks(action.command, workspace_dir)
    elif isinstance(action, IPythonRunCellAction):
        commands = partial(command_risks, workspace_dir=workspace_dir)
        reasons += cell_risks(action.code, workspace_dir, commands, lookup)
    else:
        known = effects_of(action, workspace_dir) if effects is None else effects
        allowed = [workspace_dir, tempfile.gettempdir()] if roots is None else roots
        changed = dict.fromkeys(known.outside(known.writes, allowed))
        reasons += [Reason("changes_file", (path,)) for path in changed]
    return reasons


def command_risks(command: str, workspace_dir: str) -> list[Reason]:
    """Return the reasons to ask a person about a shell command."""
    likely = [
        (code, rule) for code, rule in _COMPILED if any(word in command for word in _WORDS[code])
    ]
    text = _without_own_paths(command, workspace_dir) if likely else ""
    return [Reason(code) for code, rule in likely if rule.search(text)]


def remote_risks(action: Action) -> list[Reason]:
    """Return the reasons to ask about what a command does to other machines."""
    if not isinstance(action, CmdRunAction):
        return []
    risky = command_risks(action.command, "/")
    return [reason for reason in risky if reason.code == "forces_push"]


def _without_own_paths(text: str, workspace_dir: str) -> str:
    """Return a command with plain paths below the workspace made relative to it."""
    own = re.escape(os.path.abspath(workspace_dir).rstrip("/"))
    # Keep the workspace itself, and paths with a glob, a variable or two dots.
    return re.sub(rf"(?<![^\s\"'=]){own}/(?=[\w.-])(?!\S*(?:\.\.|[$*?\[{{~`]))", "", text)
