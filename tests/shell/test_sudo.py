"""Sub-shells of other users are commands that run, and are left like others."""

from __future__ import annotations

import os
import pwd
import shutil

import pytest

ORDINARY_SHELLS = ("/bin/sh", "/bin/bash", "/usr/bin/bash")
PEOPLE = [
    user.pw_name
    for user in pwd.getpwall()
    if 1000 <= user.pw_uid < 60_000 and user.pw_shell in ORDINARY_SHELLS
]

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("sudo") is None, reason="needs root, and sudo"
)


def until(run, text: str, observation):
    """Wait until a program has shown something; a loaded machine takes its time."""
    shown = observation.content
    for _ in range(30):
        if text in shown:
            return shown
        shown += run("").content
    raise AssertionError(f"{text!r} is not in {shown!r}")


@pytest.mark.parametrize(
    "start",
    [
        "sudo -u nobody bash --norc",
        "sudo su nobody -s /bin/bash",
        "sudo -u PERSON -i",
        "sudo su - PERSON",
    ],
)
def test_sub_shell(run, start):
    if "PERSON" in start:
        if not PEOPLE:
            pytest.skip("no user with an ordinary shell")
        start = start.replace("PERSON", PEOPLE[0])
    assert run(start).exit_code == -1
    user = "nobody" if "nobody" in start else PEOPLE[0]
    until(run, f"<{user}42>", run('echo "<$(id -un)$((40+2))>"', is_input=True))
    # An interrupt ends what runs in the sub-shell, not the sub-shell.
    until(run, "up", run("echo up; sleep 100; echo no", is_input=True))
    run("C-c", is_input=True)
    until(run, "still 42", run("echo still $((40+2))", is_input=True))
    ended = run("exit 6", is_input=True, blocking=True)
    assert ended.exit_code == 6
    assert run("id -un", blocking=True).content == "root"


def test_exit_code_comes_through(run):
    assert run("sudo -u nobody sh -c 'echo $USER; exit 9'", blocking=True).exit_code == 9
