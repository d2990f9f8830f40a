"""Contents of a workspace, byte by byte, and random work in it."""

from __future__ import annotations

import os
import random
import shutil
import stat
from pathlib import Path

Contents = dict[str, tuple[str, int, bytes]]

NAMES = [
    "a.txt",
    "b.py",
    "ü.md",
    "with space",
    "line\nbreak",
    "-x",
    "n.ipynb",
    "bin",
    "deep",
    "x.crlf",
]


def contents(root: Path) -> Contents:
    """Kind, permission bits and bytes of everything below a directory, by path."""
    result: Contents = {}
    for directory, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in [*folders, *names]:
            path = Path(directory, name)
            key = str(path.relative_to(root))
            status = path.lstat()
            if path.is_symlink():
                result[key] = ("link", 0, os.fsencode(os.readlink(path)))
            elif path.is_dir():
                result[key] = ("directory", 0, b"")
            elif stat.S_ISREG(status.st_mode) and name != ".git":
                result[key] = ("file", stat.S_IMODE(status.st_mode), path.read_bytes())
    return result


def work(root: Path, dice: random.Random) -> None:
    """One random change, as editors, shells and programs make them."""
    path = root
    for _ in range(dice.choice([1, 1, 2, 2, 3])):
        path = path / dice.choice(NAMES)
    kind = dice.choice(
        ["write", "write", "write", "append", "delete", "move", "chmod", "link", "folder"]
    )
    try:
        if kind == "delete":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            return
        if kind == "chmod":
            path.chmod(dice.choice([0o600, 0o644, 0o755, 0o700, 0o444]))
            return
        if kind == "move":
            path.rename(root / dice.choice(NAMES))
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(dice.choice(["a.txt", "nowhere", "deep"]))
        elif kind == "append":
            with path.open("ab") as file:
                file.write(b"more\r\n")
        else:
            path.write_bytes(dice.choice([b"", b"text\n", b"\r\n$Id$\r\n", dice.randbytes(30)]))
    except OSError:
        pass  # the name is a directory now, or its parent a file


def wait_for_the_clock(folder: Path) -> None:
    """Wait until a change of a file has a later time than all before."""
    probe = folder / "probe"
    probe.touch()
    last = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns <= last:
        os.utime(probe)
