"""Variables that agents' cells changed return with a rewind, in a real kernel."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.checkpoints import Checkpoints
from oh_jupyter.testing import LiveKernel, wait_until


@pytest.fixture(autouse=True)
def own_folder(kernel: LiveKernel) -> None:
    """Begin each test without a turn in progress."""
    kernel.execute("oh.write('mine.txt', 'the person acts');")


def agent(kernel: LiveKernel, code: str) -> int:
    """Run an agent's cell and return the number of its turn."""
    observation = kernel.act("run_ipython", code=code)
    assert "Traceback" not in observation["content"], observation["content"]
    return Checkpoints(kernel.directory).entries()[-1].id


def rewind(kernel: LiveKernel, id: int, **fields: Any) -> dict[str, Any]:
    body = {"id": id, "source": "user", **fields}
    reply, plan = kernel.ask("rewind", **body)
    assert reply["status"] == "ok", reply
    return dict(plan)


def outcomes(plan: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in plan["variables"]}


@pytest.mark.thorough
def test_files_and_variables_return_together(kernel: LiveKernel) -> None:
    kernel.execute("rows, same = [1], None; same = rows\ndef add(): rows.append(9)")
    id = agent(kernel, "add(); fresh = {}; open('made.txt', 'w').close()")
    shown = kernel.execute(f"%oh_rewind {id}")
    assert shown.startswith("Preview; add --yes to apply it:")
    assert "delete      made.txt" in shown
    assert "removed     fresh  (dict, 64 bytes)" in shown
    assert "restored    rows  (list, " in shown
    assert kernel.execute("rows") == "[1, 9]"
    done = kernel.execute(f"%oh_rewind {id} --yes")
    assert "restored    rows" in done
    assert kernel.execute("rows, same is rows, 'fresh' in globals()") == "([1], True, False)"
    undo = done.split()[1]
    kernel.execute(f"%oh_rewind {undo} --yes")
    assert kernel.execute("rows, same is rows, fresh") == "([1, 9], True, {})"
    assert (kernel.directory / "made.txt").exists()


def test_the_list_counts_changes_of_a_turn(kernel: LiveKernel) -> None:
    kernel.execute("counted, untouched = [1], [1]")
    id = agent(kernel, "counted.append(2); made = 1; open('counted.txt', 'w').close()")
    agent(kernel, "made = 2; untouched")
    kernel.execute("oh.write('mine.txt', 'the person acts again');")
    _, listed = kernel.ask("checkpoints")
    turn = next(each for each in listed["checkpoints"] if each["id"] == id)
    assert turn["variables"] == ["counted", "made"]
    assert (turn["files"], turn["cells"]) == (["counted.txt"], 2)
    assert "1 file, 2 cells, 2 variables" in kernel.execute("%oh_rewind")


def test_a_rewind_can_be_of_files_or_variables_alone(kernel: LiveKernel) -> None:
    kernel.execute("rows = [1]")
    id = agent(kernel, "rows.append(2); open('made2.txt', 'w').close()")
    done = kernel.execute(f"%oh_rewind {id} --yes --variables")
    assert kernel.execute("rows") == "[1]", done
    assert (kernel.directory / "made2.txt").exists()
    undo = done.split()[1]
    kernel.execute(f"%oh_rewind {undo} --yes --variables")
    assert kernel.execute("rows") == "[1, 2]"
    done = kernel.execute(f"%oh_rewind {id} --yes --files")
    assert "The kernel's variables stay as they are." in done
    assert not (kernel.directory / "made2.txt").exists()
    assert kernel.execute("rows") == "[1, 2]"
    assert "omit --files" in kernel.execute(f"%oh_rewind {id} --files --variables")


def test_the_persons_variables_stay(kernel: LiveKernel) -> None:
    kernel.execute("a, b, c = [1], [1], [1]")
    id = agent(kernel, "a.append(2); b.append(2); c.append(2)")
    kernel.execute("b = 'mine'; c.append('mine')")
    shown = kernel.execute(f"%oh_rewind {id} --yes")
    assert "yours       b  (str, " in shown
    assert kernel.execute("a, b, c") == "([1], 'mine', [1, 2, 'mine'])"
    kernel.execute(f"%oh_rewind {id} --yes --everything")
    assert kernel.execute("a, c") == "([1], [1])"


@pytest.mark.thorough
def test_a_persons_cell_waits_until_the_agents_data_is_compared(kernel: LiveKernel) -> None:
    pytest.importorskip("numpy")
    kernel.execute("import numpy as np; a = np.zeros(1 << 24)")
    id = agent(kernel, "a[5] = 1")
    kernel.execute("a[6] = 2")
    assert outcomes(rewind(kernel, id))["a"] == "yours"
    id = agent(kernel, "a[7] = 3")
    assert outcomes(rewind(kernel, id))["a"] == "restored"
    assert kernel.execute("a[5:8].tolist()") == "[1.0, 2.0, 0.0]"


