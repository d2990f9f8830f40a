"""deepagents on a kernel: LangChain's own suite for sandboxes, and what is ours."""

from __future__ import annotations

import asyncio
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.client import RuntimeClient
from oh_jupyter.testing import LiveServer, wait_until

pytest.importorskip("deepagents", reason="needs deepagents; make test-all installs it")
suite = pytest.importorskip("langchain_tests.integration_tests")

from deepagents.backends.filesystem import FilesystemBackend  # noqa: E402
from deepagents.backends.sandbox import BaseSandbox  # noqa: E402

from oh_jupyter.adapters.deepagents import OhSandbox  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


OLDER_CONTRACT = {
    *("test_glob", "test_glob_basic_pattern", "test_glob_with_directories"),
    *("test_glob_hidden_files_explicitly", "test_glob_with_character_class"),
    *("test_glob_with_question_mark", "test_write_existing_file_fails"),
}
"""Tests of langchain-tests 1.1.9 for deepagents before 0.7.

There, ``glob`` returned relative paths and directories, and ``write`` refused existing files.
They fail for every backend that inherits these methods from deepagents 0.7.32.
"""


@pytest.mark.thorough
class TestOhSandbox(suite.SandboxIntegrationTests):  # type: ignore[name-defined,misc]
    """LangChain's standard tests of sandboxes."""

    @pytest.fixture(autouse=True)
    def _older_contract(self, request: pytest.FixtureRequest) -> None:
        if request.node.name in OLDER_CONTRACT:
            reason = "contradicts deepagents 0.7"
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))

    @pytest.fixture(scope="class")
    def sandbox(self, server: LiveServer) -> Iterator[OhSandbox]:
        with OhSandbox(server.url, server.token) as sandbox:
            yield sandbox


@pytest.fixture(scope="module")
def box(server: LiveServer) -> Iterator[OhSandbox]:
    with OhSandbox(server.url, server.token) as sandbox:
        yield sandbox


