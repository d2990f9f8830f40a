import errno
import os
import secrets
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from oh_jupyter.errors import StorageError, StoreConfigError, StorePathError
from oh_jupyter.storage import LocalFileStore
from oh_jupyter.storage.local import directory
from oh_jupyter.testing import FileStoreContract


@pytest.fixture
def store(tmp_path):
    return LocalFileStore(str(tmp_path / "root"))


class TestLocal(FileStoreContract):
    missing_directory_is_an_error = True


class TestLocalByName(FileStoreContract):
    """The way of platforms that cannot open relative to a directory."""

    missing_directory_is_an_error = True

    @pytest.fixture(autouse=True)
    def _by_name(self, monkeypatch):
        monkeypatch.setattr(directory, "_BY_DESCRIPTOR", False)

    def test_links(self, store, tmp_path):
        refuses_links(store, tmp_path)


def refuses_links(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    os.symlink(outside, os.path.join(store.root, "dir"))
    os.symlink(outside / "secret", os.path.join(store.root, "file"))
    os.symlink(outside / "new", os.path.join(store.root, "dangling"))
    for use in (
        lambda: store.read("dir/secret"),
        lambda: store.read("file"),
        lambda: store.write("dir/secret", "x"),
        lambda: store.write("dir/new", "x"),
        lambda: store.write("file", "x"),
        lambda: store.write("dangling", "x"),
        lambda: store.list("dir"),
        lambda: store.delete("dir/secret"),
        lambda: store.info("dir/secret"),
        lambda: store.open("dir/x", "wb"),
    ):
        with pytest.raises(StorePathError, match="symbolic link"):
            use()
    assert store.list("") == []
    for name in ("dir", "file", "dangling"):
        store.delete(name)
        assert not os.path.lexists(os.path.join(store.root, name))
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_links(store, tmp_path):
    refuses_links(store, tmp_path)


def test_deleting_a_tree_leaves_the_targets_of_links(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("x")
    store.write("d/f", "x")
    os.symlink(outside, os.path.join(store.root, "d", "link"))
    store.delete("d")
    assert (outside / "f").read_text() == "x"


def test_a_link_that_is_swapped_in_leads_nowhere(store, tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.mkdir()
    store.write("d/keep", "x")
    real, token_hex = store.get_full_path("d"), secrets.token_hex

    def swap(length):
        # Names of temporaries are made between the check of the path and its use.
        os.rename(real, real + "-aside")
        os.symlink(outside, real)
        return token_hex(length)

    monkeypatch.setattr(secrets, "token_hex", swap)
    store.write("d/f", "x")
    assert os.listdir(outside) == []
    assert sorted(os.listdir(real + "-aside")) == ["f", "keep"]


def test_root_may_be_a_link_and_is_absolute(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")
    LocalFileStore(str(tmp_path / "link")).write("f", "x")
    assert (tmp_path / "real" / "f").read_text() == "x"
    monkeypatch.chdir(tmp_path)
    relative = LocalFileStore("here")
    monkeypatch.chdir("/")
    relative.write("f", "x")
    assert (tmp_path / "here" / "f").read_text() == "x"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert LocalFileStore("~/home").root == str(tmp_path / "home")


@pytest.mark.parametrize("root", ["", None, 5])
def test_root_has_to_be_a_path(root):
    with pytest.raises(StoreConfigError, match="file_store_path"):
        LocalFileStore(root)


def test_root_cannot_be_made(tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.raises(StorageError, match="Cannot create"):
        LocalFileStore(str(tmp_path / "f" / "below"))


def test_full_path(store):
    assert store.get_full_path("/a/./b") == os.path.join(store.root, "a", "b")
    assert store.get_absolute_path("a") == os.path.join(store.root, "a")
    with pytest.raises(StorePathError):
        store.get_full_path("../a")


def test_a_file_where_a_directory_is_needed(store):
    store.write("a", "x")
    with pytest.raises(NotADirectoryError):
        store.write("a/b", "y")
    store.write("d/f", "x")
    with pytest.raises(IsADirectoryError):
        store.write("d", "y")
    assert store.read("a") == "x"
    assert store.read("d/f") == "x"


def test_names_that_the_disk_cannot_have(store):
    with pytest.raises(StorePathError, match="shorter"):
        store.write("x" * 300, "x")
    with pytest.raises(StorePathError, match="reserved for temporary files"):
        store.write(".oh-0123456789abcdef.tmp", "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no named pipes")
def test_a_pipe_is_no_file_and_is_not_waited_for(store):
    os.mkfifo(os.path.join(store.root, "pipe"))
    assert store.list("") == []
    with pytest.raises(StorePathError, match="not a regular file"):
        store.read("pipe")
    with pytest.raises(StorePathError, match="not a regular file"):
        store.write("pipe", "x")


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX's")
def test_permissions_stay(store):
    store.write("f", "x")
    umask = os.umask(0)
    os.umask(umask)
    path = store.get_full_path("f")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o666 & ~umask
    os.chmod(path, 0o640)
    store.write("f", "y")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_temporaries_are_hidden(store):
    with store.open("d/f", "wb") as file:
        file.write(b"x")
        file.flush()
        assert len(os.listdir(store.get_full_path("d"))) == 1
        assert store.list("d") == []
    assert os.listdir(store.get_full_path("d")) == ["f"]


def open_files(folder: str) -> list[str]:
    """Return the files in a folder that this process has open; other threads have others."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed meanwhile
            names.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(name for name in names if name.startswith(folder))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a list of open files")
def test_no_descriptor_is_leaked(store):
    folder = os.path.realpath(store.get_full_path(""))
    before = open_files(folder)
    with store.open("a/z", "wb") as file:
        assert len(open_files(folder)) > len(before)
        file.write(b"")
    store.write("a/b/c", "x")
    store.read("a/b/c")
    store.list("a/b")
    with store.open("a/x", "w") as file:
        file.write("x")
    file = store.open("a/y", "wb")
    file.abandon()
    for path, error in (("a", IsADirectoryError), ("nope", FileNotFoundError)):
        with pytest.raises(error):
            store.read(path)
    store.delete("a")
    assert open_files(folder) == before


def test_fsync(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_mode), real(fd)))
    LocalFileStore(str(tmp_path)).write("f", "x")
    assert synced == []
    LocalFileStore(str(tmp_path), fsync=True).write("f", "y")
    assert [stat.S_ISDIR(mode) for mode in synced] == [False, True]


def test_a_full_disk_keeps_the_old_contents(small_disk):
    store = LocalFileStore(str(small_disk))
    store.write("f", "old")
    with pytest.raises(StorageError, match="No space left") as caught:
        store.write("f", b"x" * 2_000_000)
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space left"), store.open("f", "wb") as file:  # noqa: PT012
        for _ in range(200):
            file.write(b"x" * 10_000)
    assert store.read("f") == "old"
    assert os.listdir(small_disk) == ["f"]
    store.write("f", b"y" * 600_000)
    assert store.info("f")["size"] == 600_000


def test_a_full_disk_without_a_mount(store):
    resource = pytest.importorskip("resource")
    store.write("f", "old")
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1]))
    try:
        with pytest.raises(StorageError) as caught:
            store.write("f", b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.errno == errno.EFBIG
    assert store.read("f") == "old"
    assert os.listdir(store.root) == ["f"]


def test_kill_leaves_whole_files(store):
    program = (
        "import sys\n"
        "from oh_jupyter.storage import LocalFileStore\n"
        "store = LocalFileStore(sys.argv[1])\n"
        "for n in range(10**9):\n"
        "    store.write('f', bytes([65 + n % 26]) * 3_000_000)\n"
        "    if n == 0: print('started', flush=True)\n"
    )
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", program, store.root], stdout=subprocess.PIPE, text=True
        )
        with writer:
            assert writer.stdout.readline() == "started\n"
            writer.kill()
        contents = store.read_bytes("f")
        assert len(contents) == 3_000_000
        assert contents == contents[:1] * len(contents)
    assert store.list("") == ["f"]


def test_writing_while_the_directory_is_deleted(store):
    def write(worker):
        for n in range(200):
            store.write(f"d/sub/{worker}", str(n))

    def delete():
        for _ in range(200):
            store.delete("d")

    with ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(write, worker) for worker in range(3)]
        jobs += [pool.submit(delete), pool.submit(delete)]
        for job in jobs:
            job.result()
    store.write("d/sub/f", "last")
    assert store.read("d/sub/f") == "last"


def test_two_processes_on_one_store(store):
    program = (
        "import sys\n"
        "from oh_jupyter.storage import LocalFileStore\n"
        "store = LocalFileStore(sys.argv[1])\n"
        "for n in range(300):\n"
        "    store.write('shared', sys.argv[2] * 50_000)\n"
        "    store.write(f'{sys.argv[2]}/{n}', str(n))\n"
        "    assert len(set(store.read('shared'))) == 1\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, store.root, name]) for name in ("a", "b")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(store.list("a")) == len(store.list("b")) == 300


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_fork(store):
    store.write("parent", "x")
    child = os.fork()
    if not child:
        store.write("child", store.read("parent"))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert store.read("child") == "x"


def test_a_c_locale_changes_nothing(store):
    program = (
        "import sys\n"
        "from oh_jupyter.storage import LocalFileStore\n"
        "store = LocalFileStore(sys.argv[1])\n"
        "store.write('text', 'gr\\xfc\\xdfe\\r\\n')\n"
        "assert store.read('text') == 'gr\\xfc\\xdfe\\r\\n'\n"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program, store.root], env=environment, stderr=subprocess.PIPE
    )
    assert done.returncode == 0, done.stderr.decode()
    assert store.read_bytes("text") == "grüße\r\n".encode()
