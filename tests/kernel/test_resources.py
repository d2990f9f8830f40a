"""Running resources of a runtime are listed and ended individually."""

from __future__ import annotations

from typing import Any

import pytest

from oh_jupyter.testing import wait_until

pytestmark = pytest.mark.thorough


def test_the_shell_is_ended_with_its_command_and_comes_again(kernel) -> None:
    def runtime() -> dict[str, Any]:
        return dict(kernel.ask("status")[1])

    pid = kernel.act("run", command="echo $$")["content"]
    assert runtime()["shell"] == int(pid)
    sleep = {"action": "run", "args": {"command": "sleep 1000", "blocking": True}}
    kernel.send("execute_action", {"action": sleep})
    wait_until(lambda: runtime()["running"], what="the command running")
    assert kernel.ask("end_resource", kind="shell", name="")[0]["status"] == "ok"
    wait_until(lambda: not runtime()["running"], what="the command being cancelled")
    assert runtime()["shell"] is None
    assert kernel.act("run", command="echo $$")["content"] != pid


def test_ending_an_absent_resource_succeeds(kernel) -> None:
    status = kernel.ask("status")[1]
    assert {"browsers", "agents"} <= status.keys()
    assert status["box"] == {"place": "none", "network": ""}
    assert status["restrictions"] == []
    for kind in ("browser", "agent"):
        assert kernel.ask("end_resource", kind=kind, name="none")[0]["status"] == "ok"
    assert kernel.ask("end_resource", kind="kernel", name="")[0]["field"] == "kind"
