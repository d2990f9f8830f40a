"""Children that cannot outlive us, in sessions of their own, with default signal dispositions.

The person's Interrupt goes to the kernel's process group and must not reach them, and an idle
kernel ignores SIGINT, which is inherited.
"""

import sys

from oh_jupyter.process.child import PIPE, Child

if sys.platform == "win32":
    from oh_jupyter.process.windows import spawn
else:
    from oh_jupyter.process.posix import spawn

__all__ = ["PIPE", "Child", "spawn"]
