"""A home of its own for each run of tests and notebooks.

The settings in a person's home must not change a result, and tests must leave nothing there.
Programs and caches that are only found by way of the home are linked.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

ELSEWHERE = (
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
    *("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"),
    *("GIT_CONFIG_GLOBAL", "BASH_ENV", "ENV", "INPUTRC", "PYTHONSTARTUP", "MPLCONFIGDIR"),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PROMPT_COMMAND"),
)
"""Variables that name settings and data outside of the home."""

LINKED = (
    *(".cache/ms-playwright", "Library/Caches/ms-playwright"),
    *(".cache/pip", ".cache/uv", ".npm", ".npmrc", ".yarn"),
)
"""Downloads of browsers and packages, and the registry that they come from."""

OWN_HOME = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Make the home; the processes of pytest-xdist inherit it."""
    if hasattr(config, "workerinput"):
        return
    real = Path.home()
    try:
        # Not in a directory for temporary files: boxes of the sandbox have their own there.
        home = Path(tempfile.mkdtemp(prefix=".oh_test_home_", dir=real))
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="oh_test_home_"))
    config.stash[OWN_HOME] = home
    caches = os.environ.get("XDG_CACHE_HOME")
    for name in LINKED:
        source = real / name
        if caches and name.startswith(".cache/"):
            source = Path(caches, name.removeprefix(".cache/"))
        if source.exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).symlink_to(source)
    for name in ELSEWHERE:
        os.environ.pop(name, None)
    if (real / ".pyenv").exists():  # its programs find their versions by way of the home
        os.environ.setdefault("PYENV_ROOT", str(real / ".pyenv"))
    os.environ["HOME"] = str(home)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the home; what it links stays."""
    if (home := config.stash.get(OWN_HOME, None)) is not None:
        shutil.rmtree(home, ignore_errors=True)
