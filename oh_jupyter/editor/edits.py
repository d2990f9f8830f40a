"""What the edit commands compute: text in, bytes and the lines to show out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.editor.messages import invalid
from oh_jupyter.editor.text import EncodeError, TextFile, to_newlines
from oh_jupyter.errors import EditorParameterInvalidError, NoReplacementError

__all__ = ["SNIPPET_LINES", "Edit", "find_unique", "insert_after", "replace_range", "write_lines"]

SNIPPET_LINES = 4
"""Lines that are shown before and after an edit."""

_MAX_LISTED = 100  # line numbers in a message


@dataclass(frozen=True)
class Edit:
    """An edit that is ready to be written.

    Attributes:
        data: The file after it.
        offset: Where it starts in the text.
        line: The line of that place, counted from 1.
        before: How many lines above it to show.
        after: How many lines below it to show.
    """

    data: bytes
    offset: int
    line: int
    before: int
    after: int

    @property
    def first(self) -> int:
        """The first line to show, counted from 1."""
        return max(1, self.line - self.before)


def find_unique(file: TextFile, old: str, new: str, path: Path) -> tuple[int, int]:
    """Find the one place of a text.

    Where the text is nowhere it is looked for once more without the blanks around it.

    Args:
        file: The file.
        old: The text.
        new: What is to replace it, for the help in the error.
        path: The file's name, for the error.

    Returns:
        Offsets of its start and end in ``file.text``.

    Raises:
        NoReplacementError: It is nowhere, or in several places.
    """
    wanted = to_newlines(old)
    first = file.text.find(wanted)
    if first < 0:
        wanted = wanted.strip()
        first = file.text.find(wanted) if wanted else -1
    if first < 0:
        from oh_jupyter.editor.nearmiss import explain_absence

        raise NoReplacementError(
            f"No replacement was performed, old_str `{wanted}` did not appear verbatim in {path}."
            + explain_absence(file.text, to_newlines(old), to_newlines(new))
        )
    if file.text.find(wanted, first + max(1, len(wanted))) >= 0 or (not wanted and file.text):
        raise NoReplacementError(
            f"No replacement was performed. Multiple occurrences of old_str `{wanted}` in lines "
            f"{_lines_of(file.text, wanted)}. Please ensure it is unique."
        )
    return first, first + len(wanted)


def _lines_of(text: str, wanted: str) -> str:
    """List the lines in which the occurrences start, in one pass."""
    if not wanted:
        numbers = list(range(1, text.count("\n") + 2))
    else:
        numbers, line, counted = [], 1, 0
        at = text.find(wanted)
        while at >= 0:
            line += text.count("\n", counted, at)
            counted = at
            if not numbers or numbers[-1] != line:
                numbers.append(line)
            at = text.find(wanted, at + len(wanted))
    if len(numbers) <= _MAX_LISTED:
        return str(numbers)
    return f"{str(numbers[:_MAX_LISTED])[:-1]}, ... and {len(numbers) - _MAX_LISTED} more]"


def replace_range(file: TextFile, start: int, end: int, new: str) -> Edit:
    """Compute ``str_replace``.

    Args:
        file: The file.
        start: Where the text to replace starts in ``file.text``.
        end: Where it ends.
        new: What to put there.

    Returns:
        The edit.

    Raises:
        EditorParameterInvalidError: Nothing would change, or ``new`` cannot be encoded.
    """
    data = _encoded(file, start, end, new, "new_str")
    if data == file.data:
        raise invalid(
            "new_str",
            new,
            "No replacement was performed. `new_str` and `old_str` must be different.",
        )
    line = file.text.count("\n", 0, start) + 1
    return Edit(data, start, line, SNIPPET_LINES - 1, SNIPPET_LINES + new.count("\n"))


def insert_after(file: TextFile, line: int, new: str) -> Edit:
    """Compute ``insert``.

    Each piece of the text between newlines becomes a line. A last line without a
    newline gets one first, so that nothing is glued to it.

    Args:
        file: The file.
        line: The line after which to insert; 0 is the start of the file.
        new: What to insert.

    Returns:
        The edit.

    Raises:
        EditorParameterInvalidError: There is no such line, or ``new`` cannot be encoded.
    """
    count = file.line_count
    if not 0 <= line <= count:
        raise invalid(
            "insert_line",
            line,
            f"It should be within the range of allowed values: {[0, count]}",
        )
    at = file.offset_of_line(line + 1)
    unterminated = line == count and file.text != "" and not file.text.endswith("\n")
    data = _encoded(file, at, at, "\n" * unterminated + new + "\n", "new_str")
    after = SNIPPET_LINES + new.count("\n")
    return Edit(data, at + unterminated, line + 1, SNIPPET_LINES, after)


def write_lines(file: TextFile, content: str, start: int, end: int) -> Edit:
    """Compute ``write``.

    Content that does not end in a newline gets one; content that does gets no other,
    so that writing what was read changes nothing.

    Args:
        file: The file.
        content: The new lines.
        start: First line to replace, counted from 0.
        end: Line after the last to replace; -1 is the end of the file.

    Returns:
        The edit.

    Raises:
        EditorParameterInvalidError: ``content`` cannot be encoded.
    """
    count = file.line_count
    first = min(max(start, 0), count)
    last = count if end == -1 else min(max(end, first), count)
    new = content if content.endswith("\n") or not content else content + "\n"
    at, to = file.offset_of_line(first + 1), file.offset_of_line(last + 1)
    unterminated = first == count and file.text != "" and not file.text.endswith("\n")
    data = _encoded(file, at, to, "\n" * (unterminated and bool(new)) + new, "content")
    after = SNIPPET_LINES + new.count("\n") - 1
    return Edit(data, at, first + 1 - unterminated, SNIPPET_LINES - 1, after)


def _encoded(file: TextFile, start: int, end: int, new: str, parameter: str) -> bytes:
    try:
        return file.replace(start, end, new)
    except EncodeError as error:
        raise _not_encodable(parameter, new, error) from None


def _not_encodable(parameter: str, value: str, error: EncodeError) -> EditorParameterInvalidError:
    return invalid(
        parameter,
        ascii(value),
        f"The file is in {error.encoding}, which has no character {error.character!a}. "
        "Use other characters, or convert the file to UTF-8 first.",
    )
