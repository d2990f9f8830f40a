"""Attempts to leave a box; each prints ESCAPED where it succeeds.

Every harmless attempt also runs without a box, where it must succeed, so that each row can fail.
"""

from __future__ import annotations

import os
from typing import Literal, NamedTuple

import pytest

from oh_jupyter.events import CmdOutputObservation, CmdRunAction
from oh_jupyter.sandbox import find_engine
from oh_jupyter.shell import ShellSession
from tests.sandbox.layout import HIDDEN, Layout

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        find_engine().program is None or os.uname().sysname != "Linux",
        reason="needs bubblewrap, and user namespaces",
    ),
]


class Attempt(NamedTuple):
    """An attempt, and who can show that it works without a box: all, root, or nobody."""

    name: str
    command: str
    control: Literal["all", "root", "none"] = "all"


def reads(name: str, expression: str, control: Literal["all", "root", "none"] = "all") -> Attempt:
    return Attempt(name, f"{expression} 2>/dev/null | grep -qa @SECRET@ && echo ESCAPED", control)


def does(name: str, command: str, control: Literal["all", "root", "none"] = "all") -> Attempt:
    return Attempt(name, f"{command} && echo ESCAPED", control)


def python(name: str, code: str, control: Literal["all", "root", "none"] = "all") -> Attempt:
    return Attempt(name, f"@PY@ -c '{code}\nprint(\"ESCAPED\")'", control)


CONNECT = """
import socket
s = socket.socket(socket.{family}, socket.{kind})
s.settimeout(2)
s.connect({address})
if s.type == socket.SOCK_DGRAM:
    s.send(b"x")
assert s.recv(100)"""

