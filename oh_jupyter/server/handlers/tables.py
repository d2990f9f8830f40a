"""The tables of all endpoints, and ``openapi.yaml``, which describes them."""

from __future__ import annotations

from functools import cache
from typing import Any

from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import Answer, Contract
from oh_jupyter.server.handlers.e2b import routes as e2b
from oh_jupyter.server.handlers.events import routes as events
from oh_jupyter.server.handlers.execute_action import routes as execute_action
from oh_jupyter.server.handlers.execute_action import server_routes as results
from oh_jupyter.server.handlers.files import routes as files
from oh_jupyter.server.handlers.files import server_routes as views
from oh_jupyter.server.handlers.info import routes as info
from oh_jupyter.server.handlers.info import server_routes as notebooks
from oh_jupyter.server.handlers.mcp import routes as mcp
from oh_jupyter.server.handlers.routes import READ_ACTIONS, RouteTable
from oh_jupyter.server.handlers.runtime import routes as runtime
from oh_jupyter.server.handlers.store import routes as store

MEDIA_TYPE = "application/yaml"  # RFC 9512

server_routes = RouteTable()

SERVER_TABLES = (results, views, notebooks, server_routes)
KERNEL_TABLES = (execute_action, e2b, events, files, store, info, mcp, runtime)
"""Endpoints of one kernel: the default one, or an open notebook's."""

DESCRIPTION = Contract((Answer("OpenAPI 3.1.", contents={MEDIA_TYPE: {"type": "object"}}),))


@server_routes.add(r"GET /openapi\.yaml", READ_ACTIONS, "openapi", contract=DESCRIPTION)
async def openapi(handler: OhHandler) -> None:
    """Get this file."""
    handler.finish(_text(), set_content_type=MEDIA_TYPE)


@cache
def _text() -> bytes:
    # Few servers are asked for it, and none at their start.
    from oh_jupyter.server.handlers.openapi.document import as_yaml

    return as_yaml(described())


def described() -> dict[str, Any]:
    """Return the description of the REST interface as an object of OpenAPI."""
    from oh_jupyter.server.handlers.openapi.document import document

    return document(SERVER_TABLES, KERNEL_TABLES)
