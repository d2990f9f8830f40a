"""Interrupting the main thread, and it alone."""

from __future__ import annotations

import signal
import sys
import threading

__all__ = ["interrupt_main_thread"]


def interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread.

    The signal goes to that thread and not to the process group, so that the shell, the
    browser and other children never see it.
    """
    ident = threading.main_thread().ident
    if sys.platform == "win32" or ident is None:
        import _thread

        _thread.interrupt_main()
    else:
        signal.pthread_kill(ident, signal.SIGINT)
