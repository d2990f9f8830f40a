"""``%oh_browse``: the browser."""

from __future__ import annotations

import re

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import Image, display

from oh_jupyter.events import Observation
from oh_jupyter.kernel.display import screenshot
from oh_jupyter.kernel.magics.base import OhMagics, help_option, leading_options, wants_help

__all__ = ["BrowseMagics"]

WIDTH = 760
"""Width of the picture in a cell, in CSS pixels; the page's is 1280."""

_CALL = re.compile(r"[a-z_]+\(")


@magics_class
class BrowseMagics(OhMagics):
    """Open pages and act on them."""

    @no_var_expand
    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("--no-picture", action="store_true", help="do not show the page")
    @argument("--axtree", action="store_true", help="return the accessibility tree as an object")
    @line_cell_magic
    def oh_browse(self, line: str, cell: str | None = None) -> Observation | None:
        """Open a page, or act on the one that is open.

        ``%oh_browse URL`` opens it; ``%oh_browse click("12")`` acts on it, and so does
        ``%%oh_browse`` with one or more calls in the body. The page is shown with its
        marks; the value is the Observation.
        """
        if wants_help(self.oh_browse, line):
            return None
        options, rest = leading_options(self.oh_browse, line)
        if cell is None and not rest:
            raise UsageError('say where to go: %oh_browse URL, or what to do: click("12")')
        observation: Observation
        if cell is None and not _CALL.match(rest):
            observation = self.oh.browse(_address(self.expand(rest)), return_axtree=options.axtree)
        else:
            actions = "\n".join(filter(None, (rest, cell)))
            observation = self.oh.interact(actions.strip(), return_axtree=options.axtree)
        picture = None if options.no_picture else screenshot(observation)
        if picture is not None:
            display(Image(picture, format="png", width=WIDTH, alt="The page, with marks"))
        return observation


def _address(text: str) -> str:
    """What a person types into an address bar, with a scheme."""
    text = text.strip().strip("'\"")
    return text if re.match(r"[a-z][a-z0-9+.-]*:|/", text) else f"http://{text}"