def test_writes_and_edits_can_be_undone(
    box: OhSandbox, client: RuntimeClient, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    box.write(str(path), "one\r\ntwo")
    assert path.read_bytes() == b"one\r\ntwo"
    assert box.write(str(path), "three").error is None
    assert path.read_bytes() == b"three"
    assert box.edit(str(path), "three", "four").occurrences == 1
    for expected in (b"three", b"one\r\ntwo"):
        client.edit("undo_edit", str(path))
        assert path.read_bytes() == expected
    assert box.edit(str(path), "one\ntwo", "1\n2").error is None
    assert path.read_bytes() == b"1\r\n2"


def test_the_log_names_framework_and_command(box: OhSandbox, logged: Any, tmp_path: Path) -> None:
    box.execute("(echo hi)")
    box.write(str(tmp_path / "a.txt"), "new")
    assert logged() == [
        ("deepagents", "(echo hi)"),
        ("deepagents", f"Writing file: {tmp_path / 'a.txt'}"),
    ]


def test_output_is_unchanged(box: OhSandbox, tmp_path: Path) -> None:
    response = box.execute(r"printf ' a\tb\r\n\0c\n\n'; exit 7")
    assert (response.output, response.exit_code) == (" a\tb\r\n\0c\n\n", 7)
    assert box.execute("cat").output == ""  # no input
    assert OhSandbox.execute(box, "echo >&2 error").output == "error\n"


def test_a_time_limit_ends_the_command(box: OhSandbox, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    response = box.execute(f"echo $BASHPID >{pid}; echo started; exec sleep 1000", timeout=1)
    assert response.exit_code == 124
    assert response.output.startswith("started\n")
    assert "timed out after 1 seconds" in response.output
    wait_until(lambda: not Path("/proc", pid.read_text().strip()).exists(), what="its end")
    with pytest.raises(ValueError, match="negative"):
        box.execute("true", timeout=-1)


def test_cancelling_ends_the_command(box: OhSandbox, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    async def cancel() -> None:
        command = asyncio.create_task(box.aexecute(f"echo $BASHPID >{pid}; exec sleep 1000"))
        started = wait_until_in_thread(lambda: pid.exists() and pid.read_text().strip())
        await started
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command

    asyncio.run(cancel())
    wait_until(lambda: not Path("/proc", pid.read_text().strip()).exists(), what="its end")


def wait_until_in_thread(condition: Any) -> Any:
    return asyncio.to_thread(wait_until, condition)


def test_commands_run_at_the_same_time(box: OhSandbox, tmp_path: Path) -> None:
    """Each waits for the other."""

    def meet(mine: str, other: str) -> None:
        gates = f"mkfifo -m 600 {mine} {other} 2>/dev/null; "
        done.append(box.execute(f"cd {tmp_path}; {gates}echo >{mine} & read <{other}").exit_code)

    done: list[int | None] = []
    threads = [
        threading.Thread(target=meet, args=names)
        for names in (("left", "right"), ("right", "left"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [0, 0]


@pytest.mark.thorough
def test_large_files_there_and_back(box: OhSandbox, tmp_path: Path) -> None:
    contents = bytes(range(256)) * (400 * 1024)  # 100 MB
    path = str(tmp_path / "large.zip")  # not unpacked
    assert [each.error for each in box.upload_files([(path, contents)])] == [None]
    (fetched,) = box.download_files([path])
    assert fetched.content == contents


def test_bad_input_is_reported_in_the_frameworks_form(box: OhSandbox, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    path = str(tmp_path / "none.txt")
    assert "not found" in str(box.edit(path, "a", "b").error)
    assert "empty" in str(box.edit(path, "", "b").error)
    assert "absolute" in str(box.edit("a.txt", "a", "b").error)
    assert "absolute" in str(box.write("a.txt", "a").error)
    assert "BINARY" in str(box.edit(str(tmp_path / "binary"), "a", "b").error)
    assert "directory" in str(box.write(str(tmp_path), "a").error)
    assert box.download_files([str(tmp_path)])[0].error == "is_directory"
    assert box.execute("  ").exit_code == 1
    assert box.execute("echo 'unfinished").exit_code not in (0, None)
    with pytest.raises(ValueError, match="positive"):
        OhSandbox("http://127.0.0.1:1", timeout=0)


def test_a_replacement_by_the_same_text_succeeds_as_in_the_framework(
    box: OhSandbox, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\none\r\n")
    for arguments in (
        ("two", "two"),
        ("one", "one", True),
        ("one\ntwo", "one\ntwo"),
        ("one", "one"),
    ):
        ours = box.edit(str(path), *arguments)
        theirs = BaseSandbox.edit(box, str(path), *arguments)
        assert (ours.occurrences, bool(ours.error)) == (theirs.occurrences, bool(theirs.error))
        assert path.read_bytes() == b"one\r\ntwo\r\none\r\n"


@pytest.mark.parametrize("below", ["../outside/a.txt", "link/a.txt", "link.txt", "in/../../a.txt"])
def test_files_outside_of_the_directory_stay(
    server: LiveServer, tmp_path: Path, below: str
) -> None:
    """Like in ``FilesystemBackend``, the framework's reference of a backend with a root."""
    cwd, outside = tmp_path / "cwd", tmp_path / "outside"
    for folder in (cwd, cwd / "a" / "b", outside):
        folder.mkdir(parents=True)
    (cwd / "link").symlink_to(outside)
    (cwd / "link.txt").symlink_to(outside / "a.txt")
    (cwd / "in").symlink_to("a/b")
    (outside / "a.txt").write_text("one")
    reference = FilesystemBackend(cwd, virtual_mode=True)
    with pytest.raises(ValueError, match=r"traversal|outside"):
        reference.write(f"/{below}", "new")
    with OhSandbox(server.url, server.token, cwd=str(cwd)) as box:
        path = f"{cwd}/{below}"
        assert "outside of" in str(box.write(path, "new").error)
        assert box.edit(path, "one", "two").error
        assert box.upload_files([(path, b"new")])[0].error
        if below != "link.txt":  # the link itself may be deleted
            assert box.delete(path).error
        assert box.delete(str(cwd)).error
        written = box.write(f"{cwd}/a/../a.txt", "new")
        assert written.error is None
        assert box.delete(f"{cwd}/a.txt").error is None
    assert [each.name for each in outside.iterdir()] == ["a.txt"]
    assert (outside / "a.txt").read_text() == "one"
    assert not (cwd / "a.txt").exists()


def test_the_example_runs(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OH_URL", server.url)
    monkeypatch.setenv("OH_TOKEN", server.token)
    example = Path(__file__).parents[2] / "examples" / "deepagents_sandbox.py"
    printed = runpy.run_path(str(example))["main"]()
    assert "Successfully replaced 1" in printed
    assert "tool: hello, you" in printed
