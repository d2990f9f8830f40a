"""The filter of system calls: what it refuses, and that other programs work."""

from __future__ import annotations

import struct
import sys

import pytest

from oh_jupyter.events import CmdOutputObservation, CmdRunAction
from oh_jupyter.sandbox import find_engine
from oh_jupyter.sandbox.bubblewrap import ARCHITECTURES, seccomp_filter
from tests.sandbox.layout import Layout

needs_filter = pytest.mark.skipif(
    find_engine().program is None or sys.platform != "linux" or seccomp_filter() is None,
    reason="needs bubblewrap, user namespaces and a filter for this machine",
)

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({call}, 0, 0, 0, 0, 0, 0)
print(result, os.strerror(ctypes.get_errno()))
"""

SOCKETS = """
import socket
for family, kind, protocol in (
    (socket.AF_PACKET, socket.SOCK_DGRAM, 0), (40, socket.SOCK_STREAM, 0),
    (socket.AF_NETLINK, socket.SOCK_RAW, 16), (socket.AF_NETLINK, socket.SOCK_RAW, 0),
    (socket.AF_INET, socket.SOCK_STREAM, 0), (socket.AF_UNIX, socket.SOCK_STREAM, 0),
):
    try:
        socket.socket(family, kind, protocol).close()
        print("made")
    except OSError as error:
        print(error.strerror)
"""


@needs_filter
def test_refused_calls_fail_and_others_do_not(layout: Layout) -> None:
    import platform

    calls = ARCHITECTURES[platform.machine()].calls
    box = layout.box()

    def printed(code: str) -> list[str]:
        action = CmdRunAction(f"{sys.executable} - <<'END'\n{code}\nEND", blocking=True)
        observation = session.execute(action)
        assert isinstance(observation, CmdOutputObservation)
        return observation.content.splitlines()

    with layout.boxed(box) as session:
        for name in ("io_uring_setup", "io_uring_enter", "io_uring_register"):
            assert printed(CALL.format(call=calls[name])) == ["-1 Function not implemented"], name
        for name in ("keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"):
            assert printed(CALL.format(call=calls[name])) == ["-1 Operation not permitted"], name
        assert printed(SOCKETS) == [
            *["Address family not supported by protocol"] * 2,
            *("Protocol not supported", "made", "made", "made"),
        ]
        assert printed("import os; print(os.listdir('/proc/self/fd'))") != []
    box.close()


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_every_jump_of_a_filter_ends_inside(machine: str) -> None:
    program = seccomp_filter(machine)
    assert program is not None
    statements = list(struct.iter_unpack("=HBBI", program))
    assert len(program) == 8 * len(statements)
    for index, (code, if_true, if_false, _) in enumerate(statements):
        if code & 0x07 == 0x05:
            assert index + 1 + max(if_true, if_false) < len(statements)
    assert statements[-1][0] == 0x06


def test_an_unknown_machine_has_none() -> None:
    assert seccomp_filter("riscv64") is None
