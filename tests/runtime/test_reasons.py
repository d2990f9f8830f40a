"""Reasons by code, and the table of their sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

import oh_jupyter
from oh_jupyter.runtime.reasons import SENTENCES, Reason, ReasonCode
from oh_jupyter.runtime.risk import RULES

PACKAGE = Path(oh_jupyter.__file__).parent


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Each call in the package that makes a reason, with the code it names."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "Reason(" in source else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reason":
                code = node.args[0]
                for each in (code.body, code.orelse) if isinstance(code, ast.IfExp) else (code,):
                    if isinstance(each, ast.Constant):
                        yield each.value, node


def field_count(code: ReasonCode) -> int:
    return sum(name is not None for _, name, _, _ in Formatter().parse(SENTENCES[code]))


def test_each_code_has_a_sentence_of_its_own() -> None:
    assert list(SENTENCES) == list(get_args(ReasonCode)) == sorted(SENTENCES)
    assert len(set(SENTENCES.values())) == len(SENTENCES)


def test_each_code_is_used_with_the_parameters_of_its_sentence() -> None:
    used = {code for code, _ in RULES}
    assert [code for code in used if field_count(code)] == []
    for code, call in calls():
        assert code in SENTENCES
        used.add(code)
        parameters = call.args[1] if len(call.args) > 1 else ast.Tuple([])
        if isinstance(parameters, ast.Tuple):
            assert len(parameters.elts) == field_count(code), code
    assert used == SENTENCES.keys()


def test_a_reason_without_a_sentence_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="there is no reason 'made_up'"):
        Reason("made_up")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'changes_file' lacks a parameter"):
        Reason("changes_file")


def test_parameters_are_text_and_no_templates() -> None:
    assert str(Reason("changes_file", ("/x/{0}{code}",))) == "it changes /x/{0}{code}"
    assert Reason("changes_file", ("a",)) != Reason("changes_file", ("b",))
