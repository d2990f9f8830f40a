"""Skill folders of a workspace: instructions for agents in files named SKILL.md."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_logger = logging.getLogger(__name__)

PARENTS = (".agents/skills", ".claude/skills", ".codex/skills", ".openhands/skills", "skills")
"""Directories of a workspace whose folders can be skills, the most general first."""

FILE_NAME = "SKILL.md"
MAX_FOLDERS = 100
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
MAX_HEADER_CHARS = 8192

_FIELD = re.compile(r"^(?P<name>[\w-]+):[ \t]*(?P<value>.*(?:\n[ \t]+.*)*)", re.MULTILINE)


class SkillFolder(NamedTuple):
    """Instructions for agents.

    Attributes:
        name: The name, which is also that of the folder.
        description: When to use them, in one line.
        path: Path of the file.
    """

    name: str
    description: str
    path: Path


def skill_folders(workspace: str) -> list[SkillFolder]:
    """Return the skill folders of a workspace by name.

    Args:
        workspace: Its directory.

    Returns:
        The well-formed ones; of several with one name, that of the most general directory.
    """
    folders: dict[str, SkillFolder] = {}
    for folder in _read_all(Path(workspace)):
        folders.setdefault(folder.name, folder)
        if len(folders) >= MAX_FOLDERS:
            break
    return [folders[name] for name in sorted(folders)]


def _read_all(workspace: Path) -> Iterator[SkillFolder]:
    for parent in PARENTS:
        for file in sorted((workspace / parent).glob(f"*/{FILE_NAME}")):
            try:
                yield _read(file)
            except (OSError, ValueError) as error:
                _logger.info("The skill %s is skipped: %s", file, error)


def _read(file: Path) -> SkillFolder:
    """Return the skill in a file; raise ValueError if its header is not well formed."""
    with file.open(encoding="utf-8") as opened:
        text = opened.read(MAX_HEADER_CHARS)
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*$", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise ValueError("it does not begin with a header between lines of ---")
    fields = {field["name"]: _value(field["value"]) for field in _FIELD.finditer(match[1])}
    name, description = fields.get("name", ""), fields.get("description", "")
    if name != file.parent.name or not 0 < len(name) <= MAX_NAME_CHARS:
        raise ValueError(f"its name {name!r:.80} is not that of its folder")
    if not 0 < len(description) <= MAX_DESCRIPTION_CHARS:
        raise ValueError(f"its description has {len(description)} characters")
    return SkillFolder(name, description, file)


def _value(text: str) -> str:
    """Return a string of the header in one line: plain, quoted, or a block."""
    value = re.sub(r"^[|>][+-]?[ \t]*\n", "", text.strip())
    line = " ".join(value.split())
    is_quoted = len(line) > 1 and line[0] == line[-1] and line[0] in "\"'"
    return line[1:-1] if is_quoted else line
