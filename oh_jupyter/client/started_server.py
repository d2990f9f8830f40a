"""A Jupyter server as a child of this process, for a fleet's worker or an evaluation."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from oh_jupyter.background import start_thread, threads_have_ended
from oh_jupyter.errors import ServerError
from oh_jupyter.installed import python_command
from oh_jupyter.process import PIPE, spawn

_ADDRESS = re.compile(r"(http://[^\s/]+:\d+)/\S*")
_ANNOUNCEMENT = "is running at"
_LAST_LINES = 5


class StartedServer:
    """A server that has started; it cannot outlive this process.

    Attributes:
        url: Its address.
    """

    def __init__(
        self,
        root: str | None,
        token: str,
        *,
        host: str = "127.0.0.1",
        has_extension: bool = True,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it with a root, None for a temporary one; raise ServerError on failure."""
        folder = Path(tempfile.mkdtemp(prefix="oh_jupyter-server-"))
        root = root or str(folder / "root")
        os.makedirs(root, exist_ok=True)
        extensions = "{'oh_jupyter': True}" if has_extension else "{}"
        variables = {
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_RUNTIME_DIR": str(folder / "run"),
            "JUPYTER_NO_CONFIG": "1",  # other installed extensions are slow to load
            "JUPYTER_TOKEN": token,
        }
        self._child = spawn(
            [
                *python_command("jupyter_server", "--no-browser", "--allow-root"),
                *("--ServerApp.port=0", f"--ServerApp.ip={host}", f"--ServerApp.root_dir={root}"),
                *(f"--ServerApp.jpserver_extensions={extensions}", *options),
            ],
            cwd=root,
            env={**os.environ, **variables, **(environment or {})},
            stderr=PIPE,
            remove_when_orphaned=folder,
        )
        assert self._child.stderr is not None
        self.url, log = _address(self._child.stderr)
        self._tidying = start_thread(self._tidy_up, "oh-started-server", self._child.stderr, folder)
        if not self.url:
            self.close()
            raise ServerError(f"A Jupyter server did not start: {log}")

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def close(self) -> None:
        """End the server and its kernels, and remove its files."""
        self._child.terminate()
        if not threads_have_ended():
            self._tidying.join()

    def _tidy_up(self, log: IO[bytes], folder: Path) -> None:
        """Empty the pipe of the log until the server ends, and remove its files then."""
        with log:
            for _ in log:
                pass
        self._child.terminate()
        shutil.rmtree(folder, ignore_errors=True)


def _address(log: IO[bytes]) -> tuple[str, str]:
    """Return the address that a starting server logs, "" if it ends, and its last lines."""
    lines: list[str] = []
    for line in log:
        lines.append(line.decode("utf-8", "replace"))
        if any(_ANNOUNCEMENT in each for each in lines) and (match := _ADDRESS.search(lines[-1])):
            return match[1], ""
    return "", "".join(lines[-_LAST_LINES:])
