"""The server extension: ``c.OhJupyter`` in a Jupyter server's configuration."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.gateway.gateway_client import GatewayClient
from traitlets import Bool, Float, Int, TraitError, Unicode

from oh_jupyter._version import __version__
from oh_jupyter.background import run_in_background
from oh_jupyter.config import SESSION_KEY_VARIABLE, Settings, read_settings
from oh_jupyter.control_messages import REQUEST_MESSAGE
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.installed import exclude
from oh_jupyter.logs import set_up_logging
from oh_jupyter.server.collaboration import SharedDocuments
from oh_jupyter.server.contents_journal import record_contents
from oh_jupyter.server.handlers import HANDLERS
from oh_jupyter.server.handlers.workspace import WORKSPACE_HANDLERS
from oh_jupyter.server.limits import RateLimit, RequestLimits
from oh_jupyter.server.mcp.endpoints import Endpoints
from oh_jupyter.server.mcp.notebooks import ServerNotebooks
from oh_jupyter.server.router import Router
from oh_jupyter.server.state import Activity, ServerState, state_of
from oh_jupyter.server.unsaved import UnsavedDocuments
from oh_jupyter.server_notes import key_note_name
from oh_jupyter.traits import KnownNames, SettingsTraits, explicit_settings
from oh_jupyter.trust import is_trusted, untrusted_notice
from oh_jupyter.vulnerabilities import installed_vulnerabilities


class OhJupyter(KnownNames, SettingsTraits, ExtensionApp):  # type: ignore[valid-type, misc]
    """The OpenHands action-execution protocol on the kernels of this server."""

    name = "oh_jupyter"
    version = __version__
    load_other_extensions = True

    default_kernel_name = Unicode(
        "", help="Kernelspec of the kernel for requests that name none. Default: the server's."
    ).tag(config=True)

    default_kernel_path = Unicode(
        "", help="Directory where that kernel starts, relative to the server's root."
    ).tag(config=True)

    share_tools = Bool(
        True,
        help="Offer the MCP tools through jupyter-server-mcp, too, if it is installed. Its port "
        "has no login: everybody on this machine can use them there.",
    ).tag(config=True)

    mcp_skills = Bool(
        False,
        help="List the agent skills among the MCP tools, too, under names that begin with skill_. "
        "A client of streamable HTTP can request them with ?skills=true in the address.",
    ).tag(config=True)

    confirmation_over_rest = Bool(
        False,
        help="Allow approving waiting actions with POST confirmations/{id} and the server's token. "
        "An agent that has the token can then approve its own. By default only JupyterLab's panel "
        "and %oh_confirm approve.",
    ).tag(config=True)

    approval_by_client = Bool(
        False,
        help="Let MCP clients that support elicitation ask their own person about waiting actions. "
        "A client that answers by itself could then approve its own actions.",
    ).tag(config=True)

    max_body_mb = Float(
        64.0,
        help="Largest size of a request in MiB; uploads have their own limit, max_upload_mb.",
    ).tag(config=True)

    max_concurrent_actions = Int(
        64, help="Actions that run at once in each kernel; further ones wait."
    ).tag(config=True)

    max_queued_actions = Int(
        256, help="Actions that may wait in each kernel; further ones are rejected (429)."
    ).tag(config=True)

    rate_limit = Float(
        None,
        allow_none=True,
        help="Requests per second of each user; further ones are rejected (429). The server's "
        "token counts as one user. Default: no limit.",
    ).tag(config=True)

    _key_note: Path | None = None

    def _load_config(self, *args: Any, **options: Any) -> None:
        """Load the configuration, or end the server: it would load us without these settings."""
        try:
            super()._load_config(*args, **options)
        except TraitError as error:
            raise SystemExit(f"oh_jupyter: {error}") from None

    def _allows_confirmation(self, settings: Settings) -> bool:
        """Return whether REST may approve; an administrator's policy decides first."""
        policy = settings.policy or {}
        if "approvals_over_rest" in policy:
            return policy["approvals_over_rest"] == "on"
        return bool(self.confirmation_over_rest)

    def initialize_settings(self) -> None:
        """Create the state, and store it where the handlers find it."""
        server: Any = self.serverapp
        exclude(server.root_dir)
        explicit = explicit_settings(self)
        settings, faults = read_settings(explicit, is_trusted=is_trusted)
        for fault in faults:  # no kernel starts a runtime with them
            self.log.error("%s", fault)
        if notice := untrusted_notice():
            self.log.warning("%s.", notice)
        for hole, installed in installed_vulnerabilities():
            self.log.warning(
                "%s %s has a known vulnerability (%s). Run: pip install '%s>=%s'",
                *(hole.package, installed, hole.summary, hole.package, hole.fixed_in),
            )
        self._server_url_file = settings.server_url_file
        # Nobody may be watching the default kernel.
        explicit.setdefault("confirmation", settings.confirmation or "never")
        if "vscode" in settings.plugins:
            explicit.setdefault("vscode_base_url", server.base_url)
        limits = RequestLimits(
            max_body_bytes=int(self.max_body_mb * 1024**2),
            max_upload_bytes=int(settings.max_upload_mb * 1024**2),
            max_concurrent_actions=self.max_concurrent_actions,
            max_queued_actions=self.max_queued_actions,
            rate=RateLimit(self.rate_limit),
        )
        self._outbox = OutboxDrain(settings)
        router = Router(
            server.kernel_manager,
            server.event_logger,
            kernel_name=self.default_kernel_name or None,
            settings=explicit,
            path=self.default_kernel_path,
            limits=limits,
            confirmation=settings.confirmation,
            kernel_gone=self._outbox.kernel_gone,
        )
        activity = Activity()
        shared_documents = SharedDocuments(server)
        unsaved = UnsavedDocuments(server.event_logger, shared_documents.save)
        ServerState(
            router=router,
            limits=limits,
            activity=activity,
            unsaved=unsaved,
            mcp=Endpoints(
                server,
                router,
                activity.touch,
                ServerNotebooks(server, router, shared_documents),
                unsaved,
                list_skills=self.mcp_skills,
                approval_by_client=self.approval_by_client,
            ),
            wants_vscode="vscode" in settings.plugins,
            confirmation_over_rest=self._allows_confirmation(settings),
        ).put_into(self.settings)
        self._restore_logging = set_up_logging(self.log, self._secrets)
        _keep_kernels_busy(server)
        record_contents(server)

    def initialize_handlers(self) -> None:
        """Add the endpoints."""
        self.handlers.extend([*WORKSPACE_HANDLERS, *HANDLERS])

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        """Publish the server's address; its port is known now."""
        self._note_key(serverapp)
        self._write_url_file(serverapp)

    def _write_url_file(self, serverapp: Any) -> None:
        """Write the file in which agents look up the address."""
        target = self._url_file()
        if target is None:
            return
        wildcard = serverapp.ip in ("", "*", "0.0.0.0", "::")
        base = serverapp.local_url if wildcard else serverapp.connection_url
        key = state_of(self.settings).view_key
        address = f"{base.partition('?')[0].rstrip('/')}/oh_jupyter/viewer/{key}"
        try:
            _write_private(target, address)
        except OSError as error:
            self.log.warning("server_url_file %s cannot be written: %s", target, error.strerror)

    def _note_key(self, serverapp: Any) -> None:
        """Write a key for this user's programs if the server has no token to give them.

        That is a server with a password, or behind JupyterHub. The key opens only our addresses.
        """
        if getattr(serverapp.identity_provider, "token", "") or not serverapp.info_file:
            return
        self._key_note = Path(serverapp.info_file).with_name(key_note_name(os.getpid()))
        try:
            _write_private(self._key_note, state_of(self.settings).own_key)
        except OSError as error:
            self.log.warning("%s cannot be written: %s", self._key_note, error.strerror)

    def _url_file(self) -> Path | None:
        path = self._server_url_file
        return Path(path).expanduser() if path else None

    async def stop_extension(self) -> None:
        """End the MCP sessions, and disconnect from the kernels."""
        state = state_of(self.settings)
        if target := self._url_file():
            with suppress(OSError):
                if state.view_key in target.read_text():
                    target.unlink()
        if self._key_note is not None:
            self._key_note.unlink(missing_ok=True)
        await state.mcp.close()
        for commands in state.commands.values():
            commands.close()
        state.router.close()
        await self._outbox.close()
        self._restore_logging()

    def _secrets(self) -> list[str]:
        """Return what must not be logged: the server's credentials and secret settings."""
        state = state_of(self.settings)
        token = getattr(getattr(self.serverapp, "identity_provider", None), "token", "")
        secrets = [
            os.environ.get(SESSION_KEY_VARIABLE, ""),
            state.view_key,
            state.own_key,
            str(token),
        ]
        if GatewayClient.initialized():
            gateway = GatewayClient.instance()
            secrets += [gateway.auth_token or "", gateway.http_pwd or ""]
        for setting in fields(Settings):
            value = getattr(self, setting.name) if setting.metadata["secret"] else None
            secrets += value.values() if isinstance(value, dict) else [value or ""]
        return [value for value in secrets if isinstance(value, str)]


