"""Questions about hosts in a kernel: the same as about actions, with the same rules."""

from __future__ import annotations

import sys

import pytest

from oh_jupyter.sandbox import find_engine
from oh_jupyter.testing import wait_until

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(
        find_engine().program is None or sys.platform != "linux",
        reason="needs bubblewrap, and user namespaces",
    ),
]


def test_a_host_is_asked_about_and_its_rule_is_listed(fresh_kernel) -> None:
    for name, value in (("sandbox", "required"), ("sandbox_network", "ask")):
        fresh_kernel.execute(f'%config OhJupyter.{name} = "{value}"')
    fresh_kernel.execute('%config OhJupyter.confirmation = "risky"')
    command = "curl -sS http://api.example.invalid/"
    action = {"action": "run", "args": {"command": command, "blocking": True}}
    asked = fresh_kernel.send("execute_action", {"action": action})
    waiting = wait_until(lambda: fresh_kernel.ask("confirmations")[1])
    assert waiting[0]["message"] == "A command wants to reach api.example.invalid:80"
    assert waiting[0]["reason"] == "it reaches api.example.invalid:80"
    fresh_kernel.ask("confirm", id=waiting[0]["id"], approve=True, for_session=True)
    content = fresh_kernel.reply(asked)[1]["content"]
    assert content == "The name api.example.invalid cannot be resolved. Check its spelling."
    assert "it reaches api.example.invalid:80" in fresh_kernel.execute("%oh_confirm --rules")
    assert "reach api.example.invalid:80" in fresh_kernel.execute("%oh_log")
    assert "cannot be resolved" in fresh_kernel.act("run", command=command)["content"]
    fresh_kernel.execute("%oh_confirm --forget 1")
    assert "api.example" not in fresh_kernel.execute("%oh_confirm --rules")
    assert "listed and approved hosts" in fresh_kernel.execute("%oh_status")
