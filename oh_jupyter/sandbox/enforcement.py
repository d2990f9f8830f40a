"""The parts of the machine's kernel that enforce a box here."""

from __future__ import annotations

import os
import sys

from oh_jupyter.sandbox.process_limit import own_cgroup
from oh_jupyter.sandbox.seccomp import seccomp_filter


def enforced_by(*, is_superuser: bool) -> str:
    """Return what enforces the limits of a box, and what is missing, as one line.

    Args:
        is_superuser: Whether the processes of the box are the superuser's.
    """
    if sys.platform != "linux":
        return "a profile of the system's sandbox"
    parts = [
        "namespaces (files, processes, network, IPC)",
        "no capabilities",
        "a filter of system calls" if seccomp_filter() else "no filter of system calls here",
    ]
    if not is_superuser:
        parts.append("a resource limit of processes")
    elif os.access(own_cgroup() or "", os.W_OK):
        parts.append("a cgroup's limit of processes")
    else:
        parts.append("no limit of processes, since the superuser cannot make a cgroup here")
    return ", ".join(parts)