def _write_private(target: Path, text: str) -> None:
    """Write a new file for this user only, which nobody else has open."""
    try:
        target.unlink(missing_ok=True)
        mode = "x"
    except OSError as error:
        if error.errno != errno.EBUSY:  # a mount point, which cannot be replaced
            raise
        mode = "w"
    with open(target, mode, opener=partial(os.open, mode=0o600)) as opened:
        opened.write(text)


def _keep_kernels_busy(server: Any) -> None:
    """Keep our requests from making a kernel look idle in the middle of a cell.

    Both lists are needed: JupyterLab has copied the first into its page before we are loaded.
    """
    untracked = server.kernel_manager.untracked_message_types
    if REQUEST_MESSAGE not in untracked:
        server.kernel_manager.untracked_message_types = [*untracked, REQUEST_MESSAGE]
    page: dict[str, Any] = server.web_app.settings.setdefault("page_config_data", {})
    known = page.get("untracked_message_types", untracked)
    if REQUEST_MESSAGE not in known:
        page["untracked_message_types"] = [*known, REQUEST_MESSAGE]


FLUSH_SECONDS = 60.0

logger = logging.getLogger(__name__)


class OutboxDrain:
    """Delivers webhook reports that kernels have left in the outbox of the server's settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._store: Any = None
        self._draining = asyncio.Lock()

    def kernel_gone(self) -> None:
        """Start delivering what a kernel has left, without waiting."""
        if self._settings.file_store_web_hook_url and not self._draining.locked():
            run_in_background(self._drain())

    async def _drain(self) -> None:
        async with self._draining:
            try:
                await asyncio.to_thread(self._flush)
            except (OhJupyterError, OSError) as error:
                logger.warning("Webhook reports of a kernel stay in its outbox: %s", error)

    def _flush(self) -> None:
        from oh_jupyter.storage.factory import make_file_store

        if self._store is None:  # it keeps retrying while the receiver is down
            self._store = make_file_store(self._settings)
        if hasattr(self._store, "flush"):
            self._store.flush(FLUSH_SECONDS)

    async def close(self) -> None:
        """Stop the deliveries; what is not accepted stays in the outbox."""
        if hasattr(self._store, "close"):
            await asyncio.to_thread(self._store.close, 0)
