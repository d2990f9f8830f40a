"""The same pages by BrowserGym's engine and by ours, in the words of BrowserGym's own functions."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from oh_jupyter.browser import BrowserEnv

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("browsergym") is None, reason="needs the extra eval"
    ),
    pytest.mark.slow,
]
ROLES_BY_ARIA = r"(?:\[\w+\] )?(generic|InlineTextBox|LabelText|rowgroup)\b"
"""BrowserGym writes ARIA attributes into the page, which makes browsers list what says nothing,
such as each paragraph's box; and its function repeats each text with its inline boxes."""


def test_six_pages_read_the_same(site, env: BrowserEnv, pages: dict[str, str]):
    from browsergym.utils.obs import flatten_axtree_to_str, flatten_dom_to_str

    def tree(seen: dict[str, Any], **options: bool) -> list[str]:
        text = flatten_axtree_to_str(seen["axtree_object"], properties(seen), **options)
        lines = [line.strip() for line in text.splitlines()]
        return [line for line in lines if not re.match(ROLES_BY_ARIA, line)]

    def properties(seen: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = seen["extra_element_properties"]
        return result

    annotations = {"with_visible": True, "with_clickable": True, "with_som": True}
    with BrowserEnv("browsergym/openended") as peer:
        for name, body in pages.items():
            address = site.put(f"/{name}", f"<!doctype html>{body}")
            theirs, ours = (each.step(f'goto("{address}")') for each in (peer, env))
            for options in (annotations, {"filter_visible_only": True}, {"filter_som_only": True}):
                assert tree(ours, **options) == tree(theirs, **options), (name, options)
                mine, other = (
                    flatten_dom_to_str(seen["dom_object"], properties(seen), **options)
                    for seen in (ours, theirs)
                )
                assert mine == other, name
            for key in ("url", "open_pages_titles", "focused_element_bid", "text_content"):
                assert ours[key] == theirs[key], (name, key)
            assert properties(ours).keys() == properties(theirs).keys()
            for bid, measured in properties(theirs).items():
                expected = {**measured, "bbox": pytest.approx(measured["bbox"], abs=0.01)}
                assert properties(ours)[bid] == expected, (name, bid)
