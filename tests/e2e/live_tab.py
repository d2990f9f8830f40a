"""An open document in JupyterLab, the person before it and the agent beside it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from playwright.sync_api import Page, expect

__all__ = ["DIRTY", "SOURCES", "Tab", "expect_no_dialog"]

SOURCES = "jupyterapp.shell.currentWidget.model.sharedModel.cells.map(cell => cell.getSource())"
DIRTY = "jupyterapp.shell.currentWidget.context.model.dirty"


class Tab:
    """An open notebook, and an agent beside it."""

    def __init__(self, lab: Any, page: Page, name: str) -> None:
        self.lab = lab
        self.page = page
        self.file = lab.root / name
        self.kernel = f"oh_jupyter/kernels/{lab.kernel_of(name)}"

    @property
    def sources(self) -> list[str]:
        return self.page.evaluate(SOURCES)

    @property
    def file_sources(self) -> list[str]:
        return ["".join(each["source"]) for each in json.loads(self.file.read_text())["cells"]]

    def expect(self, condition: str, value: Any) -> None:
        """Wait until an expression in the page has a value."""
        try:
            self.page.wait_for_function(
                f"wanted => JSON.stringify({condition}) === wanted",
                arg=json.dumps(value, separators=(",", ":")),
            )
        except Exception:
            print(json.dumps(self.page.evaluate(condition)), "is not", json.dumps(value))
            raise

    def observe(self, kind: str, **args: Any) -> dict[str, Any]:
        """Have the agent carry out an Action, over REST; the Observation."""
        options = {name: args.pop(name) for name in list(args) if name in OPTIONS}
        action = {"action": kind, "args": args, "oh_jupyter": options}
        observation = self.lab.request(f"{self.kernel}/execute_action", {"action": action})
        return dict(observation)

    def act(self, kind: str, **args: Any) -> str:
        """Have the agent carry out an Action; what it reads."""
        return str(self.observe(kind, **args)["content"])

    def edit(self, **args: Any) -> str:
        """Have the agent edit a cell of the notebook."""
        args = {"path": str(self.file), "command": "notebook_edit", **args}
        output = self.act("edit", **args)
        # The person may have changed that place since: the editor shows it, and takes a repetition.
        while output.startswith("ERROR") and "was changed by somebody else since" in output:
            output = self.act("edit", **args)
        assert not output.startswith("ERROR"), output
        return output

    def call(self, tool: str, **arguments: Any) -> str:
        """Have the agent call an MCP tool; what it reads."""
        result = self.result(tool, **arguments)
        assert not result.get("isError"), result
        return "".join(block.get("text", "") for block in result["content"])

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Have the agent call an MCP tool, which may refuse."""
        arguments = {"notebook": self.file.name, **arguments}
        return call_tool(self.lab, f"{self.kernel}/mcp", tool, arguments)

    def look(self) -> None:
        """Have the person come back to the window: somebody else has written to a file."""
        self.page.evaluate("window.dispatchEvent(new Event('focus'))")

    def save(self) -> None:
        self.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        self.expect(DIRTY, False)

    def type(self, index: int, text: str) -> None:
        """Have the person type at the end of a cell."""
        self.page.evaluate(
            """index => {
                const { content } = jupyterapp.shell.currentWidget;
                content.activeCellIndex = index;
                content.mode = 'edit';
                const { editor } = content.activeCell;
                editor.focus();
                const line = editor.lineCount - 1;
                editor.setCursorPosition({ line, column: editor.getLine(line).length });
            }""",
            index,
        )
        self.page.keyboard.type(text)

    def type_and_report(self, index: int, text: str) -> None:
        """Have the person type in a saved document, until the server knows that it has changed."""
        with self.page.expect_response(lambda response: "oh_jupyter/unsaved" in response.url):
            self.type(index, text)
        self.expect(DIRTY, True)


def call_tool(lab: Any, path: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool, asked for in one request of streamable HTTP."""
    params = {"name": tool, "arguments": arguments, "_meta": MCP_CLIENT}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    request = urllib.request.Request(
        f"{lab.url}/{path}",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": "token end-to-end",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            "MCP-Protocol-Version": "2026-07-28",
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    lines = [line[5:] for line in text.splitlines() if line.startswith("data:")] or [text]
    answers = [json.loads(line) for line in lines]
    results = [each["result"] for each in answers if "result" in each]
    assert results, answers
    return dict(results[0])


MCP_CLIENT = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "Claude", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OPTIONS = ("cell", "edit_mode", "cell_type", "to")


def expect_no_dialog(page: Page) -> None:
    expect(page.locator(".jp-Dialog")).to_have_count(0)
