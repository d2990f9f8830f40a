"""Parsing of bash commands with tree-sitter."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from oh_jupyter.installed import find_program

if TYPE_CHECKING:
    from tree_sitter import Language, Node

SPECIAL = re.compile(rb"\\([;&|><])")
HERE_DOCUMENT = re.compile(r"<<(?!<)")
UNFINISHED = re.compile(rb"here-document .*delimited by end-of-file \(wanted `(.*)'\)")
CHECK_SECONDS = 5.0
UNCHANGED_TYPES = {
    "string",
    "raw_string",
    "ansi_c_string",
    "heredoc_redirect",
    "command_substitution",
}


@cache
def _language() -> Language:
    """Load the grammar at first use."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


@lru_cache(maxsize=1)
def _parse(command: str) -> tuple[bytes, Node]:
    """Return the bytes of a command and the root of its syntax tree; several checks need them."""
    import tree_sitter

    source = command.encode("utf-8", "surrogateescape")
    return source, tree_sitter.Parser(_language()).parse(source).root_node


def is_complete(command: str) -> bool:
    """Return whether the text is certainly complete and valid bash."""
    return not command.endswith("\\") and not _parse(command)[1].has_error


def open_here_document(command: str) -> str:
    """Return the delimiter of an unfinished here-document, or ""."""
    if not HERE_DOCUMENT.search(command):
        return ""
    try:
        # Bash reads a file in blocks, and a pipe byte by byte.
        with tempfile.TemporaryFile() as file:
            file.write(command.encode("utf-8", "surrogateescape"))
            file.seek(0)
            check = subprocess.run(
                [find_program("bash") or "/bin/bash", "--norc", "--noprofile", "-n"],
                stdin=file,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                timeout=CHECK_SECONDS,
            )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = UNFINISHED.search(check.stderr)
    return match[1].decode("utf-8", "replace") if match else ""


def split_commands(command: str) -> list[str]:
    """Split a text at newlines between top-level commands; keep comments with the previous one."""
    if "\n" not in command:
        return [command]
    source, root = _parse(command)
    if root.has_error:
        return [command]
    starts: list[int] = []
    previous_end = 0
    for node in root.children:
        if node.type == "comment" or not node.is_named:
            previous_end = max(previous_end, node.end_byte)
            continue
        if not starts:
            starts.append(0)
        elif b"\n" in source[previous_end : node.start_byte]:
            starts.append(node.start_byte)
        previous_end = node.end_byte
    pieces = [
        source[start:end].decode("utf-8", "surrogateescape").rstrip()
        for start, end in zip(starts, [*starts[1:], len(source)], strict=True)
    ]
    return pieces or [command]


def ends_with_semicolon(command: str) -> bool:
    r"""Return whether a semicolon ends the last command, unlike ``\;`` or one in a comment."""
    if not command.rstrip().endswith(";"):
        return False
    node = _parse(command)[1]
    while node.children:
        node = node.children[-1]
    return node.type == ";"


def displayed_command(command: str) -> str:
    r"""Return a command for ``extras.command``: ``\;`` and the like get a second backslash.

    OpenHands' protocol has this artefact of its terminal multiplexer; the executed command is not
    changed.
    """
    if "\\" not in command:
        return command
    source, root = _parse(command)
    if root.has_error:
        return command
    unchanged: list[tuple[int, int]] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.type in UNCHANGED_TYPES or node.type == "heredoc_body":
            unchanged.append((node.start_byte, node.end_byte))
        else:
            pending += node.children
    pieces: list[bytes] = []
    position = 0
    for start, end in sorted(unchanged):
        pieces += [SPECIAL.sub(rb"\\\\\1", source[position:start]), source[start:end]]
        position = end
    pieces.append(SPECIAL.sub(rb"\\\\\1", source[position:]))
    return b"".join(pieces).decode("utf-8", "surrogateescape")
