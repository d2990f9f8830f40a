"""Outputs that a notebook has kept: trusted and not, light and dark, exported, on bare pages."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from nbconvert import HTMLExporter
from pictures import take_picture, take_pictures
from playwright.sync_api import Page, expect

from oh_jupyter.editor.messages import DRY_RUN
from oh_jupyter.events import (
    CmdOutputMetadata,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
)
from oh_jupyter.kernel.display.observations import observation_html, picture_in_cell
from oh_jupyter.kernel.display.table import Table

pytestmark = pytest.mark.thorough

MONEY = "one costs $5 and two cost $6"
DIFF = f"--- /w/f.sql\n+++ /w/f.sql\n@@ -2,2 +2,3 @@\n--- {MONEY}\n-old\n++++i\n+{MONEY}\n+\n"
CONTEXT_DIFF = (
    "--- /w/f.sql\n+++ /w/f.sql\n@@ -1,5 +1,6 @@\n select 1\n"
    f"--- {MONEY}\n-old\n++++i\n+{MONEY}\n+\n select 2\n select 3"
)
SAID = (
    "The file /w/f.sql has been edited. Here's the result of running `cat -n` on a snippet of "
    f"/w/f.sql:\n     1\tselect 1\n     2\t+++i\n     3\t{MONEY}\n     4\t\n     5\tselect 2\n"
    "     6\tselect 3\n     7\t\nReview the changes.\nNOTE: $5 and $6"
)
TABLE = Table(("what", "path"), tuple(("copied", f"$a/{n}_$b") for n in range(4000)), {}, "4,000")


def edited(*, dry_run: bool = False) -> str:
    observation = FileEditObservation(
        DRY_RUN * dry_run + SAID,
        path="/w/f.sql",
        diff=DIFF.rstrip("\n"),
        notes=["NOTE: $5 and $6"],
        dry_run=dry_run,
    )
    observation.context_diff = CONTEXT_DIFF
    return observation_html(observation)


def command(exit_code: int) -> str:
    return observation_html(
        CmdOutputObservation(
            f"{MONEY}\n  column  column",
            command=f"for n in 1 2; do\n  echo '{MONEY}'\ndone",
            metadata=CmdOutputMetadata(exit_code=exit_code),
        )
    )


WHITE_PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="
)
PARTS = {
    # Shows that mathematics is typeset in this page at all.
    "control": "<p>$x + y$</p>",
    "edit": edited(),
    "dry": edited(dry_run=True),
    "ok": command(0),
    "failed": command(3),
    "error": observation_html(ErrorObservation(f"ERROR: {MONEY}")),
    "table": TABLE._repr_html_(),
}


def notebook() -> dict[str, Any]:
    cells = [
        {
            "cell_type": "code", "id": name, "metadata": {}, "execution_count": 1,
            "source": f"# {name}",
            "outputs": [{
                "output_type": "execute_result", "execution_count": 1, "metadata": {},
                "data": {"text/html": html, "text/plain": name},
            }],
        }
        for name, html in PARTS.items()
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel}, "cells": cells,
    }  # fmt: skip


def computed(page: Page, selector: str, style: str) -> str:
    """Return the computed style of the first matching element."""
    return str(page.locator(selector).first.evaluate("(e, s) => getComputedStyle(e)[s]", style))


def check_looks(page: Page, box: str) -> None:
    """Colours, fonts and lines of a kept output."""
    added, removed = f"{box} ins.oh-mod-added", f"{box} del.oh-mod-removed"
    colours = {computed(page, part, "backgroundColor") for part in (added, removed, box)}
    assert len(colours) == 3, colours
    for part in (added, removed):
        assert computed(page, part, "textDecorationLine") == "none"
        assert "monospace" in computed(page, part, "fontFamily")
        assert computed(page, part, "display") == "block"
    assert page.locator(added).first.inner_text().rstrip("\n") == f"++++i\n+{MONEY}\n+"
    assert page.locator(removed).first.inner_text().rstrip("\n") == f"--- {MONEY}\n-old"
    # Three lines of text are three lines high.
    height = "e => e.getBoundingClientRect().height"
    lines = page.locator(added).first.evaluate(height) / page.locator(removed).first.evaluate(
        height
    )
    assert lines == pytest.approx(3 / 2, rel=0.02)
    edges = {
        computed(page, f".oh-Output.oh-mod-{tone}", "borderLeftColor")
        for tone in ("ok", "error", "dry-run")
    }
    assert len(edges) == 3
    assert computed(page, ".oh-Output.oh-mod-dry-run", "borderLeftStyle") == "dashed"
    assert computed(page, ".oh-Output-text", "whiteSpace").startswith("pre-wrap")
    assert "monospace" in computed(page, ".oh-Output-table td code", "fontFamily")
    assert computed(page, ".oh-Output-table td", "textAlign") == "left"
    error = ".oh-Output-text.oh-mod-error"
    assert computed(page, error, "backgroundColor") != computed(
        page, ".oh-Output-text", "backgroundColor"
    )


def check_no_mathematics(page: Page) -> None:
    page.locator("mjx-container").first.wait_for()
    assert page.locator(".oh-Output mjx-container, .oh-Output-table mjx-container").count() == 0
    expect(page.locator(".oh-Output-text", has_text=MONEY).first).to_be_visible()
    expect(page.locator(".oh-Output-table")).to_contain_text("$a/0_$b")


@pytest.fixture
def kept(lab, open_notebook):
    (lab.root / "kept.ipynb").write_text(json.dumps(notebook()))
    page = open_notebook("kept.ipynb")
    page.locator(".oh-Output-table").wait_for()
    yield page
    page.evaluate(
        "jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})"
    )


TRUSTED = "jupyterapp.shell.currentWidget.content.widgets.every(cell => cell.model.trusted)"
TRUST = """() => {
    for (const cell of jupyterapp.shell.currentWidget.content.widgets) cell.model.trusted = true;
}"""
WITHOUT_OUR_STYLES = """() => {
    for (const sheet of document.styleSheets)
        for (let n = sheet.cssRules.length - 1; n >= 0; n--)
            if (/\\.oh-(Output|Diff)/.test(sheet.cssRules[n].selectorText ?? ''))
                sheet.deleteRule(n);
}"""


@pytest.mark.parametrize(
    ("theme", "trusted"),
    [
        pytest.param("Light", False, id="Light-untrusted"),
        pytest.param("Dark", True, id="Dark-trusted", marks=pytest.mark.thorough),
        pytest.param("Light", True, id="Light-trusted", marks=pytest.mark.slow),
        pytest.param("Dark", False, id="Dark-untrusted", marks=pytest.mark.slow),
    ],
)
def test_kept_outputs_look_as_they_did(kept, theme: str, trusted: bool) -> None:
    page = kept
    assert page.evaluate(TRUSTED) is False
    if trusted:
        page.evaluate(TRUST)
        page.locator(".oh-Output-table").wait_for()
        assert page.evaluate(TRUSTED) is True
    page.evaluate(
        "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})",
        f"JupyterLab {theme}",
    )
    page.locator(f"[data-jp-theme-name='JupyterLab {theme}']").wait_for(state="attached")
    check_no_mathematics(page)
    check_looks(page, ".oh-Output")
    # The theme's own colour, which no literal is.
    colour = page.evaluate(
        "getComputedStyle(document.body).getPropertyValue('--jp-error-color1').trim()"
    )
    page.evaluate("c => { document.body.style.outlineColor = c }", colour)
    assert computed(page, ".oh-Output.oh-mod-error", "borderLeftColor") == page.evaluate(
        "getComputedStyle(document.body).outlineColor"
    )
    take_picture(page, f"lab-{theme}-{'trusted' if trusted else 'untrusted'}")


@pytest.mark.thorough
def test_the_sanitizer_leaves_markup_needed_without_the_lab_extension(kept) -> None:
    page = kept
    before = computed(page, ".oh-Output.oh-mod-error", "borderLeftColor")
    page.evaluate(WITHOUT_OUR_STYLES)
    assert computed(page, ".oh-Output.oh-mod-error", "borderLeftColor") != before
    check_looks(page, ".oh-Output")
    take_picture(page, "lab-without-extension")


@pytest.mark.thorough
def test_the_picture_of_a_page_is_framed_and_opens_large(lab, write_notebook, open_notebook):
    picture, metadata = picture_in_cell(WHITE_PNG, 300, "The page, with marks")._repr_mimebundle_()
    output = {"output_type": "display_data", "data": picture, "metadata": metadata}
    plain = {"output_type": "display_data", "data": picture, "metadata": {}}
    cell = {
        "cell_type": "code", "id": "picture", "metadata": {}, "execution_count": 1,
        "source": "", "outputs": [output, plain],
    }  # fmt: skip
    write_notebook("picture.ipynb", cell)
    page: Page = open_notebook("picture.ipynb")
    framed = page.get_by_role("button", name="The page, with marks")
    expect(framed).to_have_css("border-top-width", "1px")
    expect(page.locator(".jp-OutputArea-output img")).to_have_count(2)
    expect(page.locator(".oh-Picture")).to_have_count(1)
    take_pictures(page, "picture")
    framed.focus()
    page.keyboard.press("Enter")
    large = page.get_by_role("dialog", name="The page, with marks").locator("img")
    expect(large).to_be_visible()
    take_pictures(page, "picture-large")
    page.keyboard.press("Escape")
    expect(large).to_have_count(0)
    expect(framed).to_be_focused()
    framed.click()
    large.click()
    expect(large).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_exported_as_html(page, tmp_path: Path, theme: str) -> None:
    from nbformat import from_dict

    html, _ = HTMLExporter(theme=theme).from_notebook_node(from_dict(notebook()))
    (tmp_path / "kept.html").write_text(html)
    page.route(re.compile("^https?:"), lambda route: route.abort())
    page.goto((tmp_path / "kept.html").as_uri())
    check_looks(page, ".oh-Output")
    # nbconvert brings MathJax 2, which knows this class and leaves these elements alone.
    assert page.locator(".oh-Output:not(.tex2jax_ignore)").count() == 0
    take_picture(page, f"nbconvert-{theme}")


def test_where_neither_styles_nor_classes_survive(page) -> None:
    bare = "<hr>".join(re.sub(r' (class|style)="[^"]*"', "", html) for html in PARTS.values())
    page.set_content(f"<!doctype html><body>{bare}")
    shown = page.locator("pre", has_text="select 1").first.inner_text()
    assert shown.rstrip("\n").split("\n") == [
        "@@ -1,5 +1,6 @@", " select 1", f"--- {MONEY}", "-old", "++++i", f"+{MONEY}", "+",
        " select 2", " select 3",
    ]  # fmt: skip
    assert page.locator("del").first.inner_text() == f"--- {MONEY}\n-old\n"
    assert "monospace" in computed(page, "td code", "fontFamily")
    take_picture(page, "bare")
