"""Tables of endpoints: an address, a permission, and the function that responds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from jupyter_server.auth.decorator import allow_unauthenticated, authorized
from tornado import web

from oh_jupyter.operations import Operation, arguments
from oh_jupyter.server.handlers.base import OhHandler
from oh_jupyter.server.handlers.contract import Contract
from oh_jupyter.server.links import Reply

Respond = Callable[..., Awaitable[None]]  # takes a handler and the groups of its pattern

Permission = tuple[str, str]  # action and resource that Jupyter's authorizer is asked about

READ_ACTIONS = ("read", "oh_jupyter:actions")
EXECUTE_ACTIONS = ("execute", "oh_jupyter:actions")
READ_EVENTS = ("read", "oh_jupyter:events")
READ_STORE = ("read", "oh_jupyter:store")
WRITE_STORE = ("write", "oh_jupyter:store")

NO_CONTRACT = Contract()


@dataclass(frozen=True)
class Route:
    """An endpoint."""

    address: str  # HTTP method, and pattern of the path below the prefix of its table
    permission: Permission | None  # None admits unauthenticated requests
    name: str  # the operation's id in openapi.yaml
    respond: Respond
    handler: type[OhHandler] = OhHandler  # base class, shared by all routes of a pattern
    operation: type[Operation[Any]] | None = None  # whose declaration describes the endpoint
    contract: Contract = NO_CONTRACT
    documented: Any = None  # its docstring describes the endpoint; by default that of ``respond``

    @property
    def method(self) -> str:
        """HTTP method in lower case, as tornado names its handlers' methods."""
        return self.address.partition(" ")[0].lower()

    @property
    def pattern(self) -> str:
        """Pattern of the path."""
        return self.address.partition(" ")[2]


def send_body(handler: OhHandler, reply: Reply) -> None:
    """Send the JSON that the kernel has encoded."""
    handler.finish_json(reply.body or b"null")


def send_nothing(handler: OhHandler, reply: Reply) -> None:
    """Send 204."""
    handler.finish_empty()


@dataclass
class RouteTable:
    """The endpoints of one module."""

    kernel_errors: tuple[int, ...] = ()  # statuses of its endpoints when a kernel fails
    routes: list[Route] = field(default_factory=list)

    def add(
        self,
        address: str,
        permission: Permission | None,
        name: str,
        handler: type[OhHandler] = OhHandler,
        contract: Contract = NO_CONTRACT,
    ) -> Callable[[Respond], Respond]:
        """Return a decorator that makes a function respond at an address."""

        def register(respond: Respond) -> Respond:
            self.routes.append(
                Route(address, permission, name, respond, handler, contract=contract)
            )
            return respond

        return register

    def forward(
        self,
        address: str,
        permission: Permission,
        name: str,
        operation: type[Operation[Any]] | Callable[..., Operation[Any]],
        reply: Callable[[OhHandler, Reply], None] = send_body,
        load: bool = True,
        contract: Contract = NO_CONTRACT,
    ) -> None:
        """Add an endpoint that only asks the kernel for an operation.

        A function makes the operation from the handler and the groups of the pattern, a class from
        the JSON object of the body, if any. The docstring of the function describes the endpoint,
        or of ``reply`` where that converts the reply to an operation's class.
        """
        make = partial(_of_body, operation) if isinstance(operation, type) else operation
        is_declared = isinstance(operation, type) and reply is send_body
        declared = cast("type[Operation[Any]]", operation) if is_declared else None

        async def respond(
            handler: OhHandler, *, kernel_id: str | None = None, **groups: str
        ) -> None:
            asked = make(handler, **groups)
            link = await handler.link(kernel_id)
            reply(handler, await handler.ask_kernel(link, asked, load=load))

        documented = reply if isinstance(operation, type) else operation
        self.routes.append(
            Route(
                address,
                permission,
                name,
                respond,
                operation=declared,
                contract=contract,
                documented=declared or documented,
            )
        )

    def handlers(self, prefix: str) -> list[tuple[str, type[OhHandler]]]:
        """Return tornado's patterns below a prefix, each with a handler of its methods."""
        grouped: dict[str, list[Route]] = {}
        for route in self.routes:
            grouped.setdefault(route.pattern, []).append(route)
        return [(prefix + pattern, handler_class(*routes)) for pattern, routes in grouped.items()]


def _of_body(operation: type[Operation[Any]], handler: OhHandler) -> Operation[Any]:
    known = arguments(operation)
    return operation.from_fields(handler.json_object(*known) if known else {})


def handler_class(*routes: Route) -> type[OhHandler]:
    """Return a tornado handler with a method for each route of one address."""
    base = routes[0].handler
    methods = {route.method: _method(route) for route in routes}
    named = {route.method: route for route in routes}
    return type(base.__name__, (base,), {**methods, "routes": named})


def _method(route: Route) -> Respond:
    async def method(self: OhHandler, **groups: Any) -> None:
        await route.respond(self, **groups)

    if route.permission is None:
        return allow_unauthenticated(method)
    action, resource = route.permission
    return cast("Respond", web.authenticated(authorized(action, resource=resource)(method)))
