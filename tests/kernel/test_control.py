"""The control channel: every Action, while cells run, and what is refused."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.control_messages import SILENT_FIELD
from oh_jupyter.testing import wait_until
from oh_jupyter.testing.kernel import REPLY_TIMEOUT_SECONDS, LiveKernel


def test_ping_is_answered_at_once(kernel) -> None:
    fields, _ = kernel.ask("ping")
    assert fields["status"] == "ok"
    assert len(fields["generation"]) == 32


def test_replies_are_awaited_in_any_order(kernel) -> None:
    first, second = kernel.send("ping"), kernel.send("ping")
    assert kernel.reply(second, 30)[0]["status"] == "ok"
    assert kernel.reply(first, 30)[0]["status"] == "ok"


def test_a_silent_request_does_not_make_the_kernel_busy_or_idle(kernel, monkeypatch) -> None:
    monkeypatch.setattr(kernel.client.session, "metadata", {SILENT_FIELD: True})
    asked = kernel.send("ping")
    kernel.reply(asked)
    cell, parents = kernel.client.execute("1"), []
    while cell not in parents:
        message = kernel.client.get_iopub_msg(timeout=REPLY_TIMEOUT_SECONDS)
        parents.append(message["parent_header"].get("msg_id"))
    assert asked not in parents


def test_a_request_of_a_frontend_ends_with_the_idle_status(kernel) -> None:
    asked, states = kernel.send("ping"), []
    kernel.reply(asked)
    while states[-1:] != ["idle"]:
        message = kernel.client.get_iopub_msg(timeout=REPLY_TIMEOUT_SECONDS)
        if message["parent_header"].get("msg_id") == asked:
            states.append(message["content"]["execution_state"])
    assert states == ["busy", "idle"]


def test_a_command_is_carried_out(kernel) -> None:
    observation = kernel.act("run", command="echo hello; pwd")
    assert observation["observation"] == "run"
    assert observation["content"] == f"hello\n{kernel.directory}"
    assert observation["success"] is True
    assert observation["extras"]["metadata"]["exit_code"] == 0


def test_a_cell_is_carried_out_in_the_shell_of_the_person(kernel) -> None:
    kernel.execute("theirs = 20")
    observation = kernel.act("run_ipython", code="ours = theirs + 1\nprint('x')\nours")
    text = observation["content"]
    assert text.startswith("x\n21\n[Jupyter current working directory: ")
    assert "[Jupyter Python interpreter: " in text
    assert kernel.execute("ours * 2") == "42"


@pytest.mark.parametrize("theirs", ["len('abc');", "print((1", "f'''", "!true;", "%%bash\ntrue;"])
@pytest.mark.parametrize(
    ("ours", "shown"),
    [
        ("20 + 22", "42"),
        ("20 + 22;", ""),
        ("20 + 22;  # why", ""),
        ("print('a'); 7", "a\n7"),
        ("';'", "';'"),
        ("import asyncio\nawait asyncio.sleep(0, 'x');", ""),
        ("import asyncio\nawait asyncio.sleep(0, 'x')", "'x'"),
    ],
)
def test_a_result_is_hidden_by_the_semicolon_of_its_own_cell(
    kernel, theirs: str, ours: str, shown: str
) -> None:
    expected = shown or "[Code executed successfully with no output]"
    kernel.execute(theirs)
    observation = kernel.act("run_ipython", code=ours, include_extra=False)
    assert observation["content"] == expected
    # A cell inside a waiting magic of the person.
    inner = ast.literal_eval(kernel.execute(f"oh.run_ipython({ours!r}).content"))
    assert inner.partition("\n[Jupyter ")[0] == expected


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", "while True: pass"])
def test_actions_answer_while_a_cell_runs(kernel, code: str) -> None:
    path = kernel.directory / "note.txt"
    cell = kernel.start(code)
    assert kernel.act("run", command="echo still here")["content"] == "still here"
    assert kernel.act("write", path=str(path), content="text")["observation"] == "write"
    assert kernel.act("read", path=str(path))["content"] == "text\n"
    edit = kernel.act("edit", path=str(path), command="str_replace", old_str="text", new_str="new")
    assert edit["content"].startswith(f"The file {path} has been edited.")
    kernel.manager.interrupt_kernel()
    assert kernel.finish(cell)["ename"] == "KeyboardInterrupt"
    assert kernel.act("run", command="echo after")["content"] == "after"


HOLDING = "import time; from pathlib import Path\nwhile not Path('go').exists(): time.sleep(0.01)\n"
"""A cell that runs until there is a file."""


@pytest.fixture
def go(kernel) -> Iterator[Path]:
    """The file for which cells and magics wait, in the kernel's directory."""
    kernel.execute(f"%cd -q {kernel.directory}")
    kernel.execute(f"%oh_run cd {kernel.directory}")
    for name in ("go", "pid", "started"):
        (kernel.directory / name).unlink(missing_ok=True)
    yield kernel.directory / "go"
    (kernel.directory / "go").touch()


