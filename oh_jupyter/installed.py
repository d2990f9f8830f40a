"""Installed code, in contrast to files that an agent may have written.

Our processes import modules and start programs from the folders of the installation only, never
from the working directory or a workspace, whatever ``sys.path`` and ``PATH`` say.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import site
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache

from oh_jupyter.containment import is_within, is_within_any

PACKAGE = os.path.dirname(os.path.abspath(__file__))
"""Folder of this package."""

_SEARCH_OURS_LAST = "import sys; sys.path.append(sys.argv.pop(1)); "
"""Start of a program; with ``PYTHONPATH``, our own folder would precede the standard library."""

_RUN_MODULE = "import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


def _with_real_paths(folders: Iterable[str]) -> tuple[str, ...]:
    known = dict.fromkeys(os.path.abspath(each) for each in folders if each)
    return tuple(dict.fromkeys([*known, *map(os.path.realpath, known)]))


def _site_folders() -> tuple[str, ...]:
    # `os` is frozen, but it knows its file: the folder of the standard library.
    folders = [os.path.dirname(os.__file__), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    zipped = f"python{sys.version_info[0]}{sys.version_info[1]}.zip"
    return _with_real_paths([*folders, *(each for each in sys.path if each.endswith(zipped))])


SITE_FOLDERS = _site_folders()
"""Folders of the standard library and of installed packages; a workspace may contain them."""

_PROGRAM_FOLDERS = _with_real_paths(
    os.path.join(prefix, *below)
    for prefix in (sys.prefix, sys.base_prefix)
    for below in (("bin",), ("Scripts",), ("Library", "bin"))
)

_workspaces: set[str] = set()


def exclude(folder: str | os.PathLike[str]) -> None:
    """Exclude a folder, in which agents may write, from the search for modules and programs."""
    _workspaces.update(_with_real_paths([os.fspath(folder)]))


def writable_folders() -> tuple[str, ...]:
    """Return the working directory and the workspaces, without the file system's root."""
    with contextlib.suppress(OSError):  # it was removed
        exclude(os.getcwd())
    return tuple(each for each in _workspaces if os.path.dirname(each) != each)


@lru_cache(maxsize=1000)
def _is_outside(path: str, folders: tuple[str, ...]) -> bool:
    home = os.path.realpath(os.path.expanduser("~"))
    # A workspace that contains the home directory does not contain its dot entries.
    hidden = tuple(each for each in folders if is_within(home, each))
    for each in (os.path.abspath(path), os.path.realpath(path)):
        is_dot_entry = each.startswith(os.path.join(home, "."))
        if is_within_any(each, [f for f in folders if not (is_dot_entry and f in hidden)]):
            return False
    return True


def is_installed(path: str, site_folders: Sequence[str] = SITE_FOLDERS) -> bool:
    """Return whether a folder of a search path is absolute and outside of where agents write."""
    if not os.path.isabs(path):
        return False
    return is_within_any(path, site_folders) or _is_outside(path, writable_folders())


def installed_path(path: Iterable[str]) -> list[str]:
    """Return the entries of a search path of modules that belong to the installation."""
    return [each for each in path if isinstance(each, str) and is_installed(each)]


LIBRARY_FOLDERS = SITE_FOLDERS + _with_real_paths(
    installed_path(os.environ.get("PYTHONPATH", "").split(os.pathsep))
)
"""Folders of code that is nobody's own: those above, and the installed ones of ``PYTHONPATH``."""


def program_path(path: str | None = None) -> str:
    """Return a PATH, by default ours, without relative entries and folders of a workspace."""
    entries = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return os.pathsep.join(each for each in entries if is_installed(each, _PROGRAM_FOLDERS))


def find_program(name: str, path: str | None = None) -> str | None:
    """Find a program on the PATH, but none that an agent may have written.

    Args:
        name: Its name, or a path that a person has configured.
        path: The PATH; None for ours.
    """
    if os.path.dirname(name):
        return shutil.which(name)
    # Without an entry, `which` would search the default path.
    entries = program_path(path)
    program = shutil.which(name, path=entries) if entries else None
    # On Windows, `which` also searches the working directory.
    return program if program is None or os.path.isabs(program) else None


def find_program_outside(name: str) -> str | None:
    """Find a program on the PATH outside of every workspace, also of an environment in one."""
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if is_installed(entry, ()) and (program := shutil.which(name, path=entry)):
            return program
    return None


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command line of one of our modules, or of a dependency, in its own process."""
    return python_script(_RUN_MODULE, module, *arguments)


def python_script(code: str, *arguments: str) -> list[str]:
    """Return the command line of a short program that may import this package."""
    folder = os.path.dirname(PACKAGE)
    return [sys.executable, "-P", "-c", _SEARCH_OURS_LAST + code, folder, *arguments]


def python_environment(**variables: str) -> dict[str, str]:
    """Return our environment for such a process, with ``variables``."""
    environment = {**os.environ, **variables}
    if "PYTHONPATH" in environment:
        entries = installed_path(environment["PYTHONPATH"].split(os.pathsep))
        environment["PYTHONPATH"] = os.pathsep.join(entries)
    return environment
