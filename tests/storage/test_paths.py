import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_jupyter.errors import StorePathError
from oh_jupyter.storage import LocalFileStore
from oh_jupyter.storage.paths import file_key, path_key

SEGMENTS = st.one_of(
    st.sampled_from(["", ".", "..", "...", " ", "a", "b", "~", "\\", "..\\", "C:", "\n"]),
    st.text(max_size=5),
)
PATHS = st.lists(SEGMENTS, max_size=6).map("/".join)


@given(PATHS)
def test_a_key_is_clean_or_there_is_none(path):
    try:
        key = path_key(path)
    except StorePathError:
        return
    assert path_key(key) == key
    assert not key.startswith("/")
    assert not key.endswith("/")
    assert not set(key.split("/")) & {".", ".."}
    assert key == "" or "" not in key.split("/")
    assert "\0" not in key
    key.encode("utf-8")


@given(PATHS)
def test_the_key_is_where_the_operating_system_would_go(path):
    try:
        key = path_key(path)
    except StorePathError:
        return
    assert os.path.normpath("/base/" + path) == os.path.normpath("/base/" + key)


@given(PATHS)
def test_paths_outside_the_root_have_no_key(path):
    depth = 0
    for segment in path.split("/"):
        depth += -1 if segment == ".." else segment not in ("", ".")
        if depth < 0:
            with pytest.raises(StorePathError):
                path_key(path)
            return


@given(PATHS)
def test_nothing_appears_outside_a_local_root(path):
    with tempfile.TemporaryDirectory() as top:
        store = LocalFileStore(os.path.join(top, "root"))
        try:
            store.write(path, "x")
        except StorePathError:
            assert os.listdir(store.root) == []
        else:
            assert store.read(path) == "x"
            paths = [f"{d}/{n}".lstrip("/") for d, _, names in store.walk() for n in names]
            assert paths == [file_key(path)]
        assert os.listdir(top) == ["root"]


@pytest.mark.parametrize(
    "path", ["foo/bar", "/foo/bar", "./foo//bar/", "foo/x/../bar", "//foo/./bar"]
)
def test_spellings_of_one_key(path):
    assert path_key(path) == "foo/bar"
