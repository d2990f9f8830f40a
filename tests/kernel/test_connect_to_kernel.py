"""The client of tests finds a kernel that was started again with other ports."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
import zmq

from oh_jupyter.testing import LiveKernel
from oh_jupyter.testing.kernel import connect_to_kernel, text_at_end

pytestmark = pytest.mark.thorough


def test_a_changed_connection_file_is_read_again(kernel: LiveKernel, tmp_path: Path) -> None:
    file = tmp_path / "kernel.json"
    connection = json.loads(Path(kernel.manager.connection_file).read_text())
    taken = {**connection, "ip": str(tmp_path / "taken")}
    file.write_text(json.dumps(taken))
    with zmq.Context() as context, context.socket(zmq.ROUTER) as other_process:
        other_process.bind(f"ipc://{taken['ip']}-{taken['shell_port']}")

        def start_again() -> None:
            other_process.recv()
            shutil.copy(kernel.manager.connection_file, file)

        restart = threading.Thread(target=start_again)
        restart.start()
        client = connect_to_kernel(file)
        restart.join()
        assert text_at_end(client, "print(6 * 7)") == "42\n"
        client.stop_channels()
