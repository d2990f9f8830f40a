"""Command line of bubblewrap for a box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from oh_jupyter.sandbox.mounts import Mount
from oh_jupyter.sandbox.profile import Network

REPORT_DEVICE = "/dev/oh_report"
"""Path of a second terminal in the box; the first is /dev/console there."""
CONSOLE = "/dev/console"
RESOLVER_FILE = "/etc/resolv.conf"

OPTIONS = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--cap-drop", "ALL", "--die-with-parent",
)  # fmt: skip
"""Namespaces without privileges; also without the superuser's, which bubblewrap would keep.

There is no ``--new-session``: the shell needs its terminal, which is ours alone and not a person's.
"""


FILTER_DESCRIPTOR = "9"
OPEN_FILTER = ("/bin/sh", "-c", f'exec {FILTER_DESCRIPTOR}<"$0" "$@"')
"""Start of a command line; a file and a program follow, which gets the file opened."""

KERNEL_INTERFACES = (
    *("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi"),
    *("/proc/mtrr", "/proc/scsi"),
)
"""Files that act on the whole machine.

The superuser may write some of them without any capability, and bubblewrap leaves them writable,
because it tests only their directories.
"""


def bubblewrap_argv(
    program: str,
    mounts: Iterable[Mount],
    command: Sequence[str],
    *,
    cwd: str,
    temporary: str,
    empty_file: str = "/dev/null",
    network: Network = "none",
    devices: Mapping[str, str] | None = None,
    sockets: Iterable[tuple[str, str]] = (),
    nested_namespaces: bool = False,
    resolver: str | None = None,
    seccomp_file: str | None = None,
) -> list[str]:
    """Return the command line that runs a command in a box.

    Args:
        program: The bubblewrap to run.
        mounts: Result of ``resolve``.
        command: The command.
        cwd: Its directory, as the box sees it.
        temporary: The box's own temporary directory outside.
        empty_file: What the box sees in place of a hidden file.
        network: Its network; a proxy is reached by a socket.
        devices: Terminals outside, by their paths in the box.
        sockets: Unix sockets, folders with them, and files, outside and their paths in the box.
        nested_namespaces: Whether processes may make user namespaces of their own.
        resolver: The resolved /etc/resolv.conf, if it is needed.
        seccomp_file: The filter of system calls, if there is one.
    """
    argv = [program, *OPTIONS]
    if seccomp_file is not None:
        argv = [*OPEN_FILTER, seccomp_file, *argv, "--seccomp", FILTER_DESCRIPTOR]
    if network != "host":
        argv.append("--unshare-net")
    if not nested_namespaces:
        argv.append("--disable-userns")
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in KERNEL_INTERFACES:
        argv += ["--ro-bind-try", path, path]
    read_only_at_the_end = []
    for mount in mounts:
        if mount.kind == "writable":
            argv += ["--bind", mount.path, mount.path]
        elif mount.kind in ("read_only", "visible"):
            argv += ["--ro-bind", mount.path, mount.path]
        elif mount.kind == "private":
            argv += ["--bind", temporary, mount.path]
        elif mount.kind == "hidden_file":
            argv += ["--ro-bind", empty_file, mount.path]
        else:
            is_fixed = mount.kind in ("hidden_directory", "home")
            argv += ["--perms", "0755" if is_fixed else "1777", "--tmpfs", mount.path]
            if is_fixed:
                read_only_at_the_end.append(mount.path)
    if resolver is not None:
        argv += ["--ro-bind", resolver, resolver]
    for inside, outside in (devices or {}).items():
        argv += ["--dev-bind", outside, inside]
    for outside, inside in sockets:
        argv += ["--ro-bind", outside, inside]  # enough to connect
    for path in read_only_at_the_end:
        argv += ["--remount-ro", path]
    return [*argv, "--chdir", cwd, "--", *command]
