"""A kernel whose connection file has CURVE keys: cells and requests over encrypted sockets."""

from __future__ import annotations

from pathlib import Path

import pytest
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.manager import KernelManager

from oh_jupyter.testing.kernel import LiveKernel

pytestmark = pytest.mark.skipif(
    "curve_secretkey" not in IPKernelApp.class_traits()
    or "transport_encryption" not in KernelManager.class_traits(),
    reason="ipykernel or jupyter_client without CurveZMQ",
)


def test_agents_cells_and_requests_in_an_encrypted_kernel(tmp_path: Path) -> None:
    kernel = LiveKernel(tmp_path, encrypted=True)
    try:
        assert kernel.manager.get_connection_info()["curve_publickey"]
        for action, args, expected in (
            ("run_ipython", {"code": "print(6 * 7)"}, "42"),
            ("run", {"command": "echo ho''la"}, "hola"),
        ):
            body = {"action": {"action": action, "args": args}}
            fields, observation = kernel.ask("execute_action", body)
            assert fields["status"] == "ok"
            assert expected in observation["content"]
    finally:
        kernel.close()
