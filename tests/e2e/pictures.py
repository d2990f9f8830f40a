"""Screenshots of what the tests come by, for whoever wants to look: ``make pictures``."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page

__all__ = ["take_picture", "take_pictures"]

THEMES = {"dark": "JupyterLab Dark", "light": "JupyterLab Light"}
STILL = """() => document.getAnimations().every(({ effect, playState }) =>
    playState !== "running" || effect.getTiming().iterations === Infinity)"""


def take_picture(page: Page, name: str) -> None:
    """The page as it is."""
    if folder := os.environ.get("OH_JUPYTER_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def take_pictures(page: Page, name: str) -> None:
    """JupyterLab as it is, dark and light."""
    if not os.environ.get("OH_JUPYTER_PICTURES"):
        return
    for suffix, theme in THEMES.items():
        page.evaluate(f"jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
        page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        page.wait_for_function(STILL)
        take_picture(page, f"{name}-{suffix}")
