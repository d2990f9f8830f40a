"""Parser of unified diffs, including those with wrong line counts, as models write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from oh_jupyter.editor.patch import FilePatch, Line, PatchHunk
from oh_jupyter.errors import PatchError

STARTS = re.compile(r"diff --git |--- .|@@")
"""Start of the first line of a diff."""

_RANGES = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NULL = "/dev/null"


@dataclass
class _File:
    """Parser state of one file of the diff."""

    source: int
    old: str | None = None
    new: str | None = None
    renamed: bool = False
    mode: int | None = None
    hunks: list[PatchHunk] = field(default_factory=list)


def parse_unified(text: str) -> list[FilePatch]:
    """Parse a unified diff; its line numbers are only hints."""
    lines = text.replace("\r\n", "\n").split("\n")
    files: list[_File] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.startswith("diff --git "):
            files.append(_from_git(line, number + 1))
            number += 1
        elif _is_header(lines, number):
            if not files or files[-1].hunks or files[-1].old == _NULL == files[-1].new:
                files.append(_File(number + 1))
            files[-1].old, files[-1].new = _name(line[4:]), _name(lines[number + 1][4:])
            number += 2
        elif line.startswith("@@"):
            if not files:
                files.append(_File(number + 1))
            number, hunk = _hunk(lines, number)
            files[-1].hunks.append(hunk)
        else:
            if files:
                _read_extended_header(files[-1], line, number)
            number += 1
    return [_patch(file) for file in files]


def _is_header(lines: list[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return lines[number].startswith("--- ") and following.startswith("+++ ")


def _name(text: str) -> str:
    """Return the name in a header, without the time that diff appends."""
    name = text.split("\t")[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        # git quotes such names, with other bytes than ASCII in octal
        unescaped = re.sub(r"\\([0-7]{3}|.)", _unescape, name[1:-1])
        name = unescaped.encode("latin-1", "replace").decode("utf-8", "replace")
    return name


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if len(code) == 3 else {"t": "\t", "n": "\n"}.get(code, code)


def _from_git(line: str, source: int) -> _File:
    match = re.match(r'diff --git "?a/(.+?)"? "?b/(.+?)"?\s*\Z', line)
    if match is None:
        return _File(source)
    return _File(source, f"a/{match[1]}", f"b/{match[2]}")


def _read_extended_header(file: _File, line: str, number: int) -> None:
    """Read a line between git's header and the first hunk."""
    if line.startswith(("GIT binary patch", "Binary files ")):
        raise PatchError(
            f"Line {number + 1} of the patch is for a binary file, which cannot be patched as "
            "text; nothing was changed. Omit it, or write that file in another way."
        )
    if line.startswith("new file mode "):
        file.old = _NULL
        file.mode = 0o755 if line.endswith("755") else None
    elif line.startswith("deleted file mode "):
        file.new = _NULL
    elif line.startswith("rename from "):
        file.old, file.renamed = f"a/{_name(line[12:])}", True
    elif line.startswith("rename to "):
        file.new = f"b/{_name(line[10:])}"
    elif line.startswith("copy from "):
        raise PatchError(
            f"Line {number + 1} of the patch copies a file, which is not supported; nothing was "
            "changed. Add the copy as a new file."
        )


def _hunk(lines: list[str], number: int) -> tuple[int, PatchHunk]:
    header = _RANGES.match(lines[number])
    source = number + 1
    hint = int(header[1]) if header is not None else None
    counted = None
    if header is not None:
        counted = _counted(lines, number + 1, int(header[2] or 1), int(header[4] or 1))
    body, end = counted if counted is not None else _lookalikes(lines, number + 1)
    hunk_lines: list[Line] = []
    unterminated = set()
    for line in body:
        if line.startswith("\\"):
            unterminated.add(len(hunk_lines) - 1)
        else:
            hunk_lines.append((line[0], line[1:]) if line else (" ", ""))
    anchors: tuple[str, ...] = ()
    if header is None:
        name = lines[number].strip("@ ")
        anchors = (name,) if name and not set(name) <= set(". ,+-0123456789") else ()
    if not hunk_lines:
        raise PatchError(f"The hunk in line {source} of the patch is empty; nothing was changed.")
    last = max((n for n, (kind, _) in enumerate(hunk_lines) if kind != "-"), default=-1)
    newline = last not in unterminated if unterminated else None
    at_end = bool(unterminated)
    return end, PatchHunk(tuple(hunk_lines), source, hint, anchors, at_end, newline)


def _counted(lines: list[str], start: int, old: int, new: int) -> tuple[list[str], int] | None:
    """Return the lines counted by the header of the hunk; None if the counts are wrong."""
    number = start
    while number < len(lines) and (old > 0 or new > 0 or lines[number].startswith("\\")):
        line = lines[number]
        kind = line[:1] or " "
        if kind not in " +-\\" or (not line and number == len(lines) - 1):
            return None
        old -= kind in " -"
        new -= kind in " +"
        number += 1
    if old or new:
        return None
    more = lines[number] if number < len(lines) else ""
    if more[:1] in ("+", "-", " ") and more.strip() and not _is_header(lines, number):
        return None  # the counts are too small
    return lines[start:number], number


def _lookalikes(lines: list[str], start: int) -> tuple[list[str], int]:
    """Return all lines that look like those of a hunk."""
    number = start
    while number < len(lines):
        line = lines[number]
        if _is_header(lines, number) or line.startswith(("@@", "diff --git ")):
            break
        if line and line[0] not in " +-\\":
            break
        number += 1
    body = lines[start:number]
    while body and not body[-1].strip():
        body.pop()  # blank lines between two files, or at the end of a message
    return body, number


def _patch(file: _File) -> FilePatch:
    old, new = file.old, file.new
    git = bool(old and new) and all(
        name == _NULL or name.startswith(prefix)
        for name, prefix in ((old or "", "a/"), (new or "", "b/"))
    )
    before, after = (
        "" if name in (None, _NULL) else name[2:] if git else name
        for name in (old or "", new or "")
    )
    hunks = tuple(file.hunks)
    if old == _NULL and new != _NULL:
        lines = [text for hunk in hunks for text in hunk.new]
        ends = any(hunk.newline is False for hunk in hunks)
        content = "\n".join(lines) + ("\n" if lines and not ends else "")
        return FilePatch("add", after, file.source, content=content, mode=file.mode)
    if new == _NULL:
        return FilePatch("delete", before, file.source, hunks)
    if not hunks and not file.renamed:
        raise PatchError(
            f"The file in line {file.source} of the patch has no hunk; nothing was changed. "
            "Patches of permissions alone are not supported."
        )
    if not before or before == after:
        return FilePatch("update", after, file.source, hunks)
    return FilePatch("update", before, file.source, hunks, new_path=after, renamed=file.renamed)