def sent_cell(kernel, code: str) -> str:
    """Send an agent's cell, and return when it is under way."""
    action = {"action": "run_ipython", "args": {"code": code}}
    asked = kernel.send("execute_action", {"action": action})
    while not kernel.ask("status")[1]["running"]:
        pass
    return str(asked)


def test_a_cell_of_the_agent_waits_for_the_cell_of_the_person(kernel, go: Path) -> None:
    cell = kernel.start(f"{HOLDING}first = 'done'")
    asked = sent_cell(kernel, "first")
    go.touch()
    assert kernel.reply(asked)[1]["content"].startswith("'done'")
    assert kernel.finish(cell)["status"] == "ok"


WAITING = "out = %oh_run echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; echo done"
"""A magic that waits until there is a file."""


def test_a_cell_of_the_agent_runs_inside_a_magic_that_waits(kernel, go: Path) -> None:
    cell = kernel.start(WAITING)
    wait_until((kernel.directory / "pid").exists)
    code = "import asyncio; await asyncio.sleep(0.01); found = 6 * 7\nprint('in it')\nfound"
    observation = kernel.act("run_ipython", code=code)
    assert observation["content"].startswith("in it\n42\n")
    assert "ZeroDivisionError" in kernel.act("run_ipython", code="1/0")["content"]
    go.touch()
    assert kernel.finish(cell)["status"] == "ok"
    assert kernel.execute("print(out.content, found)") == "done 42\n"


def test_taking_a_cell_back_leaves_the_magic_around_it_alone(kernel, go: Path) -> None:
    cell = kernel.start(WAITING)
    wait_until((kernel.directory / "pid").exists)
    endless = "from pathlib import Path; Path('started').touch()\nwhile True: pass"
    action = {"action": "run_ipython", "args": {"code": endless}}
    asked = kernel.send("execute_action", {"action": action}, key="mine")
    wait_until((kernel.directory / "started").exists)
    kernel.send("cancel", key="mine")
    assert kernel.reply(asked)[0]["status"] == "error"
    assert kernel.act("run_ipython", code="'well'")["content"].startswith("'well'")
    go.touch()
    assert kernel.finish(cell)["status"] == "ok"
    assert kernel.execute("print(out.content)") == "done\n"


def test_an_interrupt_that_arrives_late_spares_the_next_command(kernel) -> None:
    gate, started = kernel.directory / "gate", kernel.directory / "spared"
    os.mkfifo(gate)
    requested = kernel.ask("ping")[0]["clock"]
    command = f"touch {started}; cat {gate}"
    action = {"action": "run", "args": {"command": command, "blocking": True}}
    asked = kernel.send("execute_action", {"action": action})
    wait_until(started.exists)
    kernel.ask("interrupt", requested=requested)
    gate.write_text("through")
    assert kernel.reply(asked)[1]["content"] == "through"


