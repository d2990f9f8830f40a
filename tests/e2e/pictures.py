"""Screenshots that tests take with ``make pictures``, which also replaces those of the pages."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page

__all__ = ["DOCUMENTED", "take_picture", "take_pictures"]

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTED = {
    "agent-light": ("panel", "#oh-jupyter-log"),
    "mcp-app-approval": ("mcp-app", "body"),
    "persona-light": ("persona", "body"),
    "scene-review-light": ("review", ".jp-NotebookPanel:visible"),
    "scene-preview-light": ("rewind", ".jp-Dialog-content"),
    "tour": ("tour", "body"),
}
"""Picture of a page in ``docs``, and the part of the window that it shows, by screenshot."""

THEMES = {"dark": "JupyterLab Dark", "light": "JupyterLab Light"}
STILL = """() => document.getAnimations().every(({ effect, playState }) =>
    playState !== "running" || effect.getTiming().iterations === Infinity)"""


def take_picture(page: Page, name: str) -> None:
    """Save the page as it is, if pictures are wanted."""
    if folder := os.environ.get("OH_JUPYTER_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")
        if name in DOCUMENTED:
            picture, part = DOCUMENTED[name]
            page.locator(part).first.screenshot(path=DOCS / f"{picture}.png")


def take_pictures(page: Page, name: str) -> None:
    """Save JupyterLab as it is, dark and light, if pictures are wanted."""
    if not os.environ.get("OH_JUPYTER_PICTURES"):
        return
    for suffix, theme in THEMES.items():
        page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
        page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        page.wait_for_function(STILL)
        take_picture(page, f"{name}-{suffix}")
