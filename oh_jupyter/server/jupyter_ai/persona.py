"""The persona: it passes messages of a chat to an agent in the kernel of the open notebook."""

from __future__ import annotations

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any, TypeVar

from jupyter_ai_persona_manager import BasePersona, PersonaDefaults
from jupyter_ai_persona_manager.awareness_models import (
    CommandOption,
    ModelConfiguration,
    ModelOption,
    SettingConfiguration,
    SettingOption,
    Usage,
)
from jupyterlab_chat.models import Message, NewMessage

from oh_jupyter.errors import AgentError, KernelNotFoundError, OhJupyterError
from oh_jupyter.operations import Operation, reply_to
from oh_jupyter.operations.agents import (
    AgentOption,
    Agents,
    Conversation,
    FollowTurn,
    InterruptAgent,
    PromptAgent,
    Turn,
)
from oh_jupyter.operations.changes import Rewind
from oh_jupyter.server.jupyter_ai.notebook_choice import choose_notebook
from oh_jupyter.server.jupyter_ai.turn_text import turn_text
from oh_jupyter.server.links import KernelLink
from oh_jupyter.server.state import SETTINGS_KEY, ServerState, state_of

R = TypeVar("R")

FOLLOW_SECONDS = 30.0
"""Maximum duration of one request for the progress of a turn."""

AGENT_SETTING = "agent"

COMMANDS = {
    "/undo": "Undo what the last turn changed, in files and variables",
    "/new": "Start a new conversation with the agent",
}


