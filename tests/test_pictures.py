"""Pictures in the pages: each is shown, and taken by a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
E2E = ROOT / "tests" / "e2e"
BY_HAND = {"smolagents", "vscode"}
"""Pictures of programs that the tests cannot install."""


@pytest.fixture(scope="module")
def documented() -> dict[str, str]:
    sys.path.insert(0, str(E2E))
    try:
        from pictures import DOCUMENTED
    finally:
        sys.path.remove(str(E2E))
    return {name: picture for name, (picture, _) in DOCUMENTED.items()}


def test_each_picture_is_taken_by_a_test(documented: dict[str, str]) -> None:
    pictures = {path.stem for path in (ROOT / "docs").glob("*.png")}
    assert pictures == {*documented.values(), *BY_HAND}
    tests = "".join(path.read_text(encoding="utf-8") for path in E2E.glob("test_*.py"))
    for name in documented:
        taken = name.removesuffix("-light")
        assert f'"{taken}")' in tests, f"no test takes the picture {name}"


def test_each_picture_is_shown_by_a_page() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for path in (ROOT / "docs").glob("*.png"):
        assert f"{path.name})" in text
