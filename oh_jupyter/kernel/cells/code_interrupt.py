"""An interrupt for the code of one cell, and for nothing before and after it.

Before the code run our own preparations, which a KeyboardInterrupt would leave half done, and the
callbacks of IPython's events, which catch it: the cell would run on. Afterwards, ipykernel would
send no reply.
"""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from oh_jupyter.kernel.cells.main_thread import interrupt_main_thread

_INTERRUPTED = "raise KeyboardInterrupt"


class CodeInterrupt:
    """Interrupts the code of a cell on the main thread, or keeps it from beginning."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_running = self._is_requested = False

    def request(self) -> None:
        """Interrupt the code now, or as soon as it begins; do nothing after its end."""
        with self._lock:
            self._is_requested = True
            if self._is_running:
                interrupt_main_thread()

    @contextmanager
    def applied(self, shell: Any) -> Iterator[None]:
        """Apply requests to the next cell of a shell."""
        outer = shell.__dict__.get("run_ast_nodes")
        run_nodes = shell.run_ast_nodes

        async def run(nodes: list[ast.stmt], *args: Any, **options: Any) -> Any:
            is_nested = self._is_running
            if is_nested or threading.current_thread() is not threading.main_thread():
                return await run_nodes(nodes, *args, **options)
            if self._begin():
                nodes = ast.parse(_INTERRUPTED).body
            try:
                return await run_nodes(nodes, *args, **options)
            finally:
                self._end()

        shell.run_ast_nodes = run
        try:
            yield
        finally:
            if outer is None:
                shell.__dict__.pop("run_ast_nodes", None)
            else:
                shell.run_ast_nodes = outer

    def _begin(self) -> bool:
        """Note that the code runs; return whether it must not."""
        with self._lock:
            self._is_running = not self._is_requested
            return self._is_requested

    def _end(self) -> None:
        """Note the end of the code, and wait for a signal on its way."""
        with self._lock:
            self._is_running = False
            is_requested = self._is_requested
        if is_requested:
            with suppress(KeyboardInterrupt):
                time.sleep(0)  # a system call, after which a sent signal has arrived