def test_an_interrupt_spares_a_command_that_begins_right_after_it(kernel) -> None:
    for number in range(20):
        action = {
            "action": "run",
            "args": {"command": f"sleep 0.1; echo {number}", "blocking": True},
        }
        requested = kernel.ask("ping")[0]["clock"]
        asked = kernel.send("execute_action", {"action": action})
        kernel.ask("interrupt", requested=requested)
        assert kernel.reply(asked)[1]["content"] == f"{number}"


@pytest.mark.thorough
def test_a_cell_is_interrupted_when_its_time_is_over(kernel) -> None:
    code = "print('started', flush=True)\nimport time; time.sleep(600)"
    observation = kernel.act("run_ipython", timeout=3, code=code)
    assert observation["content"].startswith("started")
    assert "[Execution timed out (3.0 seconds).]" in observation["content"]
    assert kernel.act("run_ipython", code="'well'")["content"].startswith("'well'")


@pytest.mark.thorough
def test_a_waiting_cell_whose_time_is_over_never_starts(kernel, go: Path) -> None:
    cell = kernel.start(f"{HOLDING}ran = False")
    observation = kernel.act("run_ipython", timeout=0.1, code="ran = True")
    lines = observation["content"].splitlines()
    assert lines[0] == "[Execution timed out (0.1 seconds).]"
    assert lines[1].startswith(
        "[The cell never began: the kernel runs another one (by the person, for "
    )
    assert "An interrupt of the kernel stops it" in lines[1]
    go.touch()
    assert kernel.finish(cell)["status"] == "ok"
    assert kernel.execute("ran") == "False"


def impatient_cell(kernel, code: str) -> dict:
    """Run an agent's cell that must begin within a moment."""
    wire = {"action": "run_ipython", "args": {"code": code}}
    return kernel.ask("run_cell", {"action": wire}, begin_within=0.2)[1]["observation"]


@pytest.mark.parametrize("inside", [False, True])
def test_a_cell_that_does_not_begin_in_time_is_withdrawn(kernel, go: Path, inside: bool) -> None:
    if inside:  # in a magic that waits, behind another cell of an agent
        cell = kernel.start(WAITING)
        wait_until((kernel.directory / "pid").exists)
        asked = sent_cell(kernel, f"{HOLDING}ran = False")
        wait_until(lambda: kernel.ask("status")[1]["cell"]["by"] == "agent")
    else:
        cell = kernel.start(f"{HOLDING}ran = False")
    withdrawn = impatient_cell(kernel, "ran = True")
    assert withdrawn["observation"] == "error"
    assert withdrawn["content"].startswith(
        "It did not begin within 0.2 s and was withdrawn: it will not run. The cell never began: "
        f"the kernel runs another one (by the {'agent' if inside else 'person'}, for "
    )
    assert "s: import time; from pathlib import Path)." in withdrawn["content"]
    assert "Call again to wait again, or with a timeout" in withdrawn["content"]
    assert withdrawn["oh_jupyter"]["handling"]["never_began"] is True
    go.touch()
    assert kernel.finish(cell)["status"] == "ok"
    if inside:
        kernel.reply(asked)
    assert kernel.execute("ran") == "False"
    assert impatient_cell(kernel, "import time; time.sleep(0.4); 'well'")["content"].startswith(
        "'well'"
    )


def test_a_cell_that_ignores_its_interrupt_is_named(kernel, go: Path) -> None:
    code = f"""import os, time
while not os.path.exists({str(go)!r}):
    try:
        time.sleep(0.05)
    except KeyboardInterrupt:
        pass"""
    first = kernel.act("run_ipython", timeout=1, code=code)["content"]
    assert "[Execution timed out (1.0 seconds).]" in first
    assert "[The cell ignored the interrupt and still runs (by the agent, for " in first
    second = kernel.act("run_ipython", timeout=0.5, code="print('second')")["content"]
    assert "[The cell never began: the kernel runs another one (by the agent, for " in second
    assert "s: import os, time)" in second
    go.touch()
    assert kernel.act("run_ipython", code="'well'")["content"].startswith("'well'")


