"""Which Actions may do harm: those that the agent says so of, and those of a short list.

The list is no sandbox. It holds what people want to be asked about, and is short enough to be
known by heart: who has read it knows what is stopped and what is not.
"""

from __future__ import annotations

import os
import re
import tempfile

from oh_jupyter.events import (
    Action,
    ActionSecurityRisk,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    IPythonRunCellAction,
)

__all__ = ["RULES", "risk"]

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
