"""A notebook without a kernel: a person's and an agent's cells in one namespace."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

from oh_jupyter.checkpoints.variables.history import VariableHistory
from oh_jupyter.checkpoints.variables.reach import Namespace


class Notebook:
    """Cells of a person and of an agent; each cell of the agent is a turn."""

    def __init__(self, folder: Path, kernel: int = 0) -> None:
        self.variables: dict[str, Any] = types.ModuleType("__main__").__dict__
        self.hidden = dict(self.variables)
        self.folder = folder
        namespace = Namespace(self.variables, self.hidden)
        self.history = VariableHistory(namespace, str(folder / "work"), folder / "variables")
        self.turn = kernel

    def person(self, code: str) -> None:
        """Run a cell that nothing watches, as a kernel does."""
        self.history.settle()
        exec(compile(code, "<person>", "exec"), self.variables)

    def agent(self, code: str) -> int:
        """Run a cell of the agent and return the number of its turn."""
        self.turn += 1
        cell = self.history.before(code, self.turn)
        try:
            exec(compile(code, "<agent>", "exec"), self.variables)
        finally:
            self.history.after(cell)
        return self.turn

    def rewind(self, turn: int, *, everything: bool = False) -> dict[str, tuple[str, str]]:
        """Rewind, after a preview that must agree; return outcomes and reasons by name."""
        planned = self.history.preview(turn, everything=everything)
        self.turn += 1
        rows = self.history.rewind(turn, self.turn, everything=everything)
        assert rows == planned, "the preview tells what happens"
        return {row.name: (row.outcome, row.reason) for row in rows}

    def restarted(self) -> Notebook:
        """Return a new kernel in the same folder."""
        assert self.history.close() is None
        return Notebook(self.folder, self.turn)

    def value(self, expression: str) -> Any:
        return eval(expression, self.variables)
