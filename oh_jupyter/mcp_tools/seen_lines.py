"""Lines about the kernel, which a conversation is shown when they change."""

from __future__ import annotations

import re

from oh_jupyter.mcp_tools.results import Result

MAX_SESSIONS = 1000
"""Sessions whose lines are kept."""

_LINE = re.compile(
    r"\n?\[(?P<name>(?:Jupyter c|C)urrent working directory|(?:Jupyter )?Python interpreter): "
    r"(?P<value>.*)\]$",
    re.MULTILINE,
)


class SeenLines:
    """Directories and interpreters that the last results of one conversation named."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def without(self, result: Result) -> Result:
        """Return a result without the lines that the conversation knows."""

        def new_lines(match: re.Match[str]) -> str:
            name, value = match["name"], match["value"]
            is_known = self._values.get(name) == value
            self._values[name] = value
            return "" if is_known else match[0]

        blocks = [
            {**block, "text": _LINE.sub(new_lines, block["text"])}
            if block["type"] == "text"
            else block
            for block in result["content"]
        ]
        return {**result, "content": blocks}


class SeenBySession:
    """The lines that each of the latest sessions has seen."""

    def __init__(self) -> None:
        self._sessions: dict[str, SeenLines] = {}

    def without(self, result: Result, session: str) -> Result:
        """Return a result without the lines that a session knows; all of it if that is unknown."""
        if not session:
            return result
        seen = self._sessions[session] = self._sessions.pop(session, SeenLines())
        if len(self._sessions) > MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return seen.without(result)
