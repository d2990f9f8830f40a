"""A small agent that speaks the Agent Client Protocol and does what its prompt says, line by line.

It needs no model: each line of the prompt is one step. ::

    say hello
    think about it
    plan look at the file; count its lines
    read notes.txt
    write notes.txt: some text
    run wc -l notes.txt
    shell wc -l notes.txt
    pause 0.5
    ask run rm notes.txt
    tool run_ipython {"code": "total = 1 + 1"}
    recall
    question {"region": {"type": "string", "enum": ["eu", "us"]}}
    options
    switch mode plan
    context

``run`` is a terminal of the client, ``read`` and ``write`` are its files, ``shell`` runs a command
without the client, ``pause`` waits for some seconds, ``ask run`` and ``ask write`` request
permission first, ``tool`` calls a tool of the first MCP server that the client
gave, ``recall`` repeats the earlier prompts of the conversation, ``question`` asks the person for
values, or to open the page that follows it, ``folders`` names the additional directories,
``options`` says how the options of the session are set, ``switch`` sets one, as an agent does at
the end of its planning, and ``context`` repeats what came with the prompt. There are options with
the argument ``--options``, or the older modes with ``--modes``. Lines that begin
with none of these words are answered by what they say. Try it in a notebook with::

    %env OH_JUPYTER_AGENTS={"scripted": "python examples/scripted_agent.py"}
    %load_ext oh_jupyter
    %oh_agent scripted say hello
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from itertools import count
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    ConfigOptionUpdate,
    Cost,
    CurrentModeUpdate,
    ElicitationFormSessionMode,
    ElicitationSchema,
    ElicitationUrlSessionMode,
    EmbeddedResourceContentBlock,
    ForkSessionResponse,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PlanEntry,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SetSessionConfigOptionResponse,
    TextContentBlock,
    ToolCallUpdate,
    UsageUpdate,
)

OPTIONS = [
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="once", name="Allow", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class ToolProgram:
    """The program of an MCP server, spoken to without the SDK: a line of JSON is a message."""

    def __init__(self) -> None:
        """Prepare; the first call starts the program."""
        self._program: asyncio.subprocess.Process | None = None
        self._ids = count(1)
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def call(self, server: Any, tool: str, arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        if self._program is None:
            self._program = await asyncio.create_subprocess_exec(
                server.command,
                *server.args,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2**26,
            )
            self._reading = asyncio.create_task(self._read())
            client = {"name": "scripted", "version": "1"}
            greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            await self._ask("initialize", greeting)
            self._send({"method": "notifications/initialized"})
        return await self._ask("tools/call", {"name": tool, "arguments": arguments})

    def _send(self, message: dict[str, Any]) -> None:
        self._program.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _ask(self, method: str, params: Any) -> dict[str, Any]:
        id = next(self._ids)
        self._replies[id] = reply = asyncio.get_running_loop().create_future()
        self._send({"id": id, "method": method, "params": params})
        # As with Codex, a cancelled prompt leaves this request open.
        return await asyncio.shield(reply)

    async def _read(self) -> None:
        while line := await self._program.stdout.readline():
            message = json.loads(line)
            if "method" not in message and message["id"] in self._replies:
                lost = {"content": [{"type": "text", "text": str(message.get("error"))}]}
                self._replies.pop(message["id"]).set_result(message.get("result", lost))
        for reply in self._replies.values():
            reply.set_exception(ConnectionError("The MCP server has ended"))


VALUES = {
    "mode": ("mode", ("default", "plan")),
    "model": ("model", ("small", "large")),
    "reasoning": ("thought_level", ("low", "high")),
}
"""Category and values of each option; there is also the switch ``web``."""


class ScriptedAgent:
    """Carries out the lines of a prompt."""

    def __init__(
        self, has_sessions: bool = True, has_forks: bool = False, offers: str = ""
    ) -> None:
        """Declare that earlier conversations can be loaded, or forked, or not.

        ``offers`` is ``options`` or ``modes``.
        """
        self._has_sessions = has_sessions
        self._has_forks = has_forks
        self._offers = offers
        self._set: dict[str, dict[str, Any]] = {}
        self._context: dict[str, list[Any]] = {}
        self._ids = count(1)
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._additional: dict[str, Any] = {}
        self._folders: dict[str, str] = {}
        self._servers: dict[str, list[Any]] = {}
        self._prompts: dict[str, list[str]] = {}
        self._costs: dict[str, float] = {}
        self._tools = ToolProgram()

    def on_connect(self, connection: acp.Client) -> None:
        """Keep the connection to the client."""
        self._client = connection

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        """Say what this agent can."""
        fork = SessionForkCapabilities() if self._has_forks else None
        return InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=self._has_sessions,
                prompt_capabilities=PromptCapabilities(embedded_context=True),
                session_capabilities=SessionCapabilities(
                    fork=fork,
                    list=SessionListCapabilities() if self._has_sessions else None,
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
        )

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> NewSessionResponse:
        """Begin a conversation."""
        session_id = f"{os.getpid()}-{next(self._ids)}"
        self._begin(session_id, cwd, mcp_servers)
        self._additional[session_id] = kwargs.get("additional_directories")
        return NewSessionResponse(session_id=session_id, **self._offered(session_id))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> LoadSessionResponse:
        """Go on with a conversation, of which only this process remembers anything."""
        self._begin(session_id, cwd, mcp_servers)
        text = acp.update_agent_message_text("What was said before is told again.")
        await self._client.session_update(session_id=session_id, update=text)
        return LoadSessionResponse(**self._offered(session_id))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **kwargs: Any
    ) -> ListSessionsResponse:
        """List the conversations with a prompt, one on each page."""
        known = [id for id, prompts in self._prompts.items() if prompts]
        number = int(cursor or 0)
        sessions = [
            SessionInfo(
                session_id=id,
                cwd=self._folders[id],
                title=self._prompts[id][0],
                updated_at=f"2026-01-01T00:00:{known.index(id):02}Z",
            )
            for id in known[number : number + 1]
        ]
        following = str(number + 1) if number + 1 < len(known) else None
        return ListSessionsResponse(sessions=sessions, next_cursor=following)

    def _offered(self, session_id: str) -> dict[str, Any]:
        """Return the options of a session as its start reports them."""
        if self._offers == "options":
            return {"config_options": self._config_options(session_id)}
        if self._offers == "modes":
            modes = [SessionMode(id=value, name=value.title()) for value in VALUES["mode"][1]]
            current = self._set[session_id]["mode"]
            return {"modes": SessionModeState(current_mode_id=current, available_modes=modes)}
        return {}

    def _config_options(self, session_id: str) -> list[Any]:
        values = self._set[session_id]
        selects = [
            SessionConfigOptionSelect(
                id=id,
                name=id.title(),
                category=category,
                type="select",
                current_value=values[id],
                options=[
                    SessionConfigSelectOption(value=each, name=f"The {each}") for each in known
                ],
            )
            for id, (category, known) in VALUES.items()
        ]
        web = SessionConfigOptionBoolean(
            id="web", name="Web", type="boolean", current_value=values["web"]
        )
        return [*selects, web]

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **kwargs: Any
    ) -> SetSessionConfigOptionResponse:
        """Set an option."""
        if value == "large" and self._set[session_id]["mode"] == "plan":
            raise acp.RequestError.invalid_params({"details": "the large model cannot plan"})
        self._set[session_id][config_id] = value
        return SetSessionConfigOptionResponse(config_options=self._config_options(session_id))

    async def set_session_mode(self, mode_id: str, session_id: str, **kwargs: Any) -> None:
        """Set the mode."""
        self._set[session_id]["mode"] = mode_id

    async def _do_options(self, session_id: str, text: str) -> None:
        values = ", ".join(f"{id} {value}" for id, value in self._set[session_id].items())
        await self._say(session_id, f"Set: {values}.\n\n")

    async def _do_switch(self, session_id: str, text: str) -> None:
        id, _, value = text.partition(" ")
        self._set[session_id][id] = value
        update: Any = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=value)
        if self._offers == "options":
            update = ConfigOptionUpdate(
                session_update="config_option_update",
                config_options=self._config_options(session_id),
            )
        await self._client.session_update(session_id=session_id, update=update)

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **kwargs: Any
    ) -> ForkSessionResponse:
        """Begin a conversation that remembers another."""
        if session_id not in self._prompts:
            raise acp.RequestError.resource_not_found(session_id)
        forked = await self.new_session(cwd, mcp_servers)
        self._prompts[forked.session_id] += self._prompts[session_id]
        return ForkSessionResponse(session_id=forked.session_id, **self._offered(forked.session_id))

    def _begin(self, session_id: str, cwd: str, servers: list[Any] | None) -> None:
        self._folders[session_id] = cwd
        self._servers[session_id] = servers or []
        self._prompts.setdefault(session_id, [])
        self._costs.setdefault(session_id, 0.0)
        first = {id: values[0] for id, (_, values) in VALUES.items()}
        self._set.setdefault(session_id, {**first, "web": False})

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        """Carry out the lines of a prompt."""
        text = "\n".join(block.text for block in prompt if isinstance(block, TextContentBlock))
        self._prompts[session_id].append(text)
        self._context[session_id] = prompt
        self._costs[session_id] += 0.01
        self._turns[session_id] = turn = asyncio.create_task(self._carry_out(session_id, text))
        try:
            await turn
        except asyncio.CancelledError:
            return PromptResponse(stop_reason="cancelled")
        usage = UsageUpdate(
            session_update="usage_update",
            size=1000,
            used=len(text),
            cost=Cost(amount=self._costs[session_id], currency="USD"),
        )
        await self._client.session_update(session_id=session_id, update=usage)
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        """Stop in the middle of a prompt."""
        if session_id in self._turns:
            self._turns[session_id].cancel()

    async def _carry_out(self, session_id: str, text: str) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        for line in lines:
            word, _, rest = line.partition(" ")
            step = getattr(self, f"_do_{word}", None)
            try:
                if step is not None:
                    await step(session_id, rest)
            except acp.RequestError as problem:
                await self._say(session_id, f"It was refused: {problem.data or problem}\n\n")
        if not any(hasattr(self, f"_do_{line.partition(' ')[0]}") for line in lines):
            await self._say(session_id, f"You said: {text}")

    async def _say(self, session_id: str, text: str) -> None:
        update = acp.update_agent_message_text(text)
        await self._client.session_update(session_id=session_id, update=update)

    async def _do_say(self, session_id: str, text: str) -> None:
        for word in text.split(" "):
            await self._say(session_id, f"{word} ")
        await self._say(session_id, "\n\n")

    async def _do_prompts(self, session_id: str, text: str) -> None:
        await self._say(session_id, f"That was prompt {len(self._prompts[session_id])}.\n\n")

    async def _do_context(self, session_id: str, text: str) -> None:
        for block in self._context[session_id]:
            if isinstance(block, EmbeddedResourceContentBlock):
                await self._say(session_id, f"Embedded: {block.resource.text}\n\n")
            elif isinstance(block, ResourceContentBlock):
                await self._say(session_id, f"Link: {block.name} {block.uri}\n\n")

    async def _do_recall(self, session_id: str, text: str) -> None:
        for prompt in self._prompts[session_id][:-1]:
            await self._say(session_id, f"You said before: {prompt}\n\n")

    async def _do_think(self, session_id: str, text: str) -> None:
        update = acp.update_agent_thought_text(text)
        await self._client.session_update(session_id=session_id, update=update)

    async def _do_plan(self, session_id: str, text: str) -> None:
        entries = [
            PlanEntry(content=entry.strip(), priority="medium", status="pending")
            for entry in text.split(";")
        ]
        await self._client.session_update(session_id=session_id, update=acp.update_plan(entries))

    def _path(self, session_id: str, name: str) -> str:
        return os.path.join(self._folders[session_id], name)

    async def _do_read(self, session_id: str, name: str) -> None:
        path = self._path(session_id, name)
        id = await self._start(session_id, f"Read {name}", "read", {"path": path})
        try:
            answer = await self._client.read_text_file(session_id=session_id, path=path)
        except acp.RequestError:
            await self._finish(session_id, id, status="failed")
            raise
        await self._finish(session_id, id, answer.content)

    async def _do_write(self, session_id: str, text: str) -> None:
        name, _, content = text.partition(": ")
        path = self._path(session_id, name)
        id = await self._start(session_id, f"Write {name}", "edit", {"path": path})
        await self._write(session_id, id, path, content)

    async def _write(self, session_id: str, id: str, path: str, content: str) -> None:
        new_text = content.replace("\\n", "\n") + "\n"
        try:
            await self._client.write_text_file(session_id=session_id, path=path, content=new_text)
        except acp.RequestError:
            await self._finish(session_id, id, status="failed")
            raise
        diff = acp.tool_diff_content(path, new_text, None)
        update = acp.update_tool_call(id, status="completed", content=[diff])
        await self._client.session_update(session_id=session_id, update=update)

    async def _do_run(self, session_id: str, command: str) -> None:
        id = await self._start(session_id, command, "execute", {"command": command})
        await self._run(session_id, id, command)

    async def _run(self, session_id: str, id: str, command: str) -> None:
        terminal = await self._client.create_terminal(session_id=session_id, command=command)
        name = terminal.terminal_id
        shown = acp.update_tool_call(
            id, status="in_progress", content=[acp.tool_terminal_ref(name)]
        )
        await self._client.session_update(session_id=session_id, update=shown)
        ended = await self._client.wait_for_terminal_exit(session_id=session_id, terminal_id=name)
        await self._client.release_terminal(session_id=session_id, terminal_id=name)
        await self._finish(session_id, id, status="failed" if ended.exit_code else "completed")

    async def _do_shell(self, session_id: str, command: str) -> None:
        id = await self._start(session_id, command, "execute", {"command": command})
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self._folders[session_id],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        status = "failed" if process.returncode else "completed"
        await self._finish(session_id, id, output.decode(errors="replace"), status)

    async def _do_pause(self, session_id: str, seconds: str) -> None:
        await asyncio.sleep(float(seconds))

    async def _do_ask(self, session_id: str, text: str) -> None:
        word, _, rest = text.partition(" ")
        name, _, content = rest.partition(": ")
        path = self._path(session_id, name)
        kind = "execute" if word == "run" else "edit"
        title = rest if word == "run" else f"Write {name}"
        id = await self._start(session_id, title, kind, {"command": rest})
        changes = [acp.tool_diff_content(path, content + "\n", None)] if kind == "edit" else None
        call = ToolCallUpdate(
            tool_call_id=id, title=title, kind=kind, raw_input={"command": rest}, content=changes
        )
        answer = await self._client.request_permission(
            session_id=session_id, tool_call=call, options=OPTIONS
        )
        chosen = getattr(answer.outcome, "option_id", "cancelled")
        await self._say(session_id, f"The answer was {chosen}.\n\n")
        if chosen != "once":
            await self._finish(session_id, id, status="failed")
        elif kind == "execute":
            await self._run(session_id, id, rest)
        else:
            await self._write(session_id, id, path, content)

    async def _do_folders(self, session_id: str, text: str) -> None:
        await self._say(session_id, f"Folders: {self._additional[session_id]}.\n\n")

    async def _do_question(self, session_id: str, text: str) -> None:
        if text.startswith("{"):
            fields = json.loads(text)
            required = [name for name, field in fields.items() if field.pop("required", False)]
            schema = ElicitationSchema(properties=fields, required=required)
            mode: Any = ElicitationFormSessionMode(session_id=session_id, requested_schema=schema)
        else:
            mode = ElicitationUrlSessionMode(session_id=session_id, url=text, elicitation_id="1")
        answer = await self._client.create_elicitation(message="Which ones?", mode=mode)
        content = json.dumps(getattr(answer, "content", None), sort_keys=True)
        await self._say(session_id, f"The answer: {answer.action} {content}.\n\n")

    async def _do_tool(self, session_id: str, text: str) -> None:
        tool, _, arguments = text.partition(" ")
        if not self._servers[session_id]:
            await self._say(session_id, "There is no MCP server.\n\n")
            return
        server = self._servers[session_id][0]
        given = json.loads(arguments or "{}")
        id = await self._start(session_id, f"mcp__{server.name}__{tool}", "other", given)
        result = await self._tools.call(server, tool, given)
        output = "\n".join(part.get("text", "") for part in result["content"])
        failed = result.get("isError", False)
        await self._finish(session_id, id, output, status="failed" if failed else "completed")

    async def _start(self, session_id: str, title: str, kind: Any, arguments: Any) -> str:
        id = f"call-{next(self._ids)}"
        update = acp.start_tool_call(
            id, title, kind=kind, status="in_progress", raw_input=arguments
        )
        await self._client.session_update(session_id=session_id, update=update)
        return id

    async def _finish(
        self, session_id: str, id: str, output: str | None = None, status: Any = "completed"
    ) -> None:
        content = None if output is None else [acp.tool_content(acp.text_block(output))]
        update = acp.update_tool_call(id, status=status, content=content)
        await self._client.session_update(session_id=session_id, update=update)


if __name__ == "__main__":
    offered = next((word[2:] for word in sys.argv if word in ("--options", "--modes")), "")
    agent = ScriptedAgent("--no-sessions" not in sys.argv, "--forks" in sys.argv, offered)
    asyncio.run(acp.run_agent(agent, use_unstable_protocol=True))
