"""Command line of bubblewrap for a box, and its filter of system calls."""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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


REFUSED = ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd")
"""System calls that fail with EPERM: keyrings, programs in the kernel, its events and faults."""

MISSING = ("io_uring_setup", "io_uring_enter", "io_uring_register")
"""System calls that fail with ENOSYS, for which programs have other ways."""


@dataclass(frozen=True)
class Architecture:
    """Numbers of an architecture: its name for audits, and those of its system calls."""

    audit: int
    calls: dict[str, int]


_IO_URING = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427}

ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        _IO_URING
        | {"add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298}
        | {"userfaultfd": 323, "socket": 41},
    ),
    "aarch64": Architecture(
        0xC00000B7,
        _IO_URING
        | {"add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241}
        | {"userfaultfd": 282, "socket": 198},
    ),
}

X32_CALLS = 0x40000000
"""Numbers from which the calls of x86_64 with short pointers begin."""

REFUSED_FAMILIES = (17, 40)
"""AF_PACKET and AF_VSOCK."""
NETLINK, NETLINK_ROUTE = 16, 0

# Offsets in struct seccomp_data; the processors of both architectures are little-endian.
_CALL, _AUDIT, _FAMILY, _PROTOCOL = 0, 4, 16, 32

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """Return the filter for a machine, by default this one; None where there is none.

    Args:
        machine: Name of the architecture, as of ``platform.machine()``.
    """
    known = ARCHITECTURES.get(platform.machine() if machine is None else machine)
    if known is None or sys.platform != "linux":
        return None
    program = [
        _load(_AUDIT),
        *_unless_equal(known.audit, _fail(errno.ENOSYS)),
        _load(_CALL),
        *_if(_AT_LEAST, X32_CALLS, _fail(errno.ENOSYS)),
    ]
    for name in MISSING:
        program += _if(_EQUAL, known.calls[name], _fail(errno.ENOSYS))
    for name in REFUSED:
        program += _if(_EQUAL, known.calls[name], _fail(errno.EPERM))
    program += _unless_equal(known.calls["socket"], _return(_ALLOW))
    program.append(_load(_FAMILY))
    for family in REFUSED_FAMILIES:
        program += _if(_EQUAL, family, _fail(errno.EAFNOSUPPORT))
    program += _unless_equal(NETLINK, _return(_ALLOW))
    program += [_load(_PROTOCOL), *_unless_equal(NETLINK_ROUTE, _fail(errno.EPROTONOSUPPORT))]
    return b"".join([*program, _return(_ALLOW)])


def _statement(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _load(offset: int) -> bytes:
    return _statement(_LOAD, offset)


def _return(value: int) -> bytes:
    return _statement(_RETURN, value)


def _fail(error: int) -> bytes:
    return _return(_ERROR | error)


def _if(test: int, value: int, then: bytes) -> list[bytes]:
    return [_statement(test, value, 0, 1), then]


def _unless_equal(value: int, then: bytes) -> list[bytes]:
    return [_statement(_EQUAL, value, 1, 0), then]
