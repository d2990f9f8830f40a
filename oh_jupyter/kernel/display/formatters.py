"""How Observations and tables look in a cell: text everywhere, HTML where it is shown.

The Observations stay plain data; IPython's formatters are taught about their classes.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.events import (
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileDownloadObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    MCPObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.kernel.display import html
from oh_jupyter.kernel.display.diff import coloured
from oh_jupyter.kernel.display.figures import number_text
from oh_jupyter.kernel.display.readable_diff import is_dry_run, readable_diff

__all__ = ["Table", "register_formatters", "screenshot", "unregister_formatters"]

_SHOWN: tuple[type[Observation], ...] = (
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileDownloadObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    MCPObservation,
    UserRejectObservation,
)


@dataclass(frozen=True)
class Table:
    """Rows that a magic returns: shown as a table, used as a sequence of dicts.

    Attributes:
        columns: Headings.
        rows: Values, one tuple a row.
        formats: How the values of a column are shown, where ``str`` is not enough.
        summary: What a table says that is too long to be shown as a whole.
        max_shown_rows: How many rows are shown, of the beginning and the end.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    formats: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    summary: str = ""
    max_shown_rows: int = 200

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """One row by its position."""
        return dict(zip(self.columns, self.rows[index], strict=True))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict."""
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        """The table in columns of text."""
        if not self.rows:
            return "(nothing)"
        shown = list(self._shown())
        lines = [self.columns, *(row for row in shown if not isinstance(row, str))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [line if isinstance(line, str) else _padded(line, widths) for line in shown]
        return "\n".join([*filter(None, [self._caption]), _padded(self.columns, widths), *text])

    def _repr_html_(self) -> str:
        return html.table(self.columns, self._shown(), self._caption)

    @property
    def _caption(self) -> str | None:
        return self.summary or None if len(self.rows) > self.max_shown_rows else None

    def _shown(self) -> Iterator[tuple[str, ...] | str]:
        """The rows as they are shown, and a remark in place of those that are not."""
        hidden = len(self.rows) - self.max_shown_rows
        if hidden <= 0:
            yield from map(self._text, self.rows)
            return
        last = self.max_shown_rows // 4
        yield from map(self._text, self.rows[: self.max_shown_rows - last])
        yield f"… {hidden:,} more, all of them in the value"
        yield from map(self._text, self.rows[len(self.rows) - last :])

    def _text(self, row: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(
            self.formats.get(column, _value_text)(value)
            for column, value in zip(self.columns, row, strict=True)
        )


def _value_text(value: Any) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def register_formatters(shell: InteractiveShell) -> None:
    """Teach a shell to show Observations."""
    formatters = _formatters(shell)
    for kind in _SHOWN:
        formatters["text/plain"].for_type(kind, _print_text)
        formatters["text/html"].for_type(kind, observation_html)


def unregister_formatters(shell: InteractiveShell) -> None:
    """Make a shell forget what it was taught."""
    formatters = _formatters(shell)
    for kind in _SHOWN:
        formatters["text/plain"].pop(kind, None)
        formatters["text/html"].pop(kind, None)


def _formatters(shell: InteractiveShell) -> Any:
    assert shell.display_formatter is not None
    return shell.display_formatter.formatters


def screenshot(observation: Observation) -> bytes | None:
    """The picture of a page as PNG, with marks where there are any; None if there is none."""
    if not isinstance(observation, BrowserOutputObservation):
        return None
    url = observation.set_of_marks or observation.screenshot
    if not url.startswith("data:image/png;base64,"):
        return None
    return b64decode(url.partition(",")[2])


def _print_text(observation: Observation, printer: Any, cycle: bool) -> None:
    if isinstance(observation, FileEditObservation) and observation.diff and sys.stdout.isatty():
        text = _edit_text(coloured(readable_diff(observation)), observation)
    else:
        text = observation_text(observation)
    printer.text(text)


def observation_text(observation: Observation) -> str:
    """An Observation as plain text: what it says, and the exit code of a failed command."""
    if isinstance(observation, CmdOutputObservation):
        note = _exit_note(observation)
        return "\n".join(part for part in (observation.content, note) if part)
    if isinstance(observation, FileEditObservation) and observation.diff:
        return _edit_text(observation.diff, observation)
    if isinstance(observation, MCPObservation):
        return _tool_text(observation)[0]
    if isinstance(observation, BrowserOutputObservation):
        problem = observation.last_browser_action_error
        return f"{observation.url}\n{problem}".rstrip()
    return observation.content or observation.message


def _edit_text(diff: str, observation: FileEditObservation) -> str:
    dry_run = "DRY RUN: nothing was written." if is_dry_run(observation) else ""
    return "\n".join(filter(None, (diff, dry_run, remarks(observation.content))))


def remarks(content: str) -> str:
    """What the editor says besides the diff: of the linter, of other writers, of a patch's fit."""
    lines = content.split("\n")
    wanted: tuple[str, ...] = ("NOTE: ", "Linting issues found", "- Line ")
    if any(line.startswith("The patch was ") for line in lines):
        wanted = (*wanted, "- ")
    return "\n".join(line for line in lines if line.startswith(wanted))


