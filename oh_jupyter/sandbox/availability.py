"""The engine of a box: what enforces it here, whether it works, by one trial, and what helps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from oh_jupyter.installed import find_program_outside
from oh_jupyter.sandbox.bubblewrap import seccomp_filter
from oh_jupyter.sandbox.process_limit import own_cgroup
from oh_jupyter.sandbox.seatbelt import PROGRAM


def enforced_by(*, is_superuser: bool) -> str:
    """Return what enforces the limits of a box, and what is missing, as one line.

    Args:
        is_superuser: Whether the processes of the box are the superuser's.
    """
    if sys.platform != "linux":
        return "a profile of the system's sandbox"
    parts = [
        "namespaces (files, processes, network, IPC)",
        "no capabilities",
        "a filter of system calls" if seccomp_filter() else "no filter of system calls here",
    ]
    if not is_superuser:
        parts.append("a resource limit of processes")
    elif os.access(own_cgroup() or "", os.W_OK):
        parts.append("a cgroup's limit of processes")
    else:
        parts.append("no limit of processes, since the superuser cannot make a cgroup here")
    return ", ".join(parts)


TRIAL_SECONDS = 10.0
"""Timeout of the trial."""

APPARMOR_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile bwrap {program} flags=(unconfined) {{
  userns,
}}
"""
APPARMOR_SWITCH = "kernel/apparmor_restrict_unprivileged_userns"

PACKAGES = {
    "debian": "sudo apt-get install bubblewrap",
    "ubuntu": "sudo apt-get install bubblewrap",
    "fedora": "sudo dnf install bubblewrap",
    "rhel": "sudo dnf install bubblewrap",
    "suse": "sudo zypper install bubblewrap",
    "arch": "sudo pacman -S bubblewrap",
    "alpine": "apk add bubblewrap",
}
"""Commands that install bubblewrap, by the name of a distribution."""


@dataclass(frozen=True)
class Engine:
    """Result of the search for an engine.

    Attributes:
        program: The engine to run; None if no box can be made.
        nested_namespaces: Whether a box cannot forbid user namespaces of its processes, as with
            releases of bubblewrap before 0.8.
        problem: Reason why no box can be made.
        mend: Command or text that helps.
    """

    program: str | None
    nested_namespaces: bool = False
    problem: str = ""
    mend: str = ""

    @property
    def sentence(self) -> str:
        """The problem and the command, on one line."""
        return f"{self.problem}: {' '.join(self.mend.split())}"


WORKING_ENGINES: dict[str | None, Engine] = {}
"""Engines that passed the trial, by user; a failure may be fixed meanwhile."""


def find_engine(user: str | None = None) -> Engine:
    """Return the engine for a user; None is our own. It is tried until it works once."""
    engine = WORKING_ENGINES.get(user) or _try_engine(user)
    if engine.program is not None:
        WORKING_ENGINES[user] = engine
    return engine


def _try_engine(user: str | None) -> Engine:
    if sys.platform == "darwin":
        if os.access(PROGRAM, os.X_OK):
            return Engine(PROGRAM)
        return Engine(None, problem=f"there is no {PROGRAM}", mend="install macOS' own one again")
    if sys.platform != "linux":
        return Engine(None, problem="this system has no sandbox of ours", mend="use Linux or macOS")
    program = find_program_outside("bwrap")
    if program is None:
        return Engine(None, problem="bubblewrap is not installed", mend=install_command())
    error = trial_error(program, ["--disable-userns"], user)
    if not error:
        return Engine(program)
    if "disable-userns" in error:  # unknown to old releases
        error = trial_error(program, [], user)
        if not error:
            return Engine(program, nested_namespaces=True)
    return Engine(None, problem=f"bubblewrap does not work ({error})", mend=remedy(program, error))


def trial_error(program: str, options: list[str], user: str | None) -> str:
    """Run ``true`` in a box; return the error, or ""."""
    argv = [
        *(program, "--unshare-user", "--unshare-pid", "--unshare-net", "--cap-drop", "ALL"),
        *(*options, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"),
    ]
    identity = {} if user is None else {"user": user, "group": _group(user), "extra_groups": []}
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TRIAL_SECONDS,
            cwd="/",
            check=False,
            **identity,  # type: ignore[call-overload]
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


def remedy(program: str, error: str = "", proc: str = "/proc", root: str = "/") -> str:
    """Return what helps where bubblewrap is installed and fails with an error."""

    def switch(name: str) -> str:
        try:
            return Path(proc, "sys", name).read_text().strip()
        except OSError:
            return ""

    if switch(APPARMOR_SWITCH) == "1":
        profile = APPARMOR_PROFILE.format(program=os.path.realpath(program))
        return (
            "AppArmor restricts user namespaces. Allow them for bubblewrap: "
            f"sudo tee /etc/apparmor.d/bwrap <<'END'\n{profile}END\n"
            "sudo apparmor_parser -r /etc/apparmor.d/bwrap"
        )
    if switch("kernel/unprivileged_userns_clone") == "0":
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    if switch("user/max_user_namespaces") == "0":
        return "sudo sysctl user.max_user_namespaces=15000"
    if any(Path(root, name).exists() for name in (".dockerenv", "run/.containerenv")) or (
        os.environ.get("KUBERNETES_SERVICE_HOST")
    ):
        return _container_remedy(error)
    return "allow unprivileged user namespaces, or set sandbox = 'off'"


def _container_remedy(error: str) -> str:
    if "mount proc" in error:
        reason, docker, podman = "masks parts of /proc", "", "--security-opt unmask=ALL"
    else:
        reason = "forbids user namespaces"
        docker = "--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
        podman = "--security-opt seccomp=unconfined --security-opt unmask=ALL"
    return (
        f"this container {reason}. Start it with {docker}--security-opt systempaths=unconfined "
        f"(Docker) or {podman} (Podman), or let the container be the sandbox: sandbox = 'off'"
    )


def install_command(read: Callable[[], str] | None = None) -> str:
    """Return the command that installs bubblewrap on this distribution."""
    try:
        text = read() if read else Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        text = ""
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").strip('"').split()]
    commands = [PACKAGES[name.strip('"')] for name in names if name.strip('"') in PACKAGES]
    return commands[0] if commands else "install bubblewrap with your package manager"
