import time

import pytest

from oh_jupyter.storage import InMemoryFileStore
from oh_jupyter.testing import FileStoreContract, wait_until


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


def test_changes_of_the_dict_by_others_are_seen():
    store = InMemoryFileStore()
    files = store.files
    files["d/a"] = "1"
    files.update({"d/b": "2", "/e/c": "3"}, f="4")
    files |= {"g/h/i": "5"}
    assert files.setdefault("d/a", "other") == "1"
    assert files.setdefault("j", "6") == "6"
    assert store.list("") == ["d/", "e/", "f", "g/", "j"]
    assert store.list("g") == ["g/h/"]
    assert files.pop("d/a") == "1"
    assert files.pop("nope", None) is None
    assert files.popitem() == ("j", "6")
    del files["f"]
    assert store.list("") == ["d/", "e/", "g/"]
    store.delete("g")
    assert files == {"d/b": "2", "/e/c": "3"}
    assert not store.exists("g")
    files.clear()
    assert store.list("") == []


def test_a_file_and_a_directory_of_one_name_both_go():
    store = InMemoryFileStore()
    store.write("d", "file")
    store.write("d/f", "below")
    assert store.list("") == ["d", "d/"]
    store.delete("d")
    assert store.files == {}


def test_deleting_one_file_does_not_look_at_all_others():
    def seconds(count):
        store = InMemoryFileStore()
        store.write_many({f"d/{n}": "x" for n in range(count)})
        started = time.perf_counter()
        for n in range(500):
            store.delete(f"d/{n}")
        return time.perf_counter() - started

    few, many = [], []

    def is_alike():
        few.append(seconds(600))
        many.append(seconds(60_000))
        return min(many) < 30 * min(few)

    # A hundred times as long if it does; a busy machine only adds to some rounds.
    wait_until(is_alike)
