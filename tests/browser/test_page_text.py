"""The text of pages, beside html2text's of the same pages.

Where they differ on purpose: html2text reads an element whose name HTML does not allow (scripts
can make one) as text, and `&nbsp_place_holder;`, its own word, as a space.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from html import escape
from html.parser import HTMLParser
from typing import Any

import html2text
import pytest

from oh_jupyter.browser.worker.page_text import SKIPPED_TAGS, VOID_TAGS, to_text
from oh_jupyter.browser.worker.snapshot import ELEMENT, TEXT, SnapshotDocument, documents_of

Frames = dict[tuple[int, int], SnapshotDocument]
RAW_TEXT_TAGS = {"IFRAME", "NOEMBED", "NOFRAMES", "PLAINTEXT", "TEXTAREA", "XMP"}
"""What newer versions of Python's parser, which is html2text's, see no elements in."""


def html_of(document: SnapshotDocument, frames: Frames) -> Iterator[str]:
    stack: list[int | str] = [0]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif document.kinds[item] == TEXT:
            yield escape(document.value(item), quote=False)
        elif document.kinds[item] != ELEMENT:
            stack.extend(reversed(document.children[item]))
        elif (name := document.names[item]) not in SKIPPED_TAGS and not name.startswith("::"):
            tag = "span" if name in RAW_TEXT_TAGS else name.lower()
            attributes = "".join(
                f' {key}="{escape(value)}"'
                for key, value in document.attributes(item).items()
                if key in ("href", "src", "alt", "title", "start")
            )
            yield f"<{tag}{attributes}>"
            if (id(document), item) in frames:
                yield from html_of(frames[id(document), item], frames)
            if name not in VOID_TAGS:
                stack.append(f"</{tag}>")
            stack.extend(reversed(document.children[item]))


def by_html2text(document: SnapshotDocument, frames: Frames) -> str:
    converter = html2text.HTML2Text()
    converter.ignore_links = False
    converter.images_to_alt = True
    converter.body_width = 0
    return converter.handle("".join(html_of(document, frames)))


class Snapshot(HTMLParser):
    """The snapshot of a page whose elements are all closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.strings: list[str] = []
        self.nodes: dict[str, list[Any]] = {
            name: []
            for name in (
                *("nodeType", "nodeName", "nodeValue", "parentIndex"),
                *("backendNodeId", "attributes"),
            )
        }
        self.open = [-1]
        self.open.append(self.add(9, "#document"))
        self.feed(html)
        self.close()
        self.document = SnapshotDocument({"nodes": self.nodes}, self.strings)

    def add(self, kind: int, name: str, value: str = "", attributes: tuple[str, ...] = ()) -> int:
        row = (kind, name, value, self.open[-1], 0, attributes)
        for key, cell in zip(self.nodes, row, strict=True):
            if isinstance(cell, str):
                cell = self.intern(cell)
            elif isinstance(cell, tuple):
                cell = [self.intern(each) for each in cell]
            self.nodes[key].append(cell)
        return len(self.nodes["nodeType"]) - 1

    def intern(self, text: str) -> int:
        self.strings.append(text)
        return len(self.strings) - 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pairs = tuple(part or "" for pair in attrs for part in pair)
        added = self.add(ELEMENT, tag.upper(), attributes=pairs)
        if tag.upper() not in VOID_TAGS:
            self.open.append(added)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.add(TEXT, "#text", data)


def both(html: str) -> tuple[str, str]:
    document = Snapshot(html).document
    return to_text(document, {}), by_html2text(document, {})


