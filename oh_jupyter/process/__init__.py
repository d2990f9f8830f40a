"""Child processes that cannot outlive this one.

Each has its own session, since the user's Interrupt goes to the kernel's process group and must not
reach it, and default signal handlers, since an idle kernel ignores SIGINT and children inherit
that.
"""

import sys

from oh_jupyter.process.child import PIPE, Child

if sys.platform == "win32":
    from oh_jupyter.process.windows import guardian_pids, spawn
else:
    from oh_jupyter.process.posix import guardian_pids, spawn

__all__ = ["PIPE", "Child", "guardian_pids", "spawn"]
