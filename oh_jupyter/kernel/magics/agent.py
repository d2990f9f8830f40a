"""``%oh_agent``: coding agents in the kernel."""

from __future__ import annotations

import re
import traceback
from argparse import Namespace
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument
from IPython.display import display

from oh_jupyter.agents import AgentTurn
from oh_jupyter.agents.commands import similar_name
from oh_jupyter.errors import AgentNotFoundError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.live import LiveTurn, turn_bundle
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.completion import one_of
from oh_jupyter.kernel.magics.options import (
    MagicCommand,
    leading_options,
    magic_options,
    print_help,
    unquoted,
)
from oh_jupyter.policy import refusal

_CONVERSATION = ("--new", "--continue", "--resume", "--mode", "--model", "--effort", "--set")
_OPTIONS = ("mode", "model", "effort")
"""Options of an agent's session with a name of their own."""
_COMMANDS = {
    "fix": MagicCommand(
        "[NAME]", "Ask about the last cell that failed.", "%oh_agent fix", _CONVERSATION
    ),
    "list": MagicCommand(
        "", "List the agents, those of the registry, and how to install them.", "%oh_agent list"
    ),
    "options": MagicCommand(
        "[NAME]", "List a running agent's options, set those before it.", "%oh_agent options"
    ),
    "sessions": MagicCommand(
        "[NAME]", "List an agent's earlier conversations here.", "%oh_agent sessions codex"
    ),
    "stop": MagicCommand("[NAME]", "Stop an agent and its turn.", "%oh_agent stop claude"),
    "use": MagicCommand(
        "NAME", "Select the agent for prompts without a name.", "%oh_agent use codex"
    ),
}
_MAX_TRACEBACK_CHARS = 6000
_MAX_TITLE_CHARS = 80


