"""Options that an agent offers for its session: mode, model, effort, and its own."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from acp.schema import (
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionConfigOptionBoolean,
    SessionConfigSelectGroup,
    SessionModeState,
)

from oh_jupyter.errors import AgentError

if TYPE_CHECKING:
    import acp

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CATEGORIES = {"effort": "thought_level"}
"""Categories whose name differs from ours."""
_ON = ("on", "true", "yes", "1")
_OFF = ("off", "false", "no", "0")


class Ask(Protocol):
    """Sends a request to the agent, and raises AgentError for an error or a missing response."""

    async def __call__(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the response."""


@dataclass(frozen=True)
class Choice:
    """A value of an option, as the agent describes it."""

    value: str
    name: str
    description: str = ""


@dataclass(frozen=True)
class AgentOption:
    """An option of a session.

    Attributes:
        id: The agent's id.
        name: Its name for people.
        category: mode, model, model_config, thought_level, or another one.
        current: The current value; ``on`` or ``off`` for a switch.
        choices: Its values.
        is_switch: Whether it is on or off.
        is_mode: Whether it is set by the older request for modes.
    """

    id: str
    name: str
    category: str
    current: str
    choices: tuple[Choice, ...]
    is_switch: bool = False
    is_mode: bool = False

    def value_of(self, text: str) -> str | None:
        """Return the value that a text means by its value or name, or None."""
        if self.is_switch:
            return "on" if text.lower() in _ON else "off" if text.lower() in _OFF else None
        for choice in self.choices:
            if text == choice.value:
                return choice.value
        known = {text.lower() for text in (text, text.replace("-", " "))}
        return next((each.value for each in self.choices if each.name.lower() in known), None)


class SessionOptions:
    """The options of one agent, and the values that a person has chosen.

    A chosen value also applies in the sessions with which the conversation continues later.
    """

    def __init__(self, agent: str, connection: acp.ClientSideConnection, ask: Ask) -> None:
        """Start without options."""
        self._agent = agent
        self._connection = connection
        self._ask = ask
        self._options: dict[str, AgentOption] = {}
        self._chosen: dict[str, str] = {}

    @property
    def all(self) -> tuple[AgentOption, ...]:
        """The options in the agent's order."""
        return tuple(self._options.values())

    def find(self, name: str) -> AgentOption | None:
        """Return the option with an id or of a category, such as ``mode``, or None."""
        if name in self._options:
            return self._options[name]
        category = _CATEGORIES.get(name, name)
        return next((each for each in self.all if each.category == category), None)

    async def adopt(self, session_id: str, response: Any) -> None:
        """Read the options of a session's start, and set those that were chosen before."""
        self._read(getattr(response, "config_options", None), getattr(response, "modes", None))
        for id, value in list(self._chosen.items()):
            option = self._options.get(id)
            if option is not None and option.current != value:
                try:
                    await self._set(session_id, option, value)
                except AgentError as error:
                    logger.warning("%s does not keep its %s: %s", self._agent, id, error)

    def update(self, update: ConfigOptionUpdate | CurrentModeUpdate) -> None:
        """Note a change by the agent, such as the end of its planning."""
        if isinstance(update, ConfigOptionUpdate):
            self._read(update.config_options, None)
            for option in self.all:  # the agent has decided otherwise
                if option.id in self._chosen:
                    self._chosen[option.id] = option.current
        elif (mode := self.find("mode")) is not None and mode.is_mode:
            self._note(mode, update.current_mode_id)

    async def choose(self, session_id: str, wanted: Mapping[str, str]) -> None:
        """Set options by their names, now and for later sessions.

        Raises:
            AgentError: There is no such option or value, or the agent rejects it.
        """
        for name, text in wanted.items():
            option = self.find(name)
            if option is None:
                offered = ", ".join(each.id for each in self.all) or "none"
                raise AgentError(f"{self._agent} has no option {name!r}. Its options: {offered}")
            value = option.value_of(text)
            if value is None:
                values = ", ".join(each.value for each in option.choices) or "on, off"
                raise AgentError(f"{self._agent} has no {name} {text!r}. Choose one of: {values}")
            if value != option.current:
                await self._set(session_id, option, value)
            self._chosen[option.id] = value

    async def _set(self, session_id: str, option: AgentOption, value: str) -> None:
        if option.is_mode:
            await self._ask(self._connection.set_session_mode(session_id=session_id, mode_id=value))
            self._note(option, value)
            return
        response = await self._ask(
            self._connection.set_config_option(
                config_id=option.id,
                session_id=session_id,
                value=value == "on" if option.is_switch else value,
            )
        )
        self._read(response.config_options, None)

    def _note(self, option: AgentOption, value: str) -> None:
        """Note a new value of an option."""
        self._options[option.id] = replace(option, current=value)
        if option.id in self._chosen:
            self._chosen[option.id] = value

    def _read(self, offered: list[Any] | None, modes: SessionModeState | None) -> None:
        """Read what an agent offers; an agent with config options has its modes among them."""
        if offered is not None:
            self._options = {each.id: _option(each) for each in offered}
        elif modes is not None:
            choices = tuple(
                Choice(mode.id, mode.name, mode.description or "") for mode in modes.available_modes
            )
            mode = AgentOption("mode", "Mode", "mode", modes.current_mode_id, choices, is_mode=True)
            self._options = {"mode": mode}


def _option(offered: Any) -> AgentOption:
    """Return an option of the protocol as ours."""
    category = offered.category if isinstance(offered.category, str) else ""
    if isinstance(offered, SessionConfigOptionBoolean):
        current = "on" if offered.current_value else "off"
        return AgentOption(offered.id, offered.name, category, current, (), is_switch=True)
    choices = [
        choice
        for each in offered.options
        for choice in (each.options if isinstance(each, SessionConfigSelectGroup) else [each])
    ]
    return AgentOption(
        offered.id,
        offered.name,
        category,
        offered.current_value,
        tuple(Choice(each.value, each.name, each.description or "") for each in choices),
    )
