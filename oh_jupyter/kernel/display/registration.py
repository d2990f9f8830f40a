"""IPython's formatters, taught about Observations; how these look is loaded with the first one.

The Observations stay plain data.
"""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.events import OBSERVATIONS, Observation

__all__ = ["register_formatters", "unregister_formatters"]


def register_formatters(shell: InteractiveShell) -> None:
    """Teach a shell to show Observations, of whatever type."""
    formatters = _formatters(shell)
    for kind in OBSERVATIONS.values():  # each has a __repr__, which comes before its base's printer
        formatters["text/plain"].for_type(kind, _print_text)
        formatters["text/html"].for_type(kind, _html)


def unregister_formatters(shell: InteractiveShell) -> None:
    """Make a shell forget what it was taught."""
    formatters = _formatters(shell)
    for kind in OBSERVATIONS.values():
        formatters["text/plain"].pop(kind, None)
        formatters["text/html"].pop(kind, None)


def _formatters(shell: InteractiveShell) -> Any:
    assert shell.display_formatter is not None
    return shell.display_formatter.formatters


def _print_text(observation: Observation, printer: Any, cycle: bool) -> None:
    from oh_jupyter.kernel.display.observations import shown_text

    printer.text(shown_text(observation))


def _html(observation: Observation) -> str:
    from oh_jupyter.kernel.display.observations import observation_html

    return observation_html(observation)
