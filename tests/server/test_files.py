"""``upload_file`` and ``download_files``, as OpenHands' client sends them."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tornado.httpclient import HTTPClientError

pytestmark = pytest.mark.shared_server

BOUNDARY = "the-boundary"


def form(filename: str, data: bytes, field: str = "file") -> bytes:
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{filename}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


def zipped(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of our own: the server of the test lives in tmp_path itself."""
    made = tmp_path / "place"
    made.mkdir()
    return made


@pytest.fixture
def send(jp_fetch: Any) -> Any:
    async def send(body: bytes, *where: str, headers: Any = None, **params: str) -> Any:
        try:
            answer = await jp_fetch(
                "oh_jupyter",
                *where,
                "upload_file",
                method="POST",
                body=body,
                params=params,
                headers={
                    "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
                    **(headers or {}),
                },
                request_timeout=60,
            )
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body)
        return answer.code, json.loads(answer.body)

    return send


@pytest.fixture
def fetch(jp_fetch: Any) -> Any:
    async def fetch(*where: str, **params: str) -> Any:
        try:
            answer = await jp_fetch(
                "oh_jupyter", *where, "download_files", params=params, request_timeout=60
            )
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body)
        return answer.code, answer

    return fetch


async def test_a_file_arrives(send: Any, place: Path) -> None:
    data = os.urandom(3_000_000)
    target = place / "new" / "directory"
    status, answer = await send(form("data.bin", data), destination=str(target))
    assert (status, answer) == (
        200,
        {"filename": "data.bin", "destination": str(target), "recursive": False},
    )
    assert (target / "data.bin").read_bytes() == data
    assert os.listdir(target) == ["data.bin"]


async def test_a_file_is_replaced_and_an_empty_one_is_one(send: Any, place: Path) -> None:
    old = place / "a b é.txt"
    old.write_bytes(b"old")
    old.chmod(0o755)
    link = place / "link.txt"
    link.symlink_to(old)
    assert (await send(form("a b é.txt", b"new"), destination=str(place)))[0] == 200
    assert (old.read_bytes(), old.stat().st_mode & 0o777) == (b"new", 0o755)
    assert (await send(form("link.txt", b""), destination=str(place)))[0] == 200
    assert link.is_symlink()
    assert old.read_bytes() == b""


async def test_a_folder_arrives(send: Any, place: Path) -> None:
    (place / "folder").mkdir()
    (place / "folder" / "kept.txt").write_text("kept")
    archive = zipped(**{"folder/": b"", "folder/sub/a.txt": b"a", "folder/empty/": b"", "b": b"b"})
    status, answer = await send(form("f.zip", archive), destination=str(place), recursive="true")
    assert (status, answer["recursive"]) == (200, True)
    assert (place / "folder/sub/a.txt").read_bytes() == b"a"
    assert (place / "folder/empty").is_dir()
    assert (place / "folder/kept.txt").read_text() == "kept"
    assert sorted(os.listdir(place)) == ["b", "folder"]


async def test_a_zip_file_is_unpacked_as_the_protocol_has_it(send: Any, place: Path) -> None:
    await send(form("f.zip", zipped(a=b"1")), destination=str(place))
    assert os.listdir(place) == ["a"]


async def test_nothing_leaves_the_destination(send: Any, place: Path) -> None:
    inside, outside = place / "in", place / "out"
    outside.mkdir()
    await send(form("../evil", b"x"), destination=str(inside))
    assert sorted(os.listdir(place)) == ["in", "out"]
    assert os.listdir(inside) == ["evil"]
    (inside / "way").symlink_to(outside)
    for name in ("../evil", "/evil", "a/../../evil", "..\\evil", "way/evil"):
        status, answer = await send(
            form("f.zip", zipped(**{"ok": b"", name: b"x"})), destination=str(inside)
        )
        assert status == 400, name
        assert "nothing was unpacked" in answer["detail"]
    assert sorted(os.listdir(inside)) == ["evil", "way"]
    assert os.listdir(outside) == []


REFUSED = [
    ("relative", form("a", b""), {"destination": "rel"}, 400, "Destination must be an absolute"),
    ("no zip", form("a", b""), {"recursive": "true"}, 400, "Recursive uploads must be zip files"),
    ("bad zip", form("a.zip", b"PK"), {}, 400, "a.zip cannot be unpacked"),
    ("no name", form("..", b"x"), {}, 400, "is not a valid file name"),
    ("no file part", form("a", b"x", field="other"), {}, 422, "no complete file"),
    ("cut off", form("a", b"x")[:-20], {}, 422, "no complete file"),
    ("no form", b"rubbish", {}, 422, "form cannot be parsed"),
    ("no boolean", form("a", b"x"), {"recursive": "maybe"}, 422, "must be true or false"),
]


