"""Views without content offer the next step."""

from __future__ import annotations

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.timeout(180), pytest.mark.thorough]


@pytest.fixture
def empty_lab(lab, page: Page) -> Page:
    """Open a JupyterLab without kernels."""
    for session in lab.request("api/sessions"):
        lab.request(f"api/sessions/{session['id']}", method="DELETE")
    page.goto(f"{lab.url}/lab?reset&token=end-to-end")
    page.wait_for_function("window.jupyterapp?.restored.then(() => true)")
    return page


def test_empty_views_explain_the_next_step(empty_lab: Page) -> None:
    page = empty_lab
    page.evaluate("jupyterapp.shell.activateById('jp-running-sessions')")
    running = page.locator("#jp-running-sessions")
    new = running.get_by_role("button", name="Create a notebook whose kernel you share")
    expect(new).to_be_visible()
    take_pictures(page, "empty-running")
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-store')")
    store = page.get_by_role("region", name="Files of the store")
    expect(store).to_contain_text("No kernel has a runtime, so there is no store yet.")
    take_pictures(page, "empty-store")
    store.locator(".oh-StoreEmpty button").click()
    expect(page.locator(".oh-Header")).to_contain_text("Untitled")
    expect(page.locator(".oh-Header-sandbox")).to_have_text("no sandbox")

    page.evaluate("jupyterapp.shell.activateById('jp-running-sessions')")
    expect(page.locator('[data-context="oh-jupyter-runtime"]')).to_have_count(1)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-deliveries')")
    deliveries = page.locator("#oh-jupyter-deliveries")
    expect(deliveries).to_contain_text("This store has no webhook.")
    expect(deliveries.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    take_pictures(page, "empty-deliveries")


def test_tabs_have_their_own_icons_and_open_once(empty_lab: Page) -> None:
    page = empty_lab
    for name in ("changes", "browser", "deliveries"):
        for _ in range(2):
            page.evaluate(f"void jupyterapp.commands.execute('oh-jupyter:show-{name}')")
        tab = page.locator(f'.lm-DockPanel-tabBar [data-id="oh-jupyter-{name}"]')
        expect(tab).to_have_count(1)
        expect(tab.locator(f'[data-icon="oh-jupyter:{name}"]')).to_have_count(1)
    store = page.locator('.jp-SideBar [data-id="oh-jupyter-store"] [data-icon]')
    assert store.get_attribute("data-icon") == "oh-jupyter:store"