@magics_class
class AgentMagics(OhMagics):
    """Prompts to coding agents, and their management."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self._shown: AgentTurn | None = None
        self.complete(
            "oh_agent",
            {
                "NAME": one_of(self.oh.agents.known),
                **{name.upper(): one_of(partial(self._choices, name)) for name in _OPTIONS},
            },
            arguments="NAME",
            leading_options=True,
        )
        assert shell.display_formatter is not None
        self._formatter = shell.display_formatter.ipython_display_formatter
        self._formatter.for_type(AgentTurn, self.show)

    def close(self) -> None:
        """Remove the completions and the formatter from the shell."""
        super().close()
        self._formatter.pop(AgentTurn, None)

    def show(self, turn: AgentTurn) -> None:
        """Show a turn as the value of a cell, unless that cell has already shown it."""
        if turn is self._shown:
            self._shown = None
            return
        display(turn_bundle(turn), raw=True)

    @no_var_expand
    @magic_options(
        _COMMANDS,
        examples="""
        %oh_agent claude "why is df empty?"
        %oh_agent --new codex "write tests for shop.py" &
        %oh_agent --mode plan --model opus claude "restructure the notebook"
        """,
        is_leading=True,
    )
    @argument("-n", "--new", action="store_true", help="start a new conversation")
    @argument(
        "-c",
        "--continue",
        action="store_true",
        dest="resume",
        help="resume the last conversation here, even from an earlier kernel",
    )
    @argument("-r", "--resume", metavar="SESSION", dest="session", help="resume this conversation")
    @argument("--delete", metavar="SESSION", help="delete this conversation of the agent")
    @argument("--mode", metavar="MODE", help="the agent's mode from now on, such as plan")
    @argument("--model", metavar="MODEL", help="its model from now on")
    @argument("--effort", metavar="EFFORT", help="how long it thinks from now on, such as high")
    @argument("--set", metavar="OPTION=VALUE", dest="other", help="another option of the agent")
    @line_cell_magic
    def oh_agent(self, line: str, cell: str | None = None) -> Any:
        """Prompt a coding agent, which works in this kernel while the cell shows its progress.

        ``%oh_agent claude "why is df empty?"``, or with the prompt in the body of ``%%oh_agent
        claude``. Without a name, the last agent gets it, in the same conversation. An interrupt
        ends the turn. With ``&`` at the end of the line, the agent works in the background, and its
        cell shows the progress; ``%oh_agent stop`` ends that.

        The value is the turn: its text, steps, cost and diff.
        """
        options, rest = leading_options(self.oh_agent, line)
        word, _, more = rest.strip().partition(" ")
        # Elsewhere, --help is a part of the prompt.
        if options.help or (word in _COMMANDS and more.strip() in ("-h", "--help")):
            return print_help(self.oh_agent, word)
        if options.delete:
            owner = self._named(rest.strip())
            self.oh.delete_agent_session(owner, options.delete)
            return self._sessions_table(owner)
        if cell is None and word in _COMMANDS and self._is_command(word, more):
            return self._run_command(word, more.strip(), _settings(options))
        in_background = re.search(r"(^|\s)&\s*$", rest) is not None
        if in_background:
            rest = rest.rstrip().removesuffix("&")
            word, _, more = rest.strip().partition(" ")
        name, prompt = self._addressed(word, rest.strip(), more.strip())
        if name is not None and more.lstrip().startswith("-"):
            later, rest = leading_options(self.oh_agent, more)
            prompt = unquoted(rest.strip())
            for each, value in vars(later).items():
                setattr(options, each, value or getattr(options, each))
        if cell is not None:
            prompt = "\n".join(filter(None, (prompt, cell.strip("\n"))))
        if in_background:
            return self._start(prompt, name, _settings(options))
        return self._ask(prompt, name, _settings(options))

    def _is_command(self, word: str, more: str) -> bool:
        """Return whether a line is a command; "fix that" and "list the files" are prompts."""
        names_one = word in ("stop", "use", "options", "sessions") and len(more.split()) == 1
        return not more.strip() or names_one or more.strip() in self.oh.agents.known()

    def _addressed(self, word: str, whole: str, more: str) -> tuple[str | None, str]:
        """Return the agent that a line names, and the prompt."""
        if word in self.oh.agents.known():
            return word, unquoted(more)
        if re.fullmatch(r"[\w-]+", word):  # a misspelled name is not a prompt
            similar = similar_name(word, self.oh.agents.known())
            if re.fullmatch(r"(['\"]).*\1", more) or (similar and self.oh.agents.current is None):
                return word, unquoted(more)
            if self.oh.agents.current is None:
                known = ", ".join(self.oh.agents.known())
                raise AgentNotFoundError(
                    f"There is no agent {word!r}, and none is running. Name one of {known} "
                    f"first: %oh_agent claude {whole}"
                )
            if similar:
                raise AgentNotFoundError(
                    f"There is no agent {word!r}. Did you mean {similar}? To send these words as a "
                    f'prompt, put quotes around them all: %oh_agent "{whole}"'
                )
        return None, unquoted(whole)

    def _run_command(self, command: str, name: str, settings: dict[str, Any]) -> Any:
        if command == "fix":
            return self._ask(self._failure(), name or None, settings)
        if command == "options":
            return self._options_table(self._named(name), settings["options"])
        if command == "sessions":
            return self._sessions_table(name)
        if command == "use":
            if not name:
                raise UsageError("say which agent: %oh_agent use NAME")
            self.oh.agents.use(name)
        elif command == "stop":
            self.oh.stop_agent(name or None)
            return None
        return self._table()

    def _table(self) -> Table:
        agents = self.oh.agents
        rows = []
        for name, command in agents.known().items():
            session = agents.at_work.get(name)
            state = "busy" if session is not None and session.is_busy else "ready"
            is_installed = session is not None or command.is_installed
            if session is None:
                state = "installed" if is_installed else "not installed"
            mark = "•" if name == agents.current else ""
            how = "" if is_installed else command.installation
            reason = refusal(agents.policy, "agents", name)
            if reason:
                state, how = "not allowed", reason
            offered = () if session is None else map(session.option, _OPTIONS)
            set_to = ", ".join(option.current for option in offered if option is not None)
            rows.append((mark, name, state, set_to, " ".join(command.command)[:60], how))
        for name, command in self.oh.registered_agents().items():
            row = ("", name, "in the registry", "", " ".join(command.command)[:60])
            rows.append((*row, command.installation))
        return Table(("", "agent", "state", "set to", "command", "install with"), tuple(rows))

    def _choices(self, option: str) -> list[str]:
        return self.oh.agents.choices(option)

    def _named(self, name: str) -> str:
        """Return the agent that a command names, or the current one."""
        known = name or self.oh.agents.current
        if known is None:
            raise UsageError("say which agent, for example: %oh_agent options claude")
        return known

    def _options_table(self, name: str, wanted: dict[str, str]) -> Table:
        rows = [
            (option.id, option.current, ", ".join(each.value for each in option.choices))
            for option in self.oh.agent_options(name, wanted)
        ]
        return Table(("option", "current", "values"), tuple(rows))

    def _sessions_table(self, name: str) -> Table:
        rows = [
            (each.session_id, each.updated_at or "", (each.title or "")[:_MAX_TITLE_CHARS])
            for each in self.oh.agent_sessions(self._named(name))
        ]
        return Table(("session", "updated", "title"), tuple(rows))

    def _failure(self) -> str:
        if self.recent_cells.failed is None:
            raise UsageError("no cell has failed yet; %oh_agent fix needs a failed one")
        code, error = self.recent_cells.failed
        frames = error.__traceback__
        if frames is not None and frames.tb_next is not None:
            frames = frames.tb_next  # skip IPython's own frame
        lines = traceback.format_exception(type(error), error, frames)
        text = "".join(lines)[-_MAX_TRACEBACK_CHARS:]
        return (
            "This cell of the notebook failed. Find out why, and explain or make the fix.\n\n"
            f"```python\n{code.strip()}\n```\n\n```\n{text.strip()}\n```"
        )

    def _ask(self, prompt: str, name: str | None, settings: dict[str, Any]) -> AgentTurn:
        shell: Any = self.shell
        live = LiveTurn(shell)
        try:
            live.announce(f"{name or 'The agent'} starts …")
            turn = self.oh.agent(prompt, name, **settings, on_change=live.update)
        except BaseException:
            if live.turn is not None:  # its partial result
                live.finish(live.turn)
            else:
                live.remove()
            raise
        live.finish(turn)
        self._shown = turn
        return turn

    def _start(self, prompt: str, name: str | None, settings: dict[str, Any]) -> None:
        """Prompt an agent in the background, and show its progress in this cell."""
        shell: Any = self.shell
        live = LiveTurn(shell)
        future = self.oh.start_agent(prompt, name, **settings, on_change=live.update)
        future.add_done_callback(
            lambda ended: live.end(None if ended.cancelled() else ended.exception())
        )


def _settings(options: Namespace) -> dict[str, Any]:
    """Return the parsed options of a line as arguments of a prompt."""
    chosen = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name)}
    if options.other:
        name, equals, value = options.other.partition("=")
        if not equals:
            raise UsageError(f"--set takes OPTION=VALUE, not {options.other!r}")
        chosen[name] = value
    return {"new": options.new, "resume": options.session or options.resume, "options": chosen}
