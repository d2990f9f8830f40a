"""Model APIs on loopback that answer as scripted: Anthropic's Messages, OpenAI's Responses."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ScriptedModel"]


class _Server(ThreadingHTTPServer):
    """A server that lets many connections wait."""

    request_queue_size = 128


class ScriptedModel:
    """Answers each request of the conversation with the next step of the script.

    A step is a text, or a tool's name with its arguments. Where the last message has a text of
    ``replies``, its reply is the answer, and no step is taken: an agent that was interrupted may
    ask once more at any time.
    """

    def __init__(self) -> None:
        self.steps: list[str | tuple[str, dict[str, Any]]] = []
        self.replies: dict[str, str] = {}
        self.requests: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                pass

            def do_HEAD(self) -> None:
                self._answer(b"", "text/plain")

            def do_GET(self) -> None:
                self._answer(b'{"data": []}', "application/json")

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length) or b"{}")
                if "responses" in self.path:
                    self._answer(model.respond(body), "text/event-stream")
                elif "count_tokens" in self.path:
                    self._answer(b'{"input_tokens": 10}', "application/json")
                elif body.get("stream"):
                    self._answer(model.message(body), "text/event-stream")
                else:
                    self._answer(model.small_talk(body), "application/json")

            def _answer(self, data: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, body: dict[str, Any]) -> str | tuple[str, dict[str, Any]]:
        with self._lock:
            self.requests.append(body)
            last = json.dumps((body.get("messages") or body.get("input") or [""])[-1])
            for text, reply in self.replies.items():
                if text in last:
                    return reply
            return self.steps.pop(0) if self.steps else "done"

    def small_talk(self, body: dict[str, Any]) -> bytes:
        """An answer to what is no part of the conversation, such as a title for it."""
        return json.dumps(self._envelope(body, [{"type": "text", "text": "ok"}])).encode()

    def _envelope(self, body: dict[str, Any], content: list[Any]) -> dict[str, Any]:
        return {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": content,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }

    def message(self, body: dict[str, Any]) -> bytes:
        """The next step as Anthropic's server-sent events."""
        step: Any = self._next(body) if body.get("tools") else "a title"
        if isinstance(step, str):
            block: dict[str, Any] = {"type": "text", "text": ""}
            delta, reason = {"type": "text_delta", "text": step}, "end_turn"
        else:
            name, arguments = step
            block = {
                "type": "tool_use",
                "id": f"toolu_{len(self.requests):04d}",
                "name": name,
                "input": {},
            }
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            reason = "tool_use"
        events = [
            ("message_start", {"message": self._envelope(body, [])}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            (
                "message_delta",
                {
                    "delta": {"stop_reason": reason, "stop_sequence": None},
                    "usage": {"output_tokens": 5},
                },
            ),
            ("message_stop", {}),
        ]
        return _events(events)

    def respond(self, body: dict[str, Any]) -> bytes:
        """The next step as OpenAI's server-sent events."""
        step = self._next(body)
        number = len(self.requests)
        if isinstance(step, str):
            item: dict[str, Any] = {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{number}",
                "content": [{"type": "output_text", "text": step}],
            }
        else:
            namespace, _, name = step[0].rpartition("__")
            item = {
                "type": "function_call",
                "namespace": namespace,
                "call_id": f"call_{number}",
                "name": name,
                "arguments": json.dumps(step[1]),
            }
        usage = {
            "input_tokens": 10,
            "input_tokens_details": None,
            "output_tokens": 5,
            "output_tokens_details": None,
            "total_tokens": 15,
        }
        return _events(
            [
                ("response.created", {"response": {"id": f"r{number}"}}),
                ("response.output_item.done", {"item": item}),
                ("response.completed", {"response": {"id": f"r{number}", "usage": usage}}),
            ]
        )


def _events(events: list[tuple[str, dict[str, Any]]]) -> bytes:
    return "".join(
        f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n" for kind, data in events
    ).encode()
