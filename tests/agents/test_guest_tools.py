"""The tools of guests in a real kernel that no Jupyter server has."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
import requests
from guest_runtime import SCRIPTED, command
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from oh_jupyter.agents.tool_socket import FOLDER_PREFIX
from oh_jupyter.testing import LiveKernel, descendants, run_server, wait_until
from oh_jupyter.testing.kernel import connect_to_kernel, text_at_end

STEPS = "[(step.status, step.output) for step in oh.agents.turns[-1].steps]"
pytestmark = pytest.mark.thorough


def call(tool: str, **arguments: Any) -> str:
    """A line of a prompt that makes the scripted agent call a tool."""
    return f"tool {tool} {json.dumps(arguments)}"


def start_kernel(folder: Path, confirmation: str = "never") -> LiveKernel:
    settings = {
        "OH_JUPYTER_AGENTS": json.dumps({"scripted": command(SCRIPTED)}),
        "OH_JUPYTER_CONFIRMATION": confirmation,
    }
    os.environ.update(settings)
    try:
        return LiveKernel(folder)
    finally:
        for name in settings:
            del os.environ[name]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    live = start_kernel(tmp_path_factory.mktemp("workspace"))
    yield live
    live.close()


def prompted(kernel: LiveKernel, *lines: str) -> list[tuple[str, str]]:
    """Status and output of each step of the scripted agent."""
    kernel.execute("%%oh_agent scripted\n" + "\n".join(lines))
    steps: list[tuple[str, str]] = json.loads(
        kernel.execute(f"import json; print(json.dumps({STEPS}))")
    )
    return steps


def test_cells_run_while_the_prompt_is_the_running_cell(kernel: LiveKernel) -> None:
    kernel.execute("number = 41")
    steps = prompted(
        kernel,
        call("run_ipython", code="number += 1\nprint(number)"),
        call("run", command="echo from the shell"),
        call("write", path="notes.txt", content="one\ntwo"),
        call("edit", command="str_replace", path="notes.txt", old_str="two", new_str="three"),
        call("variables", name="number"),
        call("run_ipython", code="1 / 0"),
        call("nonsense"),
    )
    assert [status for status, _ in steps] == ["completed"] * 5 + ["failed"] * 2
    outputs = [output for _, output in steps]
    assert outputs[0].startswith("42\n")
    assert "from the shell" in outputs[1]
    assert "three" in outputs[3]
    assert "42" in outputs[4]
    assert "ZeroDivisionError" in outputs[5]
    assert "There is no tool 'nonsense'" in outputs[6]
    assert (kernel.directory / "notes.txt").read_text() == "one\nthree\n"
    assert "42" in kernel.execute("print(number)")


def test_notebooks_are_files(kernel: LiveKernel) -> None:
    steps = prompted(
        kernel,
        call("kernel", command="start", notebook="work/book.ipynb"),
        call("insert_cell", notebook="book.ipynb", source="total = 6 * 7"),
        call("insert_cell", notebook="work/book.ipynb", source="total = 6 * 7"),
        call("insert_cell", notebook="work/book.ipynb", source="print(total)", run=False),
        call("run_cell", notebook="work/book.ipynb", cell=0, to=1),
        call("edit_cell", notebook="work/book.ipynb", cell=1, old_str="total", new_str="total + 1"),
        call("run_cell", notebook="work/book.ipynb", cell=1),
        call("read_cells", notebook="work/book.ipynb"),
        call("list_notebooks"),
        call("kernel", command="clear_outputs", notebook="work/book.ipynb"),
    )
    assert "There is no readable notebook 'book.ipynb'" in steps[1][1]
    assert [status for status, _ in steps] == ["completed", "failed"] + ["completed"] * 8
    assert "Ran 2 cells" in steps[4][1]
    assert "+print(total + 1)" in steps[5][1]
    assert "--- output ---\n43" in steps[7][1]
    assert "Cleared the outputs of 2 cells" in steps[9][1]
    path = kernel.directory / "work" / "book.ipynb"
    nbformat.validate(nbformat.read(path, as_version=4))
    assert path.read_text().startswith('{\n "cells": [\n')
    ((_, turns),) = prompted(kernel, call("changes"))
    assert "(2 files, 3 cells" in turns


def test_the_notebook_of_the_kernel_is_the_default(tmp_path: Path) -> None:
    book = tmp_path / "mine.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("print('mine')")]), book)
    os.environ["JPY_SESSION_NAME"] = str(book)
    try:
        live = start_kernel(tmp_path)
    finally:
        del os.environ["JPY_SESSION_NAME"]
    try:
        steps = prompted(live, call("run_cell", cell=0), call("list_notebooks"))
        assert steps[0][1].startswith("mine\n")
        assert '"is_this_kernel": true' in steps[1][1]
        assert nbformat.read(book, as_version=4).cells[0].outputs[0].text == "mine\n"
    finally:
        live.close()


def test_it_undoes_its_turns_also_the_running_one(tmp_path: Path) -> None:
    live = start_kernel(tmp_path)
    try:
        live.execute("v = [0]; mine = 1")
        prompted(live, call("write", path="a.txt", content="a"))
        steps = prompted(
            live,
            call("write", path="b.txt", content="b"),
            call("run_ipython", code="v.append(1); mine = 2"),
            call("run", command="cd /tmp; echo c > $OLDPWD/c.txt"),
            call("changes", command="preview"),
            call("changes", command="rewind"),
            call("run", command="ls; pwd"),
            call("run_ipython", code="print(v, mine); v.append(2)"),
            call("write", path="d.txt", content="d"),
            call("changes"),
        )
        assert [status for status, _ in steps] == ["completed"] * 9
        outputs = [output for _, output in steps]
        assert "b.txt" in outputs[3]
        assert "c.txt" in outputs[4]
        assert outputs[5].startswith(f"a.txt\n{tmp_path}\n")
        assert outputs[6] == "[0] 1"
        first, running = outputs[8].splitlines()
        assert "1 file" in first
        assert "1 file, 1 cell" in running
        turns = live.execute("print([turn.undone for turn in oh.agents.turns])")
        assert "[False, False]" in turns
        live.execute("oh.rewind(oh.agents.turns[-1])")
        assert "[0]" in live.execute("print(v)")
        assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["a.txt"]
        first_id = int(first.split(":")[0])
        ((status, undone),) = prompted(live, call("changes", command="rewind", id=first_id))
        assert status == "completed", undone
        assert not (tmp_path / "a.txt").exists()
    finally:
        live.close()


def test_it_undoes_nothing_while_its_command_runs(tmp_path: Path) -> None:
    live = start_kernel(tmp_path)
    try:
        steps = prompted(
            live,
            call("write", path="a.txt", content="a"),
            call("run", command="cat"),
            call("changes", command="rewind"),
            call("run", command="C-c", is_input=True),
            call("changes", command="rewind"),
        )
        assert "still running" in steps[2][1]
        assert [status for status, _ in steps[2:]] == ["failed", "completed", "completed"]
        assert not (tmp_path / "a.txt").exists()
    finally:
        live.close()


@pytest.mark.browser
def test_pages_are_read(kernel: LiveKernel) -> None:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<title>Page</title><h1>From the page</h1>")

        def log_message(self, *args: Any) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        ((status, output),) = prompted(kernel, call("browse", url=address, picture="none"))
        server.shutdown()
    assert status == "completed", output
    assert "From the page" in output


def test_a_call_waits_for_its_approval(tmp_path: Path) -> None:
    live = start_kernel(tmp_path, "always")
    try:
        prompt = "%%oh_agent scripted\n" + call("run_ipython", code="approved = True")
        msg_id = live.client.execute(prompt)
        waiting = wait_until(lambda: live.ask("confirmations")[1], timeout_seconds=120)
        live.ask("confirm", id=waiting[0]["id"], approve=True)
        while live.client.get_shell_msg(timeout=120)["parent_header"].get("msg_id") != msg_id:
            pass
        assert "True" in live.execute("print(approved)")
    finally:
        live.close()


def test_an_interrupt_ends_its_cell_and_it_continues(kernel: LiveKernel) -> None:
    started = kernel.directory / "started"
    loop = f"open({str(started)!r}, 'w').close()\nwhile True: pass"

    pid = kernel_pid(kernel)

    def interrupt() -> None:
        wait_until(started.exists, timeout_seconds=120)
        os.kill(pid, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    steps = prompted(
        kernel, call("run_ipython", code=loop), call("run_ipython", code="print('still here')")
    )
    interrupting.join()
    assert "KeyboardInterrupt" in steps[0][1]
    assert "still here" in steps[1][1]


def test_it_interrupts_cells_but_not_its_own_prompt(kernel: LiveKernel) -> None:
    loop = "import time\nwhile True: time.sleep(0.05)"
    steps = prompted(
        kernel,
        call("kernel", command="interrupt"),
        call("kernel", command="start", notebook="loop.ipynb"),
        call("insert_cell", notebook="loop.ipynb", source=loop),
        call("run_cell", notebook="loop.ipynb", cell=0, wait=2),
        call("kernel", command="status"),
        call("read_cells", notebook="loop.ipynb"),
        call("kernel", command="interrupt"),
        call("run_ipython", code="print('free again')"),
    )
    outputs = [output for _, output in steps]
    assert outputs[0] == "No cell is running; nothing was interrupted."
    assert "It continues" in outputs[3]
    assert '"first_line": "import time"' in outputs[4]
    assert "[Running for" in outputs[5]
    assert outputs[6].startswith("Interrupted the cell that had been running for")
    assert "free again" in outputs[7]


def bridges(pid: int) -> list[psutil.Process]:
    return descendants(
        lambda process: any(word.endswith("_bridge.py") for word in process.cmdline()), of=pid
    )


def address_of(bridge: psutil.Process) -> str:
    return bridge.cmdline()[-1]


def kernel_pid(kernel: LiveKernel) -> int:
    return int(kernel.execute("import os; print(os.getpid())"))


def test_no_other_process_can_use_the_socket(kernel: LiveKernel) -> None:
    prompted(kernel, call("list_notebooks"))
    (bridge,) = bridges(kernel_pid(kernel))
    address = address_of(bridge)
    assert Path(address).stat().st_mode & 0o777 == 0o600
    assert Path(address).parent.stat().st_mode & 0o777 == 0o700
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(60)
        other.connect(address)
        assert other.recv(100) == b""  # it is closed; one that is served would stay open
    # Nor can a command of the shell, which is a child of the kernel and not of the agent.
    ((_, output),) = prompted(
        kernel, call("run", command=f"{' '.join(bridge.cmdline())} < /dev/null; echo over")
    )
    assert output.startswith("over")


def test_an_agent_that_is_killed_leaves_no_bridge(kernel: LiveKernel) -> None:
    prompted(kernel, call("list_notebooks"))
    (bridge,) = bridges(kernel_pid(kernel))
    bridge.parent().kill()
    bridge.wait(60)
    wait_until(lambda: kernel.ask("status")[1]["agents"] == {})
    ((_, output),) = prompted(kernel, "tool list_notebooks")
    assert "No notebook is open" in output
    kernel.execute("%oh_agent stop")
    assert bridges(kernel_pid(kernel)) == []


def test_a_kernel_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    live = start_kernel(tmp_path)
    prompted(live, call("list_notebooks"))
    pid = kernel_pid(live)
    (bridge,) = bridges(pid)
    folder = Path(address_of(bridge)).parent
    children = psutil.Process(pid).children(recursive=True)
    psutil.Process(pid).kill()
    assert psutil.wait_procs(children, 60)[1] == []
    live.close()
    other = start_kernel(tmp_path)
    try:
        prompted(other, call("list_notebooks"))
        assert not folder.exists()
    finally:
        other.close()


def test_a_kernel_that_ends_leaves_no_folder(tmp_path: Path) -> None:
    live = start_kernel(tmp_path)
    prompted(live, call("list_notebooks"))
    (bridge,) = bridges(kernel_pid(live))
    folder = Path(address_of(bridge)).parent
    assert folder.exists()
    live.manager.shutdown_kernel()
    live.close()
    assert not folder.exists()


def test_in_a_notebook_that_nbclient_executes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [
        "%load_ext oh_jupyter",
        "number = 20",
        "%%oh_agent scripted\n" + call("run_ipython", code="number += 1"),
        "print('number', number)",
    ]
    monkeypatch.setenv("OH_JUPYTER_AGENTS", json.dumps({"scripted": command(SCRIPTED)}))
    monkeypatch.setenv("OH_JUPYTER_CONFIRMATION", "never")
    book = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=120, kernel_name="python3", resources=resources).execute()
    assert book.cells[3].outputs[0].text == "number 21\n"


@pytest.fixture(scope="module")
def with_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any, Path]]:
    """A server with the notebook book.ipynb, and the client of its kernel."""
    folder = tmp_path_factory.mktemp("served")
    environment = {
        "OH_JUPYTER_AGENTS": json.dumps({"scripted": command(SCRIPTED)}),
        "OH_JUPYTER_CONFIRMATION": "never",
    }
    with run_server(folder, environment=environment) as server:
        book = folder / "root" / "book.ipynb"
        nbformat.write(new_notebook(cells=[new_code_cell("print(1)")]), book)
        body = {
            "path": "book.ipynb",
            "name": "book.ipynb",
            "type": "notebook",
            "kernel": {"name": "python3"},
        }
        session = requests.post(
            f"{server.url}/api/sessions", json=body, headers=server.headers, timeout=120
        ).json()
        client = connect_to_kernel(folder / "run" / f"kernel-{session['kernel']['id']}.json")
        text_at_end(client, "%load_ext oh_jupyter")
        yield server, client, book
        client.stop_channels()


def test_the_server_edits_open_documents_and_discloses_no_token(with_server) -> None:
    server, client, book = with_server
    lines = [
        call("edit_cell", cell=0, source="print(6 * 7)"),
        call("run_cell", cell=0),
        call("run_ipython", code="import os; print(os.getpid())"),
        call("kernel", command="status"),
    ]
    text_at_end(client, "%%oh_agent scripted\n" + "\n".join(lines))
    shown = text_at_end(client, f"import json; print(json.dumps({STEPS}))")
    steps = json.loads(shown)
    assert [status for status, _ in steps] == ["completed"] * 4, steps
    assert "42" in steps[1][1]
    assert '"notebook": "book.ipynb"' in steps[3][1]
    (cell,) = nbformat.read(book, as_version=4).cells
    assert (cell.source, cell.outputs[0].text) == ("print(6 * 7)", "42\n")
    log = text_at_end(
        client, "print([getattr(event, 'actor', None) for event in oh.events.search()])"
    )
    assert "guest='scripted-" in log

    kernel = psutil.Process(int(text_at_end(client, "print(os.getpid())")))
    agents = [p for p in kernel.children(recursive=True) if "scripted_agent.py" in str(p.cmdline())]
    assert agents
    for process in [p for agent in agents for p in [agent, *agent.children(recursive=True)]]:
        assert server.token not in str(process.cmdline())
        assert server.token not in str(process.environ())
    for file in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*/*"):
        assert file.is_socket() or not file.exists()  # another test's kernel has just ended
