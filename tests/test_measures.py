"""``scripts/measures``: each row of its table, with a number."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "measures"
MEASURES = [
    "lines of the package",
    "files of the package",
    "control operations with hand-written fields",
    "durable formats",
    "lock protocols",
    "tests of texts for ERROR",
    "functions that shorten a text",
    "functions that title an Action",
    "hand-written lines of OpenAPI",
    "lines of TypeScript that parse replies",
    "lines of tests",
]


def test_each_measure_has_a_count_and_a_goal() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    head, *rows = done.stdout.splitlines()
    assert [each.strip() for each in head.split("|")] == ["measure", "now", "goal"]
    counts = {}
    for row in rows:
        name, now, goal = (each.strip() for each in row.split("|"))
        assert re.fullmatch(r"\d{1,3}(,\d{3})*", now), row
        assert re.fullmatch(r"\d{1,3}(,\d{3})*", goal), row
        counts[name] = int(now.replace(",", ""))
    assert list(counts) == MEASURES
    assert counts["lines of the package"] > counts["files of the package"] > 0


@pytest.fixture
def measures(monkeypatch: pytest.MonkeyPatch) -> Any:
    loader = SourceFileLoader("measures", str(SCRIPT))
    spec = spec_from_loader("measures", loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "measures", module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be scripts/measuresc
    loader.exec_module(module)
    return module


def test_a_format_that_the_sources_lack_is_an_error(
    measures: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measures.durable_formats() == len(measures.FORMATS)
    stale = measures.Format("events", "events/writer.py", "no such text")
    monkeypatch.setattr(measures, "FORMATS", (*measures.FORMATS, stale))
    with pytest.raises(SystemExit, match=r"'no such text' is not in oh_jupyter/events/writer\.py"):
        measures.durable_formats()
    unlisted = [each for each in measures.FORMATS[:-1] if each.module != "state/tables.py"]
    monkeypatch.setattr(measures, "FORMATS", unlisted)
    with pytest.raises(SystemExit, match=r"state/tables\.py creates database tables"):
        measures.durable_formats()


@pytest.mark.parametrize(
    ("name", "lines", "count"),
    [
        ("a.yaml", ["listFiles:", "  requestBody:", "    required: true"], 3),
        ("a.json", ['{"openapi": "3.1.0",', '"paths": {}}'], 2),
        ("a.py", ['TEXT = """', "get:", "  operationId: listFiles", '"""'], 3),
        ("a.py", ['KEY = {"operationId": "listFiles"}'], 0),
        ("a.yaml", ["name: tests"], 0),
    ],
)
def test_yaml_of_openapi_is_counted_anywhere(
    measures: Any, tmp_path: Path, name: str, lines: list[str], count: int
) -> None:
    (tmp_path / name).write_text("\n".join(lines))
    assert measures.openapi_lines([tmp_path]) == count
