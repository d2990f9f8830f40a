"""Filter of system calls for a box: parts of Linux that programs do not need, and attacks do.

The filter is a program of the classic Berkeley Packet Filter, see seccomp(2) and
linux/filter.h. bubblewrap loads it from a file descriptor.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from dataclasses import dataclass

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
