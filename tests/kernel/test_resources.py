"""What runs in a runtime is told, and ended by itself."""

from __future__ import annotations


def test_the_shell_is_ended_with_its_command_and_comes_again(kernel) -> None:
    pid = kernel.act("run", command="echo $$")["content"]
    assert kernel.ask("status")[0]["runtime"]["shell"] == int(pid)
    asked = kernel.send("execute_action", {"action": {"action": "run", "args": {
        "command": "sleep 1000", "blocking": True}}})  # fmt: skip
    while not kernel.ask("status")[0]["runtime"]["running"]:
        pass
    assert kernel.ask("end_resource", kind="shell", name="")[0]["status"] == "ok"
    kernel.reply(asked)
    runtime = kernel.ask("status")[0]["runtime"]
    assert (runtime["shell"], runtime["running"]) == (None, [])
    assert kernel.act("run", command="echo $$")["content"] != pid


def test_what_is_not_there_is_ended_without_a_word(kernel) -> None:
    runtime = kernel.ask("status")[0]["runtime"]
    assert (runtime["browsers"], runtime["agents"]) == ([], {})
    for kind in ("browser", "agent"):
        assert kernel.ask("end_resource", kind=kind, name="none")[0]["status"] == "ok"
    assert kernel.ask("end_resource", kind="kernel", name="")[0]["field"] == "kind"
