"""Cells as an agent reads them: text, and the pictures among the outputs."""

from __future__ import annotations

from typing import Any

from oh_jupyter.ansi import strip_ansi
from oh_jupyter.server.mcp.documents import Cell
from oh_jupyter.server.mcp.results import image, text

__all__ = ["cell_blocks", "named", "raised"]

MAX_OUTPUT_CHARS = 10_000
"""Characters of one output that are shown."""

_TEXT_TYPES = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
_IMAGE_TYPES = ("image/png", "image/jpeg")


def cell_blocks(index: int, cell: Cell, outputs: bool) -> list[dict[str, Any]]:
    """Content blocks of a cell: a text, then the pictures among its outputs."""
    head = f"=== cell {index} | {cell.get('id', '-')} | {cell['cell_type']}"
    if cell.get("execution_count"):
        head += f" [{cell['execution_count']}]"
    lines = [f"{head} ===", _joined(cell.get("source", ""))]
    pictures = []
    for output in (cell.get("outputs") or []) if outputs else []:
        told, shown = _output(output)
        if told:
            lines += ["--- output ---", told]
        pictures += shown
    return [text("\n".join(lines)), *pictures]


def named(index: int, cell: Cell) -> str:
    """What a cell is called: its position, and its id if it has one."""
    return f"cell {index} (id {cell['id']})" if cell.get("id") else f"cell {index}"


def raised(outputs: list[dict[str, Any]]) -> bool:
    """Whether an exception is among the outputs of a cell."""
    return any(output.get("output_type") == "error" for output in outputs)


def _output(output: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    kind = output.get("output_type")
    if kind == "stream":
        return _clipped(_joined(output.get("text", ""))), []
    if kind == "error":
        return _clipped("\n".join(output.get("traceback") or [str(output.get("evalue"))])), []
    data = output.get("data") or {}
    for name in _IMAGE_TYPES:
        if name in data:
            encoded = "".join(_joined(data[name]).split())
            shown = image(f"data:{name};base64,{encoded}")
            return _clipped(_joined(data.get("text/plain", ""))), [shown] if shown else []
    for name in _TEXT_TYPES:
        if name in data:
            return _clipped(_joined(data[name])), []
    return f"({', '.join(data)})" if data else "", []


def _joined(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value)


def _clipped(told: str) -> str:
    told = strip_ansi(told).rstrip("\n")
    if len(told) <= MAX_OUTPUT_CHARS:
        return told
    half = MAX_OUTPUT_CHARS // 2
    left_out = len(told) - MAX_OUTPUT_CHARS
    return f"{told[:half]}\n[... {left_out} characters left out ...]\n{told[-half:]}"
