"""smolagents on a notebook's kernel: its agent, with a scripted model."""

from __future__ import annotations

import runpy
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.client import RuntimeClient
from oh_jupyter.testing import LiveServer, wait_until

pytest.importorskip("smolagents", reason="needs smolagents; make test-all installs it")

from smolagents import CodeAgent, Model, tool
from smolagents.models import ChatMessage
from smolagents.utils import AgentError

from oh_jupyter.adapters.smolagents import OhExecutor

pytestmark = pytest.mark.filterwarnings("default")


class Scripted(Model):  # type: ignore[misc]
    """A model that answers with the cells of a script."""

    def __init__(self, *cells: str) -> None:
        super().__init__(model_id="scripted")
        self.cells = iter(cells)
        self.seen: list[str] = []

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        self.seen.append(str(messages[-1].content))
        return ChatMessage("assistant", f"Thought: next cell\n<code>\n{next(self.cells)}\n</code>")


@tool
def double(number: int) -> int:
    """Double a number.

    Args:
        number: The number.
    """
    return 2 * number


@pytest.fixture
def executor(server: LiveServer) -> Iterator[OhExecutor]:
    executor = OhExecutor(server.url, server.token)
    yield executor
    executor.cleanup()


def run(executor: OhExecutor, *cells: str, **options: Any) -> tuple[Any, Scripted]:
    model = Scripted(*cells)
    agent = CodeAgent(tools=[double], model=model, executor=executor, verbosity_level=0)
    return agent.run("work", **options), model


def test_an_agent_works_on_the_notebooks_variables(
    executor: OhExecutor, client: RuntimeClient
) -> None:
    client.run_ipython("prices = [1, 2, 3]")
    answer, model = run(
        executor,
        "total = sum(prices)\nprint('total', total)\ntotal",
        "final_answer({'doubled': double(total), 'given': extra})",
        additional_args={"extra": (1, 2)},
    )
    assert answer == {"doubled": 12, "given": (1, 2)}
    assert "total 6" in model.seen[-1]
    assert "Last output from code snippet:\n6" in model.seen[-1].replace("\\n", "\n")
    assert client.run_ipython("total").content.startswith("6")  # stays
    executor.cleanup()
    left = "[name for name in ('double', 'final_answer', 'Tool', 'prices') if name in globals()]"
    assert client.run_ipython(left).content.startswith("['prices']")


def test_the_log_names_framework_and_cell(executor: OhExecutor, logged: Any) -> None:
    executor("1 + 1")
    assert logged() == [("smolagents", "Running Python code interactively: 1 + 1")]


def test_an_agent_learns_of_its_errors(executor: OhExecutor) -> None:
    answer, model = run(executor, "print('before')\n1 / 0", "final_answer('gave up')")
    assert answer == "gave up"
    assert "ZeroDivisionError" in model.seen[-1]
    assert "before" in model.seen[-1]


def test_images_are_images(executor: OhExecutor) -> None:
    made = "import PIL.Image\nimage = PIL.Image.effect_noise((700, 700), 90)\nimage"
    assert executor(made).output.size == (700, 700)
    answer, _ = run(executor, "final_answer(image)")  # longer than an error may be
    assert answer.to_raw().size == (700, 700)


def test_values_that_are_no_data_are_refused(executor: OhExecutor) -> None:
    with pytest.raises(Exception, match="Cannot safely serialize"):
        executor.send_variables({"it": object()})
    with pytest.raises(AgentError, match="SyntaxError"):
        executor("1 +")


def test_a_time_limit_interrupts_the_cell(server: LiveServer, client: RuntimeClient) -> None:
    executor = OhExecutor(server.url, server.token, timeout=2)
    with pytest.raises(AgentError, match="interrupted after 2 seconds"):
        executor("import time\nended = 0\ntry: time.sleep(1000)\nfinally: ended = 1")
    assert executor("ended").output == "1"
    executor.cleanup()


def test_an_interrupt_of_the_program_interrupts_the_cell(
    executor: OhExecutor, tmp_path: Path
) -> None:
    started = tmp_path / "started"

    def interrupt() -> None:
        wait_until(started.exists)
        signal.pthread_kill(main_thread, signal.SIGINT)

    main_thread = threading.get_ident()
    threading.Thread(target=interrupt).start()
    code = f"stopped = 0\nopen({str(started)!r}, 'w').close()\n"
    with pytest.raises(KeyboardInterrupt):
        executor(f"{code}import time\ntry: time.sleep(1000)\nfinally: stopped = 1")
    assert executor("stopped").output == "1"


def test_the_example_runs(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OH_URL", server.url)
    monkeypatch.setenv("OH_TOKEN", server.token)
    example = Path(__file__).parents[2] / "examples" / "smolagents_executor.py"
    assert runpy.run_path(str(example))["main"]() == "42 rows"