class NotebookPersona(BasePersona):
    """Agent of the open notebook, with its tools, log, approvals and rewinds.

    The agent is a guest of the notebook's kernel, as with ``%oh_agent``: both have the same
    conversation. Approvals are asked where the kernel always asks, and never in the chat, whose
    messages an agent with the server's token could send.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._agent: str | None = None
        self._wanted: dict[str, str] = {}
        self._last: str | None = None
        self._starts_new = False
        self._link: KernelLink | None = None
        self._turn: Turn | None = None
        self._prompting: asyncio.Task[Any] | None = None
        super().__init__(*args, **kwargs)

    @property
    def defaults(self) -> PersonaDefaults:
        """Name, description and picture of the persona."""
        return PersonaDefaults(
            name="Notebook agent",
            description="Works in the kernel of your open notebook, and can be undone.",
            avatar_path=str(Path(__file__).with_name("avatar.svg")),
            system_prompt="",
        )

    async def prepare(self) -> None:
        """Offer the commands, and the agents if a kernel can be asked already."""
        self.report_slash_commands(
            [CommandOption(name=name, description=says) for name, says in COMMANDS.items()]
        )
        try:
            link = await self._linked(())
            self._report_agents(await self._ask(link, Agents(), load=False))
        except OhJupyterError:
            pass  # there is no notebook yet, or oh_jupyter is not in its kernel

    async def update_settings(self, settings: dict[str, str | None]) -> None:
        """Choose the agent for the next messages, or its options, such as the mode."""
        wanted = {name: value for name, value in settings.items() if value is not None}
        agent = wanted.pop(AGENT_SETTING, self._agent)
        if agent != self._agent:
            self._agent, self._wanted = agent, {}
        self._wanted |= wanted

    async def update_model(self, model_id: str) -> None:
        """Choose the agent's model."""
        self._wanted["model"] = model_id

    async def process_message(self, message: Message) -> None:
        """Prompt the agent, and show its turn in one message until it ends."""
        text = message.body.replace(f"@{self.as_user().mention_name}", "", 1).strip()
        try:
            if text == "/new":
                self._starts_new = True
                self.send_message("The next message starts a new conversation.")
            elif text == "/undo":
                await self._undo()
            elif text:
                self._link = await self._linked(self._attached(message))
                await self._converse(self._link, text)
        except OhJupyterError as error:
            self.send_message(f"{error}.".replace("..", "."))
        finally:
            self.clear_status()

    async def cancel_response(self) -> None:
        """Interrupt the agent, whose partial turn stays."""
        if self._turn is not None and self._link is not None:
            await self._ask(self._link, InterruptAgent(self._turn.agent))
        elif self._prompting is not None:
            self._prompting.cancel()

    # The kernel

    @property
    def _state(self) -> ServerState:
        server = self.parent.parent.serverapp
        if SETTINGS_KEY not in server.web_app.settings:
            raise KernelNotFoundError(
                "The server extension oh_jupyter is disabled here. Enable it with: "
                "jupyter server extension enable oh_jupyter"
            )
        return state_of(server.web_app.settings)

    async def _linked(self, attached: tuple[str, ...]) -> KernelLink:
        """Return the link to the kernel of the notebook that a message means."""
        state = self._state
        opened = await state.mcp.notebooks.open_ones()
        notebook = choose_notebook(opened, attached, self._last, self.get_chat_path(relative=True))
        self._last = notebook.path
        link = state.router.link(str(notebook.kernel_id))
        await link.open()
        return link

    def _attached(self, message: Message) -> tuple[str, ...]:
        known = self.chat.get_attachments()
        attachments = (known.get(id) for id in message.attachments or ())
        return tuple(str(each.value) for each in attachments if each is not None)

    async def _ask(self, link: KernelLink, operation: Operation[R], *, load: bool = True) -> R:
        return reply_to(operation, (await link.request(operation, load=load)).body)

    # Turns

    async def _converse(self, link: KernelLink, text: str) -> None:
        self.set_status("starts the agent…")
        agents = await self._ask(link, Agents())
        key = uuid.uuid4().hex
        prompt = PromptAgent(
            text, agent=self._chosen(agents), new=self._starts_new, options=self._wanted
        )
        self._report_agents(agents)
        prompting = asyncio.ensure_future(link.request(prompt, key=key, cancellable=True))
        self._prompting = prompting
        shown = ChatMessage(self)
        following = asyncio.ensure_future(self._follow(link, key, shown))
        try:
            await asyncio.wait({prompting, following}, return_when=asyncio.FIRST_COMPLETED)
            turn = reply_to(prompt, (await prompting).body)
            self._starts_new, self._wanted = False, {}
            self._report_agents(await self._ask(link, Agents()))
            if turn is not None:
                shown.show(turn_text(turn))
                self._report_usage(turn)
        except asyncio.CancelledError:
            if not prompting.cancelled():
                prompting.cancel()
                raise
            shown.show("*Stopped.*")
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            self._prompting = self._turn = None

    def _chosen(self, conversation: Conversation) -> str:
        """Return the agent of the setting, the notebook's current one, or an installed one."""
        agents = conversation.agents
        installed = [each.name for each in agents if each.state != "missing"]
        chosen = self._agent or conversation.current or next(iter(installed), None)
        if chosen is None:
            ways = "; ".join(each.installation for each in agents[:2])
            raise AgentError(f"No agent is installed. Install one, for example: {ways}")
        return chosen

    async def _follow(self, link: KernelLink, key: str, shown: ChatMessage) -> None:
        """Show each new state of a turn until it has ended."""
        known, ended = "", False
        while not ended:
            follow = FollowTurn(of=key, known=known, wait=FOLLOW_SECONDS)
            reply = await link.request(follow, cancellable=True)
            progress = reply_to(follow, reply.body)
            known, ended = progress.state, progress.ended
            if progress.turn is None:
                continue
            self._turn, waiting = progress.turn, progress.waiting
            self.set_status("waits for your approval" if waiting else "works…")
            shown.show(turn_text(progress.turn, waiting))

    async def _undo(self) -> None:
        link = await self._linked(())
        plan = await self._ask(link, Rewind())
        files = ", ".join(f"`{change.path}`" for change in plan.changes)
        self.send_message(f"The last turn is undone{f': {files}' if files else ''}.")

    def _report_agents(self, conversation: Conversation) -> None:
        agents = conversation.agents
        options = [SettingOption(id=each.name) for each in agents if each.state != "missing"]
        if options:
            current = self._agent or conversation.current or options[0].id
            setting = SettingConfiguration(
                id=AGENT_SETTING, name="Agent", current=current, options=options
            )
            own = next((each for each in agents if each.name == current), None)
            offered = [] if own is None else own.options
            models = [each for each in offered if each.category == "model"]
            others = [_setting(each) for each in offered if each not in models]
            self.report_settings_configuration([setting, *others])
            self.report_model_configuration(_model(models[0]) if models else ModelConfiguration())

    def _report_usage(self, turn: Turn) -> None:
        names = {name: turn.usage.get(name) for name in ("input_tokens", "output_tokens")}
        self.report_usage(Usage(**names, cost_amount=turn.cost), append=True)
        if turn.context_size:
            self.report_usage(
                Usage(context_tokens=turn.context_tokens, context_size=turn.context_size)
            )
        if turn.currency:
            self.report_usage(Usage(cost_currency=turn.currency))


def _setting(option: AgentOption) -> SettingConfiguration:
    """Return an option of an agent as Jupyter AI shows it."""
    values = ["on", "off"] if option.is_switch else []
    options = [SettingOption(id=value) for value in values] or [
        SettingOption(id=each.value, name=each.name, description=each.description)
        for each in option.choices
    ]
    return SettingConfiguration(
        id=option.id, name=option.name, current=option.current, options=options
    )


def _model(option: AgentOption) -> ModelConfiguration:
    options = [
        ModelOption(id=each.value, name=each.name, description=each.description)
        for each in option.choices
    ]
    return ModelConfiguration(current=option.current, options=options)


class ChatMessage:
    """One message of the persona, whose text is replaced while a turn runs."""

    def __init__(self, persona: NotebookPersona) -> None:
        self._persona = persona
        self._id: str | None = None
        self._text = ""

    def show(self, text: str) -> None:
        """Replace the text."""
        if not text or text == self._text:
            return
        self._text = text
        chat, sender = self._persona.chat, self._persona.id
        if self._id is None:
            self._id = chat.add_message(NewMessage(body=text, sender=sender))
            return
        chat.update_message(
            Message(id=self._id, body=text, time=time.time(), sender=sender, raw_time=False),
            trigger_actions=[],
        )
