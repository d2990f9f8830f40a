"""Limit of the number of a box's processes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

CGROUP_PREFIX = "oh_jupyter_"


class ProcessLimit:
    """Limits the processes and threads of one box.

    A resource limit counts those in the box's user namespace, before Linux 5.14 all of the user.
    Linux exempts the superuser from it, so there a cgroup limits them, where one can be made.
    """

    def __init__(self, limit: int, *, is_superuser: bool) -> None:
        """Take the maximum number, and whether the processes are the superuser's."""
        self._limit = limit
        self._needs_cgroup = is_superuser
        self._cgroup: Path | None = None

    def apply(self, pid: int) -> None:
        """Limit a process and its descendants.

        A child that starts meanwhile inherits the limit, or is found after its parent has it.
        """
        if self._needs_cgroup and self._cgroup is None:
            self._cgroup = _make_cgroup(self._limit)
            self._needs_cgroup = self._cgroup is not None
        self._apply(pid)

    def _apply(self, pid: int) -> None:
        import resource

        with contextlib.suppress(OSError):  # another user's process, without the capability
            _, hard = resource.prlimit(pid, resource.RLIMIT_NPROC)
            limit = self._limit if hard == resource.RLIM_INFINITY else min(self._limit, hard)
            resource.prlimit(pid, resource.RLIMIT_NPROC, (limit, limit))
        if self._cgroup is not None:
            with contextlib.suppress(OSError):  # it has ended
                (self._cgroup / "cgroup.procs").write_text(str(pid))
        for child in _children(pid):
            self._apply(child)

    def close(self) -> None:
        """Remove the cgroup, whose processes have ended."""
        if self._cgroup is not None:
            with contextlib.suppress(OSError):
                self._cgroup.rmdir()
            self._cgroup = None


def _children(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in children.split()]


def _make_cgroup(limit: int) -> Path | None:
    """Make a cgroup below that of this process, or return None where that is impossible."""
    parent = own_cgroup()
    if parent is None:
        return None
    for abandoned in parent.glob(f"{CGROUP_PREFIX}*"):  # by a kernel that was killed
        with contextlib.suppress(OSError):
            if not os.path.exists(f"/proc/{abandoned.name.split('_')[2]}"):
                abandoned.rmdir()
    try:
        controllers = parent / "cgroup.subtree_control"
        if controllers.exists() and "pids" not in controllers.read_text().split():
            controllers.write_text("+pids")
        cgroup = Path(tempfile.mkdtemp(prefix=f"{CGROUP_PREFIX}{os.getpid()}_", dir=parent))
    except OSError:
        return None
    try:
        (cgroup / "pids.max").write_text(str(limit))
    except OSError:
        cgroup.rmdir()
        return None
    return cgroup


def own_cgroup(
    mounts: Path = Path("/proc/self/mountinfo"), cgroups: Path = Path("/proc/self/cgroup")
) -> Path | None:
    """Return the directory of this process' cgroup in the hierarchy that counts processes.

    Args:
        mounts: Mounts, in the format of /proc/self/mountinfo.
        cgroups: Memberships, in the format of /proc/self/cgroup.
    """
    try:
        paths = dict(_memberships(cgroups.read_text()))
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields, _, source = line.partition(" - ")
        root, target = fields.split()[3:5]
        kind, _, options = source.split(maxsplit=2)
        if kind == "cgroup" and "pids" in options.split(","):
            path = paths.get("pids")
        elif kind == "cgroup2" and "pids" not in paths:
            path = paths.get("")
        else:
            continue
        if path is not None and (path + "/").startswith(root.rstrip("/") + "/"):
            return Path(target) / os.path.relpath(path, root)
    return None


def _memberships(text: str) -> list[tuple[str, str]]:
    """Return controllers and paths of cgroups; the unified hierarchy has no controller's name."""
    return [
        (controller, path)
        for line in text.splitlines()
        for _, controllers, path in [line.split(":", 2)]
        for controller in controllers.split(",")
    ]
