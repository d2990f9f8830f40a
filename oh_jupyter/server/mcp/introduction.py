"""Which kernel the tools of the server's own address use, said once in each session."""

from __future__ import annotations

from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.results import Result, text
from oh_jupyter.mcp_tools.toolbox import Caller

MAX_SESSIONS = 1000
"""Sessions that are remembered."""
MAX_NAMED_NOTEBOOKS = 5
IN_KERNEL = ("run", "run_ipython", "variables")
"""Tools whose results get the note; others return JSON, or say themselves where they worked."""


class Introduction:
    """The note that the open notebooks have other kernels than the address."""

    def __init__(self, notebooks: Notebooks) -> None:
        self._notebooks = notebooks
        self._sessions: dict[str, None] = {}

    async def added(self, result: Result, tool: str, caller: Caller, session: str) -> Result:
        """Return the result of a tool with the note, if its session has not seen it."""
        key = session or caller.principal
        if tool not in IN_KERNEL or key in self._sessions:
            return result
        if not await caller.allowed("read", "sessions"):
            return result
        paths = [
            notebook.path
            for notebook in await self._notebooks.open_ones()
            if caller.only_notebook in ("", notebook.path)
        ]
        if not paths:
            return result
        self._sessions[key] = None
        if len(self._sessions) > MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return {**result, "content": [*result["content"], text(_note(paths))]}


def _note(paths: list[str]) -> str:
    named = ", ".join(repr(path) for path in paths[:MAX_NAMED_NOTEBOOKS])
    more = ", ..." if len(paths) > MAX_NAMED_NOTEBOOKS else ""
    return (
        "\n[All tools of this address work in one kernel, the server's default one. The open "
        f"notebooks ({named}{more}) have their own: run_cell runs their cells there, and kernel "
        f"and variables look there with notebook={paths[0]!r}.]"
    )
