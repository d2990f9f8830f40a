"""Patch formats: detection, SEARCH/REPLACE blocks (Aider), ``*** Begin Patch`` (OpenAI)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from oh_jupyter.editor.patch import FilePatch, Line, PatchHunk, hunk_between
from oh_jupyter.editor.patch.unified import STARTS, parse_unified
from oh_jupyter.errors import PatchError

_SEARCH = re.compile(r"<{5,}\s*SEARCH\s*>?\s*\Z")
"""First line of a block."""

_DIVIDER = re.compile(r"={5,}\s*\Z")
# Three of the characters may be missing, removed as if they were a Python prompt.
_REPLACE = re.compile(r">{2,}\s*REPLACE\s*\Z")
_FENCE = re.compile(r"\s*(```|~~~)")


def _parse_blocks(text: str) -> list[FilePatch]:
    """Parse SEARCH and REPLACE blocks, each for the file named above it or the previous one."""
    lines = text.replace("\r\n", "\n").split("\n")
    patches: list[FilePatch] = []
    path = ""
    for start, middle, end in _blocks(lines):
        path = _path_above(lines, start) or path
        old, new = lines[start + 1 : middle], lines[middle + 1 : end]
        if old:
            hunk = hunk_between(old, new, start + 1)
            patches.append(FilePatch("update", path, start + 1, (hunk,)))
        else:
            content = "".join(f"{line}\n" for line in new)
            patches.append(FilePatch("add", path, start + 1, content=content))
    return patches


def split_blocks(text: str) -> list[tuple[str, str]]:
    """Return the old and new texts of SEARCH and REPLACE blocks."""
    lines = text.split("\n")
    return [
        ("\n".join(lines[start + 1 : middle]), "\n".join(lines[middle + 1 : end]))
        for start, middle, end in _blocks(lines)
    ]


def _blocks(lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the lines of the three markers of each block."""
    position = 0
    while position < len(lines):
        if _SEARCH.match(lines[position]):
            middle = _find(lines, position + 1, _DIVIDER, position, "=======")
            end = _find(lines, middle + 1, _REPLACE, position, ">>>>>>> REPLACE")
            yield position, middle, end
            position = end
        position += 1


def _find(lines: list[str], start: int, marker: re.Pattern[str], block: int, name: str) -> int:
    for number in range(start, len(lines)):
        line = lines[number]
        if marker.match(line):
            return number
        if _SEARCH.match(line):
            break
    raise PatchError(
        f"The block in line {block + 1} of the patch has no line {name!r}; nothing was changed. "
        "A block consists of <<<<<<< SEARCH, the old lines, =======, the new lines, and "
        ">>>>>>> REPLACE, with each marker on a line of its own."
    )


def _path_above(lines: list[str], block: int) -> str:
    """Return the file name in the lines above a block, or ""."""
    for line in reversed(lines[max(0, block - 3) : block]):
        if _REPLACE.match(line):
            return ""
        if _FENCE.match(line):
            continue
        name = line.strip().lstrip("#").strip().rstrip(":").strip("`*").strip()
        if name:
            is_sentence = " " in name and ("." not in name.rsplit("/", 1)[-1] or name[-1] == ".")
            return "" if is_sentence else name
    return ""


_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
_MOVE, _END_OF_FILE = "*** Move to:", "*** End of File"
_HEADERS = (_ADD, _DELETE, _UPDATE)


