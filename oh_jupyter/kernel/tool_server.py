"""The Jupyter server that has this kernel, for what works on the kernel from outside."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oh_jupyter.agents import ToolServer

__all__ = ["find_tool_server"]

TIMEOUT_SECONDS = 5.0


def find_tool_server(kernel_id: str) -> ToolServer | None:
    """The address of this kernel on a server of this user that has it; None if there is none.

    The files of running servers tell their addresses and tokens; each is asked for the kernel,
    the one that started this process first.
    """
    import requests

    for info in _running_servers():
        base, token = str(info.get("url", "")).rstrip("/"), str(info.get("token") or "")
        headers = {"Authorization": f"token {token}"} if token else {}
        try:
            answer = requests.get(
                f"{base}/api/kernels/{kernel_id}", headers=headers, timeout=TIMEOUT_SECONDS
            )
        except requests.RequestException:
            continue
        if answer.ok:
            return ToolServer(f"{base}/oh_jupyter/kernels/{kernel_id}", token)
    return None


def _running_servers() -> Iterator[dict[str, Any]]:
    from jupyter_core.paths import jupyter_runtime_dir

    parent = f"jpserver-{os.environ.get('JPY_PARENT_PID', '')}.json"
    files = Path(jupyter_runtime_dir()).glob("jpserver-*.json")
    for file in sorted(files, key=lambda file: file.name != parent):
        try:
            info = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(info, dict):
            yield info
