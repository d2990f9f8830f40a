"""OpenHands' own agent-server beside Jupyter, whose agents work in the kernel of your notebook.

The agent-server runs the loops, keeps the conversations and speaks its own protocol, to OpenHands'
interfaces or to a program like this one; ``oh_jupyter`` gives it the tools. Python 3.12::

    pip install "oh_jupyter[openhands]" openhands-agent-server
    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    export LLM_MODEL=anthropic/claude-sonnet-4-5 LLM_API_KEY=...
    python openhands_agent_server.py "Plot the data frame df"

Whoever reaches the agent-server can run code in the kernel: it listens on this machine alone, and
wants a key of this session.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from openhands.sdk import LLM, Agent, Conversation, RemoteWorkspace, Tool

import oh_jupyter.openhands  # noqa: F401  the client reads the tools' events, too

TOOLS = ("terminal", "file_editor", "browser_tool_set", "ipython", "notebook")
START_TIMEOUT_SECONDS = 120


@contextmanager
def agent_server(key: str) -> Iterator[str]:
    """Start an agent-server with the tools of the kernel that OH_URL names; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "openhands.agent_server", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [*command, "--port", str(port), "--import-modules", "oh_jupyter.openhands"],
        env={**os.environ, "OH_SESSION_API_KEYS_0": key},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(f"{url}/health", process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("The agent-server did not start; see above why") from None
            time.sleep(0.2)


def main(prompt: str) -> None:
    """Have an agent of the server carry out a prompt."""
    key = secrets.token_hex(16)
    agent = Agent(llm=LLM.load_from_env(), tools=[Tool(name=name) for name in TOOLS])
    with agent_server(key) as url:
        workspace = RemoteWorkspace(host=url, api_key=key, working_dir=os.getcwd())
        conversation = Conversation(agent=agent, workspace=workspace)
        conversation.send_message(prompt)
        conversation.run()
        conversation.close()


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "Which variables are there?")
