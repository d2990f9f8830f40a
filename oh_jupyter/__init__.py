"""A running Jupyter kernel as the place where people and coding agents work together.

``%load_ext oh_jupyter`` brings the magics and the object ``oh``; JupyterLab and the
Jupyter server find their extensions by the functions below. Importing the package
imports only the guard of later imports: each part is loaded where it is first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oh_jupyter import import_guard
from oh_jupyter._version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension"]

import_guard.install()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Load the magics, the ``oh`` object and the runtime; IPython calls it.

    Args:
        shell: The shell of a kernel, or of plain ``ipython``.

    Raises:
        OhJupyterError: A setting cannot be used.
    """
    from oh_jupyter.kernel.extension import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """End the runtime and take everything out again; IPython calls it.

    Args:
        shell: The shell.
    """
    from oh_jupyter.kernel.extension import unload

    unload(shell)


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from oh_jupyter.server.app import OhJupyter

    return [{"module": "oh_jupyter", "app": OhJupyter}]


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "oh-jupyter"}]
