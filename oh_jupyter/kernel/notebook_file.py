"""The notebook of this kernel, and whether its cells come from VS Code.

VS Code's sessions on a Jupyter server have made-up paths, and its own kernels have no session. It
names the notebook in a variable, and each cell in the metadata of its request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

VSCODE_VARIABLE = "__vsc_ipynb_file__"
"""Variable with the path of the notebook on the machine of VS Code."""

VSCODE_CELL = "vscode-notebook-cell:"
"""Start of the ids of VS Code's cells, which are URIs."""


def notebook_file(variables: Mapping[str, Any], directory: str = "") -> str:
    """Return the absolute path of the notebook of a kernel with these variables, or "".

    A path of VS Code can be one on another machine. A relative path is one in the directory.
    """
    names = (variables.get(VSCODE_VARIABLE), os.environ.get("JPY_SESSION_NAME"))
    file = next((name for name in names if isinstance(name, str) and name), "")
    return os.path.abspath(os.path.join(directory, file)) if file else ""


def is_from_vscode(request: Mapping[str, Any]) -> bool:
    """Return whether VS Code sent a request, such as the one of the running cell."""
    cell_id = request.get("metadata", {}).get("cellId")
    return isinstance(cell_id, str) and cell_id.startswith(VSCODE_CELL)