COST_OF_A_CELL = """
import statistics, time
def cost():
    events, start = get_ipython().events, time.thread_time()
    for name in ("pre_execute", "pre_run_cell", "post_execute", "post_run_cell"):
        arguments = [None] if name.endswith("cell") else []
        for callback in events.callbacks[name]:
            if callback.__module__.startswith("oh_jupyter.checkpoints"): callback(*arguments)
    return time.thread_time() - start
assert any(c.__module__.startswith("oh_jupyter.checkpoints")
           for c in get_ipython().events.callbacks["pre_execute"])
statistics.median(cost() for _ in range(100)) < 0.001
"""


def test_a_persons_own_cell_pays_nothing(kernel: LiveKernel) -> None:
    kernel.execute("rows = [{'a': [i]} for i in range(100_000)]")
    agent(kernel, "rows[5]['a'].append(1)")
    assert kernel.execute(COST_OF_A_CELL) == "True"


@pytest.mark.thorough
def test_over_rest_on_the_main_thread_between_cells(kernel: LiveKernel) -> None:
    kernel.execute("import threading; rows = [1]")
    id = agent(kernel, "rows.append(2)")
    plan = rewind(kernel, id, preview=True)
    assert outcomes(plan) == {"rows": "restored"}
    assert plan["variables"][0]["type"] == "list"
    running = kernel.start("input_done = threading.Event(); input_done.wait(); rows")
    try:
        reply, _ = kernel.ask("rewind", id=id, source="user")
        preview = rewind(kernel, id, preview=True)
        files = rewind(kernel, id, variables=False)
    finally:
        kernel.manager.interrupt_kernel()
        kernel.finish(running)
    assert "A cell is running" in str(reply), reply
    assert (preview["variables"], len(preview["notes"])) == ([], 1)
    assert files["variables"] == []
    assert rewind(kernel, id)["variables"] == plan["variables"]
    assert kernel.execute("rows") == "[1]"


def test_a_mark_while_a_cell_runs(kernel: LiveKernel) -> None:
    kernel.execute("import os; rows = [1]; os.mkfifo('wait')")
    code = "open('started', 'w').close(); open('wait').read(); rows.append(2)"
    action = {"action": "run_ipython", "args": {"code": code}}
    cell = kernel.send("execute_action", {"action": action})
    wait_until((kernel.directory / "started").exists, what="the start of the cell")
    _, mark = kernel.ask("mark_checkpoint", label="here")
    (kernel.directory / "wait").write_text("go")
    assert kernel.reply(cell)[0]["status"] == "ok"
    agent(kernel, "more = 1")
    (more, rows) = rewind(kernel, mark["id"])["variables"]
    assert (more["name"], more["outcome"]) == ("more", "removed")
    assert (rows["name"], rows["outcome"]) == ("rows", "not kept")
    assert rows["reason"] == "a cell that was running at the checkpoint changed it"
    assert outcomes(rewind(kernel, mark["id"] - 1))["rows"] == "restored"
    assert kernel.execute("rows, 'more' in globals()") == "([1], False)"


def test_an_agent_cannot_restore_variables_by_its_cell(kernel: LiveKernel) -> None:
    kernel.execute("rows = [1]")
    id = agent(kernel, "rows.append(2)")
    seen = kernel.act("run_ipython", code=f"oh.rewind({id}, variables=True, everything=True)")
    assert "Only a person can restore variables" in seen["content"]
    kernel.execute("rows = 'mine'")
    reply, plan = kernel.ask("rewind", id=id, source="agent", everything=True)
    assert reply["status"] == "ok"
    assert outcomes(plan)["rows"] == "yours"
    assert kernel.execute("rows") == "'mine'"


@pytest.mark.parametrize(
    "code",
    [
        "%run changes.py",
        "exec('rows.append(2)')",
        "globals()['rows'].append(2)",
        "get_ipython().user_ns['rows'].append(2)",
        "%time rows.append(2)",
        "import threading as t\nt = t.Thread(target=lambda: rows.append(2))\nt.start(); t.join()",
        "import helper; helper.add()",
        "await add_later()",
    ],
)
def test_hidden_ways_to_change(kernel: LiveKernel, code: str) -> None:
    (kernel.directory / "changes.py").write_text("get_ipython().user_ns['rows'].append(2)\n")
    (kernel.directory / "helper.py").write_text("held = []\ndef add(): held[0].append(2)\n")
    kernel.execute("async def add_later(): rows.append(2)")
    kernel.execute("rows = [1]; import helper; helper.held[:] = [rows]")
    id = agent(kernel, code)
    assert kernel.execute("rows") == "[1, 2]"
    rewind(kernel, id)
    assert kernel.execute("rows, rows is helper.held[0]") == "([1], True)"


