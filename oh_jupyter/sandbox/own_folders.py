"""Folders and files of ours that boxes hide or protect, and home directories."""

from __future__ import annotations

import os

from oh_jupyter.config import CONFIG_FILE_VARIABLE, Settings, state_home
from oh_jupyter.state.location import ledger_folder


def homes(user: str | None) -> list[str]:
    """Return the home directories of the kernel's user and of the shell's."""
    paths = {os.path.expanduser("~"), os.path.expanduser(f"~{user}" if user else "~")}
    return sorted(path for path in paths if os.path.isabs(path))


def own_folders(settings: Settings) -> list[str]:
    """Return the folders with our state, Jupyter's tokens and connection files."""
    home = os.path.expanduser("~")
    data = os.environ.get("JUPYTER_DATA_DIR") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "jupyter"
    )
    runtime = os.environ.get("JUPYTER_RUNTIME_DIR") or os.path.join(data, "runtime")
    folders = [str(state_home()), runtime]
    if settings.file_store == "local":
        root = os.path.expanduser(settings.file_store_path or "~/.openhands")
        folders.append(os.path.join(root, "sessions"))
    outbox = os.path.expanduser(settings.file_store_web_hook_outbox or "")
    if os.path.isdir(outbox):
        folders.append(outbox)
    ledger = str(ledger_folder())
    return folders if ledger in folders else [*folders, ledger]


def settings_files() -> list[str]:
    """Return the settings file that the operator names, which boxes cannot change."""
    named = os.environ.get(CONFIG_FILE_VARIABLE)
    return [os.path.abspath(os.path.expanduser(named))] if named else []


def make_folders(settings: Settings) -> None:
    """Make our missing folders, because only an existing one can be hidden."""
    for folder in own_folders(settings):
        if not os.path.lexists(folder):
            os.makedirs(folder, mode=0o700)
