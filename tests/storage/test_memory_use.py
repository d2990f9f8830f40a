"""Files of 100 MB pass through every store in little memory."""

import subprocess
import sys
import uuid

import pytest

PROGRAM = """
import resource, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from oh_jupyter.storage import *

place, hook = sys.argv[1:]
store = get_file_store(place)
if hook:
    store = globals()[hook.split()[0]](store, hook.split()[1])
with store.open("warm", "wb") as file:
    file.write(b"x" * 1_000_000)
with store.open("warm", "rb") as file:
    file.read()
if hook:
    store.flush()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
block = bytes(range(256)) * 4096
with store.open("big", "wb") as file:
    for _ in range(100):
        file.write(block)
if hook:
    report = store.flush()
    assert report.failed == () and report.delivered == 1, report
assert store.info("big")["size"] == 100 << 20
read = 0
with store.open("big", "rb") as file:
    while piece := file.read(1 << 20):
        read += len(piece)
        assert piece == block
assert read == 100 << 20
copy(store, "big", store, "again")
assert store.info("again")["size"] == 100 << 20
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def megabytes(place, hook=""):
    """By how much the memory of a process grows that streams 100 MB in and out."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, place, hook],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_local(tmp_path):
    assert megabytes(tmp_path.as_uri()) < 20


@pytest.mark.thorough
def test_s3(s3_environment):
    assert megabytes(f"s3://bucket/{uuid.uuid4().hex}") < 70


@pytest.mark.thorough
@pytest.mark.timeout(240)
def test_gcs(gcs_server, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server)
    assert megabytes(f"gs://bucket/{uuid.uuid4().hex}") < 70


@pytest.mark.thorough
def test_with_a_webhook(tmp_path, receiver, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    assert megabytes(tmp_path.as_uri(), f"WebHookFileStore {receiver.url}") < 40
    sizes = [len(request.body) for request in receiver.requests]
    assert sizes.count(100 << 20) == 2  # with the copy, sent at exit
    assert list((tmp_path / "temporary").iterdir()) == []
