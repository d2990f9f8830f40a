"""The code interpreter's own client on a notebook's kernel."""

from __future__ import annotations

import asyncio
import importlib
import os
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.client import RuntimeClient
from oh_jupyter.testing import LiveServer

client_package = pytest.importorskip(
    "e2b_code_interpreter", reason="needs e2b-code-interpreter; make test-all installs it"
)
Sandbox, AsyncSandbox = client_package.Sandbox, client_package.AsyncSandbox
TimeoutException = importlib.import_module("e2b").TimeoutException

SLEEP = "import time\nended = 0\ntry: time.sleep(1000)\nfinally: ended = 1"

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def variables(server: LiveServer) -> Iterator[dict[str, str]]:
    """Environment variables for an unchanged program."""
    address = f"{server.url}/oh_jupyter/e2b"
    names = {"E2B_API_URL": address, "E2B_SANDBOX_URL": address, "E2B_API_KEY": server.token}
    os.environ |= names
    yield names
    for name in names:
        del os.environ[name]


@pytest.fixture(scope="module")
def box(variables: dict[str, str]) -> Iterator[Any]:
    with Sandbox.create() as sandbox:
        yield sandbox


def test_cells_work_on_the_notebooks_variables(box: Any, client: RuntimeClient) -> None:
    client.run_ipython("prices = [1, 2, 3]")
    execution = box.run_code("import sys\nprint('out'); print('err', file=sys.stderr)\nsum(prices)")
    assert "".join(execution.logs.stdout) == "out\n"
    assert "".join(execution.logs.stderr) == "err\n"
    assert (execution.text, execution.error) == ("6", None)
    later = box.run_code("1")
    assert later.execution_count == execution.execution_count + 1
    assert "prices = [1, 2, 3]" in str([event.message for event in client.history()])


def test_the_log_names_e2b(box: Any, logged: Any) -> None:
    box.run_code("1 + 1")
    assert logged() == [("E2B", "Running Python code interactively: 1 + 1")]


def test_output_arrives_while_the_cell_runs(box: Any, client: RuntimeClient) -> None:
    gate: list[str] = []

    def seen(message: Any) -> None:
        gate.append(message.line)
        client.write_bytes("/tmp/e2b-gate", b"open")

    code = (
        "import os, time\nprint('started', flush=True)\n"
        "while not os.path.exists('/tmp/e2b-gate'): time.sleep(.01)\n"
        "os.remove('/tmp/e2b-gate')\n'done'"
    )
    assert box.run_code(code, on_stdout=seen).text == "done"
    assert gate == ["started\n"]


def test_tables_and_pictures_are_results(box: Any) -> None:
    execution = box.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None]})")
    (result,) = execution.results
    assert result.is_main_result
    assert result.data == {"a": [1, 2], "b": ["x", None]}
    assert "<table" in result.html
    assert "a" in result.text
    execution = box.run_code(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\n"
        "plt.bar(['x', 'y'], [1, 2]); plt.title('t'); plt.show()"
    )
    (result,) = execution.results
    assert result.png.startswith("iVBOR")
    assert (result.chart.type, result.chart.title) == ("bar", "t")
    (result,) = box.run_code(
        "from IPython.display import Markdown, display; display({'x/y': 1}, raw=True)"
    ).results
    assert result.extra == {"x/y": 1}


def test_errors_are_reported(box: Any) -> None:
    error = box.run_code("1 / 0").error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert "Traceback" in error.traceback


def test_variables_last_as_long_as_the_cell(box: Any) -> None:
    code = "import os; os.environ.get('E2B_TEST')"
    assert box.run_code(code, envs={"E2B_TEST": "yes"}).text == "yes"
    assert box.run_code(code).text is None


def test_contexts_are_kernels(box: Any, client: RuntimeClient, server: LiveServer) -> None:
    context = box.create_code_context(cwd=str(server.directory))
    box.run_code("own = 1", context=context)
    result = box.run_code("import os; os.getcwd()", context=context)
    assert result.text == str(server.directory)
    assert box.run_code("own").error.name == "NameError"
    main, *others = box.list_code_contexts()
    assert [each.id for each in others] == [context.id]
    box.restart_code_context(context)
    assert box.run_code("own", context=context).error.name == "NameError"
    box.remove_code_context(context)
    with pytest.raises(Exception, match="no kernel"):
        box.run_code("1", context=context)
    for refused in (box.remove_code_context, box.restart_code_context):
        with pytest.raises(Exception, match="shut down by its person"):
            refused(main)


