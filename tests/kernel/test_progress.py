"""Progress of Actions: queued, running, output so far, decisions and diffs of edits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest


def look(kernel: Any, id: int, **seen: str) -> dict[str, str]:
    """The state and output of an Action, once they are not those that were seen."""
    while True:
        _, now = kernel.ask("peek", id=id, wait=30, seen=seen or None)
        if now != seen:
            return dict(now)


def asked(kernel: Any, kind: str, **args: Any) -> int:
    """Send an Action: its id in the log."""
    before = int(kernel.ask("status")[1]["events"])
    kernel.send("execute_action", {"action": {"action": kind, "args": args}})
    return recorded(kernel, before)


def recorded(kernel: Any, start: int) -> int:
    """The id of the next Action, once the log has it: an earlier one's Observation may precede."""
    while True:
        for event in kernel.ask("events", start_id=start, wait=30)[1]["events"]:
            start = event["id"] + 1
            if "action" in event:
                return int(event["id"])


def observed(kernel: Any, id: int) -> dict[str, Any]:
    """The Observation of an Action, once the log has it: replies come in any order."""
    start = id + 1
    while True:
        for event in kernel.ask("events", start_id=start, wait=30)[1]["events"]:
            start = event["id"] + 1
            if event.get("cause") == id:
                return dict(event)


def settled(kernel: Any, id: int, *passing: str) -> dict[str, str]:
    """Return an Action's progress after states that it only passes through."""
    seen = look(kernel, id)
    while seen["state"] in passing or seen == {"state": "running", "text": ""}:
        seen = look(kernel, id, **seen)
    return seen


@pytest.mark.parametrize("kind", ["run", "run_ipython"])
def test_output_is_reported_as_it_comes(kernel, tmp_path: Path, kind: str) -> None:
    gates = [tmp_path / "first", tmp_path / "second"]
    for gate in gates:
        os.mkfifo(gate)
    if kind == "run":
        shell = f"echo one; cat {gates[0]}; echo two; cat {gates[1]}"
        args: dict[str, Any] = {"command": shell, "blocking": True}
    else:
        opened = [f"open({str(gate)!r}).read()" for gate in gates]
        args = {"code": f"print('one'); {opened[0]}; print('two'); {opened[1]}; None"}
    id = asked(kernel, kind, **args)
    seen = settled(kernel, id, "queued")
    assert seen == {"state": "running", "text": "one"}
    gates[0].write_text("")
    assert look(kernel, id, **seen)["text"].split() == ["one", "two"]
    gates[1].write_text("")
    observed(kernel, id)
    assert look(kernel, id) == {"state": "ended", "text": ""}


def test_a_waiting_peek_returns_at_the_end(kernel, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    id = asked(kernel, "run", command=f"echo on; cat {tmp_path}/gate", blocking=True)
    seen = settled(kernel, id, "queued")
    looking = kernel.send("peek", id=id, wait=600, seen=seen)
    (tmp_path / "gate").write_text("")
    assert kernel.reply(looking)[1]["state"] == "ended"


def test_actions_of_the_magic_can_be_seen_too(kernel, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    id = kernel.ask("status")[1]["events"]
    code = f"print('inside'); open({str(tmp_path / 'gate')!r}).read()"
    cell = kernel.start(f"%oh_run --cell {code}")
    id = recorded(kernel, id)
    assert settled(kernel, id, "queued")["text"] == "inside"
    (tmp_path / "gate").write_text("")
    assert kernel.finish(cell)["status"] == "ok"


def test_an_action_that_waits_for_the_shell_is_queued(kernel, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    first = asked(kernel, "run", command=f"cat {tmp_path}/gate", blocking=True)
    id = asked(kernel, "run", command="echo mine")
    seen = settled(kernel, id)
    assert seen["state"] == "queued"
    (tmp_path / "gate").write_text("")
    assert look(kernel, id, **seen)["state"] in ("running", "ended")
    assert observed(kernel, first)["content"] == ""
    assert observed(kernel, id)["content"] == "mine"


def test_pending_edits_show_their_diff(kernel) -> None:
    path = "/etc/oh-jupyter-test"
    edit = {"path": path, "command": "create", "file_text": "never\n"}
    ids = [asked(kernel, "edit", **edit), asked(kernel, "write", path=path, content="never")]
    for id in ids:
        first = kernel.ask("confirmations")[1][0]
        assert first["id"] == id
        assert "+never" in first["diff"].splitlines()
        assert first["reasons"] == [f"it changes {path}"]
        assert 0 < first["seconds_left"] <= 300
        assert first["sandboxed"] is None
        assert "unless you decide" in kernel.execute("%oh_confirm")
        kernel.ask("confirm", id=id, approve=False, reason="not there", by="REST")
        observation = observed(kernel, id)
        assert observation["content"].endswith("(The user says: not there)")
        handling = observation["oh_jupyter"]["handling"]
        assert handling["decided_by"] == "REST"
        assert handling["waited_seconds"] >= 0
    assert not Path(path).exists()


def test_the_magic_lists_and_revokes_rules_of_the_workspace(kernel) -> None:
    id = asked(kernel, "run", command="sudo -n true")
    kernel.execute(f"%oh_confirm {id} --always")
    assert observed(kernel, id)["observation"] == "run"
    again = asked(kernel, "run", command="sudo -n false")
    assert observed(kernel, again)["observation"] == "run"
    listed = kernel.execute("%oh_confirm --rules")
    assert "it becomes another user" in listed
    assert "workspace" in listed
    assert kernel.execute("%oh_confirm --forget 1").strip() == "The approval is revoked."
    assert "it becomes another user" not in kernel.execute("%oh_confirm --rules")
    waits = asked(kernel, "run", command="sudo -n true")
    assert kernel.execute(f"%oh_confirm {waits} --reject").startswith("Rejected: ")
    assert "There is no approval 7" in kernel.execute("%oh_confirm --forget 7")


def test_the_magic_rejects_with_a_reason(kernel) -> None:
    id = asked(kernel, "run", command="sudo -n true; curl x | sh")
    listed = kernel.execute("%oh_confirm")
    assert "it becomes another user, and it runs what it downloads" in listed
    assert kernel.execute(f'%oh_confirm {id} --reject "use make instead"').startswith("Rejected: ")
    observation = observed(kernel, id)
    assert observation["content"].endswith("(The user says: use make instead)")
    assert observation["oh_jupyter"]["handling"]["decided_by"] == "the notebook"
