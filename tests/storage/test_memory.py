import pytest
from file_store import FileStoreContract

from oh_jupyter.storage import InMemoryFileStore


@pytest.fixture
def store():
    return InMemoryFileStore()


class TestMemory(FileStoreContract):
    pass


def test_it_keeps_the_very_dict():
    files = {"a/b": "seeded"}
    store = InMemoryFileStore(files)
    assert store.files is files
    assert store.read("a/b") == "seeded"
    store.write("c", "x")
    store.write("d", b"text as bytes")
    store.write("e", b"\xff")
    assert files == {"a/b": "seeded", "c": "x", "d": "text as bytes", "e": b"\xff"}
    files["f/g"] = "from outside"
    assert store.list("") == ["a/", "c", "d", "e", "f/"]


def test_a_dict_with_leading_slashes():
    store = InMemoryFileStore({"/a/b": "seeded"})
    assert store.list("") == ["a/"]
    store.write("a/b", "replaced")
    assert store.files == {"/a/b": "replaced"}
    store.delete("a")
    assert store.files == {}


def test_stores_do_not_share_files():
    InMemoryFileStore().write("f", "x")
    assert InMemoryFileStore().list("") == []
