"""Conversion of a DevTools DOM snapshot to Markdown, in the format of html2text.

Agents are used to that format, so line breaks, spaces and backslashes follow html2text.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field

from oh_jupyter.browser.worker.snapshot import ELEMENT, TEXT, SnapshotDocument

SKIPPED_TAGS = frozenset({"SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "TITLE"})
VOID_TAGS = frozenset({"AREA", "BASE", "BR", "COL", "EMBED", "HR", "IMG", "INPUT", "LINK", "META"})
ATTRIBUTED_TAGS = frozenset({"A", "ABBR", "IMG", "OL"})
HEADINGS = {f"H{level}": "#" * level + " " for level in range(1, 10)}
EMPHASIS = {
    **dict.fromkeys(("B", "STRONG"), "**"),
    **dict.fromkeys(("EM", "I", "U"), "_"),
    **dict.fromkeys(("DEL", "S", "STRIKE"), "~~"),
}
BREAKS_BEFORE = {"BLOCKQUOTE": 2, "DIV": 2, "DL": 2, "HR": 2, "LI": 1, "P": 2, "PRE": 2}
BREAKS_AFTER = {
    "BLOCKQUOTE": 2, "DD": 1, "DIV": 2, "DT": 1, "HR": 2, "LI": 1, "P": 2, "PRE": 2, "TR": 1,
}  # fmt: skip
CODE_INDENT = " " * 4
ITEM_INDENT, NUMBERED_INDENT = 2, 3
UNDERSCORE_MAY_FOLLOW = frozenset(string.whitespace + string.punctuation)
MAY_FOLLOW_EMPHASIS = re.compile(r"[][(){}!.?\s]")
TAGS_CLOSE_TO_EMPHASIS = frozenset({"A", "CODE", "PRE", *HEADINGS})
TAGS_IN_AUTOMATIC_LINKS = frozenset({"P", "DIV", "DL", "DT", "IMG"})
HTML_SYNTAX = re.compile(r"([&<>])")
ABSOLUTE_URL = re.compile(r"[a-zA-Z+]+://")
LINK_SYNTAX = re.compile(r"[\\\[\]()]")
ESCAPING_BACKSLASH = re.compile(r"\\(?=[]\\`*_{}[()#+.!-])")
ITEM_SYNTAX = re.compile(r"^(\s*\d+(?=\.)|\s*(?=[+-]))(\.(?=\s)|\+(?=\s)|-(?=[\s-]))", re.MULTILINE)


@dataclass
class Link:
    """An open link; ``is_empty`` until the writer has written some of its content."""

    target: str
    title: str
    is_empty: bool = True


@dataclass
class ListLevel:
    """An open list: the indent of its items and, if it is ordered, the next item's number."""

    indent: int
    number: int | None