def test_threads_output_between_two_cells_is_shown_with_the_next(kernel, go: Path) -> None:
    code = f"""import threading, time
from pathlib import Path
def late():
    while not Path({str(go)!r}).exists():
        time.sleep(0.01)
    print("from the thread", flush=True)
    Path("printed").touch()
threading.Thread(target=late).start()"""
    assert "from the thread" not in kernel.act("run_ipython", code=code)["content"]
    go.touch()
    wait_until((kernel.directory / "printed").exists)
    later = kernel.act("run_ipython", code="6 * 7", include_extra=False)["content"]
    assert later == (
        "42\n[Printed by threads of earlier cells after these had ended:]\nfrom the thread"
    )
    assert kernel.act("run_ipython", code="1", include_extra=False)["content"] == "1"


def test_a_cell_that_ends_the_kernel_is_reported(fresh_kernel) -> None:
    assert (
        "SystemExit" in fresh_kernel.act("run_ipython", code="import sys; sys.exit(3)")["content"]
    )
    assert "SystemExit" in fresh_kernel.act("run_ipython", code="raise SystemExit")["content"]
    fresh_kernel.execute("%config OhJupyter.confirmation = 'never'")
    ended = fresh_kernel.act("run_ipython", code="exit()", include_extra=False)["content"]
    assert ended == (
        "[The cell ends the kernel: all variables are lost, and the shell and browser end.]"
    )


@pytest.mark.parametrize("code", ["len?", "?len", "%pinfo len"])
def test_the_help_of_a_function_is_an_output(kernel, code: str) -> None:
    help_text = "Return the number of items in a container."
    assert help_text in kernel.act("run_ipython", code=code)["content"]
    inner = f"out = oh.run_ipython({code!r}); {help_text!r} in out.content"
    assert kernel.execute(inner) == "True"


@pytest.mark.parametrize("figure_format", ["svg", "pdf", "png"])
def test_a_figure_is_a_png_whatever_its_format_in_the_notebook(kernel, figure_format) -> None:
    pytest.importorskip("matplotlib")
    kernel.execute("%matplotlib inline\nimport matplotlib.pyplot as plt")
    kernel.execute(f"%config InlineBackend.figure_formats = [{figure_format!r}]")
    observation = kernel.act("run_ipython", code="plt.plot([1, 2]);")
    (picture,) = observation["extras"]["image_urls"]
    assert picture.startswith("data:image/png;base64,")
    inner = "oh.run_ipython('plt.plot([1, 2]);').image_urls[0][:14]"
    assert kernel.execute(inner) == "'data:image/png'"


def test_a_failing_cell_of_the_person_does_not_abort_the_agents(kernel, go: Path) -> None:
    cell = kernel.start(f"{HOLDING}1/0")
    asked = sent_cell(kernel, "40 + 2")
    go.touch()
    assert kernel.reply(asked)[1]["content"].startswith("42")
    assert kernel.finish(cell)["ename"] == "ZeroDivisionError"


FLUSHES = """
import sys
thread, calls = sys.stdout.pub_thread, []
schedule = thread.schedule
thread.schedule = lambda call: (calls.append(call), schedule(call))
def flush():
    sys.stdout.flush()
    return sum(getattr(call, '__self__', None) is sys.stdout for call in calls)
before = flush()
print('x')
after = flush()
del thread.schedule
before, after
"""


def test_the_streams_of_an_agents_cell_are_flushed_where_there_is_something(kernel) -> None:
    assert kernel.act("run_ipython", code=FLUSHES)["content"].startswith("x\n(0, 1)\n")


def test_no_output_is_ever_lost(kernel) -> None:
    for number in range(50):
        observation = kernel.act("run_ipython", code=f"print({number})", include_extra=False)
        assert observation["content"] == str(number)


