"""Skills for viewing and searching files, with the output of OpenHands' skills."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_WINDOW_LINES = 100
_MAX_FILES = 100  # with matches; with more, the search is too broad
_NO_FILE = "No file open. Use the open_file function first."


@dataclass
class _Window:
    """The open file and line; one per process, like the agent in a kernel."""

    path: str | None = None
    line: int = 1


_window = _Window()


def open_file(path: str, line_number: int | None = 1, context_lines: int | None = 100) -> None:
    """Open a file and show the lines around one of them.

    To see the rest of a long file, call scroll_down and scroll_up repeatedly.

    Args:
        path: The file; an absolute path is best.
        line_number: The line to show in the middle, counted from 1.
        context_lines: Number of lines to show, at most 100.
    """
    if not os.path.isfile(path):
        return _error(f"File {path} not found.")
    lines = _read_lines(path)
    if lines is None:
        return _error(f"File {path} is not a text file.")
    _window.path = os.path.abspath(path)
    if not _is_line(line_number, lines):
        return _error(f"Line number must be between 1 and {len(lines)}")
    size = context_lines if context_lines is not None and context_lines >= 1 else _WINDOW_LINES
    text = _render(lines, line_number or 1, min(size, _WINDOW_LINES), centred=True)
    if text.endswith("more lines below)"):
        text += "\n[Use `scroll_down` to view the next 100 lines of the file!]"
    print(text)


def goto_line(line_number: int) -> None:
    """Show the lines around another line of the open file.

    Args:
        line_number: The line, counted from 1.
    """
    lines = _open_lines()
    if lines is None:
        return
    if not _is_line(line_number, lines):
        return _error(f"Line number must be between 1 and {len(lines)}.")
    print(_render(lines, line_number, _WINDOW_LINES, centred=True))


def scroll_down() -> None:
    """Show the next 100 lines of the open file."""
    _scroll(_WINDOW_LINES)


def scroll_up() -> None:
    """Show the previous 100 lines of the open file."""
    _scroll(-_WINDOW_LINES)


def search_dir(search_term: str, dir_path: str = "./") -> None:
    """Search for a text in all files below a directory, except hidden and binary ones.

    Args:
        search_term: The text.
        dir_path: The directory.
    """
    if not os.path.isdir(dir_path):
        return _error(f"Directory {dir_path} not found")
    matches = [
        (path, number, line.strip())
        for path in _walk(dir_path)
        for number, line in enumerate(_read_lines(path) or [], 1)
        if search_term in line
    ]
    if not matches:
        print(f'No matches found for "{search_term}" in {dir_path}')
        return
    files = len({path for path, _, _ in matches})
    if files > _MAX_FILES:
        print(
            f'More than {files} files matched for "{search_term}" in {dir_path}. '
            "Please narrow your search."
        )
        return
    _print_matches(
        search_term, dir_path, [f"{path} (Line {number}): {line}" for path, number, line in matches]
    )


def search_file(search_term: str, file_path: str | None = None) -> None:
    """Search for a text in a file.

    Args:
        search_term: The text.
        file_path: The file; by default the open one.
    """
    path = file_path if file_path is not None else _window.path
    if path is None:
        return _error("No file specified or open. Use the open_file function first.")
    if not os.path.isfile(path):
        return _error(f"File {path} not found.")
    lines = _read_lines(path)
    if lines is None:
        return _error(f"File {path} is not a text file.")
    matches = [
        f"Line {number}: {line.strip()}"
        for number, line in enumerate(lines, 1)
        if search_term in line
    ]
    _print_matches(search_term, path, matches)


def find_file(file_name: str, dir_path: str = "./") -> None:
    """Find the files below a directory whose name contains a text.

    Args:
        file_name: The name, or a part of it.
        dir_path: The directory.
    """
    if not os.path.isdir(dir_path):
        return _error(f"Directory {dir_path} not found")
    matches = []
    for folder, folders, names in os.walk(dir_path):
        folders.sort()
        matches += [os.path.join(folder, name) for name in sorted(names) if file_name in name]
    _print_matches(file_name, dir_path, matches)


def _error(message: str) -> None:
    print(f"ERROR: {message}")


def _print_matches(term: str, path: str, matches: list[str]) -> None:
    if not matches:
        print(f'[No matches found for "{term}" in {path}]')
        return
    print(f'[Found {len(matches)} matches for "{term}" in {path}]')
    print("\n".join(matches))
    print(f'[End of matches for "{term}" in {path}]')


def _walk(directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(names) if name[0] != ".")


def _read_lines(path: str) -> list[str] | None:
    """Read a text file; return None if it is binary, unreadable or not a file."""
    from oh_jupyter.editor.text.text_file import TextFile

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        file = TextFile.parse(Path(path).read_bytes())
    except OSError:
        return None
    return None if file is None else file.text.removesuffix("\n").split("\n")


def _open_lines() -> list[str] | None:
    """Read the open file again, since it may have been edited."""
    lines = None
    if _window.path is not None and os.path.isfile(_window.path):
        lines = _read_lines(_window.path)
    if lines is None:
        _error(_NO_FILE)
    return lines


def _is_line(number: int | None, lines: list[str]) -> bool:
    return isinstance(number, int) and 1 <= number <= len(lines)


def _scroll(distance: int) -> None:
    lines = _open_lines()
    if lines is not None:
        line = min(max(_window.line + distance, 1), len(lines))
        print(_render(lines, line, _WINDOW_LINES, centred=False))


def _render(lines: list[str], line: int, size: int, *, centred: bool) -> str:
    """Return the text of the window, and save its line."""
    _window.line = line
    total = len(lines)
    half = max(1, size // 2)
    first = max(1, line - half) if centred else line
    last = min(total, line + (half if centred else size))
    if first == 1:
        last = min(total, size)
    if last == total:
        first = max(1, last - size + 1)
    above = (
        f"({first - 1} more lines above)" if first > 1 else "(this is the beginning of the file)"
    )
    below = (
        f"({total - last} more lines below)" if last < total else "(this is the end of the file)"
    )
    body = [f"{number}|{lines[number - 1]}" for number in range(first, last + 1)]
    header = f"[File: {_window.path} ({total} lines total)]"
    return "\n".join([header, above, *body, below])
