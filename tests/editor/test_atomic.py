import errno
import os
import stat
import subprocess
import sys

import pytest

from oh_jupyter.editor import EditorError
from oh_jupyter.editor.files import atomic_write


def edit(editor, path, old="old", new="new"):
    return editor(command="str_replace", path=path, old_str=old, new_str=new)


def test_mode_is_kept_and_new_files_follow_the_umask(editor, workspace, write):
    path = write("a.sh", "old")
    path.chmod(0o751)
    edit(editor, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    umask = os.umask(0o027)
    try:
        editor(command="create", path=workspace / "b", file_text="")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((workspace / "b").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_is_kept(editor, write):
    path = write("a", "old")
    os.chown(path, 1234, 4321)
    edit(editor, path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_links_stay_links(editor, workspace, write):
    path = write("a", "old")
    (workspace / "link").symlink_to("a")
    edit(editor, workspace / "link")
    assert (workspace / "link").is_symlink()
    assert path.read_bytes() == b"new"
    assert [entry.command for entry in editor.history(path)] == ["str_replace"]
    editor(command="undo_edit", path=path)
    assert (workspace / "link").read_bytes() == b"old"


def test_a_dangling_link_gets_its_target(editor, workspace):
    (workspace / "link").symlink_to("target")
    editor(command="create", path=workspace / "link", file_text="x")
    assert (workspace / "target").read_bytes() == b"x"


def test_hard_links_stay_together(editor, workspace, write):
    path = write("a", "old and long")
    os.link(path, workspace / "b")
    edit(editor, path, "old and long", "new")
    assert (workspace / "b").read_bytes() == b"new"
    assert path.stat().st_nlink == 2


def test_extended_attributes_are_kept(editor, write):
    path = write("a", "old")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    edit(editor, path)
    assert os.getxattr(path, "user.note") == b"kept"


def test_no_temporary_file_is_left(editor, workspace, write):
    edit(editor, write("a", "old"))
    assert os.listdir(workspace) == ["a"]


def test_a_full_disk_leaves_the_old_file(editor, workspace, write):
    # A limit on the size of files fails in write() just as a full disk does.
    program = """if True:
        import resource, signal, sys
        from oh_jupyter.editor import EditorError, FileEditor
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        editor = FileEditor(sys.argv[1], history_dir=sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        for path in sys.argv[3:]:
            try:
                editor(command="str_replace", path=path, old_str="old", new_str="x" * 100_000)
            except EditorError as error:
                print(error)
    """
    single, linked = write("a", "old"), write("b", "old")
    os.link(linked, workspace / "c")
    arguments = [workspace, workspace.parent / "history", single, linked]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("[Errno 27] File too large") == 2
    files = {path.name: path.read_bytes() for path in workspace.iterdir()}
    assert files == dict.fromkeys("abc", b"old")
    edit(editor, single)
    assert single.read_bytes() == b"new"


def test_a_file_that_cannot_be_exchanged_is_written_in_place(tmp_path, monkeypatch):
    path = tmp_path / "mounted"
    path.write_bytes(b"old")
    inode = path.stat().st_ino

    def busy(*_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", busy)
        atomic_write.replace(path, b"new")
    assert (path.read_bytes(), path.stat().st_ino) == (b"new", inode)
    assert os.listdir(tmp_path) == ["mounted"]


NOBODY = """if True:
    import fcntl, os, sys  # what is imported at its first use, too
    import oh_jupyter.state.ledger
    from oh_jupyter.editor import EditorError, FileEditor
    editor = FileEditor(sys.argv[1], history_dir=sys.argv[2])
    os.setgroups([]); os.setgid(65534); os.setuid(65534)  # after the imports, which root may do
    try:
        print(editor(command="str_replace", path=sys.argv[3], old_str="old", new_str="new").output)
    except EditorError as error:
        print(error)
"""


def as_nobody(folder, path):
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, folder, folder / "history", path],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody")
def test_permissions_and_owners_are_respected(open_folder):
    locked, shared = open_folder / "locked", open_folder / "shared"
    for path in (locked, shared):
        path.write_text("old")
    locked.chmod(0o644)
    shared.chmod(0o666)
    assert "Permission denied" in as_nobody(open_folder, locked)
    assert locked.read_bytes() == b"old"
    assert "has been edited" in as_nobody(open_folder, shared)
    assert (shared.read_bytes(), shared.stat().st_uid) == (b"new", 0)


def test_the_history_folder_cannot_be_written(workspace, write, tmp_path):
    from oh_jupyter.editor import FileEditor

    (tmp_path / "file").touch()
    path = write("a", "old")
    editor = FileEditor(workspace, history_dir=tmp_path / "file" / "history")
    with pytest.raises(EditorError, match=r"edit history in .* cannot be read or written"):
        edit(editor, path)
    assert path.read_bytes() == b"old"
    assert "old" in editor(command="view", path=path).output


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "日" * 85, "a" + "😀" * 63])
def test_a_name_may_be_as_long_as_the_system_takes(editor, workspace, name):
    path = workspace / name
    editor(command="create", path=path, file_text="old")
    edit(editor, path)
    assert path.read_text() == "new"
    assert [entry.name for entry in workspace.iterdir()] == [name]
