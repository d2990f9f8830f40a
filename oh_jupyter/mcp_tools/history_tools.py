"""The agent's turns, the changed files and the event log, as tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import Result, failure, result, text
from oh_jupyter.mcp_tools.toolbox import Caller, Command, McpTool, command_tool, schema
from oh_jupyter.operations import to_json
from oh_jupyter.operations.changes import (
    Change,
    Changes,
    Checkpoint,
    Decisions,
    OwnCheckpoint,
    OwnRewind,
    OwnTurns,
)
from oh_jupyter.operations.runtime import Events, Status
from oh_jupyter.text import plural

DEFAULT_EVENT_COUNT = 20  # events listed by default


def history_tools(kernel: Kernel) -> list[McpTool]:
    """Return the tools on what happened in a kernel's runtime."""
    history = History(kernel)
    return [
        McpTool(
            "status",
            "Status of the runtime in the kernel: working directory, running commands and cells, "
            "plugins, memory, number of events.",
            schema(),
            history.status,
            {"readOnlyHint": True},
            scope="read",
            listed=False,
        ),
        command_tool(
            "changes",
            "What you changed. turns: yours, not undone, with files, cells and variables. "
            "diff: of one file. decisions: what the person undid and kept. checkpoint: "
            "start a turn, to return here. preview, rewind: undo your turns since an id, by "
            "default the last.",
            {
                "turns": Command(history.turns, "read"),
                "files": Command(history.files, "read"),
                "diff": Command(history.diff, "read"),
                "decisions": Command(history.decisions, "read"),
                "checkpoint": Command(history.checkpoint),
                "preview": Command(history.preview, "read"),
                "rewind": Command(history.rewind),
            },
            default="turns",
            id={"type": "integer", "description": "First turn to undo."},
            path={"type": "string", "description": "For diff: the file."},
        ),
        McpTool(
            "events",
            "Event log: actions of the person and of agents with their results, oldest first; by "
            "default the most recent ones.",
            schema(
                start_id={"type": "integer", "minimum": 0, "description": "Id of the first event."},
                limit={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 500,
                    "default": DEFAULT_EVENT_COUNT,
                    "description": "Maximum number.",
                },
            ),
            history.events,
            {"readOnlyHint": True},
            "Ask for fewer at a time with start_id and limit.",
            scope="read",
            listed=False,
        ),
    ]


@dataclass(frozen=True)
class History:
    """The turns, changes and events of one kernel's runtime."""

    _kernel: Kernel

    async def status(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return the status of the runtime."""
        return result(text(json.dumps(to_json(await self._kernel.ask(Status())), indent=2)))

    async def events(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return events, one in each paragraph."""
        limit = arguments.get("limit", DEFAULT_EVENT_COUNT)
        start = arguments.get("start_id")
        if start is None:
            start = max(0, (await self._kernel.ask(Status())).events - limit)
        page = await self._kernel.ask(Events(start_id=start, limit=limit))
        lines = [_event_line(event) for event in page.events]
        return result(text("\n".join(lines or ["No events yet."])))

    async def turns(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List the agent's turns."""
        turns = [_turn_line(turn) for turn in await self._kernel.ask(OwnTurns())]
        return result(text("\n".join(turns or ["You have no turns that can be undone."])))

    async def checkpoint(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Start a new turn, to whose beginning the agent can return."""
        id = await self._kernel.ask(OwnCheckpoint("checkpoint"))
        return result(text(f"Turn {id} begins. rewind with this id returns here."))

    async def preview(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Describe what undoing turns would change."""
        return await self._undo("Undoing turn", arguments, preview=True)

    async def rewind(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Undo turns of the agent."""
        return await self._undo("Undid turn", arguments, preview=False)

    async def _undo(self, done: str, arguments: dict[str, Any], *, preview: bool) -> Result:
        rewound = await self._kernel.ask(OwnRewind(arguments.get("id"), preview))
        return result(text(f"{done} {rewound.id}:\n{rewound.text}"))

    async def files(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List the files that have changed in this session."""
        changes = await self._kernel.ask(Changes())
        lines = [
            f"{each.kind:9} {each.path} +{each.added} -{each.removed}"
            + (f" · runs when {each.runs_when}" if each.runs_when else "")
            for each in changes.files
        ]
        if changes.problem:
            lines.append(f"[Changes by commands are unknown: {changes.problem}]")
        return result(text("\n".join(lines or ["No file has changed in this session."])))

    async def decisions(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """List what the person undid and kept."""
        decisions = (await self._kernel.ask(Decisions())).decisions
        notes = [f"{note.text}\n{note.diff}".strip() for note in decisions]
        none = "The person has not reviewed any change of an agent in this session."
        return result(text("\n\n".join(notes or [none])))

    async def diff(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return the changes of a file in this session."""
        path = arguments.get("path")
        if path is None:
            return failure("changes: diff needs the path of a changed file.")
        files = (await self._kernel.ask(Changes())).files
        matches = [each.path for each in files if each.path.endswith(path)]
        if not matches:
            return failure(f"{path} has not changed in this session. files lists the changed ones.")
        change = await self._kernel.ask(Change(matches[0]))
        if change.cells:
            cells = [f"{cell.old_source}\n=>\n{cell.new_source}" for cell in change.cells]
            return result(text("\n\n".join(cells)))
        if change.reason is not None:
            return failure(f"{matches[0]}: there is no diff, since it is {change.reason}.")
        old, new = (each.splitlines() for each in (change.old or "", change.new or ""))
        lines = unified_diff(old, new, matches[0], matches[0], lineterm="")
        return result(text("\n".join(lines)))


def _turn_line(turn: Checkpoint) -> str:
    if turn.kind == "rewind":
        return f"{turn.id}: your rewind {turn.label[:100]}; rewind with this id redoes it"
    parts = [plural(len(turn.files), "file") if turn.files else ""]
    parts += [plural(turn.cells, "cell") if turn.cells else ""]
    parts += [f"variables {', '.join(turn.variables[:10])}" if turn.variables else ""]
    return f"{turn.id}: {turn.label[:100]} ({', '.join(filter(None, parts)) or 'no changes'})"


def _event_line(event: Mapping[str, Any]) -> str:
    kind = event.get("action") or event.get("observation")
    arrow = "->" if "observation" in event else ""
    content = str(event.get("content") or event.get("message") or "").strip()
    return f"[{event.get('id')}] {event.get('source')} {arrow}{kind}: {content[:500]}"
