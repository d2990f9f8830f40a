"""Operations on guest agents, for the person who has them work.

A prompt is the person's: these operations are not offered over REST, where whoever has the
server's token may be an agent.
"""

from __future__ import annotations

from typing import Any

from oh_jupyter.agents import GuestAgents
from oh_jupyter.errors import WireError
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.broadcast import turn_fields
from oh_jupyter.kernel.control.rpc import Reply, Request, operation

__all__: list[str] = []


@operation("agents")
async def _agents(request: Request) -> Reply:
    """Which agents there are, which one is asked next, and the last turns."""
    agents = request.oh.agents
    fields = {
        "agents": await request.runtime.executor.in_thread(_states, agents),
        "current": agents.current,
        "turns": [turn_fields(turn) for turn in agents.turns],
    }
    return Reply(body=encode_json(fields))


@operation("prompt_agent")
async def _prompt(request: Request) -> Reply:
    """Ask an agent; the reply is its whole turn, which is broadcast while it goes on."""
    agent, oh = request.fields.get("agent"), request.oh
    if agent is not None and not isinstance(agent, str):
        raise WireError("'agent' must be a name, or null for the one that was asked last", "agent")
    flags = {}
    for name in ("new", "resume"):
        flags[name] = request.fields.get(name, False)
        if not isinstance(flags[name], bool):
            raise WireError(f"{name!r} must be true or false", name)
    text = request.text("text")
    turn = await oh.agents.prompt(text, agent, context=oh.agent_context, **flags)
    return Reply(body=encode_json(turn_fields(turn)))


@operation("interrupt_agent")
async def _interrupt(request: Request) -> Reply:
    """End the turn of an agent, which stays."""
    request.oh.agents.interrupt(request.text("agent"))
    return Reply()


def _states(agents: GuestAgents) -> list[dict[str, Any]]:
    """Each agent's name, state, and how it is installed where it is not."""
    found = []
    for name, command in agents.known().items():
        session = agents.at_work.get(name)
        state = "installed" if command.is_installed else "missing"
        if session is not None:
            state = "busy" if session.is_busy else "ready"
        found.append({"name": name, "state": state, "installation": command.installation})
    return found
