"""Outputs of cells that person and agent run: equal in the tab, in the file and for the agent."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from live_tab import Tab

Outputs = list[tuple[int | None, str]]
"""Count and text of each cell's outputs, in order."""

CELLS = (
    "k = globals().get('k', 0) + 1\nprint(k)",
    "import sys\nk += 1\nprint(k)\nprint('e', k, file=sys.stderr, flush=True)\nprint('b')\nk",
    "k += 1\nfor n in range(3):\n    print(k, n, flush=True)",
    "k += 1\nk",
    "k += 1\nprint(k)\nprint(f'\\r{k} %')\n1 / 0",
)
"""Each run of a cell shows another number."""
NUMBER = re.compile(r"\d+")

IN_MODEL = (
    """() => jupyterapp.shell.currentWidget.model.sharedModel.cells.map(cell => cell.toJSON())"""
)
IN_VIEW = """() => jupyterapp.shell.currentWidget.content.widgets.map(({ model }) => (
    { execution_count: model.executionCount, outputs: model.outputs.toJSON() }))"""
ON_PAGE = """() => jupyterapp.shell.currentWidget.content.widgets.map(cell =>
    [...cell.node.querySelectorAll('.jp-OutputArea-output')].map(each => each.innerText))"""
RUN = """async index => {
    const { content } = jupyterapp.shell.currentWidget;
    content.activeCellIndex = index;
    await jupyterapp.commands.execute('notebook:run-cell');
}"""


def texts(cells: list[dict[str, Any]]) -> Outputs:
    """Return what cells show, as a person reads it."""
    return [(cell["execution_count"], "|".join(map(_text, cell["outputs"]))) for cell in cells]


def _text(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return str(output["ename"])
    shown = output.get("text") or output["data"]["text/plain"]
    return "".join(shown).replace("\r", "")


def in_file(tab: Tab) -> Outputs:
    return texts(json.loads(tab.file.read_text())["cells"])


class Both:
    """A person and an agent who run the cells of one notebook."""

    def __init__(self, tab: Tab, random: Random) -> None:
        self.tab = tab
        self.random = random

    def step(self) -> str:
        """Do something at random; return what."""
        kind = self.random.choice(
            ["person", "person", "agent", "agent", "several", "edit", "insert", "save", "both"]
        )
        index, count = self.random.randrange(len(CELLS)), len(self.tab.sources)
        tab = self.tab
        match kind:
            case "person":
                tab.page.evaluate(RUN, index)
            case "agent":
                tab.result("run_cell", cell=index)
            case "several":
                tab.result("run_cell", cell=0, to=index)
            case "edit":
                tab.call("edit_cell", cell=index, source=f"{tab.sources[index]}\n# {count}")
                tab.result("run_cell", cell=index)
            case "insert" if count < 2 * len(CELLS):
                tab.result("insert_cell", source=CELLS[index], run=True)
                tab.call("edit_cell", cell=-1, source=f"{CELLS[index]}\n# edited")
                tab.result("run_cell", cell=-1)
            case "save":
                tab.save()
            case "both":
                with ThreadPoolExecutor(1) as agent:
                    other = self.random.choice([index, (index + 1) % len(CELLS)])
                    run = agent.submit(tab.result, "run_cell", cell=other)
                    tab.page.evaluate(RUN, index)
                    run.result(60)
        return f"{kind} {index}"

    def compare(self, done: list[str]) -> None:
        """Compare what the tab, the file and the agent have."""
        tab = self.tab
        read = tab.call("read_cells")  # the tab saves before that
        file = in_file(tab)
        tab.expect(
            f"({IN_MODEL})().map(cell => cell.execution_count)", [count for count, _ in file]
        )
        assert texts(tab.page.evaluate(IN_MODEL)) == file, done
        assert texts(tab.page.evaluate(IN_VIEW)) == file, done
        page = ["".join(each).split() for each in tab.page.evaluate(ON_PAGE)]
        for (_, text), shown in zip(file, page, strict=True):
            if "ZeroDivisionError" not in text:
                assert "".join(shown) == "".join(text.replace("|", "").split()), done
            assert text.split("|")[0].strip() in read, done
        numbers = [int(match[0]) for _, text in file if (match := NUMBER.search(text))]
        assert len(set(numbers)) == len(numbers), done
        assert max(numbers) == int(tab.call("variables", expression="k").splitlines()[-1]), done


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_runs_of_both_show_the_same_everywhere(open_tab, seed: int) -> None:
    tab = open_tab(*CELLS)
    both, done = Both(tab, Random(seed)), list[str]()
    tab.page.evaluate(RUN, 0)
    for _ in range(24):
        done.append(both.step())
        both.compare(done)


def test_an_output_of_the_agent_replaces_the_one_before(open_tab) -> None:
    tab = open_tab("pts = [0] * 1500", "print(len(pts))")
    for index in (0, 1):
        tab.page.evaluate(RUN, index)
    for count in (3, 4):
        assert "1500" in tab.call("run_cell", cell=1)
        tab.expect(f"({IN_VIEW})()[1].execution_count", count)
        assert texts(tab.page.evaluate(IN_VIEW))[1] == (count, "1500\n")
    tab.save()
    assert in_file(tab)[1] == (4, "1500\n")
    tab.call("insert_cell", source="print(71)", run=True)
    tab.call("edit_cell", cell=-1, source="print(70 + 1)")
    tab.call("run_cell", cell=-1)
    tab.expect(f"({IN_VIEW})()[2]?.execution_count", 6)
    tab.save()
    assert in_file(tab)[2] == texts(tab.page.evaluate(IN_VIEW))[2] == (6, "71\n")
