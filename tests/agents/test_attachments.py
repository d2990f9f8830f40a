"""Context that goes with a prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from guest_runtime import Guests

from oh_jupyter.agents.attachments import MAX_TEXT_CHARS, Attachment
from oh_jupyter.kernel.control.person_rpc import MAX_FILES, find_files

CELL = Attachment("Cell 1 of a.ipynb", "jupyter:a.ipynb%23cell-0", "x = 1")
FILE = Attachment("data.csv", "file:///w/data.csv")


def test_an_agent_reads_attachments_of_the_prompt(make_guests: Callable[..., Guests]) -> None:
    guests = make_guests()
    turn = guests.prompt("context", attachments=(CELL, FILE))
    assert turn.text.split("\n\n") == [
        "Embedded: Cell 1 of a.ipynb:\nx = 1",
        "Link: data.csv file:///w/data.csv",
    ]
    assert turn.attachments == ("Cell 1 of a.ipynb", "data.csv")
    assert guests.prompt("context").text == ""


def test_an_agent_without_embedded_context_gets_text() -> None:
    assert CELL.block(can_embed=False).text == (
        '<context ref="jupyter:a.ipynb%23cell-0">\nCell 1 of a.ipynb:\nx = 1\n</context>'
    )
    assert FILE.block(can_embed=False).type == "resource_link"


def test_a_long_text_loses_its_middle() -> None:
    long = Attachment("log", "jupyter:log", "a" * MAX_TEXT_CHARS + "end")
    text = long.block(can_embed=True).resource.text
    assert "characters omitted]" in text
    assert text.endswith("end")
    assert len(text) < MAX_TEXT_CHARS + 100


def test_files_are_found_by_a_part_of_their_path(tmp_path: Path) -> None:
    for path in ("sales.csv", "old/sales.csv", "old/my sales.txt", ".git/sales", "other.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    assert find_files(str(tmp_path), "SAL") == ["sales.csv", "old/sales.csv", "old/my sales.txt"]
    assert find_files(str(tmp_path), "old/s") == ["old/sales.csv"]
    for number in range(MAX_FILES):
        (tmp_path / f"many-{number}").touch()
    assert len(find_files(str(tmp_path), "")) == MAX_FILES
