"""The page that agents see, in JupyterLab: a person watches it, uses it, and hands it back."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NAME = "browser.ipynb"
HTML = (
    "<title>Form</title><body style='margin:0;font:20px sans-serif'>"
    "<button style='position:absolute;left:100px;top:100px;width:200px;height:50px' "
    "onclick='this.textContent=`pressed`'>press</button>"
    "<input style='position:absolute;left:400px;top:100px;width:300px;height:50px'>"
    "<a href='about:blank' style='position:absolute;left:100px;top:300px'>A link</a>"
)


def test_a_person_takes_over_and_hands_back(lab, open_notebook, write_notebook) -> None:
    write_notebook(NAME, "%load_ext oh_jupyter")
    (lab.root / "form.html").write_text(HTML)
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    page.evaluate("void jupyterapp.commands.execute('oh-jupyter:show-browser')")
    panel = page.locator("#oh-jupyter-browser")
    expect(panel).to_contain_text("No page is open.")
    panel.get_by_label("Address").fill(f"file://{lab.root}/form.html")
    panel.get_by_label("Address").press("Enter")
    expect(panel.locator(".oh-Browser-page img")).to_be_visible()
    expect(panel.get_by_role("button", name="Form", exact=True)).to_be_visible()
    state = panel.get_by_role("status")
    expect(state).to_have_text("You have the browser.")

    box = panel.locator(".oh-Browser-page").bounding_box()
    assert box is not None
    scale = box["width"] / 1280
    page.mouse.click(box["x"] + 200 * scale, box["y"] + 125 * scale)
    page.mouse.click(box["x"] + 500 * scale, box["y"] + 125 * scale)
    page.keyboard.type('Ada "Lovelace"')
    page.keyboard.press("Backspace")
    panel.get_by_role("button", name="Marks").click()
    expect(panel.locator(".oh-Browser-mark")).to_have_count(3)
    take_pictures(page, "browser")

    address = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}/execute_action"
    action = {"action": "browse_interactive", "args": {"browser_actions": "noop(0)"}}
    with ThreadPoolExecutor(1) as agents:
        asked = agents.submit(lab.request, address, {"action": action})
        expect(state).to_contain_text("1 action of an agent waits until you hand it back.")
        panel.get_by_role("button", name="Hand back").click()
        content = asked.result()["content"]
    assert "A person has used the browser since the last step" in content
    assert "button 'pressed'" in content
    assert "value='Ada \"Lovelace'" in content
    expect(panel.get_by_role("button", name="Take over")).to_be_visible()

    panel.get_by_text("1 page seen").click()
    pages = panel.get_by_role("list", name="Pages seen")
    expect(pages.get_by_role("button").locator("img")).to_be_visible()
    take_pictures(page, "pages-seen")
    panel.get_by_text("1 page seen").click()

    # Closed, it opens again, beside our other tabs.
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-changes')")
    page.locator("#oh-jupyter-changes").wait_for()
    tabs = page.locator("#jp-main-dock-panel .lm-DockPanel-tabBar")
    expect(tabs).to_have_count(2)
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-browser')")
    page.locator('.lm-TabBar-tab[data-id="oh-jupyter-browser"] .lm-TabBar-tabCloseIcon').click()
    expect(panel).to_have_count(0)
    page.evaluate("void jupyterapp.commands.execute('oh-jupyter:show-browser')")
    expect(panel.locator(".oh-Browser-page img")).to_be_visible()
    expect(tabs).to_have_count(2)


def test_a_policy_greys_out_disabled_features(open_notebook, write_notebook) -> None:
    policy = '%env OH_JUPYTER_POLICY={"browser": "off", "shell": "off", "plugins": "jupyter"}'
    write_notebook("no-browser.ipynb", f"{policy}\n%load_ext oh_jupyter")
    page: Page = open_notebook("no-browser.ipynb")
    run_all_cells(page)
    restrictions = page.locator("#oh-jupyter-log .oh-Header-restriction")
    expect(restrictions).to_have_text(["browser off", "shell off", "plugins: jupyter"])
    expect(restrictions.nth(1)).to_have_attribute("title", re.compile("has switched off shell"))
    page.evaluate("void jupyterapp.commands.execute('oh-jupyter:show-browser')")
    panel = page.locator("#oh-jupyter-browser")
    expect(panel).to_contain_text("The administrator has switched off browser")
    expect(panel.get_by_label("Address")).to_be_disabled()
    expect(panel.get_by_role("button", name="Take over")).to_be_disabled()
    take_pictures(page, "browser-off")
