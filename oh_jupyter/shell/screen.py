"""Screen model for output that moves the cursor, after ECMA-48 and xterm.

Lines have no fixed width, so nothing wraps. Rows above the window are history.
"""

from __future__ import annotations

import re
from collections.abc import Callable

WINDOW_ROWS = 100
"""Height of the window, to which absolute cursor positions refer."""
MAX_COLUMN = 20_000
"""Limit for columns; larger positions come from binary output."""

TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f\x1b]+)"
    r"|\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])?"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*(?P<escape>[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f])"
)


class Screen:
    """Terminal screen of unlimited width that turns output into text."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = [[]]
        self.row = 0
        self.column = 0
        self._top = 0
        self._saved = (0, 0)
        self._primary: tuple[list[list[str]], int, int, int] | None = None

    def feed(self, text: str) -> None:
        """Draw output."""
        for token in TOKEN.finditer(text):
            kind = token.lastgroup
            if kind == "text":
                self._write(token["text"])
            elif kind == "control":
                self._control(token["control"])
            elif kind == "final":
                self._sequence(token["parameters"], token["final"])
            elif kind == "escape":
                self._escape(token["escape"])

    def text(self) -> str:
        """Return the screen and its history."""
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def _write(self, text: str) -> None:
        """Put characters at the cursor."""
        row = self.rows[self.row]
        if len(row) < self.column:
            row.extend(" " * (self.column - len(row)))
        cells = list(text) if text.isascii() else _cells(text, row, self.column)
        end = self.column + len(cells)
        if cells and len(row) > self.column and row[self.column] == "" and self.column:
            row[self.column - 1] = " "  # left half of an overwritten wide character
        row[self.column : end] = cells
        if len(row) > end and row[end] == "":
            row[end] = " "
        self.column = end

    def _control(self, character: str) -> None:
        """Process a control character; drop those without a visible effect."""
        if character in "\n\x0b\x0c":
            self._line_feed()
            if character == "\n":
                self.column = 0
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character == "\t":
            self.column += 8 - self.column % 8

    def _line_feed(self) -> None:
        self._go(self.row + 1)
        if self.row - self._top >= WINDOW_ROWS:
            self._top = self.row - WINDOW_ROWS + 1

    def _go(self, row: int) -> None:
        """Move to a row, adding missing rows."""
        self.row = row
        while len(self.rows) <= row:
            self.rows.append([])

    def _escape(self, final: str) -> None:
        """Process a two-character sequence."""
        if final in "DE":
            self._line_feed()
            self.column = 0 if final == "E" else self.column
        elif final == "M":
            if self.row > self._top:
                self.row -= 1
            else:
                self._insert_lines(1)
        elif final == "7":
            self._saved = (self.row - self._top, self.column)
        elif final == "8":
            self._go(self._top + self._saved[0])
            self.column = self._saved[1]
        elif final == "c":
            self._erase_window()
            self._go(self._top)
            self.column = 0

    def _sequence(self, parameters: str, final: str) -> None:
        """Process a control sequence ``ESC [ parameters final``."""
        if parameters[:1] in ("?", ">", "=", "<"):
            if final in "hl" and {"1049", "1047", "47"} & set(parameters[1:].split(";")):
                self._alternate(final == "h")
            return
        numbers = [int(part) if part.isdigit() else 0 for part in parameters.split(";")]
        count = min(max(1, numbers[0]), MAX_COLUMN)
        second = min(max(1, numbers[1] if len(numbers) > 1 else 1), MAX_COLUMN)
        if final in "Hf":
            self._go(self._top + min(count, WINDOW_ROWS) - 1)
            self.column = second - 1
        elif final in "JK":
            (self._erase_window if final == "J" else self._erase_line)(numbers[0])
        else:
            move = MOVES.get(final)
            if move is not None:
                move(self, count)

    def _up(self, count: int) -> None:
        self.row = max(self._top, self.row - count)

    def _down(self, count: int) -> None:
        self._go(min(self._top + WINDOW_ROWS - 1, self.row + count))

    def _to_row(self, count: int) -> None:
        self._go(self._top + min(count, WINDOW_ROWS) - 1)

    def _to_column(self, count: int) -> None:
        self.column = count - 1

    def _right(self, count: int) -> None:
        self.column = min(MAX_COLUMN, self.column + count)

    def _left(self, count: int) -> None:
        self.column = max(0, self.column - count)

    def _next_line(self, count: int) -> None:
        self._down(count)
        self.column = 0

    def _previous_line(self, count: int) -> None:
        self._up(count)
        self.column = 0

    def _insert_characters(self, count: int) -> None:
        self.rows[self.row][self.column : self.column] = " " * count

    def _delete_characters(self, count: int) -> None:
        del self.rows[self.row][self.column : self.column + count]

    def _erase_characters(self, count: int) -> None:
        row = self.rows[self.row]
        end = min(len(row), self.column + count)
        row[self.column : end] = " " * max(0, end - self.column)

    def _insert_lines(self, count: int) -> None:
        count = min(count, WINDOW_ROWS)
        self.rows[self.row : self.row] = [[] for _ in range(count)]
        del self.rows[self._top + WINDOW_ROWS :]

    def _delete_lines(self, count: int) -> None:
        del self.rows[self.row : self.row + count]
        self._go(self.row)

    def _erase_line(self, mode: int) -> None:
        """Erase to the end (0), from the beginning (1), or all (2) of the line."""
        row = self.rows[self.row]
        if mode == 0:
            del row[self.column :]
        elif mode == 1:
            row[: self.column + 1] = " " * min(len(row), self.column + 1)
        else:
            row.clear()

    def _erase_window(self, mode: int = 2) -> None:
        """Erase below (0), above (1), all of the window (2), or the history (3)."""
        if mode == 0:
            self._erase_line(0)
            del self.rows[self.row + 1 :]
        elif mode == 1:
            for row in self.rows[self._top : self.row]:
                row.clear()
            self._erase_line(1)
        elif mode == 2:
            for row in self.rows[self._top :]:
                row.clear()
        elif mode == 3:
            del self.rows[: self._top]
            self.row -= self._top
            self._top = 0

    def _alternate(self, enter: bool) -> None:
        """Enter or leave the alternate screen of full-screen programs."""
        if enter and self._primary is None:
            self._primary = (self.rows, self.row, self.column, self._top)
            self.rows, self.row, self.column, self._top = [[]], 0, 0, 0
        elif not enter and self._primary is not None:
            self.rows, self.row, self.column, self._top = self._primary
            self._primary = None


MOVES: dict[str, Callable[[Screen, int], None]] = {
    "A": Screen._up,
    "B": Screen._down,
    "e": Screen._down,
    "C": Screen._right,
    "a": Screen._right,
    "D": Screen._left,
    "E": Screen._next_line,
    "F": Screen._previous_line,
    "G": Screen._to_column,
    "`": Screen._to_column,
    "d": Screen._to_row,
    "@": Screen._insert_characters,
    "P": Screen._delete_characters,
    "X": Screen._erase_characters,
    "L": Screen._insert_lines,
    "M": Screen._delete_lines,
}


def _cells(text: str, row: list[str], column: int) -> list[str]:
    """Split text into cells: wide characters take two, combining characters join the previous."""
    from wcwidth import wcwidth

    cells: list[str] = []
    for character in text:
        width = wcwidth(character)
        if width == 0 and cells:
            cells[-1 if cells[-1] else -2] += character
        elif width == 0 and 0 < column <= len(row):
            row[column - 1 if row[column - 1] else column - 2] += character
        elif width == 2:
            cells += [character, ""]
        elif character.isprintable() or width == 1:
            cells.append(character)
    return cells


COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
PLAIN_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system commands, such as a window's title
    r"|\x1b[()*+][0-9A-Za-z]"  # character sets
    r"|\x1b\[\?(?:[0-9;]*)[hl](?<!1049[hl])(?<!\?47[hl])(?<!1047[hl])"  # modes
    r"|\x1b[=>78]"
)
LINE_END = re.compile(r"\r+\n")
MOVES_CURSOR = "\b\v\f\r\x1b"
INVISIBLE = [chr(code) for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n"]


def render(data: bytes) -> str:
    """Convert terminal output to plain text: expand tabs, trim lines, drop control characters."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = PLAIN_ESCAPES.sub("", COLOURS.sub("", text))
    # ``in`` and ``replace`` are many times faster than regular expressions.
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = LINE_END.sub("\n", text)
    if any(character in text for character in MOVES_CURSOR):
        screen = Screen()
        screen.feed(text)
        return screen.text()
    for character in INVISIBLE:
        if character in text:
            text = text.replace(character, "")
    if "\t" in text:
        text = text.expandtabs(8)
    return "\n".join([line.rstrip() for line in text.split("\n")])