PARTS = {
    "nothing": ["", " ", "<p></p>", "<p> </p>", "<br>", "<div><div></div></div>", "<pre></pre>"],
    "headings": [
        "a<h1>b</h1>c<h2> d </h2>e<h6>f<br>g</h6><h7>h</h7><header>i</header>",
        "<h1></h1><h2><p>a</p></h2><h3><code>b</code> <b>c</b> <i>d</i></h3>",
        "<a href=x><h3> a</h3> b</a><p>c</p><a href=x>d<h3>e</h3>f</a><a><h3>g</h3></a>",
    ],
    "lists": [
        "a<ul><li>b</li><li>c<ol><li>d</li><li>e<ul><li>f</li></ul></li></ol></li></ul>g",
        "<ol start=99><li>a</li><li>b<p>c</p></li></ol><ol start=x><li>d</li></ol>",
        "<ol start=-1><li><p>a</p><p>b</p></li></ol><ul></ul>c<ul><li>d</li></ul>e<li>f</li>",
        "<ul> <li> a </li>\n <li> <b>b</b>: c </li> </ul><menu><li>d</li></menu>",
        "<ul><li>a<pre>b\n c</pre>d</li><li><blockquote>e</blockquote></li></ul>",
        "<dl><dt>a</dt><dd>b</dd><dt><b>c</b></dt><dd><p>d</p></dd><dd> e </dd></dl>f",
    ],
    "links": [
        "a<a href=x>b</a>c <a href='/d e' title='f\"g'> h </a><a href=i title=' '>j</a>.",
        "<a href='#a'>b</a><a>c</a><a href=''>d</a><a href=e></a><a href=f> </a>",
        "<a href='a(b)\\[c]' title='[d]'>[e](f)</a><a href=g><b>h</b>i <i>j</i></a>",
        "<a href=http://a>http://a</a> <a href=http://a>http://a </a> <a href=b>b</a>",
        "<a href=http://a>http://a<b>c</b></a><a href=http://a><p>http://a</p></a>d",
        "<p>a</p><a href=x><p>b</p><div>c</div></a>d<a href=y>e<br>f</a><a href=z><hr></a>",
        "<a href=x>a <a href=y>b</a> c</a><a href=z><ul><li>d</li></ul></a>",
    ],
    "images": [
        "<img><img src=a><img alt=b><img src=c alt='d [e]\nf'>g<a href=h><img src=i alt=j></a>",
        "<a href=http://a><img src=b alt=http://a></a><a href=c><img src=d></a>",
        "<b>a</b><img src=b alt=c> d <img src=e alt='f  g'><i>h</i>",
    ],
    "tables": [
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td>c</td><td>d</td></tr></table>e",
        "a<table> <tr> <td> b </td> <td><p>c</p><p>d</p></td> </tr> <tr></tr> </table><p>f</p>",
        "<table><tr><td>a<table><tr><td>b</td></tr></table>c</td><td>d</td></tr></table>",
        "<table><tr><td><ul><li>a</li></ul></td><td><pre>b\nc</pre></td></tr></table>",
    ],
    "code": [
        "a <code> b*c  1. d </code>e<kbd>f</kbd>+<tt>`</tt><code><b>g</b>h</code>",
        "<pre>\n  a\n\tb <b>c</b>\n\n</pre>d<pre><code>1. e\r\n&lt;f&gt;</code></pre><pre></pre>g",
        "<ol><li>a<pre>b\nc</pre></li></ol><blockquote>d<pre>e\nf</pre>g</blockquote>",
    ],
    "quotes": [
        "a<blockquote>b<p>c</p>d<br>e<blockquote>f<hr>g</blockquote>h</blockquote>i",
        "<blockquote>a<ul><li>b</li></ul><table><tr><td>c</td></tr></table></blockquote>",
        "<q>a</q> b<q> <i>c</i> </q><blockquote></blockquote>d",
    ],
    "emphasis": [
        "<i>a</i>b<b> c </b>d.<b>e</b>.f<del>g</del>(h<u>i</u>)<s>j</s>: <em>k</em>, l",
        "<i>a <b>b</b> c</i>d<b><i> e </i></b>f<b></b> g<i> </i>h<b>i<br>j</b>k<b><p>l</p></b>",
        "a<i>b</i><i>c</i>é<i>d</i>.<i>e</i>\xa0<i>f</i>*<b>g</b><b>*</b><b>h</b>~<s>i</s>",
        "<b>a</b><a href=b>c</a>d<b>e</b><code>f</code>g<b>h</b><span>i</span><b>j</b>&amp;k",
    ],
    "what Markdown reads": [
        "1. a<p>12. b\n- c\n+ d</p><p>- e</p><p>--f</p>-g +h 1.i<p>+ j</p># k > l * m _n_ [o](p)",
        "\\ \\\\ \\* \\_ \\1 a\\b \\[ \\- \\. &amp;lt; &amp;nbsp; &lt;- a &amp;1. b",
    ],
    "white space": [
        " a\n\n b\t\xa0c\u2003d\u200be <span> f</span> <span>g </span> h <p> i </p> j <br> k ",
    ],
    "abbreviations": [
        "<abbr title=b>a</abbr> <abbr title=d><i>c</i> </abbr><p><abbr>e</abbr></p>",
        "<abbr title=b>a</abbr><ul><li><abbr title=c>a</abbr></li></ul><br>",
    ],
    "scripts": [
        "שלום <b>עולם</b>، <i>مرحبا</i> 日本<b>語</b>。😀<i>e\u0301</i> <a href='/ñ'>ñ</a>",
        "1<!-- -->. a<p>- b</p>c <script>d</script> e<style>f</style><template>g</template>",
    ],
    "forms": [
        "<form><label>a</label><input value=b><button> c </button><select><option>d</option>"
        "<option>e</option></select><textarea>f\n g</textarea><fieldset><legend>h</legend>"
        "</fieldset></form><details><summary>i</summary>j</details><article>k</article>l",
    ],
}  # fmt: skip


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_parts_of_pages(parts: list[str]) -> None:
    for html in parts:
        ours, theirs = both(html)
        assert ours == theirs, html


