"""``scripts/operation_types``: the types of requests and replies in JupyterLab's extension."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import is_dataclass, make_dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, Literal

import pytest

from oh_jupyter.operations import Operation, arguments
from oh_jupyter.operations.agents import PlanEntry, Step, Turn
from oh_jupyter.operations.browser import BrowserView, WatchBrowser
from oh_jupyter.operations.catalog import declared
from oh_jupyter.operations.kernel import CellSummary, VariableView
from oh_jupyter.schema import documented_names

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "operation_types"


@pytest.fixture(scope="module")
def types() -> Any:
    with pytest.MonkeyPatch.context() as environment:
        environment.setattr(sys, "dont_write_bytecode", True)  # it would be operation_typesc
        spec = spec_from_loader("operation_types", SourceFileLoader("operation_types", str(SCRIPT)))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def test_the_file_is_what_the_script_writes() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("hint", "written"),
    [
        (str, "string"),
        (float | None, "number | null"),
        (int | float, "number"),
        (list[int], "readonly number[]"),
        (list[str] | None, "readonly string[] | null"),
        (list[str | None], "readonly (string | null)[]"),
        (list[list[str]], "readonly (readonly string[])[]"),
        (Mapping[str, str], "Readonly<Record<string, string>>"),
        (dict[str, list[int]], "Readonly<Record<string, readonly number[]>>"),
        (list[dict[str, Any]], "readonly Readonly<Record<string, unknown>>[]"),
        (Literal["a", "b"], "'a' | 'b'"),
        (Literal["a", 1, True], "'a' | 1 | true"),
        (Turn | None, "ITurn | null"),
        (list[str | Step], "readonly (string | IStep)[]"),
        (None, "null"),
        (Any, "unknown"),
    ],
    ids=str,
)
def test_types_are_those_of_json(types: Any, hint: Any, written: str) -> None:
    assert " | ".join(types.options(hint)) == written


@pytest.mark.parametrize("operation", declared(), ids=lambda each: each.wire_name)
def test_arguments_and_replies_are_described(types: Any, operation: type[Operation[Any]]) -> None:
    for kind in (operation, *types.replies_of([operation])):
        classes = filter(is_dataclass, reversed(kind.__mro__))
        assert documented_names(*classes).keys() == arguments(kind).keys()


def test_replies_have_names_of_their_own(types: Any) -> None:
    class Turns(Operation[Turn], scope="anyone"):
        pass

    class Others(Operation[list[make_dataclass("Turn", [])]], scope="anyone"):  # type: ignore[misc]
        pass

    assert types.replies_of([Turns]) == [PlanEntry, Step, Turn]
    with pytest.raises(ValueError, match="have the same name"):
        types.replies_of([Turns, Others])


def test_only_arguments_with_defaults_may_be_missing(types: Any) -> None:
    assert "  readonly known?: number;" in types.request_interface(WatchBrowser)
    assert "  readonly number: number;" in types.interface(BrowserView)


def test_only_optional_parts_of_replies_may_be_missing(types: Any) -> None:
    assert "  readonly waits?: boolean;" in types.interface(CellSummary)
    assert "  readonly modules: readonly string[];" in types.interface(VariableView)


def test_names_are_unique_and_only_tools_import_the_catalog() -> None:
    names = [each.wire_name for each in declared()]
    assert len(set(names)) == len(names)
    sources = (ROOT / "oh_jupyter").rglob("*.py")
    assert not [each for each in sources if "operations.catalog" in each.read_text("utf-8")]