def test_exceptions_images_and_updates_are_seen(kernel) -> None:
    failed = kernel.act("run_ipython", code="1/0")
    assert "ZeroDivisionError: division by zero" in failed["content"]
    assert "\x1b" not in failed["content"]
    assert failed["success"] is True
    code = (
        "from IPython.display import display, Image, SVG, clear_output\n"
        "print('gone'); clear_output()\n"
        "h = display('old', display_id=True); h.update('new')\n"
        "import base64\n"
        "display(Image(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
        "YPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='), format='png'))\n"
        "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')"
    )
    shown = kernel.act("run_ipython", code=code, include_extra=False)
    assert shown["content"].startswith("'new'\n<IPython.core.display.Image object>")
    urls = shown["extras"]["image_urls"]
    assert [url.partition(";")[0] for url in urls] == ["data:image/png", "data:image/svg+xml"]


def test_a_silent_cell_is_marked(kernel) -> None:
    observation = kernel.act("run_ipython", code="quiet = 1", include_extra=False)
    assert observation["content"] == "[Code executed successfully with no output]"
    assert observation["extras"]["image_urls"] is None


def test_agent_skills_are_in_the_namespace_and_take_no_name_away(fresh_kernel) -> None:
    fresh_kernel.execute("search_dir = 'mine'")
    observation = fresh_kernel.act("run_ipython", code="callable(open_file), search_dir")
    assert observation["content"].startswith("(True, 'mine')")


def test_the_kernel_follows_the_shell(kernel) -> None:
    (kernel.directory / "inner").mkdir()
    kernel.act("run", command=f"cd {kernel.directory}")
    kernel.act("run_ipython", code="1")
    kernel.act("run", command="cd inner")
    observation = kernel.act("run_ipython", code="import os; os.getcwd()")
    assert observation["content"].startswith(f"'{kernel.directory / 'inner'}'")
    assert f"directory: {kernel.directory / 'inner'}]" in observation["content"]
    kernel.act("run", command="cd ..")


@pytest.mark.parametrize(
    ("body", "error", "word"),
    [
        (b"{", "WireError", "not JSON"),
        (b"[]", "WireError", "'action' object"),
        ({"action": "run"}, "WireError", "'action' object"),
        ({"action": {"action": "fly"}}, "UnknownTypeError", "fly"),
        ({"action": {"action": "run", "args": {}}}, "WireError", "command"),
        (
            {"action": {"action": "message", "args": {"content": "x"}}},
            "NotRunnableError",
            "message",
        ),
        (None, "WireError", "no body"),
    ],
)
def test_unreadable_requests_are_refused(kernel, body, error: str, word: str) -> None:
    fields, observation = kernel.ask("execute_action", body)
    assert observation is None
    assert (fields["status"], fields["ename"]) == ("error", error)
    assert word in fields["evalue"]


def test_an_unknown_operation_is_refused(kernel) -> None:
    fields, _ = kernel.ask("levitate")
    assert fields["ename"] == "WireError"
    assert "levitate" in fields["evalue"]


def test_files_are_listed(fresh_kernel) -> None:
    for name in ("b.txt", "A.txt", ".hidden"):
        (fresh_kernel.directory / name).touch()
    (fresh_kernel.directory / "zoo").mkdir()
    (fresh_kernel.directory / "dangling").symlink_to("nowhere")
    _, names = fresh_kernel.ask("list_files", path=None)
    assert names == ["zoo/", ".hidden", "A.txt", "b.txt"]
    assert fresh_kernel.ask("list_files", path="zoo")[1] == []
    assert fresh_kernel.ask("list_files", path="missing")[1] == []


def test_everything_is_in_the_log_whichever_door_it_came_through(fresh_kernel) -> None:
    fresh_kernel.act("run", command="echo agent")
    fresh_kernel.execute("oh.run('echo person');")
    events = fresh_kernel.ask("events", start_id=0)[1]["events"]
    kinds = [(e["id"], e["source"], e.get("action") or e.get("observation")) for e in events]
    assert kinds == [
        (0, "agent", "run"),
        (1, "agent", "run"),
        (2, "user", "run"),
        (3, "user", "run"),
    ]
    assert [e.get("cause") for e in events] == [None, 0, None, 2]
    _, one = fresh_kernel.ask("event", id=3)
    assert one["content"] == "person"