TAGS = [
    *("a", "a", "a", "abbr", "b", "b", "blockquote", "br", "code", "dd", "div", "dl", "dt", "em"),
    *("h1", "h3", "hr", "i", "img", "li", "li", "li", "ol", "ol", "p", "p", "pre", "q", "s"),
    *("span", "span", "strong", "table", "td", "td", "tr", "tr", "u", "ul", "ul"),
]  # fmt: skip
TEXTS = [
    *("a", "word", "two words", " ", "  ", "\n", "\n ", "\t", "\r\n", "\xa0", "\u2003"),
    *("1. ", "12. b", "- ", "-", "--", "+ ", "*", "_", "~", "`", "\\", "\\*", "[", "]", "(", ")"),
    *(".", ",", "!", "#", "&", "<", ">", "é", "שלום", "😀", "\ud800", "http://a", "http://b"),
]  # fmt: skip
VALUES = {
    "a": {"href": ["x", "http://a", "http://b", "#x", "", "a(b)\\c"], "title": ["t", "", "[u]\nv"]},
    "img": {"src": ["i"], "alt": ["", "x", " y ", "http://a", "[z]\n1. "]},
    "ol": {"start": ["3", "-2", " 7 ", "x", ""]},
    "abbr": {"title": ["long", "", "m\nn"]},
}


def some_html(chance: random.Random, tags: list[str], depth: int) -> str:
    parts = []
    for _ in range(chance.randint(0, 4)):
        if not depth or chance.random() < 0.35:
            text = "".join(chance.choices(TEXTS, k=chance.randint(1, 3)))
            parts.append(escape(text, quote=False))
            continue
        tag = chance.choice(tags)
        attributes = "".join(
            f' {name}="{escape(chance.choice(values))}"'
            for name, values in VALUES.get(tag, {}).items()
            if chance.random() < 0.8
        )
        parts.append(f"<{tag}{attributes}>")
        if tag.upper() not in VOID_TAGS:
            parts.append(f"{some_html(chance, tags, depth - 1)}</{tag}>")
    return "".join(parts)


def test_a_thousand_pages_made_by_chance() -> None:
    for seed in range(1000):
        chance = random.Random(seed)
        tags = TAGS if seed % 2 else chance.sample(TAGS, 6)
        html = some_html(chance, tags, chance.randint(1, 6))
        ours, theirs = both(html)
        assert ours == theirs, (seed, html)


@pytest.mark.parametrize("tag", ["div", "b", "a href=x", "blockquote", "span"])
def test_five_thousand_levels(tag: str) -> None:
    ours, theirs = both(f"<{tag}>" * 5000 + "bottom" + f"</{tag.split()[0]}>" * 5000)
    assert "bottom" in ours
    assert ours == theirs


BUILT_BY_A_SCRIPT = """<p id=p>1</p><ul id=u></ul><div id=host>slotted</div><script>
  p.append('. ', 'a', document.createComment('x'), 'b \\ud800 \\ud83d\\ude00')
  for (let i = 0; i < 5; i++) u.appendChild(document.createElement('li')).append('- ', i)
  host.attachShadow({mode: 'closed'}).innerHTML = '<h2>in the <slot></slot></h2>'</script>
  <style>p::before { content: 'before' }</style><noscript>no</noscript><svg><title>t</title>
  <a href=q><text>svg</text></a></svg><video controls></video><p hidden>hidden
  <iframe srcdoc="<ul><li>in<iframe srcdoc='<pre>a\n b</pre>'></iframe></ul>"></iframe>after"""


@pytest.mark.thorough
@pytest.mark.browser
def test_pages_of_the_browser(pages: dict[str, str], show: Callable[..., dict[str, Any]]) -> None:
    every_part = "".join(html for parts in PARTS.values() for html in parts)
    for body in (*pages.values(), every_part, BUILT_BY_A_SCRIPT):
        seen = show(body)
        documents = documents_of(seen["dom_object"])
        frames = {
            (id(document), index): documents[number]
            for document in documents
            for index, number in document.content_documents.items()
        }
        assert seen["text_content"] == by_html2text(documents[0], frames)
    assert "## in the" in seen["text_content"]
    assert "  * in\n" in seen["text_content"]
