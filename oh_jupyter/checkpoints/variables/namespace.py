"""The variables of a notebook, apart from those of IPython and of the kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

_OF_IPYTHON = re.compile(r"_+|_i+|_i?\d+|_[idos]h|_i_?\d+|__\w+__|_exit_code|_dh")
"""Names that IPython assigns after each cell."""


@dataclass(frozen=True)
class Namespace:
    """The variables of a notebook.

    Attributes:
        variables: All variables by name.
        hidden: Variables that are not the person's, by name, with their initial objects.
    """

    variables: MutableMapping[str, Any]
    hidden: Mapping[str, Any]

    def own(self) -> dict[str, Any]:
        """Return the person's variables."""
        return {
            name: value
            for name, value in list(self.variables.items())
            if not (name in self.hidden and self.hidden[name] is value)
            and not (name[:1] == "_" and _OF_IPYTHON.fullmatch(name))
        }

    def remove(self, name: str) -> None:
        """Remove a variable; one that it replaced returns."""
        self.variables.pop(name, None)
        if name in self.hidden:
            self.variables[name] = self.hidden[name]
