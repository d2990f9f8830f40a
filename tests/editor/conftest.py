import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oh_jupyter.editor import FileEditor
from oh_jupyter.state.shared import open_ledger


@pytest.fixture(scope="session")
def seconds() -> Callable[[Callable[[], object]], float]:
    """CPU time of a call; neither other threads nor a collection of others' objects count."""

    def seconds(call: Callable[[], object]) -> float:
        gc.collect()
        gc.disable()
        try:
            start = time.thread_time()
            call()
            return time.thread_time() - start
        finally:
            gc.enable()

    return seconds


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def editor(workspace, tmp_path):
    return FileEditor(workspace, history_dir=tmp_path / "history")


@pytest.fixture
def another_editor(workspace, tmp_path):
    """A second one on the same history, as in a kernel that was restarted."""
    return FileEditor(workspace, history_dir=tmp_path / "history")


@pytest.fixture
def interrupt(tmp_path):
    """Let the last change of a file look like one whose process has died before its end."""

    def interrupt(path: Path, tag: str = "") -> None:
        file = "SELECT id FROM edited_files WHERE path = ?"
        changed = open_ledger(tmp_path / "history").execute(
            "UPDATE edits SET state = 'planned', tag = ? WHERE id = "
            f"(SELECT max(id) FROM edits WHERE file = ({file}))",
            (tag, os.fsencode(path)),
        )
        assert changed == 1

    return interrupt


@pytest.fixture
def write(workspace):
    """Write a file behind the editor's back."""

    def write(name: str, content: str | bytes) -> Path:
        path = workspace / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def open_folder():
    """A folder that everybody may enter; those of pytest are closed again by every other run."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "history").mkdir()
        (folder / "history").chmod(0o777)
        yield folder