def test_events_are_broadcast_to_every_frontend(fresh_kernel) -> None:
    msg_id = fresh_kernel.send(
        "execute_action", {"action": {"action": "run", "args": {"command": "echo hi"}}}
    )
    seen = []
    while len(seen) < 2:
        message = fresh_kernel.client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "oh_jupyter_event":
            seen.append(message["content"])
    fresh_kernel.reply(msg_id)
    assert [item["event"].get("action") for item in seen] == ["run", None]
    assert seen[1]["event"]["content"] == "hi"
    assert [item["seq"] for item in seen] == [0, 1]


def test_rejected_and_awaiting_actions_are_not_carried_out(kernel) -> None:
    marker = kernel.directory / "must-not-be"
    command = f"touch {marker}"
    rejected = kernel.act("run", command=command, confirmation_state="rejected")
    awaiting = kernel.act("run", command=command, confirmation_state="awaiting_confirmation")
    assert (rejected["observation"], awaiting["observation"]) == ("user_rejected", "null")
    assert not marker.exists()


def test_the_panel_decides_on_the_control_channel_and_all_panels_hear_of_it(kernel) -> None:
    asked = kernel.send(
        "execute_action", {"action": {"action": "run", "args": {"command": "echo x; sudo -n true"}}}
    )
    waiting: list = []
    while not waiting:
        fields, waiting = kernel.ask("confirmations")
    generation, id = fields["generation"], waiting[0]["id"]
    of_another = kernel.ask("confirm", id=id, approve=True, generation="another")[0]
    assert of_another["ename"] == "GenerationChangedError"
    running = kernel.start("import time; time.sleep(1000)")
    decision = {"id": id, "approve": True, "by": "JupyterLab", "generation": generation}
    assert kernel.ask("confirm", **decision)[0]["status"] == "ok"
    observation = kernel.reply(asked)[1]
    assert observation["observation"] == "run"
    assert observation["oh_jupyter"]["handling"]["decided_by"] == "JupyterLab"
    decision = None
    while decision is None:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "oh_jupyter_decision":
            decision = message["content"]
    expected = {"generation": generation, "id": id, "approved": True, "by": "JupyterLab"}
    assert decision == expected
    kernel.manager.interrupt_kernel()
    assert kernel.finish(running)["status"] == "error"
    again = kernel.ask("confirm", id=id, approve=True, generation=generation)[0]
    assert again["ename"] == "ConfirmationError"


def test_an_agents_cell_inside_a_waiting_magic_is_still_an_agents(kernel, tmp_path) -> None:
    started, gate = tmp_path / "started", tmp_path / "gate"
    os.mkfifo(started)
    os.mkfifo(gate)
    waiting = kernel.start(f"%oh_run --blocking echo > {started}; cat {gate}")
    started.read_text()
    approves = kernel.act("run_ipython", code="oh.confirm(99)")
    asks = kernel.act("run_ipython", code="oh._principal()")
    gate.write_text("open")
    assert kernel.finish(waiting)["status"] == "ok"
    assert "Only a person can approve actions" in approves["content"]
    assert asks["content"].startswith("'agent'")
    assert kernel.execute("oh._principal()") == "'user'"
    assert kernel.execute("oh.run_ipython('oh._principal()').content").startswith("\"'user'")


def test_a_request_inherits_nothing_from_an_earlier_one(fresh_kernel: LiveKernel) -> None:
    """Its message may arrive while the reply to the earlier one is sent, in that one's context."""
    fresh_kernel.execute(
        "from oh_jupyter.cells.request import stores_history\n"
        "handlers = get_ipython().kernel.control_handlers\n"
        "handle = handlers['oh_jupyter_request']\n"
        "def handle_in_another_context(*message):\n"
        "    stores_history.set(True)\n"
        "    return handle(*message)\n"
        "handlers['oh_jupyter_request'] = handle_in_another_context"
    )
    shown = fresh_kernel.act("run_ipython", code="In[-1]")["content"]
    assert shown.splitlines()[0] != "'In[-1]'"
    assert "handle_in_another_context" in shown.splitlines()[0]
