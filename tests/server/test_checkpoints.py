"""The checkpoints of a kernel's workspace over REST."""

from __future__ import annotations

import os
from typing import Any


async def test_a_turn_is_undone(ask: Any, act: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    status, found = await ask("checkpoints")
    assert (status, found) == (200, {"checkpoints": [], "problem": ""})
    status, mark = await ask("checkpoints", body={"label": "before"})
    assert (status, mark["kind"], mark["label"]) == (200, "mark", "before")
    _, done = await act("run", command="echo x > made.txt; pwd")
    folder = done["content"].strip()
    status, found = await ask("checkpoints")
    assert [entry["kind"] for entry in found["checkpoints"]] == ["mark", "turn"]
    status, plan = await ask("rewind", body={"preview": True})
    assert (status, plan["changes"]) == (200, [{"path": "made.txt", "kind": "delete"}])
    assert os.path.exists(os.path.join(folder, "made.txt"))
    status, done = await ask("rewind", body={"source": "user"})
    assert (status, done) == (200, plan)
    assert not os.path.exists(os.path.join(folder, "made.txt"))
    status, answer = await ask("rewind", body={})
    assert (status, answer["error"]) == (409, "CheckpointError")
    assert "is left to undo" in answer["detail"]


async def test_wrong_requests(ask: Any) -> None:
    for body, word in (
        ({"id": "x"}, "'id' must be the number"),
        ({"id": True}, "'id' must be the number"),
        ({"everything": 1}, "'everything' must be true or false"),
        ({"source": "me"}, "'source' must be"),
        ([], "must be a JSON object"),
    ):
        status, answer = await ask("rewind", body=body)
        assert status == 422, answer
        assert word in answer["detail"]
    status, answer = await ask("rewind", body={"id": 99})
    assert (status, answer["detail"][:16]) == (409, "No checkpoint 99")
    status, answer = await ask("checkpoints", body={"label": 1})
    assert (status, answer["detail"]) == (422, 'The body must be {"label": "..."}')
