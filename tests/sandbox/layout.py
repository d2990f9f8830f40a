"""A home with secrets, a workspace in it, and programs outside of the sandbox to reach for."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from oh_jupyter.background import start_thread
from oh_jupyter.sandbox import Box, allowed_environment, find_engine, make_profile
from oh_jupyter.shell import BashSession
from oh_jupyter.testing import wait_until

SECRET = "outside-secret"
HIDDEN = (
    *(".ssh/id_rsa", ".aws/credentials", ".config/gcloud/token", ".netrc", ".openhands/event"),
    *(".local/share/keyrings/login", ".gnupg/key", ".docker/config.json", ".kube/config"),
    *(".git-credentials", ".bash_history", ".config/gh/hosts.yml", ".mine/secret"),
)
"""Files of the home that a box must not see."""


@dataclass
class Layout:
    """Paths and names of what is outside; ``fill`` puts them into a command."""

    root: Path
    names: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        return self.home / "work"

    @property
    def outside(self) -> Path:
        return self.home / "outside"

    def fill(self, command: str) -> str:
        for name, value in self.names.items():
            command = command.replace(f"@{name}@", value)
        return command

    def env(self) -> dict[str, str]:
        names = ("PATH", "LANG")
        kept_back = {"OUTSIDE_VARIABLE": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}
        return {name: os.environ[name] for name in names if name in os.environ} | {
            "HOME": str(self.home),
            **kept_back,
        }

    def plain(self) -> BashSession:
        return BashSession(self.workspace, no_change_timeout_seconds=60, env=self.env())

    def box(self, **settings: object) -> Box:
        profile = make_profile(
            str(self.workspace),
            homes=[str(self.home)],
            own_folders=[str(self.root / "state"), str(self.root / "runtime")],
            hidden=["../.mine"],
            **settings,  # type: ignore[arg-type]
        )
        return Box(profile, find_engine())

    def boxed(self, box: Box) -> BashSession:
        env = allowed_environment(self.env())
        return BashSession(self.workspace, no_change_timeout_seconds=60, env=env, enclosure=box)


def answer_connections(server: socket.socket) -> None:
    """Answer each connection, or each datagram, with the secret."""
    with contextlib.suppress(OSError):
        while True:
            if server.type == socket.SOCK_DGRAM:
                _, sender = server.recvfrom(100)
                if sender is None:  # shut down
                    return
                server.sendto(SECRET.encode(), sender)
            else:
                connection, _ = server.accept()
                with connection:
                    connection.sendall(SECRET.encode())


def server(family: int, kind: int, address: object) -> socket.socket:
    each = socket.socket(family, kind)
    each.bind(address)
    if kind == socket.SOCK_STREAM:
        each.listen()
    start_thread(answer_connections, "outside", each)
    return each


@contextlib.contextmanager
def make_layout() -> Iterator[Layout]:
    # Not below /tmp, which a box replaces as a whole.
    root = Path(tempfile.mkdtemp(prefix=".oh_test_", dir=Path("~").expanduser()))
    layout = Layout(root)
    work, outside = layout.workspace, layout.outside
    for folder in (work / "sub", outside, root / "state", root / "runtime"):
        folder.mkdir(parents=True)
    for name in HIDDEN:
        (layout.home / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.home / name).write_text(SECRET)
    (root / "state" / "event").write_text(SECRET)
    (root / "runtime" / "kernel-1.json").write_text(SECRET)
    (outside / "file").write_text("")
    (layout.home / ".bashrc").write_text("")
    subprocess.run(["git", "init", "-q", work], check=True)
    subprocess.run(["git", "init", "-q", work / "sub"], check=True)
    packages = work / ".venv" / "lib" / "python3" / "site-packages"
    packages.mkdir(parents=True)
    (work / ".venv" / "pyvenv.cfg").write_text("")
    (work / ".venv" / "bin").mkdir()
    token = secrets.token_hex(8)
    shared = Path("/dev/shm", f"oh_{token}")
    shared.write_text(SECRET)
    temporary = Path(tempfile.gettempdir(), f"oh_{token}")
    temporary.write_text(SECRET)
    other_master, other_slave = os.openpty()
    program = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, "OUTSIDE_VARIABLE": SECRET}, cwd="/"
    )
    servers = [
        server(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        server(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        server(socket.AF_UNIX, socket.SOCK_STREAM, str(outside / "socket")),
        server(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{token}"),
    ]
    with contextlib.suppress(OSError):
        servers.append(server(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)))
    layout.names = {
        "OUT": str(outside),
        "HOME": str(layout.home),
        "ROOT": str(root),
        "PID": str(program.pid),
        "PY": sys.executable,
        "SECRET": SECRET,
        "TCP": str(servers[0].getsockname()[1]),
        "UDP": str(servers[1].getsockname()[1]),
        "TCP6": str(servers[4].getsockname()[1]) if len(servers) > 4 else "9",
        "ABSTRACT": token,
        "SHM": str(shared),
        "TMP": str(temporary),
        "PTS": os.ttyname(other_slave),
    }
    try:
        yield layout
    finally:
        program.kill()
        program.wait()
        for each in servers:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for descriptor in (other_master, other_slave):
            os.close(descriptor)
        shared.unlink()
        temporary.unlink()
        shutil.rmtree(root)


def kill_owner(script: str, workspace: Path, marker: str) -> tuple[str, int, list[psutil.Process]]:
    """Kill a script that has opened a box, once a process with ``marker`` runs in it.

    The script prints a folder of the box and the pid of its shell. Return both, and the processes
    of the box. They have ended then, and the folder is gone.
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(workspace)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        folder, pid = owner.stdout.readline().split()
        started = psutil.Process(owner.pid)

        def runs() -> bool:
            with contextlib.suppress(psutil.Error):  # a child has just ended
                children = started.children(recursive=True)
                return any(marker in " ".join(each.cmdline()) for each in children)
            return False

        wait_until(runs)
        processes = started.children(recursive=True)
        owner.kill()
    wait_until(lambda: not any(each.is_running() for each in processes))
    wait_until(lambda: not os.path.exists(folder))
    return folder, int(pid), processes
