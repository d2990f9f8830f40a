"""Display of Observations and of a rewind's plan: text everywhere, HTML where supported."""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from IPython.display import Image

import oh_jupyter.kernel.display.html as html
from oh_jupyter.control_messages import RUNNING_HINT
from oh_jupyter.events import (
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    IPythonRunCellObservation,
    MCPObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.kernel.display.html import (
    LineKind,
    diff_lines,
    table,
    with_relative_paths,
)
from oh_jupyter.kernel.display.table import size_text
from oh_jupyter.text import shown_path

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import RewindPlan


def plan_html(plan: RewindPlan) -> str:
    """Return the files and variables of a plan as a table, followed by its notes."""
    rows = list(_rows(plan))
    if not rows:
        return f"<p>{escape(str(plan))}</p>"
    notes = "".join(f"<p>{escape(note)}</p>" for note in plan.notes)
    return table(("what", "name", "type", "size", "why"), rows) + notes


def _rows(plan: RewindPlan) -> Iterator[tuple[str, ...]]:
    for change in plan.changes:
        yield change.kind, change.path, "file", "", ""
    for path, reason in plan.kept.items():
        yield "keep", path, "file", "", reason
    for path in plan.make_directories:
        yield "create", path, "directory", "", ""
    for path in plan.remove_directories:
        yield "delete", path, "directory", "", ""
    for row in plan.variables:
        size = size_text(row.size) if row.size else ""
        yield row.outcome, row.name, row.type, size, row.reason


_COLOURS: dict[LineKind, str] = {"header": "2", "place": "2", "added": "32", "removed": "31"}
"""Dim, green, red as ANSI codes."""


_AGENTS_INPUT = "By setting `is_input` to `true`, you can interact with the current process: "
_MAGICS_HINT = (
    "%oh_run alone waits on and shows more of it, %oh_run --input TEXT answers it, and "
    "%oh_run --input C-c stops it. %oh_run --blocking waits however long a command is silent."
)


class Diff(str):
    """A diff as text with its own display."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return html.card(html.output_block("Nothing differs."), tone="ok")
        return html.card(html.diff_block(self), tone="info")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(coloured(self) if self else "Nothing differs.")


def coloured(diff: str) -> str:
    """Return a diff in a terminal's colours; unchanged without a terminal, as in a kernel."""
    if not sys.stdout.isatty():
        return diff
    return "\n".join(_line(kind, line) for kind, line in diff_lines(diff))


def _line(kind: LineKind, line: str) -> str:
    return f"\x1b[{_COLOURS[kind]}m{line}\x1b[0m" if kind in _COLOURS else line


def screenshot(observation: Observation) -> bytes | None:
    """Return the picture of a page as PNG, with marks if possible, or None."""
    if not isinstance(observation, BrowserOutputObservation):
        return None
    url = observation.set_of_marks or observation.screenshot
    if not url.startswith("data:image/png;base64,"):
        return None
    return b64decode(url.partition(",")[2])


def observation_text(observation: Observation, root: str = "") -> str:
    """Return an Observation as plain text, with the exit code of a failed command.

    Paths below ``root`` are relative to it. In a terminal, diffs have colours and context.
    """
    if isinstance(observation, CmdOutputObservation):
        note = _exit_note(observation)
        return "\n".join(part for part in (observation.content, note) if part)
    if isinstance(observation, FileEditObservation) and observation.diff:
        is_terminal = sys.stdout.isatty()
        diff = _diff_for_people(observation) if is_terminal else observation.diff
        return _edit_text(coloured(with_relative_paths(diff, root)), observation)
    if isinstance(observation, MCPObservation):
        return _tool_text(observation)[0]
    if isinstance(observation, BrowserOutputObservation):
        error = observation.last_browser_action_error
        return f"{observation.url}\n{error}".rstrip()
    return observation.content or observation.message or repr(observation)


def _diff_for_people(observation: FileEditObservation) -> str:
    return observation.context_diff or observation.diff or ""


def _edit_text(diff: str, observation: FileEditObservation) -> str:
    dry_run = "DRY RUN: nothing was written." if observation.dry_run else ""
    return "\n".join(filter(None, (diff, dry_run, *observation.notes)))


def _tool_text(observation: MCPObservation) -> tuple[str, html.Tone]:
    """Return the text in the result of a tool, and the tone to show it in."""
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
    ended = f"[exit code {code}]" if code not in (0, -1) else ""
    return "\n".join(filter(None, [ended, _remarks(observation), *sandbox_mark(observation)]))


def sandbox_mark(observation: Observation) -> list[str]:
    """Return whether a command ran in a sandbox, or nothing where none is set up."""
    sandboxed = (observation.handling or {}).get("sandboxed")
    return [] if sandboxed is None else ["[sandboxed]" if sandboxed else "[not sandboxed]"]


def _remarks(observation: CmdOutputObservation) -> str:
    """Return the agents' notes on a command, without the exit code, in words for a person."""
    suffix = observation.metadata.suffix.replace(_AGENTS_INPUT, "")
    lines = suffix.replace(RUNNING_HINT, _MAGICS_HINT).strip().splitlines()
    return "\n".join(line for line in lines if not line.startswith("[The command completed"))


def observation_html(observation: Observation, root: str = "") -> str:
    """Return an Observation as an HTML card; paths below ``root`` are relative to it."""
    if isinstance(observation, CmdOutputObservation):
        return _command_html(observation)
    if isinstance(observation, FileEditObservation):
        return _edit_html(observation, root)
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
        state: html.Tone = "info" if observation.outcome == "done" else "error"
        return html.card(
            html.heading(shown_path(observation.path, root), tooltip=observation.path),
            html.output_block(observation.content, state),
            tone=state,
        )
    title = observation.message or observation.content or observation.kind
    return html.card(html.heading(title), tone="ok")


def _command_html(observation: CmdOutputObservation) -> str:
    code = observation.exit_code
    tone: html.Tone = "ok" if code == 0 else "info" if code == -1 else "error"
    word = {0: "", -1: "running"}.get(code, f"exit {code}")
    remarks = _remarks(observation)
    badges = [html.badge(word, tone)] if word else []
    badges += [html.badge(each.strip("[]"), "info") for each in sandbox_mark(observation)]
    return html.card(
        html.heading(f"$ {observation.command}", *badges),
        html.output_block(observation.content),
        html.output_block(remarks) if remarks else "",
        tone=tone,
    )


def _edit_html(observation: FileEditObservation, root: str) -> str:
    failed = observation.outcome != "done"
    tone: html.Tone = "error" if failed else "dry-run" if observation.dry_run else "ok"
    if failed or not observation.diff:
        return html.card(html.output_block(observation.content, tone), tone=tone)
    header = f"--- {observation.path}\n+++ {observation.path}\n"  # the heading names it, too
    diff = _diff_for_people(observation).removeprefix(header)
    badges = [html.badge("dry run: nothing was written", tone)] if observation.dry_run else []
    return html.card(
        html.heading(shown_path(observation.path, root), *badges, tooltip=observation.path),
        html.diff_block(with_relative_paths(diff, root)),
        html.output_block("\n".join(observation.notes)),
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


def picture_in_cell(png: bytes, width_px: int, alt: str) -> Image:
    """Return a picture with the mark by which JupyterLab's extension recognizes it."""
    metadata = {"oh_jupyter": "picture"}
    return Image(png, format="png", width=width_px, alt=alt, metadata=metadata)
