"""Tools of MCP Apps: two that show the person something, and those that the apps call.

An app is a page that a client shows its person in a sandboxed frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from oh_jupyter.errors import ResourceNotFoundError
from oh_jupyter.mcp_sdk.offered import APP_TYPE
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.kernel_tools import notebook_and_kernel
from oh_jupyter.mcp_tools.notebook_calls import NOTEBOOK
from oh_jupyter.mcp_tools.notebooks import Notebooks
from oh_jupyter.mcp_tools.results import Result, failure, result, text
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool, schema
from oh_jupyter.operations import to_json
from oh_jupyter.operations.browser import WatchBrowser
from oh_jupyter.operations.kernel import TablePage, TableRows

APPS = "ui://oh_jupyter/"
APPROVAL, TABLE, PAGE = (f"{APPS}{name}" for name in ("approval", "table", "page"))

_FOLDER = Path(__file__).with_name("apps")


@cache
def apps_are_built() -> bool:
    """Return whether this installation has the pages."""
    return all(_file(uri).is_file() for uri in (APPROVAL, TABLE, PAGE))


def app_contents(uri: str) -> dict[str, Any]:
    """Return a page as contents of a resource; its frame may load nothing from the network.

    Raises:
        ResourceNotFoundError: There is no such page.
    """
    if uri not in (APPROVAL, TABLE, PAGE):
        raise ResourceNotFoundError(f"There is no app {uri}. Apps: {APPROVAL}, {TABLE}, {PAGE}")
    if not apps_are_built():
        raise ResourceNotFoundError(
            "This installation has no MCP Apps, because its JupyterLab extension was not built. "
            "Install a released wheel, or run jlpm build in labextension"
        )
    page = _file(uri).read_text(encoding="utf-8")
    meta = {"ui": {"prefersBorder": uri != APPROVAL}}
    return {"uri": uri, "mimeType": APP_TYPE, "text": page, "_meta": meta}


def _file(uri: str) -> Path:
    return _FOLDER / f"{uri.removeprefix(APPS)}.html"


ONLY_APPS = {"visibility": ["app"]}
"""Metadata of a tool that hosts call for their apps, and do not show to models."""

LOOK_SECONDS = 20.0
"""Longest wait of a call for news; hosts stop calls after a minute."""

_READS = {"readOnlyHint": True}
_COUNT = {"type": "integer", "minimum": 0}


def app_tools(notebooks: Notebooks, kernel: Kernel) -> list[McpTool]:
    """Return the tools that are listed to clients that show MCP Apps."""
    tools = AppTools(notebooks, kernel)
    name = {"type": "string", "description": "The variable."}
    return [
        McpTool(
            "show_table",
            "Show the person a data frame in this conversation, to sort, filter and page. You get "
            "only its size.",
            schema("name", name=name, notebook=NOTEBOOK),
            tools.show_table,
            _READS,
            listed=False,
            scope="read",
            ui={"resourceUri": TABLE},
        ),
        McpTool(
            "table_rows",
            "Rows of a data frame, for the table that show_table shows.",
            schema(
                "name",
                name=name,
                notebook=NOTEBOOK,
                start=_COUNT,
                count={**_COUNT, "maximum": 200},
                sort={**_COUNT, "description": "Position of the column to sort by."},
                descending={"type": "boolean"},
                filter={"type": "string", "description": "Text that a row must contain."},
            ),
            tools.table_rows,
            _READS,
            rest="",
            listed=False,
            scope="read",
            ui=ONLY_APPS,
        ),
        McpTool(
            "show_page",
            "Show the person the page of the shared browser in this conversation; the picture "
            "follows the page.",
            schema(),
            tools.show_page,
            _READS,
            listed=False,
            scope="read",
            ui={"resourceUri": PAGE},
        ),
        McpTool(
            "page_picture",
            "Picture of the page, for the view that show_page shows; waits until it is another "
            "than the known one.",
            schema(known={"type": "integer", "description": "Number of the known picture."}),
            tools.page_picture,
            _READS,
            listed=False,
            scope="read",
            ui=ONLY_APPS,
        ),
    ]


@dataclass(frozen=True)
class AppTools:
    """Data for the apps, from an agent's kernel or that of an open notebook."""

    _notebooks: Notebooks
    _kernel: Kernel

    async def show_table(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Check that a variable is a table, and describe it for the model."""
        page = await self._rows({**arguments, "count": 0})
        columns = len(page.columns) + page.omitted_columns
        size = f"{page.total:,} rows and {columns} columns"
        return result(text(f"The person sees {arguments['name']}: {page.kind}, {size}."))

    async def table_rows(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Return rows of a table, which no model sees."""
        page = await self._rows(arguments)
        return {**result(text(f"{len(page.rows)} rows")), "structuredContent": to_json(page)}

    async def _rows(self, arguments: dict[str, Any]) -> TablePage:
        _, kernel = await notebook_and_kernel(
            self._notebooks, self._kernel, arguments.get("notebook")
        )
        wanted = {name: value for name, value in arguments.items() if name != "notebook"}
        return await kernel.ask(TableRows(**wanted))

    async def show_page(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Name the page that the app shows."""
        view = await self._kernel.ask(WatchBrowser())
        if view.refused:
            return failure(view.refused)
        if view.number < 0:
            return failure("No page is open. Open one with browse, then call show_page again.")
        return result(text(f"The person sees {view.url}."))

    async def page_picture(self, arguments: dict[str, Any], caller: Caller) -> Result:
        """Wait for a picture other than the known one."""
        watch = WatchBrowser(known=arguments.get("known", -1), wait=LOOK_SECONDS)
        view = await self._kernel.ask(watch)
        picture = None
        if view.picture:
            picture = {"type": "image", "mimeType": "image/jpeg", "data": view.picture}
        state = {"number": view.number, "url": view.url}
        return {**result(text(view.url), picture), "structuredContent": state}
