"""The whole description, as an object and as text."""

from __future__ import annotations

from typing import Any

import yaml

from oh_jupyter.schema import Schema
from oh_jupyter.server.handlers.openapi.components import (
    TAGS,
    responses,
    security_schemes,
    shared_schemas,
)
from oh_jupyter.server.handlers.openapi.events import event_schemas
from oh_jupyter.server.handlers.openapi.operations import body_types, paths, reply_types
from oh_jupyter.server.handlers.openapi.schemas import component_schemas
from oh_jupyter.server.handlers.routes import RouteTable

_DESCRIPTION = """\
A client posts Actions to `execute_action` and gets Observations: the action-execution
protocol of OpenHands, on the kernels of a Jupyter server. Addresses directly below
`/oh_jupyter` belong to the default kernel, which the first request starts; the same addresses
below `/oh_jupyter/kernels/{kernel_id}` belong to any kernel of the server, such as that of an
open notebook.

Users of the Jupyter server may use these addresses if its authorizer allows
it: `read` and `execute` on `oh_jupyter:actions`, `read` on `oh_jupyter:events`, `read` and
`write` on `oh_jupyter:store`, `execute` on `oh_jupyter:confirmations`, and for
`/kernels/{kernel_id}` also `execute` on `kernels`.
"""

Tables = tuple[RouteTable, ...]


def document(server_tables: Tables, kernel_tables: Tables) -> dict[str, Any]:
    """Return the description of the endpoints of the server, and of those of each kernel."""
    credentials = security_schemes()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "oh_jupyter",
            "version": "1",
            "summary": "Jupyter kernels as runtimes of coding agents.",
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [
            {
                "url": "..",
                "description": "The base address of the Jupyter server that serves this file.",
            }
        ],
        "security": [{name: []} for name in credentials],
        "tags": [{"name": name, "description": tag.description} for name, tag in TAGS.items()],
        "paths": paths(server_tables, kernel_tables),
        "components": {
            "securitySchemes": credentials,
            "responses": responses(),
            "schemas": _schemas((*server_tables, *kernel_tables)),
        },
    }


def _schemas(tables: Tables) -> dict[str, Schema]:
    return {
        **shared_schemas(),
        **component_schemas(body_types(tables), complete=False),
        **component_schemas(reply_types(tables), complete=True),
        **event_schemas(),
    }


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes equal parts in full, lists of simple values and long texts for people."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_sequence(self, tag: str, sequence: Any, flow_style: Any = None) -> Any:
        is_simple = not any(isinstance(item, dict | list) for item in sequence)
        return super().represent_sequence(tag, sequence, is_simple)

    def represent_scalar(self, tag: str, value: Any, style: Any = None) -> Any:
        return super().represent_scalar(tag, value, "|" if "\n" in str(value) else style)


def as_yaml(described: dict[str, Any]) -> bytes:
    """Return a description as text."""
    dumped: str = yaml.dump(
        described, Dumper=_Dumper, sort_keys=False, width=92, allow_unicode=True
    )
    return dumped.encode()
