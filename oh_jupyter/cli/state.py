"""The command ``state``, for the ledger: what outlives kernels."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add_state(commands: Any) -> None:
    """Add the command to a parser."""
    state = commands.add_parser(
        "state",
        help="show, verify or back up the ledger, or forget a workspace",
        description="Without an action, show where the ledger is, the database with what outlives "
        "kernels; its size, what is in it, and databases that were damaged and moved aside.",
    )
    state.add_argument("--json", action="store_true", help="print it as JSON")
    state.set_defaults(run=_show)
    actions = state.add_subparsers(metavar="ACTION")
    verify = actions.add_parser(
        "verify",
        help="check the database for damage",
        description="Check the whole database for damage. The exit status is 1 if it is damaged.",
    )
    verify.set_defaults(run=_verify)
    backup = actions.add_parser(
        "backup",
        help="copy the database to a new file",
        description="Copy the database to a new file, while kernels and servers may use it.",
    )
    backup.add_argument("file", metavar="FILE", help="the new file, which must not exist")
    backup.set_defaults(run=_back_up)
    forget = actions.add_parser(
        "forget",
        help="remove what belongs to a workspace",
        description="Remove everything of a workspace from the ledger, such as its approvals. The "
        "workspace itself stays as it is.",
    )
    forget.add_argument("workspace", metavar="WORKSPACE", help="its folder, which may be gone")
    forget.set_defaults(run=_forget)


def _show(options: argparse.Namespace) -> int:
    from oh_jupyter.config import state_home
    from oh_jupyter.state.location import obstacle
    from oh_jupyter.state.shared import open_ledger
    from oh_jupyter.state.summary import row_counts, size_bytes

    ledger, reason = open_ledger(), obstacle(state_home())
    rows = row_counts(ledger)
    size, damaged = size_bytes(ledger), list(map(str, ledger.damaged()))
    if options.json:
        shown = {"path": str(ledger.path), "reason": reason and f"{state_home()} {reason}"}
        print(json.dumps({**shown, "bytes": size, "rows": rows, "damaged": damaged}, indent=2))
        return 0
    print(f"{ledger.path}: {_shown_size(size)}" if rows else _missing(ledger.path))
    if reason:
        print(f"It is there because {state_home()} {reason}.")
    for line in _lines(rows):
        print(line)
    for path in damaged:
        print(f"Damaged, and moved aside: {path}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from oh_jupyter.state.backup import find_damage
    from oh_jupyter.state.shared import open_ledger

    ledger = open_ledger()
    path = _path_of(ledger)
    if not ledger.exists():
        print(_missing(path))
        return 0
    if damage := find_damage(path):
        print(
            f"{path} is damaged: {damage}. The next program that meets the damage moves the "
            "database aside and begins a new one; all files stay as they are."
        )
        return 1
    print(f"{path} is not damaged.")
    return 0


def _back_up(options: argparse.Namespace) -> int:
    from oh_jupyter.state.backup import back_up
    from oh_jupyter.state.shared import open_ledger

    path, target = _path_of(open_ledger()), Path(options.file)
    back_up(path, target)
    print(f"Copied {path} to {target}.")
    return 0


def _forget(options: argparse.Namespace) -> int:
    from oh_jupyter.state.shared import open_ledger
    from oh_jupyter.state.summary import forget_workspace

    removed = forget_workspace(open_ledger(), options.workspace)
    print("Removed:")
    for line in _lines(removed):
        print(line)
    return 0


def _missing(path: Path | None) -> str:
    return f"{path} does not exist yet; nothing was saved."


def _path_of(ledger: Any) -> Path:
    path: Path = ledger.path  # that of the user is no temporary one
    return path


def _lines(rows: dict[str, int]) -> list[str]:
    """Return a line for each kind of rows, in plain words."""
    from oh_jupyter.state.tables import CONTENTS

    return [f"{count:>8}  {CONTENTS.get(table, table)}" for table, count in rows.items()]


def _shown_size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
