"""Messages of the editor. Those of OpenHands are literal: agents and harnesses match on them."""

from __future__ import annotations

from oh_jupyter.errors import (
    EditorError,
    EditorParameterInvalidError,
    EditorParameterMissingError,
    FileValidationError,
)
from oh_jupyter.text import shorten

EDITOR_FAILURE = "ERROR:\n{}"
"""Text for agents of a failure, with its reason."""

_CLIPPED = "<response clipped><NOTE>Due to the max output limit, only part of this "

TEXT_CLIPPED = (
    _CLIPPED + "file has been shown to you. You should retry this tool after you have searched "
    "inside the file with `grep -n` in order to find the line numbers of what you are looking "
    "for.</NOTE>"
)
MARKDOWN_CLIPPED = (
    _CLIPPED + "file has been shown to you. Please use Python libraries to view the entire file "
    "or search for specific content within the file.</NOTE>"
)
DIRECTORY_CLIPPED = (
    _CLIPPED + "directory has been shown to you. You should use `ls -la` instead to view large "
    "directories incrementally.</NOTE>"
)
REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."
REVIEW_INSERTION = (
    "Review the changes and make sure they are as expected (correct indentation, no duplicate "
    "lines, etc). Edit the file again if necessary."
)
DRY_RUN = "DRY RUN: nothing was written. Without `dry_run` the result would be:\n"
_MAX_QUOTED_CHARS = 4000
BINARY = "File appears to be binary and this file type cannot be read or edited by this tool."


def missing(command: str, parameter: str) -> EditorParameterMissingError:
    """Return the error for a missing parameter."""
    message = f"Parameter `{parameter}` is required for command: {command}."
    return EditorParameterMissingError(message)


def invalid(parameter: str, value: object, hint: str) -> EditorParameterInvalidError:
    """Return the error for an invalid value; the hint explains it."""
    shown = quoted(value) if isinstance(value, str) else value
    return EditorParameterInvalidError(f"Invalid `{parameter}` parameter: {shown}. {hint}")


def unchanged(new: str) -> EditorParameterInvalidError:
    """Return the error for a replacement by the same text."""
    hint = "No replacement was performed. `new_str` and `old_str` must be different."
    return invalid("new_str", new, hint)


def no_such_line(line: int, count: int) -> EditorParameterInvalidError:
    """Return the error for an insertion after a line that does not exist."""
    hint = f"It should be within the range of allowed values: {[0, count]}"
    return invalid("insert_line", line, hint)


def file_exists(path: object) -> EditorParameterInvalidError:
    """Return the error for creating a file that exists."""
    hint = f"File already exists at: {path}. Cannot overwrite files using command `create`."
    return invalid("path", path, hint)


def invalid_file(path: object, reason: str) -> FileValidationError:
    """Return the error for a file that the editor does not support."""
    return FileValidationError(f"File validation failed for {path}: {reason}")


def too_large(path: object, size: int, limit: int) -> FileValidationError:
    """Return the error for a file or a new text over the limit; both sizes are in bytes."""
    return invalid_file(
        path,
        f"File is too large ({size / 1024 / 1024:.1f}MB). "
        f"Maximum allowed size is {int(limit / 1024 / 1024)}MB.",
    )


def cannot_read(path: object, error: object) -> EditorError:
    """Return the error for a failed read."""
    return EditorError(f"Ran into {error} while trying to read {path}")


def cannot_write(path: object, error: object) -> EditorError:
    """Return the error for a failed write."""
    return EditorError(f"Ran into {error} while trying to write to {path}")


def quoted(text: str) -> str:
    """Return the text for use in a message; only start and end of a long one."""
    marker = "[... {omitted} characters omitted ...]"
    return shorten(text, _MAX_QUOTED_CHARS, keep="ends", marker=marker)
