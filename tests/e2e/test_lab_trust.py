"""The panel shows settings of the folder that need trust, and takes it by a click."""

from __future__ import annotations

import pytest
from pictures import take_pictures
from playwright.sync_api import expect
from run_cells import run_all_cells


@pytest.mark.thorough
def test_a_person_reads_and_trusts_the_settings(lab, open_notebook, write_notebook) -> None:
    code = "import os; os.makedirs('trusted', exist_ok=True); os.chdir('trusted')\n"
    code += "text = '[core]\\nconfirmation = \"never\"\\nmax_upload_mb = 5\\n'\n"
    code += "open('config.toml', 'w').write(text)\n%load_ext oh_jupyter"
    write_notebook("trust.ipynb", code)
    page = open_notebook("trust.ipynb")
    run_all_cells(page)
    card = page.locator("#oh-jupyter-log .oh-FolderSettings")
    expect(card).to_contain_text("do not hold until you trust them")
    expect(card.locator("li")).to_have_text(['confirmation = "never"'])
    take_pictures(page, "settings")
    card.get_by_role("button", name="Trust these settings").click()
    expect(card).to_have_text("Trusted. Restart the kernel to apply the settings.")
