"""MCP Apps: pages that a client shows its person in a sandboxed frame.

``labextension`` builds them from its own components. An installation without the JupyterLab
extension has none of them, and then no client is offered any.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from oh_jupyter.errors import ResourceNotFoundError
from oh_jupyter.mcp_sdk.offered import APP_TYPE

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
