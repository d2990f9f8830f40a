"""Profile for macOS' ``sandbox-exec``; written from its documentation and never run on macOS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oh_jupyter.sandbox.mounts import Mount
from oh_jupyter.sandbox.profile import Network

PROGRAM = "/usr/bin/sandbox-exec"


def seatbelt_argv(
    mounts: Iterable[Mount],
    command: Sequence[str],
    *,
    temporary: str,
    network: Network = "none",
    devices: Iterable[str] = (),
) -> list[str]:
    """Return the command line that runs a command in a box."""
    text = seatbelt_profile(mounts, temporary=temporary, network=network, devices=devices)
    return [PROGRAM, "-p", text, *command]


def seatbelt_profile(
    mounts: Iterable[Mount],
    *,
    temporary: str,
    network: Network = "none",
    devices: Iterable[str] = (),
) -> str:
    """Return the profile's text; of several rules for a path, the last one decides."""
    rules = ["(version 1)", "(allow default)", "(deny file-write*)", "(deny process-info*)"]
    rules.append("(allow process-info* (target same-sandbox))")
    if network != "host":
        rules.append("(deny network*)")
    for mount in mounts:
        path = _quoted(mount.path)
        if mount.kind == "writable":
            rules.append(f"(allow file-read* file-write* (subpath {path}))")
        elif mount.kind == "visible":
            rules.append(f"(allow file-read* (subpath {path}))")
        elif mount.kind == "read_only":
            rules.append(f"(deny file-write* (subpath {path}))")
        else:
            rules.append(f"(deny file-read* file-write* (subpath {path}))")
    rules.append(f"(allow file-read* file-write* (subpath {_quoted(temporary)}))")
    for device in ("/dev/null", "/dev/tty", *devices):
        rules.append(f"(allow file-read* file-write* (literal {_quoted(device)}))")
    return "\n".join(rules) + "\n"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
