"""Operations for a person: prompts to agents, manual use of the browser, trust in a folder.

REST does not offer them, because the holder of the server's token may be an agent.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oh_jupyter.config import (
    Settings,
    folder_settings,
    shown_settings,
)
from oh_jupyter.errors import BrowserError, ConfigError, WireError
from oh_jupyter.kernel.control.broadcast import turn_reply
from oh_jupyter.kernel.control.prompt_context import attachments
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.kernel.control.turn_follow import followed, is_repeated
from oh_jupyter.operations import agents, browser, from_json, trust
from oh_jupyter.policy import check_allowed, refusal
from oh_jupyter.trust import is_trusted
from oh_jupyter.trust import trust as trust_file

if TYPE_CHECKING:
    from oh_jupyter.agents import GuestAgents

ACT_TIMEOUT_SECONDS = 60.0
NO_BROWSER = "The setting enable_browser does not allow a browser here."
MAX_WATCH_SECONDS = 60.0


@handles(agents.Agents)
async def _agents(request: Request, op: agents.Agents) -> agents.Conversation:
    guests = request.oh.agents
    known = await request.runtime.executor.in_thread(_states, guests)
    return agents.Conversation(known, guests.current, list(map(turn_reply, guests.turns)))


@handles(agents.PromptAgent)
async def _prompt(request: Request, op: agents.PromptAgent) -> agents.Turn | None:
    if not all(isinstance(value, str) for value in op.options.values()):
        raise WireError("'options' must be an object of strings", "options")
    context = await attachments(request, op.context)
    key, oh = request.key, request.oh
    if key and is_repeated(key):
        return None
    with followed(key) as follower:
        turn = await oh.agents.prompt(
            op.text,
            op.agent,
            context=oh.host.agent_context,
            new=op.new,
            resume=op.resume,
            options=op.options,
            attachments=context,
            request=key,
            on_change=follower.change,
        )
    return turn_reply(turn)


@handles(agents.InterruptAgent)
async def _interrupt(request: Request, op: agents.InterruptAgent) -> None:
    request.oh.agents.interrupt(op.agent)


def _states(guests: GuestAgents) -> list[agents.Agent]:
    states = []
    policy = guests.policy
    for name, command in guests.known().items():
        session = guests.at_work.get(name)
        reason = refusal(policy, "agents", name)
        state: agents.AgentState = "installed" if command.is_installed else "missing"
        if reason:
            state = "forbidden"
        elif session is not None:
            state = "busy" if session.is_busy else "ready"
        options = [
            from_json(agents.AgentOption, asdict(option))
            for option in (() if session is None else session.options)
        ]
        states.append(agents.Agent(name, state, command.installation, options, reason))
    return states


@handles(browser.WatchBrowser)
async def _watch(request: Request, op: browser.WatchBrowser) -> browser.BrowserView:
    executor = request.runtime.executor
    takeover = executor.takeover
    state: dict[str, Any] = {}
    if executor.has_browser:
        takeover.seen()
        browsers = executor.browsers
        state["session"] = browsers.name
        watch = browsers.current.watch
        view = await executor.in_thread(watch, op.known, min(op.wait, MAX_WATCH_SECONDS))
        takeover.seen()
        if view is not None:
            state |= {**view, "picture": view["frame"]}
    refused = _browser_refusal(executor.settings)
    return from_json(browser.BrowserView, {**state, "held": takeover.is_held, "refused": refused})


def _browser_refusal(settings: Settings) -> str:
    """Return why no browser can be used, "" if one can."""
    reason = refusal(settings.policy or {}, "browser")
    return reason or ("" if settings.enable_browser else NO_BROWSER)


@handles(browser.UseBrowser)
async def _use(request: Request, op: browser.UseBrowser) -> str:
    executor = request.runtime.executor
    check_allowed(executor.settings.policy or {}, "browser")
    if not executor.settings.enable_browser:
        raise BrowserError(NO_BROWSER)
    executor.takeover.take()
    error: str = await executor.in_thread(executor.browser.act, op.actions, ACT_TIMEOUT_SECONDS)
    return error


@handles(browser.BrowserMarks)
async def _marks(request: Request, op: browser.BrowserMarks) -> list[browser.BrowserMark]:
    executor = request.runtime.executor
    marks = await executor.in_thread(executor.browser.marks)
    return [browser.BrowserMark(**mark) for mark in marks]


@handles(browser.HoldBrowser)
async def _hold(request: Request, op: browser.HoldBrowser) -> bool:
    takeover = request.runtime.executor.takeover
    if op.hold:
        takeover.take()
    else:
        takeover.hand_back()
    return takeover.is_held


@handles(trust.UntrustedSettings)
async def _untrusted(request: Request, op: trust.UntrustedSettings) -> trust.FolderSettings:
    try:
        file, values = folder_settings(is_trusted=is_trusted)
    except ConfigError:  # there is none that could be trusted
        return trust.FolderSettings()
    settings = [trust.FolderSetting(*each) for each in shown_settings(values)]
    return trust.FolderSettings(file.path, file.digest, settings)


@handles(trust.TrustFolder)
async def _trust(request: Request, op: trust.TrustFolder) -> None:
    file, _ = folder_settings(is_trusted=is_trusted)
    if file.digest != op.digest:
        raise ConfigError("The file has changed since it was shown; look at it again")
    await request.runtime.executor.in_thread(trust_file, file)
