"""Behavior common to all adapters, and errors without their frameworks."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from oh_jupyter.adapters.connection import connect
from oh_jupyter.client import RuntimeClient
from oh_jupyter.errors import (
    ExtraMissingError,
    ServerError,
    TransferError,
    TransferTooLargeError,
)
from oh_jupyter.events import CmdRunAction, FileEditAction, FileWriteAction
from oh_jupyter.testing import LiveServer


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("deepagents", "deepagents", "deepagents"),
        ("harbor", "harbor", "harbor"),
        ("inspect_ai", "inspect_ai", "inspect-ai"),
        ("openai_agents", "agents", "openai-agents"),
        ("smolagents", "smolagents", "smolagents"),
    ],
)
def test_a_missing_framework_names_its_extra(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [each for each in sys.modules if each.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, f"oh_jupyter.adapters.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ExtraMissingError, match=rf"pip install 'oh_jupyter\[{extra}\]'$") as caught:
        importlib.import_module(f"oh_jupyter.adapters.{name}")
    assert isinstance(caught.value, ImportError)


def test_without_a_server_the_error_explains_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OH_URL", raising=False)
    with pytest.raises(ServerError, match="oh-jupyter env"):
        connect("a framework")


@pytest.mark.thorough
def test_exact_output_and_contents(server: LiveServer) -> None:
    path = str(server.directory / "a.zip")
    with RuntimeClient(server.url, server.token) as client:
        command = CmdRunAction(r"printf ' a\tb\r\n\0c\n\n'", is_static=True, exact=True)
        assert client.execute(command).content == " a\tb\r\n\0c\n\n"
        long = CmdRunAction("seq 9000", is_static=True, exact=True)
        assert client.execute(long).content == "".join(f"{n}\n" for n in range(1, 9001))
        client.write_bytes(path, b"no zip file")
        assert client.read_bytes(path, 11) == b"no zip file"
        with pytest.raises(TransferTooLargeError, match="larger than 10 bytes"):
            client.read_bytes(path, 10)
        client.execute(FileWriteAction(path, "one\r\ntwo", exact=True))
        assert client.read_bytes(path) == b"one\r\ntwo"
        client.edit("undo_edit", path)
        assert client.read_bytes(path) == b"no zip file"
        ranged = client.execute(FileWriteAction(path, "x", start=1, exact=True))
        assert "leave out start and end" in ranged.content


def test_changes_stay_within_a_directory(client: RuntimeClient, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    patch = "*** Begin Patch\n*** Add File: {}\n+new\n*** End Patch"
    within = str(inside)
    tries = [
        FileWriteAction(f"{inside}/../out/a", "new", within=within),
        FileWriteAction(f"{outside}/a", "new", within=within),
        FileEditAction(f"{inside}/link/a", "create", file_text="new", within=within),
        FileEditAction(within, "apply_patch", content=patch.format("link/a"), within=within),
        FileWriteAction(f"{inside}/a", "new", within=""),  # the workspace is elsewhere
    ]
    for action in tries:
        assert "is outside of" in client.execute(action).content
    with pytest.raises(TransferError, match="is outside of"):
        client.write_bytes(f"{inside}/link/a", b"new", within=within)
    assert not list(outside.iterdir())
    client.execute(FileEditAction(within, "apply_patch", content=patch.format("b"), within=within))
    client.write_bytes(f"{inside}/c", b"new", within=within)
    assert sorted(path.name for path in inside.iterdir()) == ["b", "c", "link"]
