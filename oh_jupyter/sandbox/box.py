"""Lifecycle of a box: its folder, its placeholders, and its command lines."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from oh_jupyter.containment import is_within
from oh_jupyter.errors import SandboxError
from oh_jupyter.sandbox.availability import Engine
from oh_jupyter.sandbox.bubblewrap import (
    CONSOLE,
    REPORT_DEVICE,
    RESOLVER_FILE,
    bubblewrap_argv,
    seccomp_filter,
)
from oh_jupyter.sandbox.mounts import (
    FOREIGN,
    Mount,
    Placeholder,
    differences,
    identities,
    identity_of,
    missing_paths,
    resolve,
)
from oh_jupyter.sandbox.plain_settings import copy_settings
from oh_jupyter.sandbox.process_limit import ProcessLimit
from oh_jupyter.sandbox.profile import Profile
from oh_jupyter.sandbox.seatbelt import seatbelt_argv

RELAY = Path(__file__).with_name("_relay.py")
PROXY_FOLDER = "/run/oh_proxy"
"""Folder of the proxy's socket and of the relay, as a box sees it."""


class Box:
    """A place for the shells of one agent; it has processes only while a shell runs in it.

    Attributes:
        profile: Its limits.
        folder: Its own folder outside, with all that belongs to it.
        temporary_dir: Its own temporary directory, outside.
        temporary_dir_inside: The same, as its processes see it.
        proxy_socket: Path at which its proxy must listen, if its network is one.
    """

    def __init__(self, profile: Profile, engine: Engine, user: str | None = None) -> None:
        """Make the temporary directory; raise SandboxError where no box can be made."""
        if engine.program is None:
            raise SandboxError(f"No sandbox can be made, because {engine.sentence}")
        self.profile = profile
        self._engine = engine
        self._program = engine.program
        self._user = user
        self._placeholders: list[Placeholder] = []
        self._mounts: list[Mount] = []
        self._protected: dict[str, tuple[int, int]] = {}
        self._is_namespaced = sys.platform == "linux"
        self._process_limit = ProcessLimit(
            profile.max_processes, is_superuser=user is None and os.geteuid() == 0
        )
        if profile.network == "proxy":
            self._check_relay()
        try:
            self.folder = os.path.realpath(tempfile.mkdtemp(prefix="oh_sandbox_"))
            self.temporary_dir = os.path.join(self.folder, "tmp")
            self._proxy_folder = os.path.join(self.folder, "proxy")
            self._settings_folder = os.path.join(self.folder, "settings")
            os.mkdir(self.temporary_dir, 0o700)
            os.mkdir(self._proxy_folder, 0o700)
            os.mkdir(self._settings_folder, 0o755)
            self._empty_file = os.path.join(self._settings_folder, "empty")
            Path(self._empty_file).touch(mode=0o644)
            self._seccomp_file = self._put_filter()
            relay = shutil.copyfile(RELAY, os.path.join(self._proxy_folder, RELAY.name))
            if user is not None:
                for each in (
                    *(self.folder, self.temporary_dir, self._proxy_folder, relay),
                    *(self._settings_folder, self._empty_file),
                ):
                    shutil.chown(each, user)
        except OSError as error:
            raise SandboxError(
                f"The sandbox's temporary directory cannot be made: {error}. Free some space in "
                f"{tempfile.gettempdir()}."
            ) from error
        self.proxy_socket = os.path.join(self._proxy_folder, "socket")
        self.temporary_dir_inside = "/tmp" if self._is_namespaced else self.temporary_dir

    def _check_relay(self) -> None:
        """Raise SandboxError where the relay to the proxy cannot run."""
        if not self._is_namespaced:
            reason = "sandboxes of this system have none"
        elif not self._can_reach(os.path.realpath(sys.executable)):
            reason = f"the user {self._user} cannot run the kernel's Python, {sys.executable}"
        else:
            return
        raise SandboxError(
            f"The sandbox cannot use a proxy, because {reason}. Set sandbox_network to none or "
            "host."
        )

    def enclose(
        self, argv: Sequence[str], cwd: str, terminals: Sequence[str], *, nested: bool = False
    ) -> tuple[list[str], list[str]]:
        """Return the command line that runs a program in the box, and its terminals' paths there.

        Args:
            argv: The program.
            cwd: Its directory, as the box sees it.
            terminals: The terminal of its standard streams, and one more.
            nested: Also protect what was found deeper in the workspace, without terminals: for
                programs that are no agent's, so that nobody replaces it meanwhile.

        Raises:
            SandboxError: The workspace cannot be protected.
        """
        # Without a terminal, the program starts before `check` could find a difference.
        nested = nested or bool(terminals)
        self._put_placeholders(nested=nested)
        self._mounts = resolve(self.profile, self._can_reach, nested=nested)
        if not self._is_namespaced:
            boxed = seatbelt_argv(
                self._mounts,
                argv,
                temporary=self.temporary_dir,
                network=self.profile.network,
                devices=terminals,
            )
            return boxed, list(terminals)
        resolver = os.path.realpath(RESOLVER_FILE)
        sockets = (*self.profile.sockets, *self._copies())
        if self.profile.network == "proxy":
            sockets += ((self._proxy_folder, PROXY_FOLDER),)
            relay = [sys.executable, "-I", "-S", f"{PROXY_FOLDER}/{RELAY.name}"]
            argv = [*relay, f"{PROXY_FOLDER}/socket", *argv]
        needs_resolver = self.profile.network == "host" and is_within(resolver, "/run")
        boxed = bubblewrap_argv(
            self._program,
            self._mounts,
            argv,
            cwd=cwd,
            temporary=self.temporary_dir,
            empty_file=self._empty_file,
            network=self.profile.network,
            devices=dict(zip([REPORT_DEVICE], terminals[1:], strict=False)),
            sockets=sockets,
            nested_namespaces=self._engine.nested_namespaces,
            resolver=resolver if needs_resolver else None,
            seccomp_file=self._seccomp_file,
        )
        # bubblewrap itself shows the terminal of its output at this path.
        return boxed, [CONSOLE, REPORT_DEVICE][: len(terminals)]

    def _put_filter(self) -> str | None:
        """Write the filter of system calls; return its path, None where there is none."""
        program = seccomp_filter()
        if program is None:
            return None
        path = os.path.join(self._settings_folder, "seccomp")
        Path(path).write_bytes(program)
        return path

    def _copies(self) -> list[tuple[str, str]]:
        """Return copies of a person's settings, and their paths in the box."""
        homes = filter(os.path.isdir, self.profile.homes)
        reached = [home for home in homes if self._can_reach(os.path.join(home, "."))]
        return copy_settings(reached, self._settings_folder)

    def check(self, pid: int) -> None:
        """Limit a started process of the box; raise SandboxError unless it sees the mounts."""
        if not self._is_namespaced:
            return
        try:
            wrong = differences(self._mounts, pid)
        except OSError as error:
            wrong = [str(error)]
        if wrong:
            raise SandboxError(
                f"The sandbox was not used, because paths changed while it started "
                f"({', '.join(wrong[:3])}). Try again."
            )
        self._protected = identities(self._mounts)
        self.limit_processes(pid)

    def unprotected(self) -> list[str]:
        """Return the protected paths that were replaced outside since the box started.

        A mount is gone with the file that it was on: git replaces its configuration, for example.
        """
        return [path for path, identity in self._protected.items() if identity_of(path) != identity]

    def limit_processes(self, pid: int) -> None:
        """Limit the processes of a started program of the box."""
        if self._is_namespaced:
            self._process_limit.apply(pid)

    def outside(self, path: str) -> str | None:
        """Return the path outside of a path in the box, or None if the box hides it."""
        real = os.path.realpath(path)
        above = next((each for each in reversed(self._mounts) if is_within(real, each.path)), None)
        if above is None or above.kind not in FOREIGN:
            return path
        if above.kind == "private":
            return os.path.join(self.temporary_dir, os.path.relpath(real, above.path))
        return None

    def close(self) -> None:
        """Remove its folder and unchanged placeholders; idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._process_limit.close()
        placeholders, self._placeholders = self._placeholders, []
        for each in reversed(placeholders):
            with contextlib.suppress(OSError):
                if each.content is None:
                    os.rmdir(each.path)  # fails if a person has put something there
                elif _holds(each.path, each.content):
                    os.unlink(each.path)

    def _put_placeholders(self, *, nested: bool) -> None:
        for each in missing_paths(self.profile, nested=nested):
            try:
                if each.content is None:
                    os.mkdir(each.path)
                else:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                    with open(os.open(each.path, flags, 0o644), "w", encoding="utf-8") as file:
                        file.write(each.content)
            except FileExistsError:
                continue
            except OSError as error:
                raise SandboxError(
                    f"{each.path} cannot be protected from the sandbox: {error.strerror}. Make "
                    "its directory writable for the kernel."
                ) from error
            self._placeholders.append(each)

    def _can_reach(self, path: str) -> bool:
        """Return whether the box's user can search the directories above a path."""
        if self._user is None:
            return True
        import pwd

        entry = pwd.getpwnam(self._user)
        groups = os.getgrouplist(self._user, entry.pw_gid)
        parent = os.path.dirname(path)
        while True:
            status = os.stat(parent)
            if status.st_uid == entry.pw_uid:
                needed = stat.S_IXUSR
            else:
                needed = stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH
            if not status.st_mode & needed:
                return False
            if parent == "/":
                return True
            parent = os.path.dirname(parent)


def _holds(path: str, content: str) -> bool:
    with open(path, encoding="utf-8") as file:
        return file.read(len(content) + 1) == content
