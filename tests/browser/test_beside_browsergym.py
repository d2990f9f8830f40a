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
WORDS = "the tide was high and nobody had read the table of the harbour that day"
SHOP = """<title>Shop</title><form role=search><input type=search aria-label=Search>
  <button>Find</button></form><main><h1>Results</h1><ul>{}</ul></main>""".format(
    "".join(
        f"<li><a href=/p/{i}><h3>Product {i}</h3></a><p>{WORDS}<button>Add {i}</button></li>"
        for i in range(60)
    )
)
FORM = """<title>Order</title><h1>Order</h1><form><fieldset><legend>Who</legend>
  <label for=n>Name</label><input id=n required placeholder="Your name">
  <label for=e>Email</label><input id=e type=email aria-describedby=hint value=ada@example.org>
  <small id=hint>We write once.</small></fieldset>
  <label for=s>Size</label><select id=s><option>small<option selected>large
  <optgroup label=more><option value=xl>very large</select>
  <input type=checkbox checked aria-label=news><input type=radio name=r aria-label=one>
  <input type=radio name=r checked aria-label=two><textarea aria-label=words>a few</textarea>
  <input type=range value=30 aria-label=share><button disabled>Off</button>
  <input type=submit value=Send></form><details><summary>More</summary>inside</details>
  <progress value=3 max=10 aria-label=done></progress><p style="display:none">hidden</p>"""
THREAD = "<title>Thread</title><h1>A thread</h1>" + "".join(
    f"<article style='margin-left:{i % 5}em'><a href=/u/{i % 7}>user {i % 7}</a>"
    f"<time>{i} h</time><p>{WORDS} <em>really</em> <code>x = {i}</code></p>"
    "<a href=#reply>reply</a></article>"
    for i in range(80)
)
TABLE = """<title>Tides</title><table><caption>Tides</caption>
  <tr><th scope=col>port<th scope=col>high<th scope=col>low</tr>{}</table>""".format(
    "".join(f"<tr><td>port {i}<td>{i * 7 % 11}.{i % 10}<td>1.2</tr>" for i in range(70))
)
FRAMES = """<title>Frames</title><h1>Outside</h1>
  <iframe title=one frameborder=0 srcdoc="<p>in one<button>b</button><input value=x>"></iframe>
  <iframe title=two frameborder=0 srcdoc="<a href=#>in two</a>
    <iframe title=in frameborder=0 srcdoc='<button>deep</button>'></iframe>"></iframe>
  <div id=host></div><script>host.attachShadow({mode: 'open'}).innerHTML =
    '<label for=i>in the shadow</label><input id=i><div id=d></div>'
  host.shadowRoot.getElementById('d').attachShadow({mode: 'open'}).innerHTML =
    '<button>deeper</button>'</script>"""
LOG = "<title>Log</title><pre>" + "".join(f"<span>{i} {WORDS}\n</span>" for i in range(90))
PAGES = {
    "shop": SHOP, "form": FORM, "thread": THREAD, "table": TABLE, "frames": FRAMES, "log": LOG,
}  # fmt: skip
ROLES_BY_ARIA = r"(?:\[\w+\] )?(generic|InlineTextBox|LabelText|rowgroup)\b"
"""BrowserGym writes ARIA attributes into the page, which makes browsers list what says nothing,
such as each paragraph's box; and its function repeats each text with its inline boxes."""


def test_six_pages_read_the_same(site, env: BrowserEnv):
    from browsergym.utils.obs import flatten_axtree_to_str, flatten_dom_to_str

    def tree(seen: dict[str, Any], **options: bool) -> list[str]:
        text = flatten_axtree_to_str(seen["axtree_object"], properties(seen), **options)
        lines = [line.strip() for line in text.splitlines()]
        return [line for line in lines if not re.match(ROLES_BY_ARIA, line)]

    def properties(seen: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = seen["extra_element_properties"]
        return found

    said = {"with_visible": True, "with_clickable": True, "with_som": True}
    with BrowserEnv("browsergym/openended") as peer:
        for name, body in PAGES.items():
            address = site.put(f"/{name}", f"<!doctype html>{body}")
            theirs, ours = (each.step(f'goto("{address}")') for each in (peer, env))
            for options in (said, {"filter_visible_only": True}, {"filter_som_only": True}):
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
