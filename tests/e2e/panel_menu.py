"""The menu in the head of the panel."""

from __future__ import annotations

from playwright.sync_api import Locator, Page

__all__ = ["choose", "open_menu"]


def open_menu(page: Page) -> Locator:
    """Open the menu of the panel."""
    page.get_by_role("button", name="Menu of the panel").click()
    menu = page.locator(".oh-PanelMenu")
    menu.wait_for()
    return menu


def choose(page: Page, entry: str) -> None:
    """Choose an entry by its label."""
    open_menu(page).locator(".lm-Menu-item", has_text=entry).click()
