"""Settings that a folder brings with it, and names that are no settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.cli import main
from oh_jupyter.config import Settings, check_name, folder_settings, load_settings, read_settings
from oh_jupyter.errors import ConfigError
from oh_jupyter.state.shared import close_ledgers, open_ledger
from oh_jupyter.trust import is_trusted, untrusted_notice

LOOSE = """
[core]
workspace_dir = "/elsewhere"
confirmation = "never"
browser_path = "/elsewhere/chromium"
sandbox_writable = ["/elsewhere"]
sandbox_hosts = ["evil.example"]
plugins = ["jupyter", "vscode"]
file_store = "memory"

[core.agents]
claude = "/elsewhere/agent"

[[mcp.stdio_servers]]
name = "evil"
command = "/elsewhere/server"
"""

TIGHT = """
[core]
sandbox = "required"
sandbox_network = "listed"
confirmation = "always"
untrusted_text = false
sandbox_hidden = ["data"]
max_upload_mb = 1.5
sandbox_max_processes = 9999
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a state directory of its own beside it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


def held() -> dict[str, Any]:
    """The settings that differ from the defaults."""
    settings = load_settings(environ={}, is_trusted=is_trusted)
    values = {name: getattr(settings, name) for name in Settings.__dataclass_fields__}
    return {name: value for name, value in values.items() if value != getattr(Settings(), name)}


def test_a_folder_loosens_nothing_until_a_person_trusts_it(folder: Path, capsys: Any) -> None:
    file = folder / "config.toml"
    file.write_text(LOOSE)
    assert held() == {}
    assert main(["trust", "--show"]) == 0
    shown = capsys.readouterr().out
    assert 'workspace_dir = "/elsewhere"' in shown
    assert '"command": "/elsewhere/server"' in shown
    assert held() == {}
    assert main(["trust"]) == 0
    assert held().keys() == {
        *("agents", "browser_path", "confirmation", "file_store", "mcp_servers", "plugins"),
        *("sandbox_hosts", "sandbox_writable", "workspace_dir"),
    }
    file.write_text(LOOSE.replace('"never"', '"risky" '))
    assert held() == {"confirmation": "risky"}
    file.write_text(LOOSE)
    assert held()["confirmation"] == "never"
    assert main(["trust", "--forget"]) == 0
    assert held() == {}


def test_a_copy_in_another_folder_is_not_trusted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.toml").write_text(LOOSE)
    assert main(["trust"]) == 0
    (tmp_path / "config.toml").write_text(LOOSE)
    monkeypatch.chdir(tmp_path)
    assert held() == {}


def test_a_file_whose_name_is_not_unicode_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "config.toml").write_text(LOOSE)
    assert main(["trust"]) == 0
    assert held()["confirmation"] == "never"
    assert main(["trust", "--forget"]) == 0
    assert held() == {}


