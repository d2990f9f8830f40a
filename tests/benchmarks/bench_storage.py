"""Cost of storing, each figure as a ratio to a baseline of the same run.

Run it by ``python tests/benchmarks/bench_storage.py``. Baseline and store take turns, so that
a disk or a machine that is busy for a while is as busy for both. The S3 server is rclone's.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from oh_jupyter.events import CmdRunAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import (
    BatchedWebHookFileStore,
    InMemoryFileStore,
    LocalFileStore,
    S3FileStore,
    WebHookFileStore,
)

ROUNDS = 9
FILES = 300
CONTENTS = b"x" * 1000

RECEIVER = """
import asyncio

async def answer(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            if b"content-length:" in head:
                await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\\r")[0]))
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    except asyncio.IncompleteReadError:
        writer.close()

async def serve():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(serve())
"""


def turns(*works, files=FILES, rounds=ROUNDS, pick=statistics.median):
    """Time calls of each ``work(n)`` in turn: in microseconds, medians unless told otherwise."""
    times = [[] for _ in works]
    for _ in range(rounds):
        for work, samples in zip(works, times, strict=True):
            started = time.perf_counter()
            for n in range(files):
                work(n)
            samples.append((time.perf_counter() - started) / files * 1e6)
    return [pick(samples) for samples in times]


def report(name, ours, baseline, against):
    print(f"{name:38} {ours:9.1f} us   {ours / baseline:5.2f} x {against} ({baseline:.1f} us)")


def bench_local(directory):
    stores = [
        LocalFileStore(os.path.join(directory, name), fsync=name == "synced")
        for name in ("store", "synced")
    ]
    plain = os.path.join(directory, "plain")
    os.makedirs(os.path.join(plain, "d"))

    def open_and_write(n):
        with open(f"{plain}/d/{n}", "wb") as file:
            file.write(CONTENTS)

    def write_and_replace(n, sync=False):
        with open(f"{plain}/d/tmp{n}", "xb") as file:
            file.write(CONTENTS)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(f"{plain}/d/tmp{n}", f"{plain}/d/{n}")

    def open_and_read(n):
        with open(f"{plain}/d/{n}", "rb") as file:
            file.read()

    ours, in_place, replaced = turns(
        lambda n: stores[0].write(f"d/{n}", CONTENTS), open_and_write, write_and_replace
    )
    report("local write, 1 KB", ours, replaced, "open + write + replace")
    report("", ours, in_place, "open + write in place")
    ours, synced = turns(
        lambda n: stores[1].write(f"d/{n}", CONTENTS),
        lambda n: write_and_replace(n, sync=True),
        files=20,
        rounds=3,
    )
    report("local write with fsync=True", ours, synced, "the same with fsync")
    ours, baseline = turns(lambda n: stores[0].read_bytes(f"d/{n}"), open_and_read)
    report("local read, 1 KB", ours, baseline, "open + read")
    ours, baseline = turns(
        lambda n: stores[0].list("d"),
        lambda n: sorted(
            f"d/{e.name}" + "/" * e.is_dir(follow_symlinks=False) for e in os.scandir(f"{plain}/d")
        ),
        files=20,
    )
    report(f"local list, {FILES} files", ours, baseline, "sorted scandir")


def bench_memory(directory):
    store = InMemoryFileStore()

    def open_and_write(n):
        with open(f"{directory}/m{n}", "wb") as file:
            file.write(CONTENTS)

    ours, baseline = turns(lambda n: store.write(f"d/{n}", CONTENTS), open_and_write)
    report("memory write, 1 KB", ours, baseline, "open + write")
    plain = {f"d/{n}": CONTENTS.decode() for n in range(1000)}
    for path in plain:
        store.write(path, CONTENTS)
    ours, baseline = turns(
        lambda n: (store.delete(f"d/{n}"), store.write(f"d/{n}", CONTENTS)),
        lambda n: (plain.pop(f"d/{n}"), plain.__setitem__(f"d/{n}", CONTENTS.decode())),
    )
    report("memory delete and write, one of 1 000", ours, baseline, "a dict")
    ours, baseline = turns(
        lambda n: store.list("d"),
        lambda n: sorted(path for path in plain if path.startswith("d/")),
        files=20,
    )
    report("memory list, 1 000 files", ours, baseline, "sorted keys of a dict")
    large = bytes(100 << 20)
    ours, baseline = turns(
        lambda n: (store.write("large", large), store.read_bytes("large")),
        lambda n: bytes(bytearray(large)),
        files=1,
        rounds=5,
    )
    report("memory write and read of 100 MB", ours, baseline, "two copies of it")


def bench_webhooks(directory):
    """A receiver that answers; what it costs the writer while it is being told."""
    receiver = subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{receiver.stdout.readline().strip()}/"
    for kind in (WebHookFileStore, BatchedWebHookFileStore):
        for outbox in (None, os.path.join(directory, kind.__name__)):
            plain = InMemoryFileStore()
            store = kind(InMemoryFileStore(), url, outbox=outbox)
            ours, baseline = turns(
                lambda n, store=store: store.write(f"d/{n}", CONTENTS),
                lambda n, plain=plain: plain.write(f"d/{n}", CONTENTS),
                rounds=15,
                pick=min,
            )
            name = kind.__name__.replace("FileStore", "") + (", outbox" if outbox else "")
            report(f"overhead of {name}", ours - baseline, 50.0, "the limit")
            assert store.close(60).pending == 0
            store.client.close()
    receiver.kill()
    receiver.communicate()


def bench_delivery(directory):
    """Compare the delivery of pending changes with the same requests by hand."""
    import httpx
    import requests

    receiver = subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{receiver.stdout.readline().strip()}/"
    session, client = requests.Session(), httpx.Client()

    def by_requests(_):
        for n in range(FILES):
            session.post(f"{url}d/{n}", data=CONTENTS)

    def by_httpx(_):
        for n in range(FILES):
            client.post(f"{url}d/{n}", content=CONTENTS)

    for outbox in (None, os.path.join(directory, "delivery")):
        store = WebHookFileStore(InMemoryFileStore(), url, outbox=outbox)

        def deliver(_, store=store):
            for n in range(FILES):
                store.write(f"d/{n}", CONTENTS)
            assert store.flush().delivered == FILES

        ours, *baselines = turns(deliver, by_requests, by_httpx, files=1, pick=min)
        name = "delivery" + (", outbox" if outbox else "")
        for baseline, against in zip(baselines, ("requests", "httpx"), strict=True):
            report(name, ours / FILES, baseline / FILES, f"{against} by hand, one after the other")
        store.close()
        store.client.close()
    session.close()
    client.close()
    receiver.kill()
    receiver.communicate()


def bench_events(directory):
    stream = EventStream(LocalFileStore(os.path.join(directory, "events")), "bench")
    (ours,) = turns(lambda n: stream.add_event(CmdRunAction(f"echo {n}"), "agent"))
    report("recording an event", ours, 1000.0, "the limit")
    stream.close()


async def concurrently(calls, at_once=128):
    gate = asyncio.Semaphore(at_once)

    async def one(call):
        async with gate:
            return await call()

    return await asyncio.gather(*(one(call) for call in calls))


def bench_s3(directory):
    rclone = Path(sys.executable).parent / "rclone"
    if not rclone.exists():
        print("S3: left out, since rclone is not installed")
        return
    os.makedirs(os.path.join(directory, "s3", "bucket"))
    command = [rclone, "serve", "s3", "--addr", "127.0.0.1:0", "--auth-key", "ACCESSKEY,SECRETKEY"]
    server = subprocess.Popen(
        [*command, "--config", os.devnull, os.path.join(directory, "s3")],
        stderr=subprocess.PIPE,
        text=True,
    )
    endpoint = next(line for line in server.stderr if "Starting s3" in line)
    # Or it stops, as soon as the pipe is full of what it has to say.
    threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
    endpoint = endpoint.partition("[")[2].partition("]")[0].rstrip("/")
    os.environ.update(
        AWS_S3_ENDPOINT=endpoint,
        AWS_S3_SECURE="false",
        AWS_ACCESS_KEY_ID="ACCESSKEY",
        AWS_SECRET_ACCESS_KEY="SECRETKEY",
        AWS_EC2_METADATA_DISABLED="true",
    )
    try:
        _bench_s3(endpoint)
    finally:
        server.kill()
        server.wait()


def _bench_s3(endpoint):
    from aiobotocore.config import AioConfig
    from aiobotocore.session import get_session

    store = S3FileStore("bucket/ours")
    loop = asyncio.new_event_loop()
    options = {
        "endpoint_url": endpoint,
        "aws_access_key_id": "ACCESSKEY",
        "aws_secret_access_key": "SECRETKEY",
        "region_name": "us-east-1",
        "config": AioConfig(max_pool_connections=128, s3={"addressing_style": "path"}),
    }
    context = get_session().create_client("s3", **options)
    client = loop.run_until_complete(context.__aenter__())

    async def put(n, folder):
        await client.put_object(Bucket="bucket", Key=f"{folder}/{n:05}", Body=CONTENTS)

    async def get(n):
        answer = await client.get_object(Bucket="bucket", Key=f"raw/d/{n:05}")
        return await answer["Body"].read()

    def raw_write(_):
        calls = [lambda n=n: put(n, "raw/d") for n in range(1000)]
        loop.run_until_complete(concurrently(calls))

    def raw_read(_):
        calls = [lambda n=n: get(n) for n in range(1000)]
        assert len(loop.run_until_complete(concurrently(calls))) == 1000

    async def keys(folder):
        keys = []
        pages = client.get_paginator("list_objects_v2")
        async for page in pages.paginate(Bucket="bucket", Prefix=f"ours/{folder}/", Delimiter="/"):
            keys += [entry["Key"] for entry in page.get("Contents", ())]
        return keys

    names = [f"d/{n:05}" for n in range(1000)]
    ours, raw = turns(
        lambda _: store.write_many(dict.fromkeys(names, CONTENTS)), raw_write, files=1, rounds=5
    )
    report("S3 write of 1 000 x 1 KB", ours, raw, "concurrent aiobotocore")
    ours, raw = turns(lambda _: store.read_many(names), raw_read, files=1, rounds=5)
    report("S3 read of 1 000 x 1 KB", ours, raw, "concurrent aiobotocore")

    def single(call):
        return lambda n: loop.run_until_complete(call(n))

    async def delete(n):
        await client.delete_object(Bucket="bucket", Key=f"raw/d/{n:05}")

    async def look_and_delete(n):
        # A path may be a file or a directory; rclone deletes the file f when told to delete f/x.
        await client.list_objects_v2(Bucket="bucket", Prefix=f"raw/d/{n:05}")
        await delete(n)

    for name, work, by_hand in (
        ("write", lambda n: store.write(f"d/{n:05}", CONTENTS), lambda n: put(n, "raw/d")),
        ("read", lambda n: store.read_bytes(f"d/{n:05}"), get),
    ):
        ours, raw = turns(work, single(by_hand), files=50, rounds=5)
        report(f"S3 {name} of 1 KB", ours, raw, "aiobotocore")
    count = iter(range(1000))  # each is there until it is deleted
    ours, raw, looking = turns(
        lambda _: store.delete(f"d/{next(count):05}"),
        lambda _: loop.run_until_complete(delete(next(count))),
        lambda _: loop.run_until_complete(look_and_delete(next(count))),
        files=50,
        rounds=5,
    )
    report("S3 delete of 1 KB", ours, raw, "aiobotocore, without a look")
    report("", ours, looking, "aiobotocore, with a look")
    for count in (1_000, 10_000):
        folder = f"list{count}"
        store.write_many({f"{folder}/{n:05}": b"" for n in range(count)})

        def listed(_, folder=folder, count=count):
            assert len(store.list(folder)) == count

        def raw_listed(_, folder=folder, count=count):
            assert len(loop.run_until_complete(keys(folder))) == count

        ours, raw = turns(listed, raw_listed, files=1, rounds=5)
        report(f"S3 list of {count}", ours, raw, "aiobotocore, page by page")
    large = bytes(100 << 20)
    ours, raw = turns(
        lambda _: store.write("large", large),
        lambda _: loop.run_until_complete(
            client.put_object(Bucket="bucket", Key="raw/large", Body=large)
        ),
        files=1,
        rounds=5,
    )
    report("S3 write of 100 MB", ours, raw, "aiobotocore, in one request")
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


def main():
    print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory:
        bench_local(directory)
        bench_memory(directory)
        bench_webhooks(directory)
        bench_delivery(directory)
        bench_events(directory)
        bench_s3(directory)


if __name__ == "__main__":
    main()
