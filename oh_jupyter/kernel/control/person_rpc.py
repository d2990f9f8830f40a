"""Operations for a person: prompts to agents with their context, the browser, trust in a folder.

REST does not offer them, because the holder of the server's token may be an agent. A client
without a connection to IOPub, such as a persona, follows a turn here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from oh_jupyter.background import Watchers, wait_while
from oh_jupyter.config import (
    Settings,
    folder_settings,
    shown_settings,
)
from oh_jupyter.errors import BrowserError, ConfigError, WireError
from oh_jupyter.kernel.control.broadcast import SEND_INTERVAL_SECONDS, turn_reply
from oh_jupyter.kernel.control.rpc import Request, handles
from oh_jupyter.operations import agents, browser, files, from_json, trust
from oh_jupyter.policy import check_allowed, refusal
from oh_jupyter.runtime.confirmation import PendingAction
from oh_jupyter.trust import is_trusted
from oh_jupyter.trust import trust as trust_file

if TYPE_CHECKING:
    from oh_jupyter.agents import AgentTurn, Attachment, GuestAgents


MAX_FOLLOW_SECONDS = 60.0


class FollowedTurn:
    """A running prompt, whose turn may not have started yet."""

    def __init__(self) -> None:
        self.turn: AgentTurn | None = None
        self.is_ended = False
        self.version = 0
        self.watchers: Watchers[[]] = Watchers()

    def change(self, turn: AgentTurn) -> None:
        """Note a change of the turn."""
        self.turn = turn
        self._tell()

    def end(self) -> None:
        """Note the end of the prompt."""
        self.is_ended = True
        self._tell()

    def _tell(self) -> None:
        self.version += 1
        self.watchers.tell()


_followed: dict[str, FollowedTurn] = {}
"""Running prompts by the key of their request."""

_keys: set[str] = set()
"""Keys of all prompts so far."""

_on_prompt: Watchers[[]] = Watchers()


def is_repeated(key: str) -> bool:
    """Return whether a prompt with this key has arrived before, such as from another window."""
    if key in _keys:
        return True
    _keys.add(key)
    return False


@contextmanager
def followed(key: str) -> Iterator[FollowedTurn]:
    """Let a prompt be followed by its key, unless that is "", until its end."""
    turn = FollowedTurn()
    if key:
        _followed[key] = turn
        _on_prompt.tell()
    try:
        yield turn
    finally:
        turn.end()
        if key:
            del _followed[key]


@handles(agents.FollowTurn)
async def _follow(request: Request, op: agents.FollowTurn) -> agents.TurnProgress:
    key, seconds = op.of, min(op.wait, MAX_FOLLOW_SECONDS)
    await wait_while(_on_prompt.add, lambda: key not in _followed, seconds)
    entry = _followed.get(key)
    if entry is None:
        return agents.TurnProgress(state="", ended=True, waiting=[], turn=None)
    confirmations = request.runtime.executor.confirmations

    def waiting() -> dict[int, PendingAction]:
        name = "" if entry.turn is None else entry.turn.agent
        return {
            id: pending
            for id, pending in confirmations.waiting.items()
            if pending.action.actor.guest.rpartition("-")[0] == name
        }

    def state() -> str:
        return f"{entry.version} {sorted(waiting())}"

    def subscribe(callback: Callable[[], None]) -> Callable[[], None]:
        ends = [entry.watchers.add(callback), confirmations.on_question(callback)]

        def end_all() -> None:
            for end in ends:
                end()

        return end_all

    await wait_while(subscribe, lambda: state() == op.known, seconds)
    if not entry.is_ended:
        await asyncio.sleep(SEND_INTERVAL_SECONDS)  # gather the changes that follow at once
    return agents.TurnProgress(
        state=state(),
        ended=entry.is_ended,
        waiting=[
            agents.WaitingAction(id, pending.message, pending.reason)
            for id, pending in waiting().items()
        ],
        turn=None if entry.turn is None else turn_reply(entry.turn),
    )


MAX_ATTACHMENTS = 50
"""Maximum number of attachments of a prompt."""


async def attachments(request: Request, context: Sequence[Mapping[str, Any]]) -> list[Attachment]:
    """Return the attachments that the context of a prompt lists.

    Raises:
        WireError: An entry is invalid, or its file does not exist.
        InspectionError: There is no such variable, or it cannot be described in time.
    """
    if len(context) > MAX_ATTACHMENTS:
        raise WireError(f"'context' must be a list of at most {MAX_ATTACHMENTS} objects", "context")
    return [await _attachment(request, entry) for entry in context]


async def _attachment(request: Request, entry: Mapping[str, Any]) -> Attachment:
    from oh_jupyter.agents import Attachment

    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(name, str):
        raise WireError("Each entry of 'context' must be an object with a 'name'", "context")
    if kind == "variable":
        text, _ = await request.oh.host.inspector.detail(name)
        return Attachment(f"Variable {name}", f"jupyter:variable/{quote(name)}", text)
    if kind == "file":
        path = Path(request.runtime.executor.workspace_dir, name)
        if not path.exists():
            raise WireError(
                f"There is no file {path}. Remove it from the prompt's context", "context"
            )
        return Attachment(name, path.resolve().as_uri())
    if kind == "text" and isinstance(entry.get("text"), str):
        return Attachment(name, f"jupyter:{quote(str(entry.get('id') or name))}", entry["text"])
    raise WireError("An entry's 'kind' must be variable, file, or text with a 'text'", "context")


MAX_FILES = 30
"""Maximum number of files in a reply."""

MAX_SEEN = 20_000
"""Maximum number of files that a search looks at."""

_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


@handles(files.WorkspaceFiles)
async def _workspace_files(request: Request, op: files.WorkspaceFiles) -> list[str]:
    executor = request.runtime.executor
    files: list[str] = await executor.in_thread(find_files, executor.workspace_dir, op.text)
    return files


def find_files(root: str, text: str) -> list[str]:
    """Return relative paths that contain a text, first those of files whose name begins with it."""
    wanted = text.lower()
    matches = [path for path in _files(root) if wanted in path.lower()]

    def rank(path: str) -> tuple[bool, int, str]:
        return not os.path.basename(path).lower().startswith(wanted), path.count("/"), path

    return sorted(matches, key=rank)[:MAX_FILES]


def _files(root: str) -> Iterator[str]:
    """Yield the paths of files that are not hidden, up to the limit."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and each not in _SKIPPED
        )
        for name in sorted(names):
            seen += 1
            if seen > MAX_SEEN:
                return
            if not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


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
