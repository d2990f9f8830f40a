import threading

import pytest

from oh_jupyter.errors import StorePathError
from oh_jupyter.storage import InMemoryFileStore, LocalFileStore, copy, sync
from oh_jupyter.storage.transfer import LARGE_BYTES


@pytest.fixture
def local(tmp_path):
    return LocalFileStore(str(tmp_path))


@pytest.fixture
def memory():
    return InMemoryFileStore()


def test_a_file_or_a_directory(local, memory):
    for n in range(600):
        memory.write(f"d/{n % 3}/{n}", str(n))
    done = copy(memory, "d", local, "new/place")
    assert len(done.copied) == 600
    assert done.bytes == sum(len(str(n)) for n in range(600))
    assert local.read("new/place/2/599") == "599"
    assert copy(memory, "d/0/3", local, "x/").copied == ["x/3"]
    assert copy(memory, "d/0/3", local, "y").copied == ["y"]
    assert copy(memory, "d/0/3", local, "").copied == ["3"]
    with pytest.raises(FileNotFoundError):
        copy(memory, "nope", local, "z")
    with pytest.raises(StorePathError, match="itself"):
        copy(memory, "d", memory, "d/inside")
    with pytest.raises(StorePathError, match="itself"):
        copy(memory, "", memory, "inside")
    copy(memory, "d", memory, "dd")
    assert memory.list("dd") == ["dd/0/", "dd/1/", "dd/2/"]


def test_large_files_and_progress(local, tmp_path):
    size = LARGE_BYTES + 12345
    for n in range(3):
        local.write(f"in/{n}", bytes([n]) * size)
    local.write("in/small", "x")
    seen = []
    lock = threading.Lock()

    def progress(done, total):
        with lock:
            seen.append((done, total))

    done = copy(local, "in", local, "out", progress)
    assert sum(part for part, _ in seen) == done.bytes == 3 * size + 1
    assert {total for _, total in seen} == {3 * size + 1}
    assert len(seen) > 20
    assert local.read_bytes("out/2") == b"\x02" * size


def test_only_differences_are_transferred(local, memory):
    for name in ("same", "edited", "new/one"):
        memory.write(name, name)
    assert sync(memory, "", local, "mirror").copied == [
        "mirror/edited",
        "mirror/new/one",
        "mirror/same",
    ]
    memory.write("edited", "EDITED")  # of the same size
    local.write("mirror/extra", "x")
    done = sync(memory, "", local, "mirror")
    assert (done.copied, done.deleted, done.unchanged) == (["mirror/edited"], [], 2)
    done = sync(memory, "", local, "mirror", delete=True)
    assert (done.copied, done.deleted, done.unchanged) == ([], ["mirror/extra"], 3)
    assert local.read("mirror/edited") == "EDITED"


def test_times_decide_where_there_are_any(tmp_path):
    one, two = LocalFileStore(str(tmp_path / "1")), LocalFileStore(str(tmp_path / "2"))
    one.write("f", "old")
    sync(one, "", two, "")
    two.write("f", "own")
    assert sync(one, "", two, "").unchanged == 1  # the target is newer
    assert sync(one, "", two, "", checksum=True).copied == ["f"]
    assert two.read("f") == "old"


def test_one_file(memory, local):
    memory.write("d/f", "x")
    assert sync(memory, "d/f", local, "g").copied == ["g"]
    assert sync(memory, "d/f", local, "g").unchanged == 1
