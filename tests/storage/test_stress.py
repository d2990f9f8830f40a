"""Fifty processes killed while they write: nothing is lost, nothing is out of order."""

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from oh_jupyter.storage import BatchedWebHookFileStore, LocalFileStore, WebHookFileStore
from oh_jupyter.testing import wait_until

KILLS = 50
PATHS = 5
# Forked from one that has imported everything, which takes longer than to write a hundred files.
PROGRAM = """
import os, sys
import requests, psutil
import oh_jupyter.storage as storage
kind, url, outbox, root = sys.argv[1:]
for line in sys.stdin:
    child = os.fork()
    if not child:
        inner = storage.LocalFileStore(root)
        options = {} if kind == "WebHookFileStore" else {"batch_timeout_seconds": 0.02}
        store = getattr(storage, kind)(inner, url, outbox=outbox, **options)
        n = int(line)
        while True:
            store.write(f"d/{n % 5}", str(n))
            n += 1
    print(child, flush=True)
    os.waitpid(child, 0)
"""


def changes_by_path(receiver):
    """Numbers that the receiver heard of each path, a repeated request counted once."""
    numbers, ids = {}, set()
    for request in receiver.requests:
        if request.headers["webhook-id"] in ids:
            continue
        ids.add(request.headers["webhook-id"])
        if request.path == "/hook/":
            changes = [(change["path"], change["content"]) for change in json.loads(request.body)]
        else:
            changes = [(request.path.removeprefix("/hook/"), request.body)]
        for path, contents in changes:
            numbers.setdefault(path, []).append(int(contents))
    return numbers


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", [WebHookFileStore, BatchedWebHookFileStore])
def test_killed_writers_lose_nothing_and_keep_the_order(receiver, make, quick, tmp_path, kind):
    root, outbox = str(tmp_path / "root"), str(tmp_path / "outbox")
    inner = LocalFileStore(root)
    chance = random.Random(7)

    def newest():
        contents = inner.read_many([f"d/{n}" for n in range(PATHS)], missing_ok=True)
        return max(map(int, contents.values()), default=-1)

    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    with subprocess.Popen(
        [*command, kind.__name__, receiver.url, outbox, root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        for _ in range(KILLS):
            start = newest() + 1
            parent.stdin.write(f"{start}\n")
            parent.stdin.flush()
            writer = int(parent.stdout.readline())
            enough = start + chance.randrange(60)
            wait_until(lambda enough=enough: newest() >= enough)
            os.kill(writer, signal.SIGKILL)
        parent.stdin.close()
        assert parent.wait(60) == 0
    report = make(kind, store=inner, outbox=outbox).flush()
    assert (report.failed, report.pending) == ((), 0)
    heard = changes_by_path(receiver)
    assert len(heard) == PATHS
    for n in range(PATHS):
        numbers = heard[f"d/{n}"]
        assert numbers == sorted(numbers)
        # The last one may have been recorded without coming to the store.
        last = int(inner.read(f"d/{n}"))
        assert numbers[-1] in (last, last + PATHS)
        if kind is WebHookFileStore:
            assert set(range(n, last + 1, PATHS)) <= set(numbers)
