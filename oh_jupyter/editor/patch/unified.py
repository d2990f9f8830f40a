"""Parser of unified diffs, also of models that cannot count lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from oh_jupyter.editor.patch import FilePatch, Hunk, Line
from oh_jupyter.errors import PatchError

STARTS = re.compile(r"diff --git |--- .|@@")
"""How a line begins that begins a diff."""

_RANGES = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NULL = "/dev/null"


@dataclass
class _File:
    """What is known about a file while its part of the diff is read."""

    source: int
    old: str | None = None
    new: str | None = None
    renamed: bool = False
    mode: int | None = None
    hunks: list[Hunk] = field(default_factory=list)


def parse_unified(text: str) -> list[FilePatch]:
    """Patches of a unified diff, whose line numbers are hints, and counts tell where hunks end."""
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
                _extended(files[-1], line, number)
            number += 1
    return [_patch(file) for file in files]


def _is_header(lines: list[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return lines[number].startswith("--- ") and following.startswith("+++ ")


def _name(text: str) -> str:
    """Take a name out of a header, without the time that diff puts behind it."""
    name = text.split("\t")[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        # git writes names in quotes with the bytes of what is not ASCII in octal
        unescaped = re.sub(r"\\([0-7]{3}|.)", _unescape, name[1:-1])
        name = unescaped.encode("latin-1", "replace").decode("utf-8", "replace")
    return name


def _unescape(match: re.Match[str]) -> str:
    sign = match[1]
    return chr(int(sign, 8)) if len(sign) == 3 else {"t": "\t", "n": "\n"}.get(sign, sign)


def _from_git(line: str, source: int) -> _File:
    match = re.match(r'diff --git "?a/(.+?)"? "?b/(.+?)"?\s*\Z', line)
    if match is None:
        return _File(source)
    return _File(source, f"a/{match[1]}", f"b/{match[2]}")


def _extended(file: _File, line: str, number: int) -> None:
    """Read a line between the headers of git and the first hunk."""
    if line.startswith(("GIT binary patch", "Binary files ")):
        raise PatchError(
            f"Line {number + 1} of the patch is about a binary file, which cannot be patched as "
            "text; nothing was changed. Leave it out, or write that file in another way."
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


def _hunk(lines: list[str], number: int) -> tuple[int, Hunk]:
    header = _RANGES.match(lines[number])
    source = number + 1
    hint = int(header[1]) if header is not None else None
    counted = None
    if header is not None:
        counted = _counted(lines, number + 1, int(header[2] or 1), int(header[4] or 1))
    body, end = counted if counted is not None else _by_look(lines, number + 1)
    found: list[Line] = []
    unterminated = set()
    for line in body:
        if line.startswith("\\"):
            unterminated.add(len(found) - 1)
        else:
            found.append((line[0], line[1:]) if line else (" ", ""))
    anchors: tuple[str, ...] = ()
    if header is None:
        name = lines[number].strip("@ ")
        anchors = (name,) if name and not set(name) <= set(". ,+-0123456789") else ()
    if not found:
        raise PatchError(f"The hunk in line {source} of the patch is empty; nothing was changed.")
    last = max((n for n, (kind, _) in enumerate(found) if kind != "-"), default=-1)
    newline = last not in unterminated if unterminated else None
    hunk = Hunk(tuple(found), source, hint=hint, anchors=anchors, newline=newline)
    return end, replace(hunk, at_end=bool(unterminated))


def _counted(lines: list[str], start: int, old: int, new: int) -> tuple[list[str], int] | None:
    """Take as many lines as the header of the hunk counts, if that comes out even."""
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
        return None  # the header counts too few
    return lines[start:number], number


def _by_look(lines: list[str], start: int) -> tuple[list[str], int]:
    """Take all lines that look like those of a hunk."""
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
        body.pop()  # between two files, or at the end of a message
    return body, number


def _patch(file: _File) -> FilePatch:
    old, new = file.old, file.new
    git = bool(old and new) and all(
        name == _NULL or name.startswith(prefix)
        for name, prefix in ((old or "", "a/"), (new or "", "b/"))
    )
    before, after = (_stripped(name, git) for name in (old, new))
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
            f"The part of the patch in line {file.source} has no hunk; nothing was changed. "
            "Changes of permissions alone are not supported."
        )
    if not before or before == after:
        return FilePatch("update", after, file.source, hunks)
    return FilePatch("update", before, file.source, hunks, new_path=after, renamed=file.renamed)


def _stripped(name: str | None, git: bool) -> str:
    if name is None or name == _NULL:
        return ""
    return name[2:] if git else name
