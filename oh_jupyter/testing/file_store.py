"""Contract of every file store."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from oh_jupyter.errors import StoreContentError, StorePathError
from oh_jupyter.storage import FileStore

AWKWARD_NAMES = [
    "plain.txt",
    "with space and\ttab",
    "percent%2Fslash%00",
    "question?mark#hash&amp=1",
    "quote\"s'",
    "grüße-日本語-🙂",
    "e\u0301-decomposed",
    "star*[a]?{b}",
    "plus+at@colon:comma,",
    "semi;colon",
    "~tilde",
    "-dash",
    "...",
    "$dollar`tick`",
]

AWKWARD_CONTENTS = {
    "empty": b"",
    "crlf": b"a\r\nb\rc\nd",
    "all bytes": bytes(range(256)),
    "bom": b"\xef\xbb\xbftext",
    "utf-8": "grüße 日本語 🙂".encode(),
    "latin-1": b"gr\xfc\xdfe",
    "trailing newlines": b"x\n\n\n",
    "nul": b"a\0b",
}


class FileStoreContract:
    """Tests of the contract of ``FileStore``.

    Inherit it in a test module, and define a fixture ``store`` that returns an empty store::

        class TestMyStore(FileStoreContract):
            @pytest.fixture
            def store(self, tmp_path):
                return MyStore(tmp_path)

    Attributes:
        missing_directory_is_an_error: Listing a missing directory raises ``FileNotFoundError``, as
            in a store with real directories; otherwise the list is empty.
        creates_in_one_step: Only one of several concurrent creations of a file succeeds on the
            test server of the backend.
        names_the_test_server_cuts: Names of files that the test server corrupts; their tests are
            skipped.
    """

    missing_directory_is_an_error: bool = False
    creates_in_one_step: bool = True
    names_the_test_server_cuts: tuple[str, ...] = ()

    @pytest.mark.parametrize("contents", AWKWARD_CONTENTS.values(), ids=AWKWARD_CONTENTS)
    def test_bytes_come_back_exactly(self, store: FileStore, contents: Any) -> None:
        store.write("d/f", contents)
        assert store.read_bytes("d/f") == contents
        assert store.info("d/f")["size"] == len(contents)

    @pytest.mark.parametrize("text", ["", "a\r\nb\rc\n", "grüße 日本語 🙂", "\ufefftext", "\u2028"])
    def test_text_comes_back_exactly(self, store: FileStore, text: str) -> None:
        store.write("f", text)
        assert store.read("f") == text
        assert store.read_bytes("f") == text.encode()

    def test_other_bytes_like_contents(self, store: Any) -> None:
        store.write("a", bytearray(b"one"))
        store.write("b", memoryview(b"two"))
        assert (store.read("a"), store.read("b")) == ("one", "two")

    def test_binary_is_not_readable_as_text_but_is_not_missing(self, store: FileStore) -> None:
        store.write("f", b"\xff\xfe")
        with pytest.raises(StoreContentError, match=r"read_bytes"):
            store.read("f")

    @pytest.mark.parametrize("name", AWKWARD_NAMES)
    def test_awkward_names(self, store: FileStore, name: str) -> None:
        if name in self.names_the_test_server_cuts:
            pytest.skip(f"the server of this test cannot store {name!r}")
        store.write(name, "top")
        store.write(f"d/{name}/leaf", "leaf")
        assert store.read(name) == "top"
        assert store.list("d") == [f"d/{name}/"]
        assert store.list(f"d/{name}") == [f"d/{name}/leaf"]
        assert store.read_many([name, f"d/{name}/leaf"]) == {
            name: b"top",
            f"d/{name}/leaf": b"leaf",
        }
        store.delete(name)
        assert not store.exists(name)
        assert store.list("") == ["d/"]

    @pytest.mark.parametrize(
        "spelling", ["foo.bar.baz", "./foo/bar/baz", "/foo/bar/baz", "a//b/./c"]
    )
    def test_spellings_of_a_path(self, store: FileStore, spelling: str) -> None:
        store.write(spelling, "Hello, world!")
        assert store.read(spelling) == "Hello, world!"
        assert store.read("/" + spelling.removeprefix("/").removeprefix("./")) == "Hello, world!"
        store.delete(spelling)
        with pytest.raises(FileNotFoundError):
            store.read(spelling)

    @pytest.mark.parametrize("path", ["../x", "..", "a/../../x", "/../x", "./../x", "//../x"])
    def test_no_way_out_of_the_root(self, store: FileStore, path: Any) -> None:
        store.write("keep", "kept")
        for use in (
            lambda: store.write(path, "escaped"),
            lambda: store.read(path),
            lambda: store.read_bytes(path),
            lambda: store.list(path),
            lambda: store.delete(path),
            lambda: store.info(path),
            lambda: store.exists(path),
            lambda: store.open(path, "wb"),
            lambda: store.write_many({"ok": "no", path: "escaped"}),
            lambda: store.read_many(["keep", path]),
            lambda: store.delete_many(["keep", path]),
        ):
            with pytest.raises(StorePathError, match="leads out of the store"):
                use()
        assert store.list("") == ["keep"]

    @pytest.mark.parametrize("path", ["a\0b", "\udcff", "d/\ud800x"])
    def test_no_file_can_have_that_name(self, store: FileStore, path: Any) -> None:
        with pytest.raises(StorePathError):
            store.write(path, "x")
        with pytest.raises(StorePathError):
            store.list(path)

    @pytest.mark.parametrize("path", ["", "/", ".", "d/", "d/.", "d/x/.."])
    def test_a_directory_cannot_be_written_or_read(self, store: FileStore, path: Any) -> None:
        store.write("d/f", "x")
        with pytest.raises(StorePathError, match="names a directory"):
            store.write(path, "x")
        with pytest.raises(StorePathError, match="names a directory"):
            store.read(path)

    @pytest.mark.parametrize("path", [None, 5, b"bytes", ["list"]])
    def test_a_path_is_a_str(self, store: FileStore, path: Any) -> None:
        with pytest.raises(StorePathError, match="is a str"):
            store.write(path, "x")

    @pytest.mark.parametrize("contents", [None, 5, ["x"], "lone \ud800"])
    def test_wrong_contents_leave_the_old_ones(self, store: FileStore, contents: Any) -> None:
        store.write("f", "old")
        with pytest.raises(StoreContentError, match="was not written"):
            store.write("f", contents)
        with pytest.raises(StoreContentError, match="was not written"):
            store.write_many({"g": "new", "f": contents})
        assert store.read("f") == "old"
        assert store.list("") == ["f"]

    def test_missing_files(self, store: FileStore) -> None:
        store.write("d/f", "x")
        for path in ("nope", "d/nope", "d/f/nope", "nope/nope"):
            with pytest.raises(FileNotFoundError) as caught:
                store.read(path)
            assert caught.value.filename == path
            with pytest.raises(FileNotFoundError):
                store.read_bytes(path)
            with pytest.raises(FileNotFoundError):
                store.info(path)
            with pytest.raises(FileNotFoundError):
                store.open(path, "rb")
            assert not store.exists(path)
            store.delete(path)
        assert store.read("d/f") == "x"

    def test_reading_a_directory(self, store: FileStore) -> None:
        store.write("d/f", "x")
        with pytest.raises(IsADirectoryError):
            store.read("d")

    def test_listing(self, store: FileStore) -> None:
        for path in ("foo/x.txt", "foo/bar/1", "foo/bar/2", "foo/baz/deep/3", "foobar", "foo.txt"):
            store.write(path, path)
        assert store.list("") == ["foo.txt", "foo/", "foobar"]
        assert store.list("/") == store.list(".") == store.list("")
        assert store.list("foo") == ["foo/bar/", "foo/baz/", "foo/x.txt"]
        assert (
            store.list("foo/") == store.list("/foo") == store.list("./foo/.") == store.list("foo")
        )
        assert store.list("foo/baz") == ["foo/baz/deep/"]

    def test_listing_an_empty_store(self, store: FileStore) -> None:
        assert store.list("") == []

    def test_listing_a_file(self, store: FileStore) -> None:
        store.write("d/f", "x")
        with pytest.raises(NotADirectoryError):
            store.list("d/f")

    def test_listing_a_missing_directory(self, store: FileStore) -> None:
        store.write("d/f", "x")
        if self.missing_directory_is_an_error:
            with pytest.raises(FileNotFoundError):
                store.list("nope")
        else:
            assert store.list("nope") == []

    def test_listing_is_never_stale(self, store: FileStore) -> None:
        assert store.list("") == []
        store.write("d/a", "1")
        assert store.list("d") == ["d/a"]
        store.write("d/b", "1")
        assert store.list("d") == ["d/a", "d/b"]
        store.delete("d/a")
        assert store.list("d") == ["d/b"]
        assert not store.exists("d/a")

    def test_delete_touches_nothing_else(self, store: FileStore) -> None:
        for path in ("foo/a", "foo/b/c", "foobar", "foo.txt", "fo", "other/foo/x", "foo-/y"):
            store.write(path, "x")
        store.delete("foo")
        assert [f"{d}/{n}".lstrip("/") for d, _, names in store.walk() for n in names] == [
            "fo",
            "foo.txt",
            "foobar",
            "foo-/y",
            "other/foo/x",
        ]

    def test_delete_with_a_slash(self, store: FileStore) -> None:
        store.write("a/foo/x", "x")
        store.write("a/keep", "x")
        store.delete("a/foo/")
        assert store.list("a") == ["a/keep"]

    def test_delete_everything(self, store: FileStore) -> None:
        store.write("a/b/c", "x")
        store.write("d", "x")
        store.delete("")
        assert store.list("") == []
        store.write("e", "again")
        assert store.read("e") == "again"

    def test_overwriting(self, store: FileStore) -> None:
        store.write("f", "a long text that is replaced")
        store.write("f", "short")
        assert store.read("f") == "short"

    def test_info(self, store: FileStore) -> None:
        store.write("d/f", "12345")
        file, directory, root = store.info("d/f"), store.info("/d/"), store.info("")
        assert (file["path"], file["type"], file["size"]) == ("d/f", "file", 5)
        assert (directory["path"], directory["type"], directory["size"]) == ("d", "directory", None)
        assert root["type"] == "directory"
        assert store.exists("d")
        assert store.exists("")

    def test_walk(self, store: FileStore) -> None:
        for path in ("a/b/1", "a/2", "3"):
            store.write(path, "x")
        assert list(store.walk()) == [("", ["a"], ["3"]), ("a", ["b"], ["2"]), ("a/b", [], ["1"])]
        assert list(store.walk("a/b")) == [("a/b", [], ["1"])]

    def test_streaming(self, store: FileStore) -> None:
        block = os.urandom(100_000)
        with store.open("d/big", "wb") as file:
            for _ in range(30):
                file.write(block)
            assert not store.exists("d/big")
        with store.open("d/big", "rb") as file:
            assert file.read(10) == block[:10]
            assert file.read() == block[10:] + block * 29
        assert store.info("d/big")["size"] == 3_000_000

    def test_streaming_text(self, store: FileStore) -> None:
        with store.open("f", "w") as file:
            file.write("one\r\ntwo\n")
            file.write("grüße")
        assert store.read_bytes("f") == "one\r\ntwo\ngrüße".encode()
        with store.open("f") as file:
            assert list(file) == ["one\r\n", "two\n", "grüße"]

    @pytest.mark.parametrize("mode", ["w", "wb"])
    def test_a_stream_that_fails_changes_nothing(self, store: Any, mode: str) -> None:
        store.write("f", "old")
        half = "half" if mode == "w" else b"half"
        with pytest.raises(ZeroDivisionError), store.open("f", mode) as file:
            file.write(half)
            raise ZeroDivisionError
        file = store.open("f", mode)
        file.write(half)
        del file  # never closed
        assert store.read("f") == "old"
        assert store.list("") == ["f"]

    def test_unknown_mode(self, store: Any) -> None:
        store.write("f", "old")
        with pytest.raises(ValueError, match="mode"):
            store.open("f", "r+")
        assert store.read("f") == "old"

    def test_many(self, store: FileStore) -> None:
        files = {f"many/{n % 7}/{n}": f"content {n}" for n in range(60)}
        store.write_many(files)
        assert store.read_many(files) == {path: text.encode() for path, text in files.items()}
        some = [*list(files)[:3], "many/nope"]
        assert list(store.read_many(some, missing_ok=True)) == some[:3]
        with pytest.raises(FileNotFoundError, match="nope"):
            store.read_many(some)
        store.delete_many([*list(files)[:30], "nope"])
        left = {f"{d}/{n}" for d, _, names in store.walk("many") for n in names}
        assert left == set(list(files)[30:])
        assert store.read_many([]) == {}
        store.write_many({})
        store.delete_many([])

    def test_entries_are_what_list_and_info_say(self, store: FileStore) -> None:
        for path in ("d/a", "d/b/c", "d/b.x"):
            store.write(path, path)
        entries = store.entries("d")
        assert [e["path"] + "/" * (e["type"] == "directory") for e in entries] == store.list("d")
        assert entries[0]["size"] == 3
        assert [e["size"] for e in entries] == [store.info(e["path"])["size"] for e in entries]
        with pytest.raises(NotADirectoryError):
            store.entries("d/a")

    def test_a_lock_is_held_by_one(self, store: FileStore) -> None:
        inside: list[int] = []

        def use(worker: int) -> None:
            with store.lock("locks/one", timeout=60):
                inside.append(worker)
                assert inside == [worker]
                inside.remove(worker)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(use, range(40)))
        with (
            store.lock("locks/one"),
            pytest.raises(TimeoutError, match="not free"),
            store.lock("locks/one", timeout=0.01),
        ):
            pass
        with store.lock("locks/one", timeout=0), store.lock("locks/other", timeout=0):
            pass

    def test_creating_replaces_nothing(self, store: FileStore) -> None:
        store.create("d/new", "first")
        for path in ("d/new", "d"):
            with pytest.raises(FileExistsError):
                store.create(path, "second")
        assert store.read("d/new") == "first"
        assert store.list("d") == ["d/new"]

    def test_one_of_many_creates(self, store: FileStore) -> None:
        def create(worker: int) -> int | None:
            try:
                store.create("claim", str(worker))
            except FileExistsError:
                return None
            return worker

        with ThreadPoolExecutor(8) as pool:
            winners = [worker for worker in pool.map(create, range(8)) if worker is not None]
        if self.creates_in_one_step:
            assert len(winners) == 1
            assert store.read("claim") == str(winners[0])

    def read_while_written(self, store: FileStore, path: str) -> bytes | None:
        """Read a file while it is written; None if the test server has mixed two versions."""
        return store.read_bytes(path)

    def test_a_reader_never_sees_half_a_file(self, store: FileStore) -> None:
        versions = [bytes([65 + n]) * 200_000 for n in range(8)]
        store.write("f", versions[0])
        done = threading.Event()

        def write() -> None:
            try:
                for contents in versions * 2:
                    store.write("f", contents)
            finally:
                done.set()

        with ThreadPoolExecutor(3) as pool:
            writer = pool.submit(write)
            seen: set[bytes | None] = set()
            while not done.is_set():
                seen.add(self.read_while_written(store, "f"))
            writer.result()
        assert versions[-1] == store.read_bytes("f")
        assert seen - {None} <= set(versions)

    def test_32_writers(self, store: FileStore) -> None:
        def write(worker: int) -> None:
            for n in range(4):
                store.write(f"w/{worker}/{n}", f"{worker} {n}")
                store.write("w/shared", f"{worker} {n}")

        with ThreadPoolExecutor(32) as pool:
            list(pool.map(write, range(32)))
        # rclone's server shows its own half-written files when one object has many writers.
        entries = {entry for entry in store.list("w") if not entry.endswith(".partial")}
        assert entries == {f"w/{worker}/" for worker in range(32)} | {"w/shared"}
        assert store.read("w/31/3") == "31 3"
        assert store.read("w/shared").endswith(" 3")
