"""The scripted agent: it works off the reference solution, so it measures cost, not ability.

Its scripts do what an agent does that does not know the next prompt. Where the environment has
forgotten a state, or has none to return to, the script runs the earlier steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from oh_jupyter.evaluation.stateful.task import StatefulTask, Turn

Script = Generator[dict[str, Any], str, str]
"""Yields calls of tools, is sent their texts, and returns the reply."""


class ScriptedAgent:
    """An agent that knows the solution of every stateful task, and gives up all others."""

    def __init__(self) -> None:
        self._script: Script | None = None
        self._marks: dict[int, str] = {}

    def __call__(self, seen: dict[str, Any]) -> Any:
        """Return the next call, or the reply."""
        if not isinstance(seen.get("task"), StatefulTask):
            return ""
        if seen["observation"] is None:
            if seen["turn"] == 1:
                self._marks = {}
            write = SCRIPTS[seen["environment"]]
            self._script = write(seen["task"], seen["turn"], self._marks)
        assert self._script is not None
        try:
            return self._script.send(seen["observation"])
        except StopIteration as end:
            return end.value


def _in_bash(task: StatefulTask, number: int, marks: dict[int, str]) -> Script:
    """Run all steps again in every turn, since each shell begins without variables."""
    turn = task.turns[number - 1]
    remove = [f"rm -f {' '.join(task.files)}"] if turn.back_to and task.files else []
    code = _cell(*task.steps(number), turn.suppose, _print(turn))
    text = yield _call("bash", command="\n".join([*remove, "python - <<'END'", code, "END"]))
    return _reply(text)


def _in_jupyter(task: StatefulTask, number: int, marks: dict[int, str]) -> Script:
    """Run all steps again to go back, and copy the state before a supposition."""
    turn = task.turns[number - 1]
    if turn.suppose:
        names = ", ".join(task.keep)
        copy = f"import copy\nkept = copy.deepcopy(({names},))"
        code = _cell(copy, turn.suppose, _print(turn), f"({names},) = kept")
    elif turn.back_to:
        remove = f"import os\nfor name in {list(task.files)}:\n    if os.path.exists(name):\n"
        clean = [f"{remove}        os.remove(name)"] if task.files else []
        code = _cell(*clean, *task.steps(number), _print(turn))
    else:
        code = _cell(*_new_steps(task, number), _print(turn))
    return _reply((yield _call("execute_code", code=code)))


def _in_oh_jupyter(task: StatefulTask, number: int, marks: dict[int, str]) -> Script:
    """Begin a turn before each change, and rewind to go back or to end a supposition."""
    turn = task.turns[number - 1]
    if turn.back_to:
        first = min(mark for mark in marks if mark > turn.back_to)
        yield _call("changes", command="rewind", id=int(marks[first]))
        for mark in [mark for mark in marks if mark >= first]:
            del marks[mark]
    if (turn.step or turn.suppose) and number > 1:
        text = yield _call("changes", command="checkpoint")
        marks[number] = text.split()[1]
    code = _cell(*_new_steps(task, number), turn.suppose, _print(turn))
    text = yield _call("run_ipython", code=code)
    if turn.suppose:
        yield _call("changes", command="rewind", id=int(marks.pop(number)))
    return _reply(text)


SCRIPTS: dict[str, Callable[[StatefulTask, int, dict[int, str]], Script]] = {
    "bash": _in_bash,
    "jupyter": _in_jupyter,
    "oh_jupyter": _in_oh_jupyter,
}


def _new_steps(task: StatefulTask, number: int) -> list[str]:
    """Return the code of a turn in a kernel that has the state before it."""
    return task.steps(1) if number == 1 else [task.turns[number - 1].step]


def _cell(*parts: str) -> str:
    return "\n".join(part.strip() for part in parts if part.strip())


def _print(turn: Turn) -> str:
    return f'print("ANSWER:", {turn.answer})'


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def _reply(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("ANSWER:")) or text
