"""Names of the agents that request Actions."""

from __future__ import annotations

import pytest

from oh_jupyter.events.actor import agent_name


@pytest.mark.parametrize(
    ("actor", "name"),
    [
        (None, ""),
        ({"user": "ada", "session": "0a1b2c3d4e5f"}, ""),
        ({"persona": "jupyter-ai::personas::Claude", "client": "claude-code"}, "Claude"),
        ({"client": "Claude Code", "guest": "claude-0a1b2c3d"}, "Claude"),
        ({"client": "Claude Code"}, "Claude Code"),
        ({"client": "REST (nightly)"}, "REST (nightly)"),
    ],
)
def test_an_agent_has_a_name_for_people(actor, name) -> None:
    assert agent_name(actor) == name
