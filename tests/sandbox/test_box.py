"""The lifecycle of a box, and the states of a machine that cannot make one."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_jupyter.errors import SandboxError, ShellError
from oh_jupyter.events import CmdOutputObservation, CmdRunAction
from oh_jupyter.sandbox import Box, Engine, Profile, availability, find_engine, make_profile
from oh_jupyter.sandbox.bubblewrap import bubblewrap_argv
from oh_jupyter.sandbox.mounts import Mount, resolve
from oh_jupyter.sandbox.process_limit import CGROUP_PREFIX, own_cgroup
from oh_jupyter.sandbox.seatbelt import seatbelt_profile
from oh_jupyter.shell import BashSession
from oh_jupyter.testing import wait_until
from tests.sandbox.layout import Layout, kill_owner

needs_engine = pytest.mark.skipif(
    find_engine().program is None or sys.platform != "linux",
    reason="needs bubblewrap, and user namespaces",
)
MAX_PID = 2**22
FORKS = "import os, signal\nfor _ in range(60): os.fork() or signal.pause()"
LIMITS_PROCESSES = os.geteuid() != 0 or os.access(own_cgroup() or "", os.W_OK)
needs_process_limit = pytest.mark.skipif(
    not LIMITS_PROCESSES, reason="the superuser cannot make a cgroup for processes here"
)


def output_of(session: BashSession, command: str) -> str:
    observation = session.execute(CmdRunAction(command, blocking=True))
    assert isinstance(observation, CmdOutputObservation), observation
    return observation.content


@needs_engine
def test_state_stays_between_commands(layout: Layout) -> None:
    box = layout.box()
    with layout.boxed(box) as session:
        for command in ("cd sub", "export A=1", "f() { echo f$A; }", "sleep 100 &", "B=2"):
            output_of(session, command)
        assert output_of(session, "f; echo $B; jobs -r | wc -l; basename $PWD") == "f1\n2\n1\nsub"
        assert output_of(session, "echo x >made; cat made") == "x"
    box.close()
    assert (layout.workspace / "sub" / "made").read_text() == "x\n"


@needs_engine
def test_nothing_is_left_after_the_end(layout: Layout) -> None:
    before = sorted(path.name for path in layout.workspace.iterdir())
    others = psutil.Process().children(recursive=True)
    box = layout.box()
    with layout.boxed(box) as session:
        output_of(session, "setsid sleep 1000 & echo x >/tmp/x")
        processes = [
            each for each in psutil.Process().children(recursive=True) if each not in others
        ]
        assert (layout.workspace / ".vscode").is_dir()
        assert "x" in os.listdir(box.temporary_dir)
    box.close()
    box.close()
    assert len(processes) >= 4
    wait_until(lambda: not any(each.is_running() for each in processes))
    assert sorted(path.name for path in layout.workspace.iterdir()) == before
    assert not os.path.exists(box.temporary_dir)


@needs_engine
def test_two_boxes_leave_no_placeholders(tmp_path: Path) -> None:
    boxes = [Box(make_profile(str(tmp_path), homes=[]), find_engine())]
    with BashSession(tmp_path, None, 60, enclosure=boxes[0]) as session:
        output_of(session, "true")
        boxes.append(Box(make_profile(str(tmp_path), homes=[]), find_engine()))
    with BashSession(tmp_path, None, 60, enclosure=boxes[1]) as session:
        output_of(session, "true")
    for box in boxes:
        box.close()
    assert os.listdir(tmp_path) == []


@needs_engine
def test_placeholders_that_a_person_filled_stay(layout: Layout) -> None:
    box = layout.box()
    with layout.boxed(box) as session:
        output_of(session, "true")
        (layout.workspace / ".vscode" / "tasks.json").write_text("{}")
        (layout.workspace / ".mcp.json").write_text("mine")
        assert output_of(session, "cat .vscode/tasks.json .mcp.json") == "{}mine"
    box.close()
    assert (layout.workspace / ".vscode" / "tasks.json").read_text() == "{}"
    assert (layout.workspace / ".mcp.json").read_text() == "mine"


KILLED = """
import sys
from oh_jupyter.events import CmdRunAction
from oh_jupyter.sandbox import Box, Profile, find_engine
from oh_jupyter.shell import BashSession
box = Box(Profile((sys.argv[1],)), find_engine())
session = BashSession(sys.argv[1], enclosure=box)
session.initialize()
session.execute(CmdRunAction("setsid sleep 1000 &"))
print(box.temporary_dir, session.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.thorough
@needs_engine
def test_a_kill_of_the_owner_leaves_nothing(layout: Layout) -> None:
    temporary_dir, pid, processes = kill_owner(KILLED, layout.workspace, "1000")
    assert pid in [each.pid for each in processes]
    assert temporary_dir not in Path("/proc/self/mountinfo").read_text()


@needs_engine
def test_a_later_shell_of_a_box_sees_its_temporary_files(layout: Layout) -> None:
    box = layout.box()
    with layout.boxed(box) as session:
        output_of(session, "echo kept >/tmp/x; cd /tmp")
        output_of(session, "exit 3")
        assert output_of(session, "cat x; pwd") == "kept\n/tmp"
        static = session.execute(CmdRunAction("cat /tmp/x", is_static=True, blocking=True))
        assert static.content == "kept"
    box.close()


@needs_engine
def test_a_snapshot_reads_the_file_that_it_made(layout: Layout) -> None:
    box = layout.box()
    (layout.outside / "environ").write_bytes(b"STOLEN=1\0.\0")
    with layout.boxed(box) as session:
        output_of(session, "export MINE=1")
        swap = f"for f in /tmp/oh_shell_*; do ln -sf {layout.outside}/environ $f; done"
        output_of(session, f"(while sleep 0.001; do {swap}; done) >/dev/null 2>&1 &")
        for _ in range(20):
            try:
                variables = session.snapshot().variables
            except Exception:  # the file went to the link's target, which is not writable
                continue
            assert "STOLEN" not in variables
    box.close()


@needs_engine
@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes users")
def test_another_user_in_a_box(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent != Path("/") and parent.stat().st_uid == 0 and "pytest" in str(parent):
            parent.chmod(0o755)
    engine = find_engine("nobody")
    assert engine.program is not None, engine.sentence
    profile = make_profile(str(tmp_path), homes=["/root", "/nonexistent"])
    box = Box(profile, engine, "nobody")
    with BashSession(tmp_path, "nobody", 60, enclosure=box) as session:
        assert output_of(session, "id -un; echo x >made; echo y >/tmp/y; cat /tmp/y") == "nobody\ny"
        assert "EXPORTED" not in session.snapshot().variables
        assert output_of(session, "ls -A /root") == ""
    box.close()
    assert (tmp_path / "made").read_text() == "x\n"


@needs_engine
def test_a_workspace_that_is_a_home(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("secret")
    profile = make_profile(str(tmp_path), homes=[str(tmp_path)])
    box = Box(profile, find_engine())
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with BashSession(tmp_path, None, 60, enclosure=box, env=env) as session:
        assert "secret" not in output_of(session, "cat .ssh/id")
        for name in (".bashrc", ".bash_profile", ".zshrc", ".gitconfig", ".ssh/new"):
            assert "Read-only" in output_of(session, f"echo x >>{name}"), name
        assert output_of(session, "echo x >mine; cat mine") == "x"
    box.close()
    assert sorted(os.listdir(tmp_path)) == [".ssh", "mine"]


@needs_engine
def test_the_operators_paths(layout: Layout) -> None:
    (layout.workspace / "hidden").mkdir()
    (layout.workspace / "hidden" / "x").write_text("secret")
    profile = make_profile(
        str(layout.workspace), homes=[], writable=["../outside", ".venv"], hidden=["hidden"]
    )
    box = Box(profile, find_engine())
    with layout.boxed(box) as session:
        assert (
            output_of(session, "echo x >../outside/new && echo x >.venv/bin/x && ls hidden") == ""
        )
    box.close()
    assert (layout.outside / "new").exists()


@needs_engine
def test_a_bound_socket_is_the_way_out(layout: Layout) -> None:
    profile = Profile(
        (str(layout.workspace),),
        visible=(sys.prefix, sys.base_prefix),
        sockets=((f"{layout.outside}/socket", "/tmp/s"),),
    )
    box = Box(profile, find_engine())
    code = 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("/tmp/s")'
    with layout.boxed(box) as session:
        content = output_of(session, f"{sys.executable} -c '{code}; print(s.recv(99))'")
    box.close()
    assert "outside-secret" in content


@needs_engine
@pytest.mark.parametrize("target", ["../outside", "../.ssh"], ids=["to write", "to read"])
def test_a_link_that_appears_while_a_box_starts(layout: Layout, target: str) -> None:
    box = layout.box()
    enclose = box.enclose

    def race(*arguments: Any) -> Any:
        restore(layout)
        result = enclose(*arguments)
        replace_by_link(layout, target)
        hooks = layout.home / target.removeprefix("../") / ".git" / "hooks"
        hooks.mkdir(parents=True, exist_ok=True)
        (layout.home / target.removeprefix("../") / ".git" / "config").touch()
        return result

    box.enclose = race  # type: ignore[method-assign]
    with pytest.raises(ShellError), layout.boxed(box):
        pass
    box.close()


@needs_engine
@pytest.mark.parametrize("change", ["a link appears", "a socket vanishes"])
def test_a_change_while_a_box_starts_is_no_failure(
    layout: Layout, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oh_jupyter.sandbox.mounts.HOMES", ())
    path = layout.home / "socket"
    box = Box(make_profile(str(layout.workspace), homes=[]), find_engine())
    enclose, attempts = box.enclose, []

    def race(*arguments: Any) -> Any:
        attempts.append(arguments[0])
        is_first = len(attempts) == 1
        restore(layout)
        with socket.socket(socket.AF_UNIX) as server:
            if is_first and change == "a socket vanishes":
                server.bind(str(path))
                server.listen()
            result = enclose(*arguments)
        path.unlink(missing_ok=True)
        if is_first and change == "a link appears":
            replace_by_link(layout, "../outside")
        return result

    box.enclose = race  # type: ignore[method-assign]
    with layout.boxed(box) as session:
        assert output_of(session, "echo works") == "works"
    box.close()
    first, *others = attempts  # others: something else may change meanwhile
    assert others
    assert all(each == first for each in others)  # with the user's start-up files


def replace_by_link(layout: Layout, target: str) -> None:
    (layout.workspace / "sub").rename(layout.workspace / "moved")
    (layout.workspace / "sub").symlink_to(target)


def restore(layout: Layout) -> None:
    moved = layout.workspace / "moved"
    if moved.exists():
        (layout.workspace / "sub").unlink()
        moved.rename(layout.workspace / "sub")


@needs_engine
def test_a_box_is_checked_before_its_first_command(layout: Layout) -> None:
    box = layout.box()
    with layout.boxed(box) as session:
        assert session.pid is not None
        box.check(session.pid)
        real = layout.workspace / "sub"
        real.rename(layout.workspace / "moved")
        real.symlink_to("../outside")
        with pytest.raises(SandboxError, match=r"paths changed while it started \(/.*/sub"):
            box.check(session.pid)
        with pytest.raises(SandboxError, match="paths changed"):
            box.check(os.getpid())
    box.close()


@needs_engine
def test_the_memory_limit_spares_the_shell(layout: Layout) -> None:
    box = layout.box()
    session = BashSession(layout.workspace, None, 60, 300, env=layout.env(), enclosure=box)
    with session:
        output_of(session, "export KEPT=1")
        code = 'import time; x = b"x" * (600 * 2**20); time.sleep(60)'
        action = CmdRunAction(f"{sys.executable} -c '{code}'", blocking=True)
        observation = session.execute(action)
        assert "more than the limit of 300 MiB" in observation.metadata.suffix  # type: ignore[union-attr]
        assert output_of(session, "echo $KEPT") == "1"
    box.close()


@needs_engine
def test_the_number_of_processes_is_limited(layout: Layout) -> None:
    box = layout.box(max_processes=40)
    with layout.boxed(box) as session:
        assert output_of(session, "ulimit -u; bash -c 'ulimit -Hu'; ulimit -u 50") == (
            "40\n40\nbash: ulimit: max user processes: cannot modify limit: Operation not permitted"
        )
    box.close()


@needs_engine
@needs_process_limit
def test_a_fork_bomb_fails(layout: Layout) -> None:
    box = layout.box(max_processes=40)
    with layout.boxed(box) as session:
        # bash would wait for each process that it cannot start.
        output = output_of(session, f"{sys.executable} -c '{FORKS}'")
        assert output.endswith("[Errno 11] Resource temporarily unavailable")
        assert len(cgroups_of_boxes()) == (os.geteuid() == 0)
    box.close()
    assert not cgroups_of_boxes()


@needs_engine
@needs_process_limit
def test_cgroups_of_a_killed_kernel_are_removed_with_the_next_box(layout: Layout) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser's boxes have cgroups")
    parent = own_cgroup()
    assert parent is not None
    abandoned = parent / f"{CGROUP_PREFIX}{MAX_PID + 1}_x"
    abandoned.mkdir()
    box = layout.box()
    with layout.boxed(box) as session:
        assert output_of(session, "echo here") == "here"
    box.close()
    assert not abandoned.exists()


def cgroups_of_boxes() -> list[Path]:
    """The cgroups that this process has made for boxes."""
    parent = own_cgroup()
    return list(parent.glob(f"{CGROUP_PREFIX}{os.getpid()}_*")) if parent else []


@pytest.mark.parametrize(
    ("mounts", "memberships", "expected"),
    [
        (
            "30 25 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids",
            "3:cpu,cpuacct:/x\n2:pids:/a/b\n0::/u",
            "/sys/fs/cgroup/pids/a/b",
        ),
        (
            "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw",
            "0::/a.scope",
            "/sys/fs/cgroup/a.scope",
        ),
        (
            "30 25 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw",
            "0::/docker/1/x",
            "/sys/fs/cgroup/x",
        ),
        ("30 25 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw", "0::/other", None),
        ("30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "1:cpu:/", None),
    ],
    ids=["version 1", "version 2", "mounted from below", "another place", "no such controller"],
)
def test_the_cgroup_of_a_process(
    tmp_path: Path, mounts: str, memberships: str, expected: str | None
) -> None:
    (tmp_path / "mountinfo").write_text(f"24 1 0:22 / /proc rw shared:5 - proc proc rw\n{mounts}\n")
    (tmp_path / "cgroup").write_text(f"{memberships}\n")
    cgroup = own_cgroup(tmp_path / "mountinfo", tmp_path / "cgroup")
    assert cgroup == (expected and Path(expected))


def test_missing_paths_and_links_are_resolved_once(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    profile = Profile((str(tmp_path / "link"),), hidden=(str(tmp_path / "absent"),))
    assert Mount(str(real), "writable") in resolve(profile)
    assert not any("absent" in mount.path for mount in resolve(profile))


def test_parents_of_a_protected_path_cannot_be_renamed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    profile = Profile((str(tmp_path),), read_only=(str(tmp_path / "a" / "b"),))
    mounts = resolve(profile)
    assert mounts.index(Mount(str(tmp_path / "a"), "writable")) < mounts.index(
        Mount(str(tmp_path / "a" / "b"), "read_only")
    )


def test_the_network_is_a_choice() -> None:
    for network, expected in (("none", True), ("host", False)):
        argv = bubblewrap_argv("bwrap", [], ["true"], cwd="/", temporary="/tmp/x", network=network)
        assert ("--unshare-net" in argv) is expected


def test_the_profile_for_macos() -> None:
    mounts = [Mount("/project", "writable"), Mount("/project/.git/hooks", "read_only")]
    lines = seatbelt_profile(mounts, temporary='/private/"t"').splitlines()
    assert lines.index('(allow file-read* file-write* (subpath "/project"))') < lines.index(
        '(deny file-write* (subpath "/project/.git/hooks"))'
    )
    assert '(allow file-read* file-write* (subpath "/private/\\"t\\""))' in lines
    assert "(deny network*)" in lines


def test_no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(availability, "WORKING_ENGINES", {})
    engine = find_engine()
    if sys.platform == "linux":
        assert engine.program is None
        assert "bubblewrap is not installed: " in engine.sentence
        with pytest.raises(SandboxError, match="No sandbox can be made, because bubblewrap is not"):
            Box(Profile(()), engine)


FAILING = """#!/bin/sh
echo "bwrap: setting up uid map: Permission denied" >&2
exit 1
"""
OLD = """#!/bin/sh
case "$*" in *disable-userns*) echo "bwrap: Unknown option --disable-userns" >&2; exit 1;; esac
"""


@pytest.mark.skipif(sys.platform != "linux", reason="about Linux")
@pytest.mark.parametrize("script", [FAILING, OLD], ids=["failing", "old"])
def test_a_bubblewrap_that_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    (tmp_path / "bwrap").write_text(script)
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(availability, "WORKING_ENGINES", {})
    engine = find_engine()
    if script == OLD:
        assert engine == Engine(f"{tmp_path}/bwrap", nested_namespaces=True)
    else:
        assert engine.program is None
        assert "setting up uid map: Permission denied" in engine.problem


@pytest.mark.parametrize(
    ("file", "value", "expected"),
    [
        ("sys/kernel/apparmor_restrict_unprivileged_userns", "1", "profile bwrap /usr/bin/x "),
        ("sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
        (".dockerenv", "", "--security-opt seccomp=unconfined"),
        ("nothing", "", "set sandbox = 'off'"),
    ],
)
def test_the_remedy_fits_the_machine(tmp_path: Path, file: str, value: str, expected: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(f"{value}\n")
    places = {"proc": str(tmp_path), "root": str(tmp_path)}
    assert expected in availability.remedy("/usr/bin/x", **places)


@pytest.mark.parametrize(
    ("error", "reason", "option"),
    [
        (
            "bwrap: Can't mount proc on /newroot/proc",
            "masks parts of /proc",
            "with --security-opt s",
        ),
        ("bwrap: No permissions to create new namespace", "forbids user", "seccomp=unconfined"),
    ],
)
def test_the_remedy_fits_the_container(
    tmp_path: Path, error: str, reason: str, option: str
) -> None:
    (tmp_path / ".dockerenv").touch()
    places = {"proc": str(tmp_path), "root": str(tmp_path)}
    sentence = availability.remedy("/usr/bin/x", error, **places)
    assert reason in sentence
    assert option in sentence


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("ID=debian\n", "apt-get install"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "apt-get install"),
        ("ID=fedora\n", "dnf install"),
        ("ID=alpine\n", "apk add"),
        ("ID=unknown\n", "your package manager"),
    ],
)
def test_the_command_fits_the_distribution(release: str, expected: str) -> None:
    assert expected in availability.install_command(lambda: release)