def _tool_text(observation: MCPObservation) -> tuple[str, html.Tone]:
    """The text in the result of a tool, and the tone to show it in."""
    try:
        result = json.loads(observation.content)
        failed = bool(result.get("isError"))
        parts = [str(part.get("text") or f"[{part.get('type')}]") for part in result["content"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        return observation.content, "info"
    text = "\n".join(parts) or str(result.get("error") or "")
    return text, "error" if failed else "ok"


def _exit_note(observation: CmdOutputObservation) -> str:
    code = observation.exit_code
    if code == 0:
        return ""
    if code == -1:
        return observation.metadata.suffix.strip()
    return f"[exit code {code}]"


def observation_html(observation: Observation) -> str:
    """An Observation as HTML: a card with a heading and what there is to see."""
    if isinstance(observation, CmdOutputObservation):
        return _command_html(observation)
    if isinstance(observation, FileEditObservation):
        return _edit_html(observation)
    if isinstance(observation, BrowserOutputObservation):
        return _page_html(observation)
    if isinstance(observation, ErrorObservation | UserRejectObservation):
        return html.card(html.output_block(observation.content, "error"), tone="error")
    if isinstance(observation, IPythonRunCellObservation):
        return html.card(html.output_block(observation.content), tone="ok")
    if isinstance(observation, MCPObservation):
        text, tone = _tool_text(observation)
        return html.card(
            html.heading(f"{observation.name}()"), html.output_block(text, tone), tone=tone
        )
    if isinstance(observation, FileReadObservation):
        failed = observation.content.startswith("ERROR:\n")
        state: html.Tone = "error" if failed else "info"
        return html.card(
            html.heading(observation.path),
            html.output_block(observation.content, state),
            tone=state,
        )
    return html.card(html.heading(observation.message), tone="ok")


def _command_html(observation: CmdOutputObservation) -> str:
    code = observation.exit_code
    tone: html.Tone = "ok" if code == 0 else "info" if code == -1 else "error"
    word = {0: "", -1: "running"}.get(code, f"exit {code}")
    return html.card(
        html.heading(f"$ {observation.command}", *([html.badge(word, tone)] if word else [])),
        html.output_block(observation.content),
        html.output_block(observation.metadata.suffix.strip()) if code == -1 else "",
        tone=tone,
    )


def _edit_html(observation: FileEditObservation) -> str:
    failed = observation.content.startswith("ERROR:\n")
    tried = is_dry_run(observation)
    tone: html.Tone = "error" if failed else "dry-run" if tried else "ok"
    if failed or not observation.diff:
        return html.card(html.output_block(observation.content, tone), tone=tone)
    named = f"--- {observation.path}\n+++ {observation.path}\n"  # the heading names it, too
    badges = [html.badge("dry run: nothing was written", tone)] if tried else []
    return html.card(
        html.heading(observation.path, *badges),
        html.diff_block(readable_diff(observation).removeprefix(named)),
        html.output_block(remarks(observation.content)),
        html.folded("What the editor says", html.output_block(observation.content)),
        tone=tone,
    )


def _page_html(observation: BrowserOutputObservation) -> str:
    tone: html.Tone = "error" if observation.error else "ok"
    tabs = len(observation.open_pages_urls)
    return html.card(
        html.heading(observation.url, *([html.badge(f"{tabs} tabs", "info")] if tabs > 1 else [])),
        html.output_block(observation.last_browser_action_error, "error"),
        html.folded("What an agent reads", html.output_block(observation.content)),
        tone=tone,
    )
