"""The settings in a person's home change no result of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PROFILE = """
c = get_config()
c.InteractiveShell.ast_node_interactivity = "all"
c.InteractiveShellApp.exec_lines = ["print('from the profile')", "df = 'from the profile'"]
"""
SERVER = """
c = get_config()
c.ServerApp.base_url = "/elsewhere/"
c.ServerApp.token = "another"
c.OhJupyter.confirmation = "always"
"""
SETTINGS = {
    ".bashrc": "echo from bashrc\nPS1='another> '\ncd /\nalias ls='ls -l'\n",
    ".inputrc": "set editing-mode vi\n",
    ".gitconfig": "[core]\nautocrlf = true\nexcludesFile = ~/.ignored\n[commit]\ngpgsign = true\n"
    "[color]\nui = always\n[diff]\nnoprefix = true\n",
    ".ignored": "*\n",
    ".ipython/profile_default/ipython_config.py": PROFILE,
    ".jupyter/jupyter_server_config.py": SERVER,
    ".jupyter/jupyter_config.py": SERVER,
    ".config/matplotlib/matplotlibrc": "backend: another\n",
}
RESULTS = (
    "tests/shell/test_session.py::test_asyncio_face_needs_no_thread",
    "tests/kernel/test_load.py::test_observations_are_shown_regardless_of_their_first_import",
    "tests/connect/test_command.py::test_each_client_has_its_file_and_shape",
    "tests/adapters/test_connection.py::test_changes_stay_within_a_directory",
)
"""Tests of a shell, a kernel, a program of ours and a server."""


def test_the_home_is_the_runs_own() -> None:
    home = Path.home()
    assert "oh_test_home_" in home.name
    names = {".bashrc", ".profile", ".gitconfig", ".jupyter/jupyter_server_config.py"}
    assert not [name for name in names if (home / name).exists()]
    assert {"XDG_CONFIG_HOME", "JUPYTER_CONFIG_DIR", "GIT_CONFIG_GLOBAL"}.isdisjoint(os.environ)


@pytest.mark.thorough
def test_settings_in_the_home_change_no_result(tmp_path: Path) -> None:
    for name, text in SETTINGS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *RESULTS],
        cwd=ROOT,
        env={**environment, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {name.split("/")[0] for name in SETTINGS}