def test_an_unusable_ledger_trusts_nothing(folder: Path, capsys: Any) -> None:
    (folder / "config.toml").write_text(LOOSE)
    assert main(["trust"]) == 0
    path = open_ledger().path
    assert path is not None
    close_ledgers()
    path.unlink()
    path.mkdir()
    assert held() == {}
    assert "config.toml sets" in untrusted_notice()
    capsys.readouterr()
    assert main(["trust"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"oh-jupyter: The ledger {path} cannot be read or written")
    assert error.count("\n") == 1


def test_a_folder_without_settings_needs_no_database(folder: Path) -> None:
    code = (
        "import sys; from oh_jupyter.config import load_settings\n"
        "from oh_jupyter.trust import is_trusted, untrusted_notice\n"
        "load_settings(is_trusted=is_trusted), untrusted_notice()\n"
        "print('sqlite3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_folder_tightens_limits_unasked(folder: Path) -> None:
    (folder / "config.toml").write_text(TIGHT)
    assert held() == {
        "sandbox": "required",
        "sandbox_hidden": ("data",),
        "confirmation": "always",
        "max_upload_mb": 1.5,
    }
    _, values = folder_settings(is_trusted=is_trusted)
    assert values.keys() == {"sandbox_network", "untrusted_text", "sandbox_max_processes"}


@pytest.mark.parametrize("trusts", [False, True])
def test_a_folder_never_widens_an_operators_limits(folder: Path, trusts: bool) -> None:
    (folder / "config.toml").write_text(
        '[core]\nsandbox_network = "host"\nenable_browser = true\n[core.policy]\nshell = "on"\n'
        'network = "on"\nbrowser = "on"\napprovals_over_rest = "off"\nplugins = "jupyter"\n'
    )
    if trusts:
        assert main(["trust"]) == 0
    explicit = {"policy": {"shell": "off"}, "sandbox_network": "none", "enable_browser": False}
    settings = load_settings(explicit, environ={}, is_trusted=is_trusted)
    assert settings.policy == {"shell": "off", "approvals_over_rest": "off", "plugins": "jupyter"}
    assert (settings.sandbox_network, settings.enable_browser) == ("none", False)
    environ = {"OH_JUPYTER_POLICY": '{"shell": "off", "plugins": "agent_skills"}'}
    policy = load_settings(environ=environ, is_trusted=is_trusted).policy or {}
    assert (policy["shell"], policy["plugins"]) == ("off", "agent_skills")


def test_an_unusable_file_sets_nothing_and_stops_nothing(folder: Path) -> None:
    file = folder / "config.toml"
    for text in ("[core", "core = 5", "[core]\nsandbox = 3\n", "[core]\nsandbx = 'required'\n"):
        file.write_text(text)
        assert held() == {}
    file.unlink()
    os.mkfifo(file)
    assert held() == {}
    file.unlink()
    file.symlink_to("/dev/zero")
    assert held() == {}


def test_errors_are_reported_when_a_user_trusts_a_folder(
    folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed(*words: str) -> str:
        main(["trust", *words])
        return str(capsys.readouterr().err)

    assert printed() == f"oh-jupyter: There is no config.toml in {folder}. Name its folder\n"
    (folder / "config.toml").write_text("[core")
    assert "config.toml cannot be read: Expected ']'" in printed()
    (folder / "config.toml").write_text("[core]\nsandbx = 'auto'\nmax_upload_mb = -1\n")
    assert "sandbx" in printed("--show")
    assert "Did you mean sandbox?" in printed("--show")
    assert "must be a number greater than 0, not -1" in printed("--show")
    monkeypatch.setenv("OH_JUPYTER_CONFIG_FILE", "/named.toml")
    assert "names /named.toml, so no folder's file is used" in printed()


def test_the_file_that_the_operator_names_holds(folder: Path) -> None:
    (folder / "config.toml").write_text(LOOSE)
    environ = {"OH_JUPYTER_CONFIG_FILE": str(folder / "config.toml")}
    assert load_settings(environ=environ).confirmation == "never"


def test_a_name_that_is_no_setting_is_refused_with_the_nearest(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"no setting 'sandbx'. Did you mean sandbox\?"):
        check_name("sandbx")
    with pytest.raises(ConfigError, match=r"no setting 'sandbx'. Did you mean sandbox\?"):
        load_settings({"sandbx": "required"}, environ={})
    with pytest.raises(ConfigError, match=r"OH_JUPYTER_SANDBX .* OH_JUPYTER_SANDBOX\?"):
        load_settings(environ={"OH_JUPYTER_SANDBX": "required"})
    with pytest.raises(ConfigError, match=r"OH_JUPYTER_PLUGINS .* c\.OhJupyter\.plugins\?"):
        load_settings(environ={"OH_JUPYTER_PLUGINS": "jupyter"})
    with pytest.raises(ConfigError, match=r"capability 'shel'. Did you mean shell\?"):
        load_settings({"policy": {"shel": "off"}}, environ={})
    file = folder / "named.toml"
    file.write_text('[core]\nsandbx = "required"\nmax_iterations = 5\nworkspace_base = "x"\n')
    _, faults = read_settings(environ={}, config_file=file)
    assert [str(fault) for fault in faults] == [
        f"[core] sandbx in {file} does not exist. Did you mean sandbox?"
    ]


def test_other_programs_variables_are_left_alone() -> None:
    environ = {"OH_JUPYTER_TEST_PEERS": "1", "OH_JUPYTER_WHEEL": "x", "SANDBX": "1"}
    assert load_settings(environ=environ) == Settings()


@pytest.mark.parametrize("value", ["sandbx=required", "sandbox=requird"])
def test_a_server_does_not_start_with_a_misspelled_setting(folder: Path, value: str) -> None:
    program = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
    started = subprocess.run(
        [*program, "--port=0", f"--OhJupyter.{value}"], capture_output=True, text=True, timeout=60
    )
    assert started.returncode == 1
    assert "oh_jupyter: " in started.stderr.splitlines()[-1]
    assert "sandbox" in started.stderr.splitlines()[-1]
