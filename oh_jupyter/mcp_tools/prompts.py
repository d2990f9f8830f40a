"""Prompts of MCP, which a person chooses in the client, such as from its slash commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oh_jupyter.errors import ResourceNotFoundError
from oh_jupyter.mcp_tools.results import text
from oh_jupyter.mcp_tools.toolbox import Caller, Toolbox

_NOTEBOOK = {
    "name": "notebook",
    "description": "Path of the notebook or its end; by default that of the kernel.",
    "required": False,
}


@dataclass(frozen=True)
class Prompt:
    """A prompt, and the tool call whose result follows its text."""

    name: str
    title: str
    description: str
    text: str
    tool: str
    arguments: dict[str, Any]

    def to_wire(self) -> dict[str, Any]:
        """Return the ``Prompt`` of the MCP specification as JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": [_NOTEBOOK],
        }


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "explain_failing_cell",
            "Explain the failing cell",
            "Why the first failing cell of the notebook fails, and the smallest change that helps",
            "The cell below fails in the notebook that we share. Look at the variables that it "
            "uses. Explain in plain words why it fails, then propose the smallest change that "
            "fixes it. Change nothing before I agree.",
            "failing_cell",
            {},
        ),
        Prompt(
            "run_from_top_to_bottom",
            "Make this notebook run from top to bottom",
            "Run all cells in order in a fresh kernel, and fix those that fail",
            "Make the notebook below run from top to bottom. Ask me before you restart the "
            "kernel; then run its cells in order with run_cell. Stop at the first cell that "
            "fails, find the cause, fix it with the smallest edit, and continue from there. Do "
            "not delete my cells or my results. At the end, list what you changed and why.",
            "read_cells",
            {"outline": True},
        ),
    )
}
"""The prompts by name."""


async def messages_of(
    name: str, arguments: dict[str, str], toolbox: Toolbox, caller: Caller
) -> dict[str, Any]:
    """Return the messages of a prompt, as in MCP's ``GetPromptResult``.

    Raises:
        ResourceNotFoundError: There is no such prompt, or nothing that it could be about.
    """
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise ResourceNotFoundError(f"There is no prompt {name!r}. Prompts: {', '.join(PROMPTS)}")
    if unknown := set(arguments) - {"notebook"}:
        raise ResourceNotFoundError(f"{name} has no argument {min(unknown)!r}, only 'notebook'")
    shown = await toolbox.call(prompt.tool, {**prompt.arguments, **arguments}, caller)
    if shown["isError"]:
        raise ResourceNotFoundError(f"{name}: {shown['content'][0]['text']}")
    blocks = [text(prompt.text), *shown["content"]]
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": block} for block in blocks],
    }
