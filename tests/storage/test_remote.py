import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from oh_jupyter.errors import StoreConfigError, StoreIsDirectoryError, StoreNotDirectoryError
from oh_jupyter.storage import FsspecFileStore
from oh_jupyter.testing import FileStoreContract


class TestMemoryUrl(FileStoreContract):
    @pytest.fixture
    def store(self):
        return FsspecFileStore(f"memory://{uuid.uuid4().hex}/root")


class TestDirectoriesOfFsspec(FileStoreContract):
    """A backend with real directories, as sftp has them."""

    @pytest.fixture
    def store(self, tmp_path):
        (tmp_path / "root").mkdir()
        return FsspecFileStore(f"local://{tmp_path}/root")

    @pytest.mark.thorough
    def test_writers_of_one_file_take_turns(self, store):
        """fsspec writes its local files in place, as servers of files do."""
        versions = [str(length) * length for length in range(1, 9)]

        def write(version):
            for _ in range(200):
                store.write("f", version)
                seen.add(store.read("f"))

        seen = set()
        with ThreadPoolExecutor(len(versions)) as pool:
            list(pool.map(write, versions))
        assert seen <= set(versions)


@pytest.mark.parametrize("url", ["local://{}", "memory://{}"])
def test_path_conflicts_are_reported(url, tmp_path):
    store = FsspecFileStore(url.format(tmp_path))
    store.write("d/f", "kept")
    for write in (store.write, lambda path, contents: store.write_many({path: contents})):
        with pytest.raises(StoreIsDirectoryError, match="has a directory at this path: 'd'"):
            write("d", "lost")
        with pytest.raises(StoreNotDirectoryError, match=r"has a file at this path.*: 'd/f"):
            write("d/f/g", "lost")
    assert store.read("d/f") == "kept"


def test_unknown_protocol():
    with pytest.raises(StoreConfigError, match="nosuch"):
        FsspecFileStore("nosuch://x").read("f")


def test_two_roots_are_apart():
    name = uuid.uuid4().hex
    one, two = FsspecFileStore(f"memory://{name}/a"), FsspecFileStore(f"memory://{name}/ab")
    one.write("f", "one")
    two.write("f", "two")
    one.delete("")
    assert (one.list(""), two.list("")) == ([], ["f"])


def test_credentials_are_not_shown():
    assert "secret" not in repr(FsspecFileStore("sftp://me:secret@host/dir"))


def test_a_directory_created_during_the_check(monkeypatch):
    store = FsspecFileStore(f"memory://{uuid.uuid4().hex}")
    store.write("d/f", "x")

    def look_before(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(store.fs, "info", look_before)
    assert store.info("d") == {"path": "d", "type": "directory", "size": None, "modified": None}
    assert store.exists("d")
    assert not store.exists("e")
