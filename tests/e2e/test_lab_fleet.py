"""A fleet is watched, decided on and stopped in one place, whatever becomes of its kernels."""

from __future__ import annotations

from typing import Any

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect

from conftest import TOKEN
from oh_jupyter.client import Fleet, RuntimeClient

COMMAND = "sudo -n true"
FLEET = "Fleet sweep"


def refresh(page: Page) -> None:
    """JupyterLab asks for sessions every ten seconds, or when its button is clicked."""
    page.evaluate("jupyterapp.serviceManager.sessions.refreshRunning()")


@pytest.mark.thorough
def test_all_kernels_of_a_fleet_are_in_the_panel(lab, open_notebook, write_notebook, agents):
    write_notebook("fleet.ipynb", "1")
    page = open_notebook("fleet.ipynb")
    panel = page.locator("#oh-jupyter-log")
    source = panel.get_by_label("Show the events of")
    expect(source).to_have_count(0)
    lost: list[str | None] = []

    def work(runtime: RuntimeClient, command: str) -> Any:
        if command == "lose" and not lost:
            lost.append(runtime.kernel_id)
            lab.request(f"api/kernels/{runtime.kernel_id}", method="DELETE")
        done = runtime.run("echo in another" if command == "lose" else command, blocking=True)
        return done.exit_code

    with Fleet(lab.url, TOKEN, 2, name="sweep") as kernels:
        refresh(page)
        expect(source.locator("option")).to_have_text(["Current notebook", f"{FLEET} (2 kernels)"])
        source.select_option(FLEET)
        done = agents.submit(kernels.map, work, [COMMAND, "echo started; sleep 1000"])
        asks = panel.locator(".oh-Card", has_text=COMMAND)
        sleeps = panel.locator(".oh-Card", has_text="sleep 1000")
        numbers = [card.locator(".oh-Card-kernel") for card in (asks, sleeps)]
        for number in numbers:
            expect(number).to_contain_text("kernel ")
        assert {number.inner_text() for number in numbers} == {"kernel 1", "kernel 2"}
        expect(sleeps.locator(".oh-Live")).to_contain_text("started")
        take_pictures(page, "fleet")
        asks.get_by_role("button", name=f"Approve {COMMAND}").click()
        expect(asks).not_to_contain_text("waits for you")
        sleeps.get_by_role("button", name="Stop").click()
        results = done.result(60)
        assert [result.error for result in results] == [None, None]
        assert results[1].value == 130

        (result,) = agents.submit(kernels.map, work, ["lose"]).result(60)
        assert (result.error, result.attempts) == (None, 2)
        refresh(page)
        replaced = panel.locator(".oh-Card", has_text="echo in another")
        expect(replaced.locator(".oh-Card-kernel")).to_contain_text("kernel ")
        expect(asks).to_have_count(1)
    refresh(page)
    expect(source.locator("option")).to_have_text(["Current notebook", f"{FLEET} (0 kernels)"])
    expect(replaced).to_have_count(1)
    source.select_option("")
    expect(source).to_have_count(0)
    expect(panel).to_contain_text("This kernel has no runtime.")