def test_the_time_limit_interrupts_the_cell(box: Any) -> None:
    with pytest.raises(TimeoutException, match="timed out"):
        box.run_code(SLEEP, timeout=2)
    assert box.run_code("ended").text == "1"


def test_unsupported_features_of_e2b_are_refused_with_a_reason(box: Any) -> None:
    with pytest.raises(Exception, match="not available"):
        box.pause()
    with pytest.raises(Exception, match="javascript"):
        box.run_code("1", language="javascript")


def test_a_wrong_key_is_refused(variables: dict[str, str]) -> None:
    with pytest.raises(Exception, match="token"):
        Sandbox.create(api_key="wrong")


def test_sandboxes_end_their_contexts(variables: dict[str, str], server: LiveServer) -> None:
    sandbox = Sandbox.create()
    sandbox.create_code_context()
    assert len(sandbox.list_code_contexts()) == 2
    assert sandbox.is_running()
    sandbox.kill()
    assert len(Sandbox.create().list_code_contexts()) == 1


def test_a_sandbox_has_variables(variables: dict[str, str]) -> None:
    with Sandbox.create(envs={"CITY": "Graz", "MOOD": "good"}) as sandbox:
        code = "import os\nos.environ['CITY'], os.environ['MOOD']"
        assert sandbox.run_code(code).text == "('Graz', 'good')"
        assert sandbox.run_code(code, envs={"MOOD": "better"}).text == "('Graz', 'better')"
    with Sandbox.create() as other:
        assert other.run_code("os.environ.get('CITY')").text is None


def test_results_have_the_forms_of_e2b(box: Any) -> None:
    assert box.run_code("'it''s'").text == "its"
    assert box.run_code("\"'quoted'\"").text == "'quoted'"
    (result,) = box.run_code("{'a': [1, None]}").results
    assert (result.json, result.text) == ({"a": [1, None]}, "{'a': [1, None]}")
    (result,) = box.run_code("[object]").results
    assert result.json is None
    pytest.importorskip("e2b_charts")
    plot = (
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\n"
        "ax.boxplot([[1, 2, 3, 9], [2, 3, 4]], tick_labels=['A', 'B'], patch_artist=True)\n"
        "plt.show()\nprint('after')"
    )
    execution = box.run_code(plot)
    assert execution.error is None
    assert "".join(execution.logs.stdout) == "after\n"
    assert any(each.png for each in execution.results)


def test_a_killed_sandbox_ends_its_cell(variables: dict[str, str]) -> None:
    sandbox, started = Sandbox.create(), threading.Event()
    executions: list[Any] = []

    def run() -> None:
        code = f"print('started', flush=True)\n{SLEEP}"
        executions.append(sandbox.run_code(code, on_stdout=lambda _: started.set()))

    running = threading.Thread(target=run)
    running.start()
    assert started.wait(60)
    sandbox.kill()
    running.join(60)
    assert executions[0].error.name == "SandboxKilled"
    with Sandbox.create() as other:
        assert other.run_code("ended").text == "1"


def test_on_an_event_loop(variables: dict[str, str]) -> None:
    async def run() -> None:
        sandbox = await AsyncSandbox.create()
        lines: list[str] = []
        results = await asyncio.gather(
            sandbox.run_code("print(1); 'a'", on_stdout=lambda message: lines.append(message.line)),
            sandbox.run_code("'b'"),
        )
        assert [each.text for each in results] == ["a", "b"]
        assert lines == ["1\n"]
        running = asyncio.create_task(sandbox.run_code(SLEEP))
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await sandbox.run_code("ended")).text == "1"
        await sandbox.kill()

    asyncio.run(run())


def test_the_example_runs(variables: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "e2b_cells.py"
    assert runpy.run_path(str(example))["main"]() == "42"
    assert "computed" in capsys.readouterr().out