def test_a_plan_is_shown_as_a_table(kernel: LiveKernel) -> None:
    kernel.execute("rows = [1]")
    id = agent(kernel, "rows.append('<b>')")
    shown = kernel.execute(
        "from IPython import get_ipython as ip\n"
        f"print(ip().display_formatter.format(oh.rewind({id}, preview=True))[0]['text/html'])"
    )
    assert "<td" in shown
    assert "rows" in shown
    assert "list" in shown


def test_the_setting_turns_it_off(kernel: LiveKernel) -> None:
    kernel.execute("%config OhJupyter.checkpoint_variables = 'off'")
    kernel.execute("rows = [1]")
    id = agent(kernel, "rows.append(2)")
    kernel.execute("%config OhJupyter.checkpoint_variables = 'auto'")
    assert rewind(kernel, id)["variables"] == []
    assert kernel.execute("rows") == "[1, 2]"


@pytest.mark.thorough
def test_variables_survive_the_death_of_the_kernel(tmp_path: Path) -> None:
    first = LiveKernel(tmp_path)
    try:
        pid = int(first.execute("import os; rows, log = [1], open(os.devnull); os.getpid()"))
        id = agent(first, "rows.append(2); log.close()")
        folder = Checkpoints(tmp_path).directory / "variables"
        wait_until(lambda: list(folder.glob("*.pickle")), what="the stored variables")
        os.kill(pid, signal.SIGKILL)
    finally:
        first.close()
    second = LiveKernel(tmp_path)
    try:
        shown = second.execute(f"%oh_rewind {id} --variables")
        assert "rebound     rows  (list, " in shown
        assert "not kept    log  (an open file cannot be copied)" in shown
        second.execute(f"%oh_rewind {id} --variables --yes")
        assert second.execute("rows") == "[1]"
    finally:
        second.close()
    assert [path.stat().st_mode & 0o777 for path in folder.glob("*.pickle")] == [0o600]


STATEMENTS = (
    "a.append(len(a))",
    "b['k'] = a",
    "c.x = [len(c.x)]",
    "add(b)",
    "a, d = [0], a",
    "d = (a, b)",
    "exec('a.reverse(); a.append(9)')",
    "b.pop('k', None)",
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_restored_variables_after_a_kill_are_right(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    first = LiveKernel(tmp_path)
    states: dict[int, str] = {}
    try:
        first.execute("class C: x = []\na, b, c, d = [1], {}, C(), 0\ndef add(it): it[len(it)] = 1")
        pid = int(first.execute("import os; os.getpid()"))
        for _ in range(dice.randrange(2, 5)):
            state = first.execute("oh.write('mine', 'x');\nrepr((a, b, c.x, d))")
            states[agent(first, "; ".join(dice.choices(STATEMENTS, k=3)))] = state
        if dice.random() < 0.5:  # in the middle of a cell
            first.send("execute_action", {"action": _cell("a.append('killed'); go_on = True\n")})
        os.kill(pid, signal.SIGKILL)
    finally:
        first.close()
    second = LiveKernel(tmp_path)
    try:
        second.execute("class C: x = []\na = b = d = None; c = C()\ndel a, b, c, d")
        id = dice.choice(list(states))
        rows = outcomes(rewind(second, id, files=False))
        names = [name for name in "abd" if rows.get(name) == "rebound"]
        assert names or rows.get("c") == "rebound" or id == max(states), "it was not stored yet"
        shown = second.execute(f"repr(({''.join(f'{name}, ' for name in names)}))")
        second.execute(f"a, b, x, d = eval({states[id]})")
        assert shown == second.execute(f"repr(({''.join(f'{name}, ' for name in names)}))")
        assert set(rows.values()) <= {"rebound", "not kept", "unchanged"}
    finally:
        second.close()


def _cell(code: str) -> dict[str, Any]:
    return {"action": "run_ipython", "args": {"code": code}}


def test_a_cell_about_the_history_is_recorded_like_any_other(fresh_kernel: LiveKernel) -> None:
    action = {"action": "run_ipython", "args": {"code": "'result'"}}
    fresh_kernel.ask("run_cell", {"action": action}, store_history=True)
    shown = fresh_kernel.act("run_ipython", code="In, list(Out)")["content"]
    assert shown.startswith("""(['', "'result'"], [1])\n[Jupyter""")
