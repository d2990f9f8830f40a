"""The environments of stateful tasks: MCP servers that work in the task's folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oh_jupyter.errors import EvaluationError
from oh_jupyter.installed import find_program, python_command, python_script

if TYPE_CHECKING:
    from oh_jupyter.runtime.mcp import McpServer

PLAIN_SERVER = "jupyter-mcp-server"
TOKEN = "evaluation"


@dataclass(frozen=True)
class Environment:
    """An environment that runs.

    Attributes:
        name: Its name.
        server: The MCP server with its tools.
        hint: Description of the tools, before the agent's first prompt.
    """

    name: str
    server: McpServer
    hint: str


@contextmanager
def open_environment(name: str, workspace: Path, folder: Path) -> Iterator[Environment]:
    """Start an environment whose tools work in a workspace; its other files are in a folder."""
    with ENVIRONMENTS[name](workspace, folder) as environment:
        yield environment


@contextmanager
def _bash(workspace: Path, folder: Path) -> Iterator[Environment]:
    from oh_jupyter.runtime.mcp import McpServer

    python, *arguments = python_command(
        "oh_jupyter.evaluation.stateful.bash_server", str(workspace)
    )
    hint = "The tool bash runs a command in a new shell, in the folder of the files."
    yield Environment("bash", McpServer("bash", python, tuple(arguments), _search_path()), hint)


@contextmanager
def _jupyter(workspace: Path, folder: Path) -> Iterator[Environment]:
    from oh_jupyter.runtime.mcp import McpServer

    program = find_program(PLAIN_SERVER)
    if program is None:
        raise EvaluationError(
            f"The tasks stateful/jupyter/* need the program {PLAIN_SERVER} on the PATH: pipx "
            f"install {PLAIN_SERVER} (with pip, it changes the JupyterLab beside it)"
        )
    with _jupyter_server(workspace, folder, has_extension=False) as url:
        arguments = (
            "start", "--transport", "stdio", "--code-sandbox-url", url, "--document-url", url,
        )  # fmt: skip
        tokens = {"CODE_SANDBOX_TOKEN": TOKEN, "DOCUMENT_TOKEN": TOKEN}
        hint = "The tool execute_code runs a cell in the notebook's kernel, which keeps variables."
        yield Environment("jupyter", McpServer("jupyter", program, arguments, tokens), hint)


@contextmanager
def _oh_jupyter(workspace: Path, folder: Path) -> Iterator[Environment]:
    from oh_jupyter.runtime.mcp import McpServer

    with _jupyter_server(workspace, folder, has_extension=True) as url:
        python, *arguments = python_script(
            "from oh_jupyter.cli import main; raise SystemExit(main())", "mcp"
        )
        variables = _search_path() | {"OH_URL": url, "OH_TOKEN": TOKEN}
        hint = (
            "The tool run_ipython runs a cell in the notebook's kernel, which keeps variables. "
            "The tool changes, with command checkpoint, begins a turn before a step that you may "
            "have to undo; with command rewind and the turn's id, it restores variables and files."
        )
        server = McpServer("oh_jupyter", python, tuple(arguments), variables)
        yield Environment("oh_jupyter", server, hint)


ENVIRONMENTS: dict[str, Callable[[Path, Path], AbstractContextManager[Environment]]] = {
    "bash": _bash,
    "jupyter": _jupyter,
    "oh_jupyter": _oh_jupyter,
}


def _search_path() -> dict[str, str]:
    """Return variables with which ``python`` and this package are found."""
    root = str(Path(__file__).resolve().parents[3])
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }


@contextmanager
def _jupyter_server(workspace: Path, folder: Path, *, has_extension: bool) -> Iterator[str]:
    """Run a Jupyter server with its root in the workspace, and yield its address."""
    from oh_jupyter.client.started_server import StartedServer

    variables = {"FILE_STORE_PATH": str(folder / "store"), "OH_JUPYTER_CONFIRMATION": "never"}
    server = StartedServer(
        str(workspace),
        TOKEN,
        has_extension=has_extension,
        environment=_search_path() | variables,
    )
    try:
        yield server.url
    finally:
        server.close()
