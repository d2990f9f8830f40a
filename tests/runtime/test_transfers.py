"""Uploads and downloads: what is never replaced, never sent, and never without a bound."""

from __future__ import annotations

import io
import os
import shutil
import socket
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oh_jupyter.errors import TransferError, TransferTooLargeError
from oh_jupyter.runtime.transfers import unpacking
from oh_jupyter.runtime.transfers.downloads import check_source, zipped
from oh_jupyter.runtime.transfers.uploads import HeldUpload, Upload, UploadTarget

MAX_BYTES = 4 * 1024**3


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short name: that of a socket may have 107 bytes."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def upload(place: Path, name: str, data: bytes, max_bytes: int = MAX_BYTES) -> None:
    one = Upload(str(place), name, recursive=False, max_bytes=max_bytes)
    try:
        one.write(data)
        one.finish()
    finally:
        one.abort()


def archive(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in members.items():
            opened.writestr(name, data)
    return sink.getvalue()


def download(source: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(b"".join(zipped(check_source(str(source))))))


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


SPECIAL: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a socket": make_socket,
    "a device": lambda path: path.symlink_to("/dev/null"),
    "a directory": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("zipped_up", [False, True], ids=["file", "zip"])
def test_only_regular_files_are_replaced(place: Path, kind: str, zipped_up: bool) -> None:
    SPECIAL[kind](place / "taken")
    before = (place / "taken").lstat()
    sent = ("all.zip", archive({"a": b"a", "taken": b"x"})) if zipped_up else ("taken", b"x")
    with pytest.raises(TransferError, match=f"taken is {kind}: only regular files"):
        upload(place, *sent)
    after = (place / "taken").lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert os.listdir(place) == ["taken"]


def test_a_device_that_comes_while_the_upload_is_under_way_stays(place: Path) -> None:
    one = Upload(str(place), "late", recursive=False, max_bytes=MAX_BYTES)
    one.write(b"x")
    os.mkfifo(place / "late")
    with pytest.raises(TransferError, match="late is a named pipe"):
        one.finish()
    assert stat.S_ISFIFO((place / "late").stat().st_mode)
    assert os.listdir(place) == ["late"]


def test_files_and_links_to_files_are_replaced(place: Path) -> None:
    (place / "file").write_bytes(b"old")
    (place / "link").symlink_to("file")
    upload(place, "link", b"new")
    assert (place / "link").is_symlink()
    assert (place / "file").read_bytes() == b"new"
    upload(place, "all.zip", archive({"file": b"newer"}))
    assert (place / "file").read_bytes() == b"newer"


def test_a_read_only_file_is_not_replaced(place: Path) -> None:
    (place / "a").write_bytes(b"old")
    (place / "a").chmod(0o444)
    if os.access(place / "a", os.W_OK):
        pytest.skip("this user may write every file")
    with pytest.raises(TransferError, match="may not be written"):
        upload(place, "a", b"new")
    assert (place / "a").read_bytes() == b"old"


def test_an_archive_that_unpacks_to_too_much_for_its_size_is_refused(place: Path) -> None:
    bomb = archive({"zeros": b"\0" * (unpacking.RATIO_FREE_BYTES + 1)})
    assert len(bomb) < 200_000
    with pytest.raises(TransferTooLargeError, match="100 times its own size"):
        upload(place, "bomb.zip", bomb)
    assert os.listdir(place) == []
    upload(place, "well.zip", archive({"zeros": b"\0" * 1_000_000}))
    assert (place / "zeros").stat().st_size == 1_000_000


def test_the_sizes_in_an_archive_are_not_trusted(place: Path, monkeypatch) -> None:
    monkeypatch.setattr(unpacking, "RATIO_FREE_BYTES", 1000)
    data = bytearray(archive({"zeros": b"\0" * 1_000_000}))
    for header in (b"PK\x03\x04", b"PK\x01\x02"):  # the size is behind the compressed one
        at = data.index(header) + (22 if header == b"PK\x03\x04" else 24)
        data[at : at + 4] = (10).to_bytes(4, "little")
    with pytest.raises(TransferError, match=r"bomb\.zip"):
        upload(place, "bomb.zip", bytes(data))
    assert os.listdir(place) == []


def test_a_directory_that_becomes_a_link_while_files_are_moved(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    replace = os.replace

    def swap_and_replace(source: str, target: str, **descriptors: int) -> None:
        replace(source, target, **descriptors)
        if str(target).endswith("first"):
            (place / "a").rename(place / "away")
            (place / "a").symlink_to(outside)

    monkeypatch.setattr(os, "replace", swap_and_replace)
    with pytest.raises(TransferError):
        upload(place, "all.zip", archive({"a/first": b"x", "a/second": b"x"}))
    assert os.listdir(outside) == []


def test_a_new_file_that_becomes_a_link_keeps_its_target(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret").chmod(0o600)
    (place / "a").write_text("old")
    (place / "a").chmod(0o666)
    link = os.link

    def link_and_swap(source: str, target: Path, **descriptors: int) -> None:
        link(source, target, **descriptors)
        os.unlink(target)
        os.symlink(tmp_path / "secret", target)

    monkeypatch.setattr(os, "link", link_and_swap)
    upload(place, "a", b"new")
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_an_archive_leaves_room_on_the_disk(place: Path, monkeypatch) -> None:
    usage = shutil.disk_usage(place)._replace(free=1_000_000)
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(TransferTooLargeError, match="free disk space"):
        upload(place, "all.zip", archive({"random": os.urandom(950_000)}))
    assert os.listdir(place) == []


def test_special_files_are_left_out_and_named(place: Path) -> None:
    (place / "sub").mkdir()
    (place / "a.txt").write_text("a")
    os.mkfifo(place / "sub/pipe")
    make_socket(place / "socket")
    (place / "null").symlink_to("/dev/null")
    (place / "dangling").symlink_to("nothing")
    (place / "loop").symlink_to(place)
    with download(place) as zip_file:
        assert zip_file.namelist() == ["a.txt"]
        assert zip_file.comment.decode().splitlines() == [
            "Left out:",
            "dangling: a link to nothing",
            "null: a device",
            "socket: a socket",
            "sub/pipe: a named pipe",
        ]
    with download(place / "a.txt") as zip_file:
        assert zip_file.comment == b""


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="there is no /proc here")
def test_virtual_files_are_left_out_and_named(place: Path, monkeypatch) -> None:
    for path in ("/proc", "/proc/kmsg"):
        with pytest.raises(TransferError, match="is a virtual file"):
            check_source(path)
    (place / "link").symlink_to("/proc/kmsg")  # a regular file, whose reader waits for news
    with download(place) as zip_file:
        assert zip_file.namelist() == []
        assert zip_file.comment.decode().splitlines()[1] == "link: a virtual file"


def test_a_file_that_becomes_a_pipe_does_not_block(place: Path, monkeypatch) -> None:
    (place / "a").write_text("a")
    (place / "b").write_text("b")
    pieces = zipped(check_source(str(place)))
    taken = Path.stat

    def swapped(self: Path, **options):
        status = taken(self, **options)
        if self.name == "b" and stat.S_ISREG(status.st_mode):
            self.unlink()
            os.mkfifo(self)
        return status

    monkeypatch.setattr(Path, "stat", swapped)
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as zip_file:
        assert zip_file.namelist() == ["a"]
        assert "b: it is a named pipe" in zip_file.comment.decode()


def held_upload(directory: Path, name: str, data: bytes) -> HeldUpload:
    target = UploadTarget.parse(str(directory), name, recursive=False, exact=False)

    def make(destination: str, filename: str) -> Upload:
        return Upload(destination, filename, recursive=False, max_bytes=MAX_BYTES, follows=False)

    async def approve(paths: object) -> None: ...

    held = HeldUpload(target, make, MAX_BYTES, None, approve)
    held.write(data)
    return held


def test_a_directory_that_becomes_a_link_after_the_approval(place: Path) -> None:
    """Neither a file nor a new directory gets to the link's target."""
    outside, work = place / "outside", place / "work"
    outside.mkdir()
    for new in ("", "new/deeper"):
        (work / "sub").mkdir(parents=True)
        held = held_upload(work / "sub" / new, "a", b"x")
        assert held.paths() == [str(work / "sub" / new / "a")]
        shutil.rmtree(work / "sub")
        (work / "sub").symlink_to(outside)
        with pytest.raises(TransferError, match="has become a link"):
            held.finish()
        shutil.rmtree(work)
    assert os.listdir(outside) == []


@pytest.mark.parametrize("moment", ["approved", "checked", "unpacked"])
def test_a_directory_of_an_archive_that_becomes_a_link(
    place: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    outside, work = place / "outside", place / "work"
    outside.mkdir()
    (work / "sub").mkdir(parents=True)

    def swap(*arguments: object) -> None:
        if not (work / "sub").is_symlink():
            (work / "sub").rename(work / "away")
            (work / "sub").symlink_to(outside)

    held = held_upload(work, "a.zip", archive({"sub/file": b"x", "sub/new/file": b"x"}))
    name = {"checked": "_unpack_member", "unpacked": "_make_directory"}.get(moment)
    if name is None:
        swap()
    else:
        real = getattr(unpacking, name)
        monkeypatch.setattr(unpacking, name, lambda *each: (swap(), real(*each)))
    with pytest.raises(TransferError, match="leads out of the destination"):
        held.finish()
    assert os.listdir(outside) == []
    assert not [each for each in os.listdir(work) if each.startswith(".oh_upload")]


def test_the_directory_of_unpacked_files_cannot_be_redirected(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, work = place / "outside", place / "work"
    for each in (outside, work):
        each.mkdir()
    real = unpacking._unpack_member

    def swap(*arguments: object) -> None:
        (staging,) = (each for each in work.iterdir() if each.name.startswith(".oh_upload"))
        staging.rename(work / "away")
        staging.symlink_to(outside)
        real(*arguments)

    monkeypatch.setattr(unpacking, "_unpack_member", swap)
    held_upload(work, "a.zip", archive({"sub/file": b"x"})).finish()
    assert (work / "sub" / "file").read_bytes() == b"x"
    assert os.listdir(outside) == []
