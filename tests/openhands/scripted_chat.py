"""A chat API (OpenAI's completions) on loopback that answers as scripted."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ScriptedChat"]


class ScriptedChat:
    """Answers each request with the next step: a text, or a tool's name with its arguments."""

    def __init__(self) -> None:
        self.steps: list[str | tuple[str, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                data = json.dumps(chat.answer(body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(body)
        step = self.steps.pop(0) if self.steps else "Done."
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if isinstance(step, str):
            message["content"] = step
        else:
            call = {"name": step[0], "arguments": json.dumps(step[1])}
            id = f"call_{len(self.requests)}"
            message["tool_calls"] = [{"id": id, "type": "function", "function": call}]
        reason = "stop" if isinstance(step, str) else "tool_calls"
        return {
            "id": f"chat_{len(self.requests)}",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }

    def told(self) -> str:
        """All that the model was given."""
        return json.dumps(self.requests)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
