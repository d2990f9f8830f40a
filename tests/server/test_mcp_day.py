"""A day's work of an agent that has nothing but the MCP tools: its calls and characters."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell

from tests.server.test_mcp_kernel import LOOP, text_of

pytestmark = pytest.mark.thorough

MESSY = """\
import random
random.seed(1)
with open("messy.csv", "w") as file:
    file.write("Date;City ;Amount\\n")
    for n in range(200_000):
        city = random.choice(["Bern", " bern", "BERN", "Thun", "thun "])
        amount = random.choice([f"{n % 97},50", "", "n/a", str(n % 89)])
        file.write(f"2026-0{n % 9 + 1}-1{n % 10};{city};{amount}\\n")
"""
CLEAN = """\
df.columns = ["date", "city", "amount"]
df["city"] = df["city"].str.strip().str.title()
df["amount"] = pd.to_numeric(df["amount"].str.replace(",", "."), errors="coerce")
clean = df.dropna()
print(len(df), "rows,", len(clean), "complete")"""
PLOT = """\
import matplotlib.pyplot as plt
clean.groupby("city")["amount"].mean().plot.bar(figsize=(4, 3));"""


class Worker:
    """An agent that counts its calls and the characters that it reads."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.calls = self.characters = 0

    async def __call__(self, tool: str, *, fails: bool = False, **arguments: Any) -> str:
        result = await self._session.call_tool(tool, arguments)
        self.calls += 1
        self.characters += len(text_of(result))
        assert result.is_error == fails, text_of(result)
        return text_of(result)

    def check(self, *, calls: int, characters: int) -> None:
        """Compare what the work cost with its limits."""
        assert self.calls <= calls
        assert self.characters <= characters


async def test_a_messy_file_becomes_a_clean_notebook(mcp_connect, book, jp_root_dir: Path) -> None:
    (jp_root_dir / "make.py").write_text(MESSY)
    kernel = await book(new_markdown_cell("# Sales"))
    async with mcp_connect(kernel) as session:
        agent = Worker(session)
        await agent("run", command="python make.py && head -3 messy.csv")
        await agent(
            "insert_cell",
            source='import pandas as pd\ndf = pd.read_csv("messy.csv", sep=";", dtype=str)',
            run=True,
        )
        seen = await agent("variables", name="df")
        assert "200000 x 3" in seen
        failed = await agent("run_ipython", code='df["Amount "].mean()', fails=True)
        assert len(failed) < 1200, failed
        done = await agent("insert_cell", source=CLEAN, run=True)
        assert "200000 rows" in done
        await agent("insert_cell", source=PLOT, run=True)
        assert "Bern" in await agent("variables", expression="clean.city.value_counts()")
        await agent("run_cell", cell=0, to=-1)
    cells = nbformat.read(jp_root_dir / "book.ipynb", as_version=4).cells
    assert any("image/png" in output.get("data", {}) for output in cells[-1].outputs)
    agent.check(calls=8, characters=3_000)


TEST = "PYTEST_ADDOPTS= python -m pytest -q test_prices.py"  # not with options of this run


async def test_a_bug_in_a_package(mcp_connect, book, jp_root_dir: Path) -> None:
    package = jp_root_dir / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "prices.py").write_text(
        "def total(prices, rebate=0):\n"
        '    """Return the sum, less the rebate in percent."""\n'
        "    return sum(prices) - rebate\n"
    )
    (jp_root_dir / "test_prices.py").write_text(
        "from shop.prices import total\n\n\ndef test_total():\n"
        "    assert total([100, 100], rebate=10) == 180\n"
    )
    kernel = await book("from shop.prices import total")
    async with mcp_connect(kernel) as session:
        agent = Worker(session)
        assert "1 failed" in await agent("run", command=TEST, blocking=True)
        assert "rebate" in await agent("read", path="shop/prices.py")
        edited = await agent(
            "edit",
            command="str_replace",
            path="shop/prices.py",
            old_str="sum(prices) - rebate",
            new_str="sum(prices) * (100 - rebate) / 100",
        )
        assert "(100 - rebate) / 100" in edited
        assert "1 passed" in await agent("run", command=TEST, blocking=True)
        assert "-    return sum(prices) - rebate" in await agent(
            "changes", command="diff", path="shop/prices.py"
        )
        undone = await agent("changes", command="preview")
        assert "prices.py" in undone
    agent.check(calls=6, characters=7_000)


async def test_a_training_loop_is_watched_and_stopped(mcp_connect, book) -> None:
    kernel = await book(LOOP)
    async with mcp_connect(kernel) as session:
        agent = Worker(session)
        progress = await agent("run_cell", cell=0, wait=1)
        async with asyncio.timeout(60):
            while not re.search(r"step \d", progress):
                agent.calls = agent.characters = 0  # the machine may be slow
                progress = await agent("read_cells", start=0)
        last = await agent("variables", expression="losses[-1]")
        assert int(last.splitlines()[-1]) >= 0
        status = json.loads(await agent("kernel", command="status"))
        assert status["cell"]["seconds"] > 0
        assert "Interrupted" in await agent("kernel", command="interrupt")
        assert "losses" in await agent("variables", pattern="loss*")
    agent.check(calls=6, characters=3_500)


async def test_a_notebook_of_150_cells(mcp_connect, book) -> None:
    parts = [
        [new_markdown_cell(f"# Part {part}"), *(f"x_{part}_{n} = {n}\n" * 6 for n in range(14))]
        for part in range(10)
    ]
    broken = "def rate(sales):\n    return sales / cost\n\nrate(3)"
    kernel = await book(*(cell for part in parts for cell in part), broken)
    async with mcp_connect(kernel) as session:
        agent = Worker(session)
        first = await agent("read_cells")
        assert "# Part 9" in first
        assert len(first) <= 6_500, len(first)
        assert "return sales / cost" in await agent("read_cells", search=r"def rate|/ cost")
        assert "NameError" in await agent("run_cell", cell=-1, fails=True)
        edited = await agent("edit_cell", cell=-1, old_str="cost", new_str="2")
        assert "+    return sales / 2" in edited
        assert "1.5" in await agent("run_cell", cell=-1)
    agent.check(calls=5, characters=8_000)
