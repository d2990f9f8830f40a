"""A scripted agent that speaks only version 2 of the protocol, in its JSON.

Each line of a prompt is a step: ``say TEXT``, ``whole TEXT``, ``plan STEP``, ``edit PATH``,
``terminal TEXT``, ``ask COMMAND``, ``read PATH`` (which version 2 does not have), ``stop REASON``,
``early`` (idle before the prompt is accepted), ``reject`` or ``wait`` (for a cancel).
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

MODE = {
    "type": "select",
    "configId": "mode",
    "name": "Mode",
    "category": "mode",
    "currentValue": "code",
    "options": [
        {"groupId": "g", "name": "All", "options": [{"value": "code", "name": "Code"}]},
        {"groupId": "h", "name": "Rest", "options": [{"value": "plan", "name": "Plan"}]},
    ],
}
PATCH = """diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 same
-old
+new
"""


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return dict(json.loads(line))


def update(update: str, /, **fields: Any) -> None:
    content = {"sessionUpdate": update, **fields}
    send({"method": "session/update", "params": {"sessionId": "s", "update": content}})


def say(text: str) -> None:
    update("agent_message_chunk", messageId="m", content={"type": "text", "text": text})


def ask(method: str, **params: Any) -> dict[str, Any]:
    send({"id": "q", "method": method, "params": {"sessionId": "s", **params}})
    return receive()


def step(word: str, rest: str) -> str | None:
    """Carry a step out; return the reason to stop, or None."""
    match word:
        case "say":
            say(rest)
        case "whole":
            update("agent_message", messageId="w", content=[{"type": "text", "text": rest}])
        case "plan":
            entry = {"content": rest, "priority": "high", "status": "pending"}
            update("plan_update", plan={"type": "items", "planId": "p", "entries": [entry]})
        case "edit":
            changes = [{"operation": "modify", "path": rest}]
            patch = {"format": "git_patch", "text": PATCH}
            content = [{"type": "diff", "changes": changes, "patch": patch}]
            call = {"toolCallId": "e", "title": "Edit", "kind": "edit"}
            update("tool_call_update", **call, status="completed", content=content)
        case "terminal":
            part = {"type": "terminal", "terminalId": "t"}
            call = {"toolCallId": "c", "title": "Run", "kind": "execute", "status": "in_progress"}
            update("tool_call_update", **call, content=[part])
            data = base64.b64encode(rest.encode()).decode()
            update("terminal_output_chunk", terminalId="t", data=data)
            update("tool_call_update", toolCallId="c", status="completed")
        case "ask":
            update("state_update", state="requires_action")
            subject = {"type": "command", "command": rest, "cwd": "/"}
            options = [
                {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                {"optionId": "no", "name": "No", "kind": "reject_once"},
            ]
            request = {"title": "Run it", "subject": subject, "options": options}
            answer = ask("session/request_permission", **request)
            update("state_update", state="running")
            say(f"Decision: {answer['result']['outcome']['optionId']}.")
        case "read":
            say(f"Refused: {ask('fs/read_text_file', path=rest)['error']['code']}.")
        case "stop":
            return rest
        case "wait":
            say("waiting")
            while receive().get("method") != "session/cancel":
                pass
            return "cancelled"
    return None


def turn(id: Any, steps: list[str]) -> None:
    if "reject" in steps:
        send({"id": id, "error": {"code": -32603, "message": "The prompt is not accepted"}})
        return
    accepted = {"id": id, "result": {"messageId": "u"}}
    if "early" not in steps:
        send(accepted)
    update("state_update", state="running")
    reason = None
    for line in steps:
        word, _, rest = line.partition(" ")
        reason = step(word, rest)
        if reason is not None:
            break
    usage = {"used": 10, "size": 1000, "cost": {"amount": 0.5, "currency": "USD"}}
    update("usage_update", **usage)
    end: dict[str, Any] = {"stopReason": reason or "end_turn"}
    if reason == "error":
        end["error"] = {"code": -32000, "message": "The model is overloaded"}
    update("state_update", state="idle", **end)
    if "early" in steps:
        send(accepted)


def main() -> None:
    while True:
        message = receive()
        params, id = message.get("params", {}), message.get("id")
        result: dict[str, Any] = {}
        match message.get("method"):
            case "initialize" if params["protocolVersion"] < 2 and "--answers-2" not in sys.argv:
                error = {"code": -32022, "message": "Unsupported", "data": {"requested": 1}}
                send({"id": id, "error": error})
                continue
            case "initialize":
                assert params["protocolVersion"] < 2 or "version" in params["info"], params
                assert "fs" not in params.get("capabilities", {}), params
                info = {"name": "agent", "version": "1"}
                result = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
            case "session/new" | "session/resume":
                assert all(each["type"] == "stdio" for each in params["mcpServers"])
                # A snapshot of an earlier turn, which ends nothing.
                update("state_update", state="idle", stopReason="end_turn")
                result = {"sessionId": "s", "configOptions": [MODE]}
            case "session/list":
                result = {"sessions": [{"sessionId": "s", "cwd": "/", "title": "First"}]}
            case "session/set_config_option":
                assert params["type"] == "id"
                MODE["currentValue"] = params["value"]
                result = {"configOptions": [MODE]}
            case "session/prompt":
                turn(id, params["prompt"][0]["text"].splitlines())
                continue
        if id is not None:
            send({"id": id, "result": result})


main()
