"""Version 2 of the Agent Client Protocol, a draft, as messages of version 1.

Everything else speaks version 1. This translates the messages of an agent that speaks only version
2, so that a change of the draft is a change here. The largest difference is the end of a turn:
version 1 ends it with the response to the prompt, version 2 with a state update.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

Message = dict[str, Any]

VERSION = 2

UNSUPPORTED_VERSION = -32022
"""Code with which an agent rejects version 1."""

METHOD_NOT_FOUND = -32601

_WITHOUT_COUNTERPART = ("fs/", "terminal/")
"""Requests of agents that version 2 does not have."""

_STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
_TOOL_FIELDS = ("toolCallId", "title", "kind", "status", "locations", "rawInput", "rawOutput")
_KINDS = (
    *("read", "edit", "delete", "move", "search"),
    *("execute", "think", "fetch", "switch_mode", "other"),
)
_STATUSES = ("pending", "in_progress", "completed", "failed")

MAX_TERMINAL_BYTES = 1024**2
"""Output of a terminal that is kept; of more, the end."""


class Version2:
    """Translation of one agent's messages in both directions.

    Args:
        send: Sends a message of version 2 to the agent.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        """Start without pending requests."""
        self._send = send
        self._methods: dict[Any, str] = {}
        self._turns: dict[str, _Turn] = {}
        self._messages: set[str] = set()
        self._contents: dict[str, list[Message]] = {}
        self._outputs: dict[str, bytes] = {}
        self._calls_of_terminals: dict[str, str] = {}

    def send(self, message: Message) -> None:
        """Send a message of version 1."""
        method, params = message.get("method"), dict(message.get("params") or {})
        if method is None:
            self._send(message)
            return
        if "id" in message:
            self._methods[message["id"]] = method
        match method:
            case "initialize":
                params = {
                    "protocolVersion": VERSION,
                    "info": params.get("clientInfo") or {"name": "oh_jupyter", "version": "0"},
                    "capabilities": _only(params.get("clientCapabilities") or {}, "elicitation"),
                }
            case "session/load":  # the history is not shown again
                method = "session/resume"
            case "session/prompt":
                self._turns[params["sessionId"]] = _Turn(message["id"])
            case "session/set_config_option":
                params.setdefault("type", "id")
        if "mcpServers" in params:
            params["mcpServers"] = [{"type": "stdio", **each} for each in params["mcpServers"]]
        self._send({**message, "method": method, "params": params})

    def received(self, message: Message) -> Iterator[Message]:
        """Return the messages of version 1 that a message of the agent means."""
        method = message.get("method")
        if method is None:
            yield from self._response(message)
        elif "id" in message:
            yield from self._request(message, str(method))
        elif method == "session/update":
            yield from self._update(_table(message.get("params")))
        else:
            yield message

    def _response(self, message: Message) -> Iterator[Message]:
        method = self._methods.pop(_hashable(message.get("id")), "")
        if method == "session/prompt":
            yield from self._accepted(message)
            return
        result = message.get("result")
        if isinstance(result, dict):
            if method == "initialize":
                result = _initialized(result)
            elif result.get("configOptions") is not None:
                result = {**result, "configOptions": _options(result["configOptions"])}
            message = {**message, "result": result}
        yield message

    def _accepted(self, message: Message) -> Iterator[Message]:
        """Keep the response to a prompt until its turn ends; pass on a rejection."""
        id = message.get("id")
        session = next((key for key, turn in self._turns.items() if turn.request == id), None)
        if session is None:
            return
        turn = self._turns[session]
        if "error" in message:
            del self._turns[session]
            yield message
            return
        turn.is_accepted = True
        if turn.end is not None:
            yield self._ended(session, turn.end)

    def _request(self, message: Message, method: str) -> Iterator[Message]:
        params = _table(message.get("params"))
        if method.startswith(_WITHOUT_COUNTERPART):
            error = {"code": METHOD_NOT_FOUND, "message": f"Version 2 has no {method}"}
            self._send({"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif method == "session/request_permission":
            yield {**message, "params": self._permission(params, message["id"])}
        else:
            yield message

    def _permission(self, params: Message, id: object) -> Message:
        subject = _table(params.get("subject"))
        call = self._tool_call(_table(subject.get("toolCall")))
        if subject.get("type") == "command":
            call = {"kind": "execute", "rawInput": _only(subject, "command", "cwd")}
            call["toolCallId"] = subject.get("toolCallId")
        call["toolCallId"] = call.get("toolCallId") or f"permission-{id}"
        call["title"] = call.get("title") or params.get("title")
        return {**_only(params, "sessionId", "options"), "toolCall": call}

    def _update(self, params: Message) -> Iterator[Message]:
        update, session = _table(params.get("update")), str(params.get("sessionId"))
        kind = update.get("sessionUpdate")
        if kind == "state_update":
            yield from self._state(session, update)
            return
        for each in self._translated(str(kind), update):
            changed = {**params, "update": each}
            yield {"jsonrpc": "2.0", "method": "session/update", "params": changed}

    def _state(self, session: str, update: Message) -> Iterator[Message]:
        """Note the state of a session; idle ends a turn that has been accepted or has started."""
        turn = self._turns.get(session)
        if turn is None:
            return
        if update.get("state") in ("running", "requires_action"):
            turn.has_started, turn.end = True, None
        elif update.get("state") == "idle" and turn.is_accepted:
            yield self._ended(session, update)
        elif update.get("state") == "idle" and turn.has_started:
            turn.end = update

    def _ended(self, session: str, idle: Message) -> Message:
        """Return the response with which version 1 ends a turn."""
        response: Message = {"jsonrpc": "2.0", "id": self._turns.pop(session).request}
        reason = idle.get("stopReason")
        if reason == "error":
            unknown = {"code": -32603, "message": "The agent ended the turn with an error"}
            return {**response, "error": _table(idle.get("error")) or unknown}
        known = reason if reason in _STOP_REASONS else "end_turn"
        return {**response, "result": {"stopReason": known}}

    def _translated(self, kind: str, update: Message) -> Iterator[Message]:
        match kind:
            case "agent_message_chunk" | "agent_thought_chunk":
                self._messages.add(str(update.get("messageId")))
                yield update
            case "agent_message" | "agent_thought":
                # A message that was streamed cannot be replaced in a turn's text.
                if update.get("messageId") not in self._messages:
                    for block in update.get("content") or ():
                        yield {"sessionUpdate": f"{kind}_chunk", "content": block}
            case "notice":
                words = [update.get("title"), update.get("description")]
                block = {"type": "text", "text": ": ".join(filter(None, words))}
                yield {"sessionUpdate": "agent_thought_chunk", "content": block}
            case "plan_update":
                entries = _table(update.get("plan")).get("entries")
                if entries is not None:
                    yield {"sessionUpdate": "plan", "entries": entries}
            case "config_option_update":
                options = _options(update.get("configOptions") or [])
                yield {"sessionUpdate": kind, "configOptions": options}
            case "tool_call_update":
                yield {"sessionUpdate": kind, **self._tool_call(update)}
            case "tool_call_content_chunk":
                id = str(update.get("toolCallId"))
                content = [*self._contents.get(id, ()), _table(update.get("content"))]
                yield self._with_content(id, content)
            case "terminal_update" | "terminal_output_chunk":
                yield from self._terminal(update, is_chunk=kind == "terminal_output_chunk")
            case _:
                yield update

    def _tool_call(self, call: Message) -> Message:
        translated = _only(call, *_TOOL_FIELDS)
        if translated.get("kind") not in (None, *_KINDS):
            translated["kind"] = "other"
        if translated.get("status") not in (None, *_STATUSES):
            translated["status"] = "failed"  # cancelled, or one of a later draft
        if call.get("content") is not None:
            id = str(call.get("toolCallId"))
            translated["content"] = self._with_content(id, call["content"])["content"]
        return translated

    def _with_content(self, id: str, content: list[Message]) -> Message:
        """Remember the content of a tool call, and return its update."""
        self._contents[id] = content
        for part in content:
            if part.get("type") == "terminal":
                self._calls_of_terminals[str(part.get("terminalId"))] = id
        shown = [each for part in content for each in self._content(part)]
        return {"sessionUpdate": "tool_call_update", "toolCallId": id, "content": shown}

    def _content(self, part: Message) -> Iterator[Message]:
        if part.get("type") == "diff":
            patch = _table(part.get("patch"))
            if patch.get("format") == "git_patch":
                yield from _edits(part.get("changes") or [], str(patch.get("text")))
        elif part.get("type") == "terminal":
            output = self._outputs.get(str(part.get("terminalId")), b"")
            text = {"type": "text", "text": output.decode(errors="replace")}
            yield {"type": "content", "content": text}
        else:
            yield part

    def _terminal(self, update: Message, *, is_chunk: bool) -> Iterator[Message]:
        """Note the output of a terminal that the agent owns, and show it in its tool call."""
        id = str(update.get("terminalId"))
        data = update.get("data") if is_chunk else _table(update.get("output")).get("data")
        if data is None:
            return
        with suppress(ValueError):
            before = self._outputs.get(id, b"") if is_chunk else b""
            output = before + base64.b64decode(str(data))
            self._outputs[id] = output[-MAX_TERMINAL_BYTES:]
        call = self._calls_of_terminals.get(id)
        if call is not None:
            yield self._with_content(call, self._contents[call])


class _Turn:
    """A prompt whose turn has not ended."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.is_accepted = self.has_started = False
        self.end: Message | None = None


def _initialized(result: Message) -> Message:
    """Return the response to initialize; what version 2 always has is declared."""
    capabilities = _table(result.get("capabilities"))
    session = _table(capabilities.get("session"))
    prompt = _table(session.get("prompt"))
    offered: Message = {"list": {}, "resume": {}, "close": {}}
    for name in ("delete", "additionalDirectories"):
        if session.get(name) is not None:
            offered[name] = session[name]
    accepted = {
        name: prompt.get(name) is not None for name in ("image", "audio", "embeddedContext")
    }
    return {
        "protocolVersion": 1,
        "agentInfo": result.get("info"),
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": accepted,
            "sessionCapabilities": offered,
        },
        "authMethods": [],
    }


def _options(offered: list[Message]) -> list[Message]:
    """Return config options with the names of version 1, without those of unknown types."""
    options = []
    for each in offered:
        if each.get("type") not in ("select", "boolean"):
            continue
        option = {"id": each.get("configId"), **{k: each[k] for k in each if k != "configId"}}
        if each["type"] == "select":
            option["options"] = [
                {"group": choice["groupId"], **choice} if "groupId" in choice else choice
                for choice in each.get("options") or ()
            ]
        options.append(option)
    return options


def _edits(changes: list[Message], patch: str) -> Iterator[Message]:
    """Return the hunks of a git patch as edits of the files that it changes, in their order."""
    paths = [str(change.get("path")) for change in changes]
    number = -1
    hunk: tuple[list[str], list[str]] | None = None
    hunks: list[tuple[str, list[str], list[str]]] = []
    for line in patch.split("\n"):
        if line.startswith("diff --git"):
            number, hunk = number + 1, None
        elif line.startswith("@@"):
            hunk = ([], [])
            path = paths[max(number, 0)] if max(number, 0) < len(paths) else ""
            hunks.append((path, *hunk))
        elif hunk is not None and line[:1] in (" ", "-", "+"):
            for sign, lines in (("+", hunk[0]), ("-", hunk[1])):
                if line[0] != sign:
                    lines.append(line[1:])
    for path, old, new in hunks:
        texts = {"oldText": "\n".join(old) or None, "newText": "\n".join(new)}
        yield {"type": "diff", "path": path, **texts}


def _only(table: Message, *names: str) -> Message:
    return {name: table[name] for name in names if table.get(name) is not None}


def _table(value: Any) -> Message:
    return value if isinstance(value, dict) else {}


def _hashable(id: Any) -> Any:
    return id if isinstance(id, str | int) else None
