"""A client that knows MCP's Tasks, by the official SDK of either major.

As a program it begins a call, tells the task, and stays until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from mcp_client import MAJOR, http_library, wire

if MAJOR == 1:
    from mcp import ClientSession, types
    from mcp.client.streamable_http import streamable_http_client

    class TaskClient:
        """Begins calls as tasks, and looks at them; as 2025-11-25 has it."""

        def __init__(self, session: ClientSession) -> None:
            self._session = session

        async def begin(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            params = types.CallToolRequestParams(
                name=tool, arguments=arguments, task=types.TaskMetadata(ttl=600_000)
            )
            asked = types.ClientRequest(types.CallToolRequest(params=params))
            result = await self._session.send_request(asked, types.CreateTaskResult)
            return wire(result)["task"]

        async def task(self, id: str) -> dict[str, Any]:
            asked = types.GetTaskRequest(params=types.GetTaskRequestParams(taskId=id))
            request = types.ClientRequest(asked)
            return wire(await self._session.send_request(request, types.GetTaskResult))

        async def result(self, id: str) -> dict[str, Any]:
            asked = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(taskId=id))
            request = types.ClientRequest(asked)
            return wire(await self._session.send_request(request, types.CallToolResult))

        async def cancel(self, id: str) -> None:
            asked = types.CancelTaskRequest(params=types.CancelTaskRequestParams(taskId=id))
            request = types.ClientRequest(asked)
            await self._session.send_request(request, types.CancelTaskResult)

    @asynccontextmanager
    async def task_client(url: str, headers: Mapping[str, str]) -> AsyncIterator[TaskClient]:
        client = http_library.AsyncClient(headers=dict(headers), timeout=60)
        async with (
            client,
            streamable_http_client(url, http_client=client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            initialized = await session.initialize()
            assert initialized.capabilities.tasks.requests.tools.call is not None
            yield TaskClient(session)

else:
    import mcp_types as types
    from mcp.client.client import Client
    from mcp.client.extension import ClientExtension, ResultClaim
    from mcp.client.streamable_http import streamable_http_client
    from pydantic import ConfigDict

    class Handle(types.Result):
        model_config = ConfigDict(extra="allow")
        result_type: Literal["task"] = "task"

    class Answer(types.Result):
        model_config = ConfigDict(extra="allow")

    class TaskParams(types.RequestParams):
        task_id: str

    class TaskRequest(types.Request[TaskParams, str]):
        name_param = "taskId"

    async def unresolved(handle: Handle, context: Any) -> Any:
        raise AssertionError("the test looks at the task itself")

    class Tasks(ClientExtension):
        identifier = "io.modelcontextprotocol/tasks"

        def claims(self) -> list[ResultClaim[Any]]:
            return [ResultClaim(result_type="task", model=Handle, resolve=unresolved)]

    class TaskClient:
        """Declares the extension, and looks at the tasks that calls become."""

        def __init__(self, client: Client) -> None:
            self._session = client.session

        async def begin(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return wire(await self._session.call_tool(tool, arguments, allow_claimed=True))

        async def _ask(self, method: str, id: str) -> dict[str, Any]:
            request = TaskRequest(method=f"tasks/{method}", params=TaskParams(task_id=id))
            return wire(await self._session.send_request(request, Answer))

        async def task(self, id: str) -> dict[str, Any]:
            return await self._ask("get", id)

        async def result(self, id: str) -> dict[str, Any]:
            while (task := await self.task(id))["status"] != "completed":
                await asyncio.sleep(0.05)
            return task["result"]

        async def cancel(self, id: str) -> None:
            assert await self._ask("cancel", id) == {} | await self._ask("update", id)

    @asynccontextmanager
    async def task_client(
        url: str, headers: Mapping[str, str], *, declared: bool = True
    ) -> AsyncIterator[TaskClient]:
        http = http_library.AsyncClient(headers=dict(headers), timeout=60)
        transport = streamable_http_client(url, http_client=http)
        async with http, Client(transport, extensions=[Tasks()] if declared else []) as client:
            yield TaskClient(client)


async def _begin_and_stay(url: str, headers: dict[str, str], tool: str, **arguments: Any) -> None:
    async with task_client(url, headers) as client:
        print(json.dumps(await client.begin(tool, arguments)), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    address, given_headers, wanted, given_arguments = sys.argv[1:]
    asyncio.run(
        _begin_and_stay(address, json.loads(given_headers), wanted, **json.loads(given_arguments))
    )
