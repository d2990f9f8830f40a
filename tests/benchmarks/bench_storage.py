"""What storing costs, each figure as a ratio to a baseline measured in the same run.

Run it by ``python tests/benchmarks/bench_storage.py``.
"""

import os
import statistics
import tempfile
import time

from oh_jupyter.events import CmdRunAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import (
    BatchedWebHookFileStore,
    InMemoryFileStore,
    LocalFileStore,
    WebHookFileStore,
)

ROUNDS = 7
FILES = 400
CONTENTS = b"x" * 1000


def microseconds(work):
    """Time one call of ``work(n)``: the median of some rounds over many files."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for n in range(FILES):
            work(n)
        rounds.append((time.perf_counter() - started) / FILES * 1e6)
    return statistics.median(rounds)


def report(name, ours, baseline, against):
    print(f"{name:34} {ours:9.1f} us   {ours / baseline:5.2f} x {against} ({baseline:.1f} us)")


def bench_local(directory):
    store = LocalFileStore(os.path.join(directory, "store"))
    plain = os.path.join(directory, "plain")
    os.makedirs(os.path.join(plain, "d"))

    def open_and_write(n):
        with open(f"{plain}/d/{n}", "wb") as file:
            file.write(CONTENTS)

    def write_and_replace(n):
        with open(f"{plain}/d/tmp{n}", "xb") as file:
            file.write(CONTENTS)
        os.replace(f"{plain}/d/tmp{n}", f"{plain}/d/{n}")

    def open_and_read(n):
        with open(f"{plain}/d/{n}", "rb") as file:
            file.read()

    ours = microseconds(lambda n: store.write(f"d/{n}", CONTENTS))
    report("local write, 1 KB", ours, microseconds(open_and_write), "open + write in place")
    report("", ours, microseconds(write_and_replace), "open + write + replace")
    ours = microseconds(lambda n: store.read_bytes(f"d/{n}"))
    report("local read, 1 KB", ours, microseconds(open_and_read), "open + read")
    ours = microseconds(lambda n: store.list("d")) if FILES <= 400 else 0
    baseline = microseconds(lambda n: sorted(entry.name for entry in os.scandir(f"{plain}/d")))
    report(f"local list, {FILES} files", ours, baseline, "sorted scandir")


def bench_memory():
    store, plain = InMemoryFileStore(), {}
    ours = microseconds(lambda n: store.write(f"d/{n}", CONTENTS))
    report("memory write", ours, microseconds(lambda n: plain.update({f"d/{n}": CONTENTS})), "dict")


def bench_webhooks():
    """The receiver is one that never answers: its cost must not be the writer's."""

    class Silent:
        def post(self, url, **options):
            raise ConnectionError

        delete = post

    plain = InMemoryFileStore()
    baseline = microseconds(lambda n: plain.write(f"d/{n}", CONTENTS))
    for kind in (WebHookFileStore, BatchedWebHookFileStore):
        store = kind(InMemoryFileStore(), "http://localhost:9/", Silent())
        ours = microseconds(lambda n, store=store: store.write(f"d/{n}", CONTENTS))
        report(f"write with {kind.__name__}", ours, baseline, "memory write")
        store.close(0)


def bench_events(directory):
    stream = EventStream(LocalFileStore(os.path.join(directory, "events")), "bench")
    ours = microseconds(lambda n: stream.add_event(CmdRunAction(f"echo {n}"), "agent"))
    report("recording an event", ours, 1000.0, "the limit")
    stream.close()


def main():
    with tempfile.TemporaryDirectory() as directory:
        bench_local(directory)
        bench_memory()
        bench_webhooks()
        bench_events(directory)


if __name__ == "__main__":
    main()
