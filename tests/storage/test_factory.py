import json
import os
import subprocess
import sys

import pytest

from oh_jupyter.errors import ConfigError, StoreConfigError
from oh_jupyter.storage import (
    BatchedWebHookFileStore,
    FsspecFileStore,
    InMemoryFileStore,
    LocalFileStore,
    S3FileStore,
    WebHookFileStore,
    factory,
    get_file_store,
)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("SESSION_API_KEY", raising=False)


def test_types(tmp_path):
    local = get_file_store("local", str(tmp_path))
    assert isinstance(local, LocalFileStore)
    assert local.root == str(tmp_path)
    assert isinstance(get_file_store("memory", "ignored"), InMemoryFileStore)
    assert get_file_store("s3", "b").bucket == "b"


def test_urls(tmp_path):
    local = get_file_store(f"file://{tmp_path}/x")
    assert isinstance(local, LocalFileStore)
    assert local.root == f"{tmp_path}/x"
    assert isinstance(get_file_store("s3://b/p"), S3FileStore)
    memory = get_file_store("memory://somewhere")
    assert type(memory) is FsspecFileStore
    memory.write("f", "x")
    assert get_file_store("memory://somewhere").read("f") == "x"
    memory.delete("")


@pytest.mark.parametrize("kind", ["s4", "S3", "gcs", "", None])
def test_unknown_types_are_refused(kind):
    with pytest.raises(StoreConfigError, match="no file store of type"):
        get_file_store(kind, "x")


def test_a_local_store_needs_a_path():
    with pytest.raises(ValueError, match="file_store_path is required"):
        get_file_store("local")
    with pytest.raises(ConfigError):
        get_file_store("local", "")


def test_webhooks():
    plain = get_file_store("memory", None, "http://h/", {"A": "b"}, False)
    assert type(plain) is WebHookFileStore
    assert isinstance(plain.file_store, InMemoryFileStore)
    assert plain.base_url == "http://h/"
    assert plain.client.headers["A"] == "b"
    batched = get_file_store(
        file_store_type="memory",
        file_store_web_hook_url="http://h/",
        file_store_web_hook_headers=json.dumps({"A": "b"}),
        file_store_web_hook_batch=True,
    )
    assert type(batched) is BatchedWebHookFileStore
    assert batched.client.headers["A"] == "b"


def test_the_session_key_is_the_default_header(monkeypatch):
    monkeypatch.setenv("SESSION_API_KEY", "key")
    assert get_file_store("memory", None, "http://h/").client.headers["X-Session-API-Key"] == "key"
    file_store = get_file_store("memory", None, "http://h/", {})
    assert "X-Session-API-Key" not in file_store.client.headers


@pytest.mark.parametrize("headers", ["{'A': 'b'}", '{"A": "b"}', "{'A': 'b',}"])
def test_headers_as_json_or_as_openhands_reads_them(headers):
    assert get_file_store("memory", None, "http://h/", headers).client.headers["A"] == "b"


class Elsewhere(InMemoryFileStore):
    def __init__(self, path=None):
        super().__init__()
        self.path = path


def test_others_can_register_stores(monkeypatch):
    monkeypatch.setattr(factory, "_types", dict(factory._types))
    monkeypatch.setattr(factory, "_protocols", dict(factory._protocols))
    factory.register_store("elsewhere", Elsewhere)
    assert get_file_store("elsewhere", "place").path == "place"
    assert get_file_store("elsewhere://place/below").path == "place/below"
    factory.register_store("s3", f"{__name__}:Elsewhere")
    assert type(get_file_store("s3", "b")).__name__ == "Elsewhere"
    for target in ("nosuch.module:Store", "oh_jupyter:nosuch"):
        factory.register_store("broken", target)
        with pytest.raises(StoreConfigError, match="cannot be imported"):
            get_file_store("broken")


def test_a_package_registers_stores_by_an_entry_point(tmp_path):
    package = tmp_path / "far-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: far\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[oh_jupyter.stores]\nfar = far_store:Far\n")
    (tmp_path / "far_store.py").write_text(
        "from oh_jupyter.storage import InMemoryFileStore\n"
        "class Far(InMemoryFileStore):\n"
        "    def __init__(self, path):\n"
        "        super().__init__()\n"
        "        print(path)\n"
    )
    program = (
        "from oh_jupyter.storage import *\nget_file_store('far', 'a'), get_file_store('far://b')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["a", "b"], done.stderr


@pytest.mark.parametrize("headers", ["not json: secret", '["list"]', "5"])
def test_unusable_headers(headers):
    with pytest.raises(StoreConfigError, match="JSON object") as caught:
        get_file_store("memory", None, "http://h/", headers)
    assert headers not in str(caught.value)


def test_nothing_heavy_is_imported_early(tmp_path):
    program = (
        "import sys\n"
        "from oh_jupyter.storage import *\n"
        "LocalFileStore(sys.argv[1]).write('f', 'x')\n"
        "InMemoryFileStore().write('f', 'x')\n"
        "S3FileStore('b'), GoogleCloudFileStore('b'), FsspecFileStore('sftp://h/d')\n"
        "WebHookFileStore(InMemoryFileStore(), 'http://h/').read_many([])\n"
        "heavy = {'fsspec', 's3fs', 'gcsfs', 'boto3', 'botocore', 'requests', 'httpx', 'aiohttp'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