OPEN_BY_HANDLE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_char * 128)]
handle, mount = Handle(128), ctypes.c_int()
assert not libc.name_to_handle_at(-100, b"@OUT@/file", ctypes.byref(handle), ctypes.byref(mount), 0)
fd = libc.open_by_handle_at(os.open("@HOME@", os.O_RDONLY), ctypes.byref(handle), os.O_RDWR)
assert fd >= 0
os.write(fd, b"x")"""

PTRACE = """
import ctypes
libc = ctypes.CDLL(None)
assert libc.ptrace(16, @PID@, 0, 0) == 0
import os
os.waitpid(@PID@, 0x40000000)
libc.ptrace(17, @PID@, 0, 0)"""

READ_MEMORY = """
import os
start = int(open("/proc/@PID@/maps").readline().split("-")[0], 16)
fd = os.open("/proc/@PID@/mem", os.O_RDONLY)
assert os.pread(fd, 4, start)"""

ATTEMPTS = [
    # Files outside
    does("write beside the workspace", "echo x >@OUT@/new"),
    does("write through a relative path", "echo x >../outside/new"),
    does("write through a link", "ln -s @OUT@ link; echo x >link/new"),
    does("write through a chain of links", "ln -s @OUT@ a; ln -s a b; echo x >b/new"),
    does("write through /proc/self/root", "echo x >/proc/self/root@OUT@/new"),
    does("write through /proc/1/root", "echo x >/proc/1/root@OUT@/new", "none"),
    does("write through /proc/self/cwd", "echo x >/proc/self/cwd/../outside/new"),
    does("write through an open directory", "exec 9<@OUT@; echo x >/proc/self/fd/9/new"),
    does("write through ld-linux", "/lib64/ld-linux-x86-64.so.2 $(command -v touch) @OUT@/new"),
    does(
        "write while a link changes",
        "(for i in {1..100}; do ln -sfn @OUT@ l; ln -sfn $PWD l; done) & "
        "while kill -0 $!; do echo x >l/raced; done 2>/dev/null; test -e @OUT@/raced",
    ),
    does("hard link to a file outside", "ln @OUT@/file hard && echo x >hard"),
    does("move a file in", "mv @OUT@/file ."),
    does("move a directory out", "mkdir d; mv d @OUT@/d"),
    does("change the mode of a file outside", "chmod 600 @OUT@/file"),
    does("change the times of a file outside", "touch @OUT@/file"),
    does("truncate a file outside", ": >@OUT@/file"),
    does("remove a file outside", "rm @OUT@/file"),
    does("replace the workspace", "cd .. && mv work moved"),
    python("open a file by its handle", OPEN_BY_HANDLE, "root"),
    does("make a device", "mknod d c 1 5 && head -c 1 d >/dev/null", "root"),
    # Mounts
    does("mount", "mount --bind @OUT@ sub && umount sub", "root"),
    does("remount writable", "mount -o remount,bind,rw / && echo x >@OUT@/new", "none"),
    does("change the root", "chroot / true", "root"),
    reads("unmount what hides secrets", "umount @HOME@/.ssh 2>/dev/null; cat @HOME@/.ssh/id_rsa"),
    does("unmount what protects hooks", "umount .git/hooks; echo x >.git/hooks/pre-commit"),
    # Namespaces and privileges
    does("a nested user namespace", "unshare -Ur true", "root"),
    reads(
        "unmount in a nested namespace",
        "unshare -Urm sh -c 'umount -l @HOME@/.ssh; cat @HOME@/.ssh/id_rsa' "
        "|| cat @HOME@/.ssh/id_rsa",
    ),
    does("enter the namespaces of a process", "nsenter -t @PID@ -m -n true", "root"),
    does("become another user", "setpriv --reuid 65534 --clear-groups true", "root"),
    does("su", "su nobody -s /bin/sh -c true", "root"),
    does("keep capabilities", "! grep -q 'CapBnd:.0*$' /proc/self/status", "root"),
    does("gain privileges by exec", "grep -q 'NoNewPrivs:.0' /proc/self/status"),
    does("write kernel parameters", 'p=/proc/sys/kernel/core_pattern; v=$(cat $p); echo "$v" >$p',
         "root"),
    does("the magic system request key", "echo h >/proc/sysrq-trigger", "none"),
    does("make a control group", "mkdir /sys/fs/cgroup/oh_x && rmdir /sys/fs/cgroup/oh_x", "root"),
    does("read the kernel's memory", "head -c 1 /proc/kcore >/dev/null", "none"),
    # Processes
    does("signal a process", "kill -0 @PID@"),
    does("signal by number of a group", "kill -0 -- -$(ps -o pgid= -p @PID@ | tr -d ' ')"),
    reads("read environments", "cat /proc/*/environ"),
    does("read open files of a process", "ls /proc/@PID@/fd >/dev/null"),
    does("write through another process", "echo x >/proc/@PID@/root@OUT@/new", "root"),
    python("attach a debugger", PTRACE, "root"),
    python("read memory of a process", READ_MEMORY, "root"),
    python("open a process", "import os\nos.pidfd_open(@PID@)"),
    does("inherited descriptors", "ls -l /proc/self/fd | grep -v '/proc/\\|/dev/\\|pipe:' | "
         "grep -q ' -> '", "none"),
    # Sockets and network
    python("connect by IPv4",
           CONNECT.format(family="AF_INET", kind="SOCK_STREAM", address='("127.0.0.1", @TCP@)')),
    python("connect by IPv6",
           CONNECT.format(family="AF_INET6", kind="SOCK_STREAM", address='("::1", @TCP6@)'),
           "none"),
    python("send a datagram, as to a name server",
           CONNECT.format(family="AF_INET", kind="SOCK_DGRAM", address='("127.0.0.1", @UDP@)')),
    python("connect to the metadata address", CONNECT.format(
        family="AF_INET", kind="SOCK_STREAM", address='("169.254.169.254", 80)'), "none"),
    does("resolve a name", "getent ahosts example.org >/dev/null", "none"),
    python("connect to a socket by path",
           CONNECT.format(family="AF_UNIX", kind="SOCK_STREAM", address='"@OUT@/socket"')),
    python("connect to a socket through a link", 'import os\nos.symlink("@OUT@", "o")'
           + CONNECT.format(family="AF_UNIX", kind="SOCK_STREAM", address='"o/socket"')),
    python("connect to an abstract socket",
           CONNECT.format(family="AF_UNIX", kind="SOCK_STREAM", address='"\\x00@ABSTRACT@"')),
    does("see sockets of services", "ls -A /run | grep -q ."),
    reads("shared memory", "cat @SHM@"),
    reads("the temporary directory", "cat @TMP@"),
    # Terminals
    does("write to another terminal", "echo x >@PTS@"),
    python("type into another terminal",
           'import fcntl, os\nfcntl.ioctl(os.open("@PTS@", os.O_RDWR | os.O_NOCTTY), 0x5412, b"x")',
           "none"),
    # Secrets
    *(reads(f"read ~/{name}", f"cat @HOME@/{name}") for name in HIDDEN),
    reads("read a secret through a link", "ln -s @HOME@/.ssh s; cat s/id_rsa"),
    reads("read a secret through /proc", "cat /proc/self/root@HOME@/.ssh/id_rsa"),
    reads("search the home", "grep -rh @SECRET@ @HOME@/.aws @HOME@/.netrc"),
    reads("read a connection file", "cat @ROOT@/runtime/kernel-1.json"),
    reads("read our state", "cat @ROOT@/state/event"),
    reads("inherited variables", "env"),
    does("read passwords", "head -c 1 /etc/shadow | grep -q .", "root"),
    # Files that a person's programs run later
    does("a git hook", "echo x >.git/hooks/pre-commit"),
    does("a git hook by renaming", "mv .git g; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit"),
    does("core.fsmonitor", "git config core.fsmonitor ./x 2>/dev/null"),
    does("core.fsmonitor by replacing the file", "cp .git/config c; mv -f c .git/config"),
    does("core.hooksPath of all repositories", "git config --global core.hooksPath x 2>/dev/null"),
    does("a hard link to git's configuration", "ln .git/config c"),
    does("another repository's configuration", "echo ../evil >.git/commondir"),
    does("another configuration of an inner repository", "echo ../../evil >sub/.git/commondir"),
    does("commondir by replacing", "echo ../evil >c; mv -f c .git/commondir"),
    does("commondir as a link", "rm -f .git/commondir; ln -s ../c .git/commondir"),
    does("a configuration of this worktree", "echo x >.git/config.worktree"),
    does("a hook of an inner repository", "echo x >sub/.git/hooks/pre-commit"),
    does("a hook by renaming a parent", "mv sub s"),
    does("a start-up file", "echo x >>@HOME@/.bashrc"),
    does("a missing start-up file", "echo x >@HOME@/.zshrc"),
    does("a program of the home", "mkdir -p @HOME@/bin && echo x >@HOME@/bin/ls"),
    does("servers of agents", "echo x >.mcp.json"),
    does("servers of agents by replacing", "echo x >m; mv -f m .mcp.json"),
    does("a task of VS Code", "mkdir -p .vscode; echo x >.vscode/tasks.json"),
    does("VS Code's folder as a link", "rm -rf .vscode; ln -s sub .vscode"),
    does("a command of Claude", "mkdir -p .claude; echo x >.claude/settings.json"),
    does("a checkpoint of a notebook", "mkdir -p .ipynb_checkpoints; echo x >.ipynb_checkpoints/x"),
    does("an installed package", "echo x >.venv/lib/python3/site-packages/sitecustomize.py"),
    does("a program of an environment", "echo x >.venv/bin/python"),
    does("an environment by renaming", "mv .venv v"),
]  # fmt: skip


def attempt_in(session: ShellSession, command: str) -> str:
    action = CmdRunAction(f"{{ {command}\n}}", blocking=True)
    action.timeout = 60
    observation = session.execute(action)
    assert isinstance(observation, CmdOutputObservation), observation
    return observation.content


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_an_attempt_fails(layout: Layout, attempt: Attempt) -> None:
    command = layout.fill(attempt.command)
    box = layout.box()
    try:
        with layout.boxed(box) as session:
            output = attempt_in(session, command)
            assert "ESCAPED" not in output, output
    finally:
        box.close()
    if attempt.control == "all" or (attempt.control == "root" and os.geteuid() == 0):
        with layout.plain() as session:
            attempt_in(session, "rm -rf link a b l d s o c m g")
            output = attempt_in(session, command)
            assert "ESCAPED" in output, f"without a box it must succeed: {output}"


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 60
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS)
