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


@pytest.mark.parametrize(
    "command",
    [
        "sudo -u nobody bash --norc",
        "sudo su nobody -s /bin/bash",
        "sudo -u PERSON -i",
        "sudo su - PERSON",
    ],
)
def test_sub_shell(run, start, command):
    if "PERSON" in command:
        if not PEOPLE:
            pytest.skip("no user with an ordinary shell")
        command = command.replace("PERSON", PEOPLE[0])
    start(command)
    user = "nobody" if "nobody" in command else PEOPLE[0]
    start('echo "<$(id -un)$((40+2))>"', shown=f"<{user}42>", is_input=True)
    # An interrupt ends what runs in the sub-shell, not the sub-shell.
    start("echo up$((40+2)); sleep 100; echo no", shown="up42", is_input=True)
    start("C-c", is_input=True)
    start("echo still $((40+2))", shown="still 42", is_input=True)
    ended = run("exit 6", is_input=True, blocking=True)
    assert ended.exit_code == 6
    assert run("id -un", blocking=True).content == "root"


def test_exit_code_comes_through(run):
    assert run("sudo -u nobody sh -c 'echo $USER; exit 9'", blocking=True).exit_code == 9