@dataclass
class MarkdownWriter:
    """Markdown output of a page, and the state that the next element or text depends on."""

    parts: list[str] = field(default_factory=list)
    line_breaks_due: int = 0
    line_end: str = ""
    space_is_due: bool = False
    at_item_start: bool = True
    at_line_start: bool = False
    quotes: int = 0
    code: bool = False
    preformatted: bool = False
    preformatted_begins: bool = False
    lists: list[ListLevel] = field(default_factory=list)
    list_ended: bool = False
    item_indent: int = 0
    links: list[Link | None] = field(default_factory=list)
    unopened_link: Link | None = None
    tag: str = ""
    last_character: str = ""
    emphasis_begins: bool = False
    emphasis_ended: bool = False
    in_row: bool = False
    in_first_row: bool = False
    cells: int = 0
    abbreviations: dict[str, str] = field(default_factory=dict)
    short_form: list[str] = field(default_factory=list)
    long_form: str | None = None

    def write(self, text: str, *, folded: bool = False, opens_quote: bool = False) -> None:
        """Write a text after pending breaks and space; ``folded`` collapses white space as HTML."""
        if self.long_form is not None:
            self.short_form.append(text)
        if folded and not self.preformatted:
            self.space_is_due = self.space_is_due or text[:1].isspace()
            words = " ".join(text.split())
            text = f"{words} " if words and text[-1].isspace() else words
        if not text:
            return
        begins, self.preformatted_begins = self.preformatted_begins, False
        prefix = ">" * self.quotes + (" " if self.quotes and (begins or not opens_quote) else "")
        if begins and not self.lists and not text.startswith(("\n", "\r\n")):
            text = f"\n{text}"
        if self.preformatted:
            prefix += CODE_INDENT + " " * (self.item_indent if self.lists else 0)
            if begins and self.lists:
                text = text.lstrip(f"\n{prefix}")
            text = text.replace("\n", f"\n{prefix}")
        if self.line_breaks_due and not self.at_item_start:
            self.parts.append(f"{self.line_end}\n{prefix}" * self.line_breaks_due)
            self.line_end = ""
        elif self.space_is_due and not self.at_item_start and not self.at_line_start:
            self.parts.append(" ")
        self.parts.append(text)
        self.line_breaks_due = 0
        self.space_is_due = self.at_item_start = False
        self.at_line_start = text.endswith("\n")

    def break_lines(self, count: int) -> None:
        """Require at least ``count`` line breaks before the next text."""
        if count > self.line_breaks_due:
            self.line_breaks_due = count

    def text(self, text: str) -> None:
        """Write text of the page; like html2text, process each of ``&<>`` separately."""
        for piece in HTML_SYNTAX.split(text):
            if piece:
                self._piece(piece)

    def _piece(self, text: str) -> None:
        if self.emphasis_begins:
            text = text.strip()
        elif self.emphasis_ended and self.tag not in TAGS_CLOSE_TO_EMPHASIS:
            text = text if MAY_FOLLOW_EMPHASIS.match(text) else f" {text}"
        self.emphasis_begins, self.emphasis_ended = False, self.emphasis_begins
        if self._is_written_as_link(text):
            return
        if not self.code and not self.preformatted:
            text = _escaped_text(text)
        self.last_character = text[-1:]
        self.write(text, folded=True)

    def _is_written_as_link(self, text: str) -> bool:
        """Write a text that equals its link's URL as an automatic link; else open the link."""
        link = self.unopened_link
        if link is None or link.target != text or not ABSOLUTE_URL.match(text):
            self._open_link()
            return False
        link.is_empty = False
        self.write(f"<{text}>")
        return True

    def _open_link(self) -> None:
        """Write the opening bracket of a pending link."""
        if self.unopened_link is not None:
            self.unopened_link.is_empty = False
            self.unopened_link = None
            self.write("[")

    def finish(self) -> str:
        """Return the complete text."""
        self.parts.append("\n")
        self.parts += [f"  *[{short}]: {long}\n" for short, long in self.abbreviations.items()]
        if self.preformatted_begins:
            self.parts.append("\n")
        return "".join(self.parts)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Start an element."""
        self.tag = tag
        if self.unopened_link is not None and tag not in TAGS_IN_AUTOMATIC_LINKS:
            self._open_link()
        self._break_for(tag, BREAKS_BEFORE)
        match tag:
            case "A":
                link = Link(attributes.get("href", "#"), attributes.get("title", ""))
                self.unopened_link = None if link.target.startswith("#") else link
                self.links.append(self.unopened_link)
            case "OL" | "UL":
                self._start_list(_first_number(attributes) if tag == "OL" else None)
            case "LI":
                self._start_item()
            case "TD" | "TH":
                if self.in_row:
                    self.write("| ")
                self.in_row = True
                self.cells += 1
            case "TR":
                self.cells = 0
            case "TABLE":
                self.in_first_row = True
            case "BR":
                self.write("  \n> " if self.quotes else "  \n")
            case "IMG" if "src" in attributes:
                text = _escaped(attributes.get("alt", ""))
                if not self._is_written_as_link(text):
                    self.write(text)
            case "CODE" | "KBD" | "TT":
                self._toggle_code()
            case "PRE":
                self.preformatted = self.preformatted_begins = True
            case "BLOCKQUOTE":
                self.write("> ", opens_quote=True)
                self.at_item_start = True
                self.quotes += 1
            case "HR":
                self.write("* * *")
                self._break_for(tag, BREAKS_AFTER)
            case "DD":
                self.write(CODE_INDENT)
            case "Q":
                self.write('"')
            case "ABBR":
                self.short_form, self.long_form = [], attributes.get("title")
            case _ if tag in HEADINGS:
                self._start_heading(HEADINGS[tag])
            case _ if tag in EMPHASIS:
                self._start_emphasis(EMPHASIS[tag])
        self.list_ended = False

    def end(self, tag: str) -> None:
        """End an element."""
        self.tag = tag
        self.list_ended = tag in ("OL", "UL") or (self.list_ended and tag in HEADINGS)
        self._break_for(tag, BREAKS_AFTER)
        match tag:
            case "A":
                link = self.links.pop()
                if link is not None:
                    self._end_link(link)
            case "OL" | "UL":
                self.lists.pop()
                if not self.lists:
                    self.write("\n")
            case "LI":
                self.item_indent = 0
            case "TR":
                self._end_row()
            case "CODE" | "KBD" | "TT":
                self._toggle_code()
            case "PRE":
                self.preformatted = False
            case "BLOCKQUOTE":
                self.quotes -= 1
            case "Q":
                self.write('"')
            case "ABBR" if self.long_form is not None:
                self.abbreviations["".join(self.short_form)] = self.long_form
                self.long_form = None
            case _ if tag in HEADINGS:
                self.line_breaks_due = 0 if self.links else 2
            case _ if tag in EMPHASIS:
                self.write(EMPHASIS[tag])

    def _break_for(self, tag: str, breaks: dict[str, int]) -> None:
        if tag not in ("P", "DIV") or not (self.links or self.in_row):
            self.break_lines(breaks.get(tag, 0))

    def _start_heading(self, mark: str) -> None:
        if not self.links:
            self.break_lines(2)
            self.write(mark)
        elif self.parts and self.parts[-1] == "[":
            # The mark must precede a link that starts with a heading.
            self.parts.pop()
            self.space_is_due = False
            self.write(mark)
            self.write("[")

    def _start_emphasis(self, mark: str) -> None:
        last = self.last_character
        if last and (last not in UNDERSCORE_MAY_FOLLOW if mark == "_" else last == mark[0]):
            mark = f" {mark}"
            self.last_character = " "
        self.write(mark)
        self.emphasis_begins = True

    def _toggle_code(self) -> None:
        if not self.preformatted:
            self.code = not self.code
            self.write("`")

    def _start_list(self, number: int | None) -> None:
        indent = ITEM_INDENT
        if self.lists:
            outer = self.lists[-1]
            indent = outer.indent + (ITEM_INDENT if outer.number is None else NUMBERED_INDENT)
        elif not self.list_ended:
            self.break_lines(2)
        self.lists.append(ListLevel(indent, number))

    def _start_item(self) -> None:
        level = self.lists[-1] if self.lists else ListLevel(0, None)
        self.item_indent = level.indent
        self.write(" " * level.indent)
        if level.number is None:
            self.item_indent += ITEM_INDENT
            self.write("* ")
        else:
            self.item_indent += NUMBERED_INDENT
            self.write(f"{level.number}. ")
            level.number += 1
        self.at_item_start = True

    def _end_row(self) -> None:
        self.in_row = False
        self.line_end = "  "
        if self.in_first_row:
            self.in_first_row = False
            self.write("|".join(["---"] * self.cells))
            self.break_lines(1)
            self.line_end = "  "

    def _end_link(self, link: Link) -> None:
        if self.unopened_link is not None and not link.is_empty:
            self.unopened_link = None
            return
        self._open_link()
        self.line_breaks_due = 0
        title = f' "{_escaped(link.title)}"' if link.title.strip() else ""
        self.write(f"]({_escaped(link.target)}{title})")


def _escaped_text(text: str) -> str:
    if "\\" in text:
        text = ESCAPING_BACKSLASH.sub(r"\\\\", text)
    # These substring checks are much faster than the regular expression.
    if "." in text or "-" in text or "+" in text:
        text = ITEM_SYNTAX.sub(r"\1\\\2", text)
    return text


def _escaped(text: str) -> str:
    return LINK_SYNTAX.sub(r"\\\g<0>", text)


def _first_number(attributes: dict[str, str]) -> int:
    try:
        return int(attributes.get("start", "1"))
    except ValueError:
        return 1


def to_text(document: SnapshotDocument, frames: dict[tuple[int, int], SnapshotDocument]) -> str:
    """Convert a document to Markdown.

    ``frames`` holds inner documents by the outer document's identity and the element's index.
    """
    writer = MarkdownWriter()
    texts: list[str] = []
    # An explicit stack, since pages nest deeper than Python's recursion limit; ~index ends an
    # element.
    stack = [(document, 0)]
    while stack:
        document, item = stack.pop()
        index = item if item >= 0 else ~item
        kind = document.kinds[index]
        if kind == TEXT:
            texts.append(document.value(index))
            continue
        if kind == ELEMENT:
            name = document.names[index]
            if name in SKIPPED_TAGS or name.startswith("::"):
                continue
            if texts:
                writer.text("".join(texts))
                texts.clear()
            if item < 0:
                writer.end(name)
                continue
            writer.start(name, document.attributes(index) if name in ATTRIBUTED_TAGS else {})
            if name not in VOID_TAGS:
                stack.append((document, ~index))
        stack.extend([(document, child) for child in reversed(document.children[index])])
        inner = frames.get((id(document), index))
        if inner is not None:
            stack.append((inner, 0))
    writer.text("".join(texts))
    return writer.finish()
