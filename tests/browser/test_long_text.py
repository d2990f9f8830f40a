"""Pages with a very long text, beside the tree that Chromium itself returns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import async_playwright

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.worker.devtools import full_tree
from oh_jupyter.browser.worker.long_text import LONG_TEXT_CHARS, long_texts, trees_around

LONG = "The tide was high  and nobody had read the table. " * (LONG_TEXT_CHARS // 49)
LINES = "The tide was high  and nobody had read the table.\n" * (LONG_TEXT_CHARS // 49)
WIDE = "<button style='width: 100%'>wide</button>"
PAGES = {
    "block": f"<h1>Tides</h1><p>{LONG}</p><p>after <a href=#>a link</a></p>",
    "lines": f"<title>Log</title><button>before</button><pre>{LINES}</pre><button>after</button>",
    "beside elements": f"<p>short<b>bold</b>{LONG}<i>in <u>line</u></i>{LONG}end</p>",
    "list": f"<ul><li>one</li><li>{LONG}<ul><li>below</li></ul></li></ul>",
    "table": f"<table><tr><th>name</th><td>{LONG}</td></tr><tr><td>last</td></tr></table>",
    "generated": f"<style>p::before {{ content: 'note: ' }}</style><p>{LONG}</p>",
    "upper case": f"<p style='text-transform: uppercase'>{LONG}</p>",
    "named by content": f"<button>{LONG}</button><h2>{LONG}</h2>",
    "field": f"<textarea aria-label=words>{LINES}</textarea><input value=x>",
    "hidden": f"<p hidden>{LONG}</p><p aria-hidden=true>{LONG}</p><p>shown</p>",
    "script": f"<script type=application/json>{LONG}</script><p>shown</p>",
    "shadow": f"""<div id=host><b>slotted</b></div><p>after</p><script>
      host.attachShadow({{mode: "open"}}).innerHTML = `<p>${{`{LONG}`}}</p><slot></slot>`
      </script>""",
    # As wide as their line, buttons begin a new one with each font.
    "between lines": f"<p>{WIDE} {LONG}{WIDE}<b>bold </b>{WIDE} {LONG}<b> {WIDE} </b></p>",
    "upper case lines": f"<p style='text-transform: uppercase'>{WIDE} {LONG}{WIDE}",
    "frames": f"<iframe srcdoc='<p>{LONG}<button>in</button>'></iframe><p>out",
}


@pytest.fixture(scope="module")
def trees() -> dict[str, tuple[list[Any], list[Any]]]:
    """The trees of each page's frames: Chromium's, and those around long texts."""

    async def fetch() -> dict[str, tuple[list[Any], list[Any]]]:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_executable())
            page = await browser.new_page()
            session = await page.context.new_cdp_session(page)
            trees = {}
            for name, html in PAGES.items():
                await page.set_content(html)
                trees[name] = await both(session)
            await browser.close()
        return trees

    return asyncio.run(fetch())


async def both(session: Any) -> tuple[list[Any], list[Any]]:
    snapshot = await session.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
    frames = [snapshot["strings"][document["frameId"]] for document in snapshot["documents"]]
    await session.send("Accessibility.enable")
    whole = [outline(await full_tree(session, frame)) for frame in frames]
    await session.send("Accessibility.disable")
    around = trees_around(session, frames, long_texts(snapshot))
    return whole, [outline(await around[frame]) for frame in frames]


def outline(nodes: list[dict[str, Any]]) -> Any:
    """Return a tree's roles, names and values, without the lines of texts."""
    by_id = {node["nodeId"]: node for node in nodes}

    def subtree(node: dict[str, Any]) -> tuple[Any, ...]:
        name, value = (node.get(key, {}).get("value") for key in ("name", "value"))
        children = [by_id[each] for each in node.get("childIds", ()) if each in by_id]
        shown = [subtree(each) for each in children if each["role"]["value"] != "InlineTextBox"]
        return node["role"]["value"], name, value, [each for each in shown if any(each[1:])]

    return subtree(nodes[0])


@pytest.mark.parametrize("name", PAGES)
def test_the_tree_is_the_one_of_chromium(trees: dict[str, tuple[list[Any], list[Any]]], name: str):
    whole, partial = trees[name]
    assert partial == whole


def texts_of(observation: dict[str, Any]) -> list[dict[str, Any]]:
    nodes = observation["axtree_object"]["nodes"]
    return [node for node in nodes if len(node.get("name", {}).get("value", "")) > LONG_TEXT_CHARS]


def test_a_long_text_is_observed_without_its_lines(env: BrowserEnv, site):
    url = site.put("/", PAGES["lines"])
    (text,) = texts_of(env.step(f'goto("{url}")'))
    assert text["name"]["value"] == LINES
    assert text["nodeId"].startswith("text-"), "Chromium was asked for the lines"


def test_a_long_text_that_a_script_adds_is_observed_without_its_lines(env: BrowserEnv, site):
    script = f"document.querySelector('pre').textContent = `{LINES}`"
    page = f"<button>Load</button><pre></pre><script>load = () => {{ {script} }}</script>"
    url = site.put("/", page.replace("<button", "<button onclick='load()'"))
    seen = env.step(f'goto("{url}")')
    assert texts_of(seen) == []
    button = next(
        node["browsergym_id"]
        for node in seen["axtree_object"]["nodes"]
        if node["role"]["value"] == "button"
    )
    (text,) = texts_of(env.step(f'click("{button}")'))
    assert text["name"]["value"] == LINES
    assert text["nodeId"].startswith("text-"), "Chromium was asked for the lines"
