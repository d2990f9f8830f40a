"""Parsing of the magics' lines: question marks are arguments, and every value is shown."""

from __future__ import annotations

import ast
import re
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from oh_jupyter.kernel.magics import MAGICS

_QUESTION = re.compile(r"(\s*(?:[\w, ]+=\s*)?)%?(oh_\w+)[ \t]+(\S.*\?)\s*")
_SHOW = f"__import__({__name__!r}, fromlist=['show_value']).show_value"


class MagicTransforms:
    """The transformations of a cell's text and tree, until ``close``."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._text: list[Any] = shell.input_transformers_cleanup
        self._text.append(_keep_questions)
        self._tree: list[Any] = shell.ast_transformers
        self._values = _ShowValues(shell)
        self._tree.append(self._values)

    def close(self) -> None:
        """Remove the transformations from the shell."""
        self._text.remove(_keep_questions)
        if self._values in self._tree:  # IPython removes a transformer that raised
            self._tree.remove(self._values)


def show_value(value: object) -> None:
    """Show the value of a magic that is not the last expression of its cell."""
    if value is not None:
        display(value)


def _keep_questions(lines: list[str]) -> list[str]:
    """Keep IPython's help from handling magics whose arguments end in a question mark."""
    text = "".join(lines)
    if "?" not in text or text.lstrip().startswith("%%") or '"""' in text or "'''" in text:
        return lines
    return [_question_call(line) for line in lines]


def _question_call(line: str) -> str:
    match = _QUESTION.fullmatch(line)
    if match is None or match[2] not in MAGICS:
        return line
    before, name, arguments = match.groups()
    return f"{before}get_ipython().run_line_magic({name!r}, {arguments!r})\n"


class _ShowValues(ast.NodeTransformer):
    """Shows the values of magics that stand alone, except those that the shell shows."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def visit_Module(self, tree: ast.Module) -> ast.Module:
        which = self._shell.ast_node_interactivity
        if which == "none":
            return tree
        shown = tree.body if which == "all" else tree.body[-1:]
        tree.body = [
            node if node in shown and isinstance(node, ast.Expr) else self.visit(node)
            for node in tree.body
        ]
        return tree

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        match node.value:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Call(func=ast.Name(id="get_ipython")), attr="run_line_magic"
                ),
                args=[ast.Constant(value=str(name)), *_],
            ) if name in MAGICS:
                show = ast.parse(_SHOW, mode="eval").body
                node.value = ast.copy_location(ast.Call(show, [node.value], []), node.value)
                ast.fix_missing_locations(node.value)
        return node
