"""How an Action goes on, told by what carries it out: it may have to queue, and puts out text."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["Progress", "progress"]


class Progress:
    """Is told how an Action goes on, from any thread. This one tells nobody."""

    def begin(self) -> None:
        """Note that it is its turn, where it had to queue for the shell or the kernel."""

    def put_out(self) -> None:
        """Note that there is new output."""


_NOBODY = Progress()

progress: ContextVar[Progress] = ContextVar("progress", default=_NOBODY)
"""Who is told about the Action of this context."""
