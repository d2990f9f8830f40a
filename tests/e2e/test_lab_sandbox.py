"""A card says whether its command ran in a sandbox."""

from __future__ import annotations

import pytest
from pictures import take_pictures
from playwright.sync_api import expect
from run_cells import run_all_cells

from oh_jupyter.sandbox import find_engine

SET_UP = "get_ipython().config.OhJupyter.sandbox = 'auto'\n%load_ext oh_jupyter"


@pytest.mark.thorough
@pytest.mark.skipif(find_engine().program is None, reason="needs bubblewrap, and user namespaces")
def test_a_card_is_marked(lab, open_notebook, write_notebook) -> None:
    write_notebook("sandbox.ipynb", SET_UP)
    page = open_notebook("sandbox.ipynb")
    run_all_cells(page)
    address = f"oh_jupyter/kernels/{lab.kernel_of('sandbox.ipynb')}/execute_action"
    for command in ("echo boxed", "curl -sS http://example.org"):
        lab.request(address, {"action": {"action": "run", "args": {"command": command}}})
    cards = page.locator("#oh-jupyter-log .oh-Card", has_text="echo boxed")
    expect(cards.locator(".oh-Card-sandbox")).to_have_text("sandboxed")
    take_pictures(page, "sandboxed")
