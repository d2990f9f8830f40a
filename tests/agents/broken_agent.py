"""Agents that misbehave; the first argument selects the fault."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HOW = sys.argv[1]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send({"method": "session/update", "params": {"sessionId": "s", "update": update}})


def hang() -> None:
    while True:
        time.sleep(1000)


def turn(id: int) -> None:
    if HOW == "dies":
        say("I am ")
        print("out of memory", file=sys.stderr, flush=True)
        sys.exit(3)
    if HOW == "hangs":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        Path(sys.argv[2]).write_text(str(child.pid))
        say("working")
        hang()
    if HOW == "retries":
        print("\x1b[2m2026-01-01T10:00:00.1Z\x1b[0m ERROR model::client: ", file=sys.stderr, end="")
        print("Reconnecting... 1/5 (status 429)", file=sys.stderr, flush=True)
        hang()
    if HOW == "is-silent":
        hang()
    if HOW == "floods":
        for _ in range(60_000):
            say("0123456789")
        print("x" * 1_000_000, file=sys.stderr)
    if HOW == "garbage":
        sys.stdout.write("{" * 40 * 1024**2)
        hang()
    if HOW == "chats":
        for _ in range(2000):
            print("debug: nothing of interest")
        hang()
    if HOW == "confuses":
        print("a library says hello")
        send({"method": "session/update", "params": {"sessionId": "s", "update": {"new": 1}}})
        send({"method": "session/later", "params": None})
        send({"method": ["x"], "id": 5})
        send({"id": [1], "result": None})
        send({"id": 77, "error": "no table"})
        send({"method": "fs/read_text_file", "id": 6, "params": {"path": 5}})
        print("[" * 100_000)
        say("still here")
    if HOW == "fails":
        data = {"message": "unexpected status 401 Unauthorized: no such key"}
        send({"id": id, "error": {"code": -32603, "message": "Internal error", "data": data}})
        return
    if HOW == "refuses":
        send({"id": id, "error": {"code": -32000, "message": "Authentication required"}})
        return
    send({"id": id, "result": {"stopReason": "end_turn"}})


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if HOW == "dies-at-once":
        print("no such model", file=sys.stderr, flush=True)
        sys.exit(7)
    if HOW == "hangs-at-once":
        hang()
    if method == "initialize":
        result: Any = {"protocolVersion": 1}
        if HOW == "cannot-fork":
            capabilities = {"sessionCapabilities": {"fork": {}}}
            result["agentCapabilities"] = capabilities
        if HOW == "deletes":  # which the library of the scripted agent cannot
            result["agentCapabilities"] = {"sessionCapabilities": {"delete": {}}}
        if HOW == "nonsense":
            result = {"protocolVersion": "one"}
        if HOW == "answers-version-2":
            info = {"name": "agent", "version": "1"}
            result = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}}}
        if HOW == "rejects-version-1":
            error = {"code": -32022, "message": "Unsupported", "data": {"requested": 1}}
            send({"id": message["id"], "error": error})
            continue
        send({"id": message["id"], "result": result})
    elif method == "session/new":
        send({"id": message["id"], "result": {"sessionId": "s"}})
    elif method == "session/fork":
        send({"id": message["id"], "error": {"code": -32002, "message": "Resource not found"}})
    elif method == "session/delete" and message["params"]["sessionId"] == "missing":
        send({"id": message["id"], "error": {"code": -32002, "message": "No such conversation"}})
    elif method == "session/delete":
        Path(sys.argv[2]).write_text(message["params"]["sessionId"])
        send({"id": message["id"], "result": {}})
    elif method == "session/prompt" and HOW == "cannot-fork":
        say(f"You said: {message['params']['prompt'][0]['text']}")
        turn(message["id"])
    elif method == "session/prompt":
        turn(message["id"])
