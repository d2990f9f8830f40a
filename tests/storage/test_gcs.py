import socket
import time
import uuid

import pytest

from oh_jupyter.errors import StoreAccessError
from oh_jupyter.storage import GoogleCloudFileStore, get_file_store
from oh_jupyter.storage.remote import gcs
from oh_jupyter.testing import FileStoreContract

pytest.importorskip("fsspec", reason="fsspec is not installed; pip install gcsfs")


@pytest.fixture(autouse=True)
def environment(gcs_server, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server)
    monkeypatch.delenv("GOOGLE_CLOUD_BUCKET_NAME", raising=False)


@pytest.fixture
def store():
    store = GoogleCloudFileStore(f"bucket/{uuid.uuid4().hex}", batch_size=1)
    yield store
    store.delete("")


# aiohttp wants large bodies as files; gcsfs gives it bytes.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
class TestGcs(FileStoreContract):
    names_the_test_server_cuts = ("semi;colon",)

    # The emulator hangs when requests overlap; what overlaps is tested on S3.
    test_a_reader_never_sees_half_a_file = None
    test_32_writers = None
    test_one_of_many_creates = None


def test_another_writer_is_seen_at_once(store):
    other = GoogleCloudFileStore(store.url)
    assert store.list("d") == []
    other.write("d/f", "1")
    assert store.list("d") == ["d/f"]
    assert store.read("d/f") == "1"
    other.delete("d/f")
    assert not store.exists("d/f")


def test_the_bucket_comes_from_the_environment(monkeypatch):
    with pytest.raises(KeyError, match="GOOGLE_CLOUD_BUCKET_NAME"):
        GoogleCloudFileStore()
    monkeypatch.setenv("GOOGLE_CLOUD_BUCKET_NAME", "bucket")
    assert get_file_store("google_cloud").bucket == "bucket"
    assert get_file_store("gs://other/prefix").bucket == "other"


def test_a_missing_bucket():
    store = GoogleCloudFileStore("nosuch")
    for use in (
        lambda: store.read("f"),
        lambda: store.write("f", "x"),
        lambda: store.list(""),
    ):
        with pytest.raises(StoreAccessError, match="nosuch"):
            use()


def test_an_unreachable_server(monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    with pytest.raises(StoreAccessError, match=r"cannot be reached.*STORAGE_EMULATOR_HOST"):
        GoogleCloudFileStore("bucket").read("f")


def test_missing_credentials_are_reported_at_once(monkeypatch, tmp_path):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    started = time.monotonic()
    with pytest.raises(StoreAccessError, match=r"no usable credentials.*gcloud auth"):
        GoogleCloudFileStore("bucket").list("")
    assert time.monotonic() - started < 40  # gcsfs looks for a minute


def test_a_hanging_server_times_out(monkeypatch):
    assert gcs._MAX_ATTEMPTS * gcs._READ_SECONDS + 2**gcs._MAX_ATTEMPTS <= 45
    monkeypatch.setattr(gcs, "_READ_SECONDS", 0.1)
    monkeypatch.setattr(gcs, "_MAX_ATTEMPTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.getsockname()[1]}")
        for use in (
            lambda store: store.read("f"),
            lambda store: store.write("f", "x"),
            lambda store: store.list(""),
        ):
            with pytest.raises(StoreAccessError, match="cannot be reached"):
                use(GoogleCloudFileStore("bucket"))