def _parse_envelope(text: str) -> list[FilePatch]:
    """Parse an envelope, and ignore the text around it."""
    lines = text.replace("\r\n", "\n").split("\n")
    first = next(n for n, line in enumerate(lines) if line.strip() == _BEGIN)
    last = next((n for n, line in enumerate(lines) if line.strip() == _END and n > first), None)
    if last is None:
        raise PatchError(
            f"The patch has no line {_END!r}, so it seems to be truncated; nothing was changed. "
            "Send the whole patch."
        )
    patches: list[FilePatch] = []
    number = first + 1
    while number < last:
        line = lines[number]
        if not line.strip():
            number += 1
            continue
        header = next((name for name in _HEADERS if line.startswith(name)), None)
        path = line[len(header) :].strip() if header is not None else ""
        if header is None or not path:
            raise _unreadable(number, line)
        end = number + 1
        while end < last and not lines[end].startswith(_HEADERS):
            end += 1
        patches.append(_file_patch(header, path, lines, number, end))
        number = end
    return patches


def _file_patch(header: str, path: str, lines: list[str], start: int, end: int) -> FilePatch:
    source = start + 1
    body = lines[start + 1 : end]
    while body and not body[-1]:
        body.pop()
    if header == _DELETE:
        if body:
            raise _unreadable(source, body[0])
        return FilePatch("delete", path, source)
    if header == _ADD:
        for offset, line in enumerate(body):
            if not line.startswith("+"):
                raise _unreadable(source + offset, line)
        return FilePatch("add", path, source, content="".join(f"{line[1:]}\n" for line in body))
    new_path = None
    if body and body[0].startswith(_MOVE):
        new_path = body[0][len(_MOVE) :].strip()
        body = body[1:]
        source += 1
    hunks = _hunks(body, source)
    return FilePatch("update", path, start + 1, tuple(hunks), new_path=new_path)


def _hunks(body: list[str], source: int) -> list[PatchHunk]:
    hunks: list[PatchHunk] = []
    anchors: list[str] = []
    lines: list[Line] = []
    start = source + 1

    def close(*, at_end: bool = False) -> None:
        if lines:
            # Added lines without anchor or context go to the end.
            at_end = at_end or (not anchors and all(kind == "+" for kind, _ in lines))
            hunks.append(PatchHunk(tuple(lines), start, anchors=tuple(anchors), at_end=at_end))
            anchors.clear()
            lines.clear()

    for offset, line in enumerate(body):
        if line.startswith("@@"):
            close()
            name = line[2:].removesuffix("@@").strip()
            if name:
                anchors.append(name)
            start = source + offset + 1
        elif line.rstrip() == _END_OF_FILE:
            close(at_end=True)
        elif line[:1] in (" ", "+", "-"):
            lines.append((line[0], line[1:]))
        elif not line:
            lines.append((" ", ""))  # an unchanged line whose leading blank was trimmed
        else:
            raise _unreadable(source + offset, line)
    close()
    return hunks


def _unreadable(number: int, line: str) -> PatchError:
    return PatchError(
        f"Line {number + 1} of the patch is invalid: {line[:100]!r}; nothing was changed. "
        "Between *** Begin Patch and *** End Patch write *** Add File: PATH (with a + before each "
        "line), *** Delete File: PATH, or *** Update File: PATH (optionally followed by "
        "*** Move to: PATH) with hunks: @@, optionally followed by the line of a class or "
        "function, and lines that start with a blank, - or +."
    )


def parse_patch(text: str) -> list[FilePatch]:
    """Parse a patch in any format, and ignore the text around it."""
    parser = _parser_for(text)
    patches = parser(text) if parser is not None else []
    if not patches:
        raise PatchError(
            "The format of the patch is unknown; nothing was changed. Write <<<<<<< SEARCH, "
            "=======, >>>>>>> REPLACE blocks (with the file's name above each), a unified diff, or "
            "*** Begin Patch ... *** End Patch."
        )
    return patches


def _parser_for(text: str) -> Callable[[str], list[FilePatch]] | None:
    """Choose by the first line that starts a patch, since it may contain other formats."""
    is_diff = False
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped == _BEGIN:
            return _parse_envelope
        if _SEARCH.match(stripped) and not is_diff:
            return _parse_blocks
        is_diff = is_diff or STARTS.match(line) is not None
    return parse_unified if is_diff else None