@pytest.mark.parametrize(
    ("body", "params", "status", "text"),
    [case[1:] for case in REFUSED],
    ids=[c[0] for c in REFUSED],
)
async def test_uploads_that_are_refused(
    send: Any, place: Path, body: bytes, params: dict[str, str], status: int, text: str
) -> None:
    query = {"destination": str(place), **params}
    code, answer = await send(body, **query)
    assert code == status
    assert text in answer["detail"]
    assert os.listdir(place) == []


async def test_other_content_types_are_refused(send: Any) -> None:
    status, answer = await send(b"{}", headers={"Content-Type": "application/json"})
    assert status == 422
    assert "multipart/form-data" in answer["detail"]


@pytest.mark.server_config(OhJupyter={"max_upload_mb": 1})
class TestSmallLimit:
    async def test_too_much_is_refused(self, send: Any, place: Path) -> None:
        status, answer = await send(form("a", b"x" * 1_200_000), destination=str(place))
        assert status == 413
        assert "max_upload_mb" in answer["detail"]
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("zeros", b"\0" * 2_000_000)
        status, answer = await send(form("f.zip", bomb.getvalue()), destination=str(place))
        assert status == 413
        assert "nothing was unpacked" in answer["detail"]
        assert os.listdir(place) == []


async def test_a_directory_is_downloaded(fetch: Any, place: Path) -> None:
    source = place / "da ta é"
    (source / "sub/empty").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "big.bin").write_bytes(os.urandom(2_500_000))
    (source / "link").symlink_to("a.txt")
    (source / "dangling").symlink_to("nothing")
    (source / "loop").symlink_to(source)
    os.mkfifo(source / "pipe")
    (source / "script.sh").write_text("#!/bin/sh\n")
    (source / "script.sh").chmod(0o755)
    status, answer = await fetch(path=str(source))
    assert status == 200
    assert answer.headers["Content-Type"] == "application/zip"
    assert quote("da ta é.zip") in answer.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a.txt", "big.bin", "link", "script.sh", "sub/empty/"]
        assert archive.read("link") == b"a"
        assert archive.read("big.bin") == (source / "big.bin").read_bytes()
        assert archive.getinfo("script.sh").external_attr >> 16 & 0o777 == 0o755


async def test_a_plain_file_is_downloaded(fetch: Any, place: Path) -> None:
    (place / "a.txt").write_text("a")
    status, answer = await fetch(path=str(place / "a.txt"))
    assert status == 200
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"a.txt": b"a"}


async def test_downloads_that_are_refused(fetch: Any, place: Path) -> None:
    assert (await fetch())[0] == 422
    status, answer = await fetch(path="rel")
    assert (status, answer["detail"]) == (400, "Path must be an absolute path")
    status, answer = await fetch(path=str(place / "nothing"))
    assert (status, answer["detail"]) == (404, "File not found")
    os.mkfifo(place / "pipe")
    assert (await fetch(path=str(place / "pipe")))[0] == 400


@pytest.mark.thorough
async def test_there_and_back_on_a_named_kernel(
    send: Any, fetch: Any, plain_kernel: str, place: Path
) -> None:
    data = os.urandom(1_500_000)
    where = ("kernels", plain_kernel)
    assert (await send(form("x", data), *where, destination=str(place)))[0] == 200
    _, answer = await fetch(*where, path=str(place / "x"))
    with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
        assert archive.read("x") == data
    assert (await send(form("x", data), "kernels", "none", destination=str(place)))[0] == 404


async def test_strangers_are_turned_away(send: Any, jp_fetch: Any, place: Path) -> None:
    wrong = {"Authorization": "token wrong"}
    status, _ = await send(form("a", b"x" * 300_000), destination=str(place), headers=wrong)
    assert status == 403
    with pytest.raises(HTTPClientError, match="403"):
        await jp_fetch("oh_jupyter", "download_files", params={"path": str(place)}, headers=wrong)
    assert os.listdir(place) == []


async def test_users_without_execute_permission_may_not_send_or_fetch(
    send: Any, fetch: Any, place: Path, jp_serverapp: Any, monkeypatch: Any
) -> None:
    asked = []

    def is_authorized(handler: Any, user: Any, action: str, resource: str) -> bool:
        asked.append((action, resource))
        return False

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", is_authorized)
    assert (await send(form("a", b"x"), destination=str(place)))[0] == 403
    assert (await fetch(path=str(place)))[0] == 403
    assert asked == [("execute", "oh_jupyter:actions")] * 2
