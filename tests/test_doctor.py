"""Findings of ``oh-jupyter doctor`` in this environment and in broken ones."""

from __future__ import annotations

import json
import os
from importlib import metadata
from pathlib import Path

import pytest

from oh_jupyter import vulnerabilities
from oh_jupyter.cli import main
from oh_jupyter.config import Settings
from oh_jupyter.doctor import Check, examine
from oh_jupyter.sandbox import Engine


def find(name: str, settings: Settings | None = None) -> Check:
    return next(check for check in examine(settings or Settings()) if check.name == name)


@pytest.mark.browser
def test_an_environment_that_works() -> None:
    checks = examine(Settings(file_store="memory"))
    assert [str(check) for check in checks if check.status == "wrong"] == []
    names = [check.name for check in checks]
    assert names[:6] == [
        *("oh_jupyter", "packages", "security", "kernel", "server extension", "JupyterLab"),
    ]


def test_a_version_that_clashes(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["fsspec>=9000", "no-such-package>=1", "pandas>=9000; extra == 'tables'"]
    monkeypatch.setattr(metadata, "requires", lambda name: needed)
    check = find("packages")
    assert check.status == "wrong"
    assert "not installed: no-such-package>=1; incompatible: fsspec " in check.found
    assert "pandas" not in check.found
    assert check.mend.endswith("-m pip install --upgrade oh_jupyter")


def test_a_release_with_a_known_vulnerability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulnerabilities, "version", lambda name: "2.14.0")
    check = find("security")
    assert check.status == "wrong"
    assert check.found.startswith("jupyter_server 2.14.0: CVE-2026-44727")
    assert check.mend.endswith("pip install 'jupyter_server>=2.20.0'")


def test_nothing_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find("git").status == "missing"
    assert "%oh_rewind needs it" in find("git").found
    assert find("agents").status == "missing"
    assert "nodejs.org" in find("Node.js").mend


def test_no_sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    engine = Engine(None, problem="bubblewrap is not installed", mend="apk add bubblewrap")
    monkeypatch.setattr("oh_jupyter.sandbox.find_engine", lambda: engine)
    check = find("sandbox")
    assert (check.status, check.found, check.mend) == ("missing", engine.problem, engine.mend)
    assert find("sandbox", Settings(sandbox="required")).status == "wrong"
    monkeypatch.setattr("oh_jupyter.sandbox.find_engine", lambda: Engine("/usr/bin/bwrap"))
    assert find("sandbox").found == "/usr/bin/bwrap works; sandbox = 'off'"


def test_an_old_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho v16.20.2\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find("Node.js") == Check(
        "Node.js", "wrong", "v16.20.2, older than 18", "install a newer one"
    )


def test_a_browser_and_a_driver_that_do_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho lacks libatomic.so.1 >&2\nexit 127\n")
    program.chmod(0o755)
    failure = f"{program} does not start (lacks libatomic.so.1)"
    browser = find("browser", Settings(browser_path=str(program)))
    assert browser == Check("browser", "wrong", failure, "oh-jupyter install-browser")
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(program))
    driver = find("browser driver")
    assert (driver.status, driver.mend) == ("wrong", "oh-jupyter install-browser")
    assert driver.found.startswith("Playwright's driver")
    assert failure in driver.found


def test_an_old_jupyterlab(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "4.5.9" if name == "jupyterlab" else version(name)
    )
    check = find("JupyterLab")
    assert (check.status, check.mend.split("-m ")[1]) == (
        "wrong",
        "pip install --upgrade jupyterlab",
    )
    assert check.found == "4.5.9; the panel of oh_jupyter needs 4.6 or newer"


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = find("store", Settings(file_store="local", file_store_path=str(tmp_path / "file/x")))
    assert (check.status, check.mend.split()[0]) == ("wrong", "set")
    assert find("store", Settings(file_store="no-such")).status == "wrong"


def test_a_receiver_that_does_not_answer() -> None:
    check = find("webhook", Settings(file_store_web_hook_url="http://user:secret@127.0.0.1:9/"))
    assert check.status == "wrong"
    assert check.found.startswith("http://127.0.0.1 cannot be reached: ")
    assert "secret" not in str(check)


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check = find("workspace directory", Settings(workspace_dir=str(tmp_path / "file" / "x")))
    assert (check.status, check.found.split(":")[-1]) == ("wrong", " Not a directory")


def test_other_environments_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    directory = tmp_path / "kernels" / "python3"
    directory.mkdir(parents=True)
    spec = {"argv": ["/bin/sh", "-c"], "display_name": "x", "language": "python"}
    (directory / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    check = find("kernel")
    assert check.status == "wrong"
    assert "in a different environment" in check.found


def test_one_broken_look_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> list[str]:
        raise RuntimeError("odd metadata")

    monkeypatch.setattr(metadata, "requires", broken)
    assert find("requirements").found == "RuntimeError: odd metadata"
    assert find("oh_jupyter").status == "ok"


@pytest.mark.browser
def test_from_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "ok       packages: all requirements are installed" in shown
    assert "missing  running server: No Jupyter server is running here." in shown
    monkeypatch.setenv("FILE_STORE", "no-such")
    assert main(["doctor", "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)
    assert [check["name"] for check in checks if check["status"] == "wrong"] == ["store"]


@pytest.mark.browser
def test_settings_that_no_kernel_would_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OH_JUPYTER_CONFIRMATION", "sometimes")
    monkeypatch.setenv("OH_JUPYTER_AGENTS", "{broken")
    monkeypatch.setenv("OH_JUPYTER_MCP_SERVERS", '[{"name": "x"}]')
    monkeypatch.setenv("FILE_STORE", "memory")
    assert main(["doctor", "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)
    confirmation, agents, servers = (c["found"] for c in checks if c["status"] == "wrong")
    assert confirmation == (
        "environment variable OH_JUPYTER_CONFIRMATION must be one of never, risky, always, not "
        "'sometimes'"
    )
    assert agents.endswith('such as {"mine": "my-agent --acp"}')
    assert servers.startswith("mcp_servers: MCP server x: command must be one word")
    assert {"packages", "store", "agents"} <= {check["name"] for check in checks}
