"""Operations for a person: prompts to agents, manual use of the browser, trust in a folder.

REST does not offer them, because the holder of the server's token may be an agent.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oh_jupyter.config import (
    Settings,
    folder_settings,
    shown_settings,
    trust,
    trust_records,
)
from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import BrowserError, ConfigError, WireError
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.broadcast import turn_fields
from oh_jupyter.kernel.control.context_rpc import attachments
from oh_jupyter.kernel.control.rpc import Request, operation
from oh_jupyter.kernel.control.turn_follow import followed, is_repeated
from oh_jupyter.policy import check_allowed, refusal

if TYPE_CHECKING:
    from oh_jupyter.agents import GuestAgents

ACT_TIMEOUT_SECONDS = 60.0
NO_BROWSER = "The setting enable_browser does not allow a browser here."
MAX_WATCH_SECONDS = 60.0


@operation("agents")
async def _agents(request: Request) -> Reply:
    """Return the agents, the selected one, and the last turns."""
    agents = request.oh.agents
    fields = {
        "agents": await request.runtime.executor.in_thread(_states, agents),
        "current": agents.current,
        "turns": [turn_fields(turn) for turn in agents.turns],
    }
    return Reply(body=encode_json(fields))


@operation("prompt_agent")
async def _prompt(request: Request) -> Reply:
    """Prompt an agent; reply with its whole turn, which is broadcast while it runs.

    A prompt whose ``key`` has arrived before is not sent again; the reply is null.
    """
    agent, oh = request.fields.get("agent"), request.oh
    if agent is not None and not isinstance(agent, str):
        raise WireError("'agent' must be a name, or null for the last one used", "agent")
    new, resume, text = request.flag("new"), request.flag("resume"), request.text("text")
    options = request.fields.get("options") or {}
    if not isinstance(options, dict) or not all(isinstance(each, str) for each in options.values()):
        raise WireError("'options' must be an object of strings", "options")
    context = await attachments(request)
    key = "" if request.fields.get("key") is None else request.text("key")
    if key and is_repeated(key):
        return Reply(body=encode_json(None))
    with followed(key) as follower:
        turn = await oh.agents.prompt(
            text,
            agent,
            context=oh.host.agent_context,
            new=new,
            resume=resume,
            options=options,
            attachments=context,
            request=key,
            on_change=follower.change,
        )
    return Reply(body=encode_json(turn_fields(turn)))


@operation("interrupt_agent")
async def _interrupt(request: Request) -> Reply:
    """End the turn of an agent, which stays ready."""
    request.oh.agents.interrupt(request.text("agent"))
    return Reply()


def _states(agents: GuestAgents) -> list[dict[str, Any]]:
    """Return each agent's name, state, its reason, installation, and the session's options."""
    states = []
    policy = agents.policy
    for name, command in agents.known().items():
        session = agents.at_work.get(name)
        state = "installed" if command.is_installed else "missing"
        if session is not None:
            state = "busy" if session.is_busy else "ready"
        reason = refusal(policy, "agents", name)
        if reason:
            state = "forbidden"
        options = [] if session is None else [asdict(option) for option in session.options]
        described = {"installation": command.installation, "options": options, "reason": reason}
        states.append({"name": name, "state": state, **described})
    return states


@operation("watch_browser")
async def _watch(request: Request) -> Reply:
    """Wait up to ``wait`` seconds for a picture other than ``known``; the body is a JPEG.

    ``refused`` says why no browser can be used here, or is "".
    """
    executor = request.runtime.executor
    seconds, known = request.fields.get("wait", 0), request.fields.get("known", -1)
    if not all(isinstance(value, int | float) for value in (seconds, known)):
        raise WireError("'wait' and 'known' must be numbers", "wait")
    takeover = executor.takeover
    state: dict[str, Any] = {"number": -1, "url": "", "tabs": [], "session": ""}
    picture = b""
    if executor.has_browser:
        takeover.seen()
        browsers = executor.browsers
        state["session"] = browsers.name
        watch = browsers.current.watch
        view = await executor.in_thread(watch, known, min(seconds, MAX_WATCH_SECONDS))
        takeover.seen()
        if view is not None:
            picture = base64.b64decode(view.pop("frame"))
            state |= view
    refused = _browser_refusal(executor.settings)
    return Reply({**state, "held": takeover.is_held, "refused": refused}, picture or None)


def _browser_refusal(settings: Settings) -> str:
    """Return why no browser can be used, "" if one can."""
    reason = refusal(settings.policy or {}, "browser")
    return reason or ("" if settings.enable_browser else NO_BROWSER)


@operation("use_browser")
async def _use(request: Request) -> Reply:
    """Execute a person's actions; agents wait until the browser is handed back."""
    executor = request.runtime.executor
    check_allowed(executor.settings.policy or {}, "browser")
    if not executor.settings.enable_browser:
        raise BrowserError(NO_BROWSER)
    executor.takeover.take()
    error = await executor.in_thread(
        executor.browser.act, request.text("actions"), ACT_TIMEOUT_SECONDS
    )
    return Reply({"error": error})


@operation("browser_marks")
async def _marks(request: Request) -> Reply:
    executor = request.runtime.executor
    return Reply({"marks": await executor.in_thread(executor.browser.marks)})


@operation("hold_browser")
async def _hold(request: Request) -> Reply:
    """Take the browser over, or hand it back."""
    takeover = request.runtime.executor.takeover
    if request.fields.get("hold"):
        takeover.take()
    else:
        takeover.hand_back()
    return Reply({"held": takeover.is_held})


@operation("untrusted_settings")
async def _untrusted(request: Request) -> Reply:
    """Return the folder's settings file, its digest, and its settings that need trust to hold."""
    try:
        file, values = folder_settings()
    except ConfigError:  # there is none that could be trusted
        return Reply({"file": "", "digest": "", "settings": []})
    settings = [list(each) for each in shown_settings(values)]
    return Reply({"file": file.path, "digest": file.digest, "settings": settings})


@operation("trust_folder")
async def _trust(request: Request) -> Reply:
    """Trust the folder's settings file with the contents that the person has seen."""
    file, _ = folder_settings()
    if file.digest != request.text("digest"):
        raise ConfigError("The file has changed since it was shown; look at it again")
    trust(file, trust_records())
    return Reply()
