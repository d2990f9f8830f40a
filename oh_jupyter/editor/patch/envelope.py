"""Parser of the ``*** Begin Patch`` envelope, as OpenAI's models write it."""

from __future__ import annotations

from oh_jupyter.editor.patch.model import FilePatch, Hunk, Line
from oh_jupyter.errors import PatchError

__all__ = ["BEGIN", "parse_envelope"]

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File:", "*** Delete File:", "*** Update File:"
_MOVE, _END_OF_FILE = "*** Move to:", "*** End of File"
_HEADERS = (_ADD, _DELETE, _UPDATE)


def parse_envelope(text: str) -> list[FilePatch]:
    """Patches of an envelope, with anything around it."""
    lines = text.replace("\r\n", "\n").split("\n")
    first = next(n for n, line in enumerate(lines) if line.strip() == BEGIN)
    last = next((n for n, line in enumerate(lines) if line.strip() == _END and n > first), None)
    if last is None:
        raise PatchError(
            f"The patch has no line {_END!r}: it seems to be cut off. Nothing was changed; "
            "send all of it."
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
        patches.append(_file(header, path, lines, number, end))
        number = end
    return patches


def _file(header: str, path: str, lines: list[str], start: int, end: int) -> FilePatch:
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


def _hunks(body: list[str], source: int) -> list[Hunk]:
    hunks: list[Hunk] = []
    anchors: list[str] = []
    lines: list[Line] = []
    begin = source + 1

    def close(*, at_end: bool = False) -> None:
        if lines:
            # Lines that are only added, with nothing to tell where, go to the end.
            at_end = at_end or (not anchors and all(kind == "+" for kind, _ in lines))
            hunks.append(Hunk(tuple(lines), begin, anchors=tuple(anchors), at_end=at_end))
            anchors.clear()
            lines.clear()

    for offset, line in enumerate(body):
        if line.startswith("@@"):
            close()
            name = line[2:].removesuffix("@@").strip()
            if name:
                anchors.append(name)
            begin = source + offset + 1
        elif line.rstrip() == _END_OF_FILE:
            close(at_end=True)
        elif line[:1] in (" ", "+", "-"):
            lines.append((line[0], line[1:]))
        elif not line:
            lines.append((" ", ""))  # the blank that stands for "stays" was trimmed
        else:
            raise _unreadable(source + offset, line)
    close()
    return hunks


def _unreadable(number: int, line: str) -> PatchError:
    return PatchError(
        f"Line {number + 1} of the patch cannot be read: {line[:100]!r}; nothing was changed. "
        "Between *** Begin Patch and *** End Patch are the lines *** Add File: PATH (each line of "
        "it after a +), *** Delete File: PATH, and *** Update File: PATH (then perhaps "
        "*** Move to: PATH) with hunks: @@ and perhaps the line of a class or function, and lines "
        "that begin with a blank, - or +."
    )
