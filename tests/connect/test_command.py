"""``oh-jupyter connect`` as people run it, in a home and a project of the test's own."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from oh_jupyter.connect.clients import CLIENTS
from oh_jupyter.server.tokens import ScopedTokens
from oh_jupyter.state.ledger import Ledger

FILES = {
    "claude": (".claude.json", ".mcp.json"),
    "codex": (".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "goose": (".config/goose/config.yaml", None),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json"),
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json"),
    "jupyter-ai": (None, ".jupyter/mcp_settings.json"),
    "openhands": (".openhands/mcp.json", None),
}
LOADERS = {".json": json.loads, ".toml": tomllib.loads, ".yaml": yaml.safe_load}


def everything(place: Any) -> dict[Path, bytes]:
    folders = (place.home, place.project)
    return {
        file: file.read_bytes()
        for folder in folders
        for file in folder.rglob("*.*")
        if file.is_file()
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the files are elsewhere")
@pytest.mark.parametrize("scope", [0, 1])
@pytest.mark.parametrize("client", FILES)
def test_each_client_has_its_file_and_shape(place: Any, client: str, scope: int) -> None:
    name, option = FILES[client][scope], ("--user", "--project")[scope]
    if name is None:
        assert "has no such file" in place.refused(client, option)
        return
    file = (place.home, place.project)[scope] / name
    output = place.written(client, option, "--notebook", "a b.ipynb")
    assert str(file) in output
    assert "No Jupyter server is running here" in output
    assert "Next: " in output
    document = LOADERS[file.suffix](file.read_text())
    entry = json.dumps(document)
    assert '"args": ["mcp", "--notebook", "a b.ipynb"]' in entry
    assert "oh-jupyter" in entry
    assert len(everything(place)) == 1
    assert "already" in place.written(client, option, "--notebook", "a b.ipynb")
    printed = LOADERS[file.suffix](
        place.written(client, option, "--notebook", "a b.ipynb", "--print")
    )
    assert printed == document
    assert "removed oh-jupyter" in place.written(client, option, "--remove")
    assert "oh-jupyter" not in file.read_text()
    assert "no oh-jupyter in" in place.written(client, option, "--remove")


@pytest.mark.skipif(sys.platform != "linux", reason="the files are elsewhere")
@pytest.mark.parametrize("scope", [0, 1])
def test_a_trusted_server_is_asked_about_in_one_place(place: Any, scope: int) -> None:
    folder, option = (place.home, place.project)[scope], ("--user", "--project")[scope]
    output = place.written("codex", option, "--trust")
    assert "JupyterLab does, by the setting confirmation" in output
    codex = tomllib.loads((folder / ".codex" / "config.toml").read_text())
    assert codex["mcp_servers"]["oh-jupyter"]["default_tools_approval_mode"] == "approve"
    settings = folder / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"mcpServers": {"oh-jupyter": {"trust": false, "timeout": 5}}}')
    place.written("gemini", option)
    entry = json.loads(settings.read_text())["mcpServers"]["oh-jupyter"]
    assert (entry["trust"], entry["timeout"]) == (False, 5)
    place.written("gemini", option, "--trust")
    entry = json.loads(settings.read_text())["mcpServers"]["oh-jupyter"]
    assert (entry["trust"], entry["timeout"]) == (True, 5)
    rules = folder / ".claude" / ("settings.json", "settings.local.json")[scope]
    rules.parent.mkdir()
    rules.write_text('{"permissions": {"allow": ["Bash(ls:*)"]}, "model": "x"}')
    for _ in range(2):
        place.written("claude", option, "--trust")
        allowed = {"permissions": {"allow": ["Bash(ls:*)", "mcp__oh-jupyter"]}, "model": "x"}
        assert json.loads(rules.read_text()) == allowed
    place.written("claude", option, "--remove")
    assert json.loads(rules.read_text())["permissions"] == {"allow": ["Bash(ls:*)"]}
    assert "allow them when it asks" in place.refused("vscode", option, "--trust")


def test_every_client_is_tested_here() -> None:
    assert list(FILES) == list(CLIENTS)


def test_a_token_without_an_address_is_refused(place: Any) -> None:
    assert "--token needs --url" in place.refused("claude", "--token", "bad")
    assert everything(place) == {}


def test_printing_writes_nothing(place: Any) -> None:
    for client in CLIENTS:
        assert "oh-jupyter" in place.written(client, "--print")
    assert everything(place) == {}


def test_the_file_before_is_kept_and_its_mode(place: Any) -> None:
    file = place.home / ".claude.json"
    file.write_text('{"a": 1}')
    file.chmod(0o600)
    place.written("claude")
    assert json.loads(file.read_text())["a"] == 1
    backup = place.home / ".claude.json.before-oh-jupyter"
    assert backup.read_text() == '{"a": 1}'
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_link_stays_one(place: Any) -> None:
    real = place.home / "dotfiles.json"
    real.write_text("{}")
    (place.home / ".claude.json").symlink_to(real)
    place.written("claude")
    assert (place.home / ".claude.json").is_symlink()
    assert "oh-jupyter" in real.read_text()


def test_clients_that_were_moved_are_found(place: Any) -> None:
    for client, variable, name in (
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("goose", "XDG_CONFIG_HOME", "goose/config.yaml"),
    ):
        place.written(client, **{variable: str(place.home / "moved")})
        assert "oh-jupyter" in (place.home / "moved" / name).read_text()


def test_an_unusual_runtime_directory_is_written(place: Any) -> None:
    elsewhere = str(place.home / "run")
    for client in CLIENTS:
        assert elsewhere in place.written(client, "--print", JUPYTER_RUNTIME_DIR=elsewhere)


def test_wrong_input_is_one_line_and_changes_nothing(place: Any) -> None:
    assert "claude, codex" in place.refused("clod")
    broken = place.home / ".codex" / "config.toml"
    broken.parent.mkdir()
    broken.write_text("model = ")
    assert "is unchanged: it is not valid TOML" in place.refused("codex")
    assert "is unchanged" in place.refused("codex", "--remove")
    (place.home / ".claude.json").write_bytes(b"\xff\xfe")
    assert "cannot be read" in place.refused("claude")
    (place.home / ".gemini").write_text("no folder")
    assert "is unchanged" in place.refused("gemini")
    folder = place.home / ".cursor" / "mcp.json"
    folder.mkdir(parents=True)
    assert "cannot be read" in place.refused("cursor")
    before = everything(place)
    assert "is not the address" in place.refused("openhands", "--url", "somewhere")
    assert "cannot be reached" in place.refused("openhands", "--url", "http://127.0.0.1:9")
    assert everything(place) == before
    assert broken.read_text() == "model = "


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a file system of the kernel's")
def test_an_unwritable_file_is_reported_in_one_line(place: Any) -> None:
    assert "cannot be written" in place.refused("claude", CLAUDE_CONFIG_DIR="/sys/kernel")
    assert "cannot be written" in place.refused("codex", CODEX_HOME="/sys/kernel/new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_files_that_may_not_be_written_are_left_alone(place: Any) -> None:
    file = place.home / ".claude.json"
    file.write_text("{}")
    file.chmod(0o400)
    assert "cannot be written" in place.refused("claude")
    assert file.read_text() == "{}"


def test_an_agent_gets_a_token_of_its_own_with_only_its_scopes(place: Any) -> None:
    output = place.written("claude", "--scope", "read,edit")
    file = place.home / ".claude.json"
    entry = json.loads(file.read_text())["mcpServers"]["oh-jupyter"]
    secret = entry["env"]["OH_TOKEN"]
    assert secret.startswith("ohj_")
    assert secret not in output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    tokens = ScopedTokens(Ledger(place.state / "oh_jupyter" / "ledger.db"))
    first = tokens.find(secret)
    assert first is not None
    assert (first.scopes, first.label) == (("read", "edit"), "Claude Code")
    place.written("claude", "--scope", "read")
    assert tokens.find(secret) is None, "one token for each client"
    assert [token.scopes for token in tokens.list()] == [("read",)]
    place.written("claude", "--remove")
    assert tokens.list() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scope", "write"], "there is no scope 'write'. Scopes: read, edit, execute, browse"),
        (["--scope", ""], "name what the token allows"),
        (["--scope", "read", "--notebook", "a.ipynb"], "open a.ipynb first"),
    ],
)
def test_scopes_that_are_refused(place: Any, arguments: list[str], message: str) -> None:
    assert message in place.refused("claude", *arguments)
    assert everything(place) == {}
