"""Tables, links, forms and elements of a page as pandas DataFrames."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from oh_jupyter.browser.env import BrowserEnv
from oh_jupyter.errors import BrowserError

TABLES_SCRIPT = """() => [...document.querySelectorAll("table")].map((table) => {
  const rows = [], heads = [];
  [...table.rows].forEach((row, y) => {
    rows[y] = rows[y] || [];
    heads.push(row.parentNode.tagName === "THEAD" ||
      (row.cells.length > 0 && [...row.cells].every((cell) => cell.tagName === "TH")));
    let x = 0;
    for (const cell of row.cells) {
      while (rows[y][x] !== undefined) x++;
      for (let dy = 0; dy < (cell.rowSpan || 1) && y + dy < table.rows.length; dy++) {
        rows[y + dy] = rows[y + dy] || [];
        for (let dx = 0; dx < cell.colSpan; dx++) rows[y + dy][x + dx] = cell.innerText.trim();
      }
      x += cell.colSpan;
    }
  });
  let head = heads.findIndex((is) => !is);
  if (head < 0) head = heads.length;
  return { head, rows: rows.map((row) => Array.from(row, (text) => text ?? "")) };
})"""

LINKS_SCRIPT = """() => [...document.links].map((link) => [
  (link.innerText || link.ariaLabel || link.querySelector("img")?.alt || "").trim(), link.href,
])"""
FORMS_SCRIPT = """() => {
  const forms = [...document.forms];
  const fields = document.querySelectorAll("input, select, textarea, button");
  return [...fields].filter((field) => field.type !== "hidden").map((field) => [
    forms.indexOf(field.form), field.name || field.id, field.type,
    (field.labels?.[0]?.innerText || field.ariaLabel || field.placeholder || "").trim(),
    /checkbox|radio/.test(field.type) ? field.checked
      : field.localName === "button" ? field.innerText.trim()
      : field.multiple && field.options ? [...field.selectedOptions].map((each) => each.label)
      : field.value,
    !!field.required, field.options ? [...field.options].map((each) => each.label) : null,
  ]);
}"""
ELEMENTS_SCRIPT = """(selector) => [...document.querySelectorAll(selector)].map((element) => [
  element.localName, (element.innerText ?? element.textContent).trim(),
  element.value ?? element.href ?? element.src ?? null,
])"""


def read_links(env: BrowserEnv) -> Any:
    """Read the links of the active page: text and absolute URL."""
    return _pandas().DataFrame(env.evaluate(LINKS_SCRIPT), columns=["text", "url"])


def read_forms(env: BrowserEnv) -> Any:
    """Read the form fields of the active page; ``form`` is -1 for fields outside a form."""
    columns = ["form", "name", "type", "label", "value", "required", "options"]
    return _pandas().DataFrame(env.evaluate(FORMS_SCRIPT), columns=columns)


def read_elements(env: BrowserEnv, selector: str = "", *, role: str = "") -> Any:
    """Read the elements of the active page that match a CSS selector or have a role."""
    if not role:
        rows = env.evaluate(ELEMENTS_SCRIPT, selector)
        return _pandas().DataFrame(rows, columns=["tag", "text", "value"])
    elements = [
        (node.get("browsergym_id"), node["name"]["value"], node.get("value", {}).get("value"))
        for node in env.step("noop(0)", include=["axtree_object"])["axtree_object"]["nodes"]
        if node.get("role", {}).get("value") == role and "name" in node
    ]
    return _pandas().DataFrame(elements, columns=["bid", "name", "value"])


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        raise BrowserError(
            "Tables need the package pandas. Install it with: pip install 'oh_jupyter[tables]'"
        ) from None


def read_tables(env: BrowserEnv) -> list[Any]:
    """Read the tables of the active page; a spanning cell is repeated."""
    pandas = _pandas()
    frames = []
    for table in env.evaluate(TABLES_SCRIPT):
        head, rows = table["head"], table["rows"]
        width = max(map(len, rows), default=0)
        rows = [row + [""] * (width - len(row)) for row in rows]
        heads = zip(*rows[:head], strict=True)
        names = [" ".join(dict.fromkeys(filter(None, parts))) for parts in heads]
        frame = pandas.DataFrame(rows[head:], columns=names or None)
        for position in range(frame.shape[1]):
            with suppress(ValueError, TypeError):
                frame.isetitem(position, pandas.to_numeric(frame.iloc[:, position]))
        frames.append(frame)
    return frames
