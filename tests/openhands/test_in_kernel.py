"""A stock agent of the SDK whose loop runs in the kernel of a notebook."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(240)


def carry_out(kernel: Any, *steps: Any) -> list[str]:
    """Return the tools' results of an agent that takes these steps."""
    code = f"print('\\n' + json.dumps(carry_out(*json.loads({json.dumps(steps)!r}))))"
    shown = kernel.execute(code, timeout=120)
    lines = [line for line in shown.splitlines() if line.startswith("[")]
    assert lines, shown
    return json.loads(lines[-1])


def wait_for_command(kernel: Any, command: str) -> int:
    """The id of the Action of a command, when it comes."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        event = message["content"].get("event", {})
        if event.get("args", {}).get("command") == command:
            return int(event["id"])


def test_a_variable_a_file_a_cell_and_a_page(kernel: Any) -> None:
    kernel.execute("secret_number = 4711")
    file, page = kernel.directory / "a.txt", kernel.directory / "page.html"
    page.write_text("<h1>Title</h1><p>Words <a href='x'>link</a></p><button>Push</button>")
    results = carry_out(
        kernel,
        ("ipython", {"code": "print(secret_number + 1)\nfrom_the_agent = secret_number * 2"}),
        ("file_editor", {"command": "create", "path": str(file), "file_text": "one\n"}),
        ("file_editor", {"command": "view", "path": str(file)}),
        ("terminal", {"command": "cat a.txt; exit_code() { return 3; }; exit_code"}),
        ("browser_navigate", {"url": page.as_uri()}),
        ("browser_get_state", {"include_screenshot": True}),
        ("browser_get_content", {"extract_links": True}),
        ("browser_list_tabs", {}),
    )
    cell, created, viewed, command, _, state, content, tabs = results
    assert cell.startswith("4712")
    assert "9422" in kernel.execute("print(from_the_agent)")
    assert "created successfully" in created
    assert "     1\tone" in viewed
    assert command.startswith("one\n")
    assert command.endswith("[Command finished with exit code 3]")
    assert command.count("exit code") == 1
    assert "button 'Push'" in state
    assert state.endswith("(image)")
    assert content.startswith("## Title\n\nWords\n[link](file://")
    assert tabs == f"0000: {page.as_uri()} (active)"
    kernel.execute("oh.edit('undo_edit', 'a.txt')")
    assert not file.exists()


def test_elements_are_clicked_and_filled_by_their_numbers(kernel: Any) -> None:
    page = kernel.directory / "form.html"
    page.write_text(
        "<input id=name><button onclick='heading.textContent = document.all.name.value'>Go</button>"
        "<h1 id=heading>empty</h1><iframe srcdoc='<button>within</button>'></iframe>"
    )
    (state,) = carry_out(kernel, ("browser_navigate", {"url": page.as_uri()}))
    (state,) = carry_out(kernel, ("browser_get_state", {}))

    def number(element: str) -> int:
        (line,) = [line for line in state.splitlines() if element in line]
        return int(line.strip()[1:].partition("]")[0])

    assert number("button 'within'") >= 100_000
    *_, content = carry_out(
        kernel,
        ("browser_type", {"index": number("textbox"), "text": "Ada"}),
        ("browser_click", {"index": number("button 'Go'")}),
        ("browser_click", {"index": 99}),
        ("browser_scroll", {"direction": "down"}),
        ("browser_get_content", {}),
    )
    assert "## Ada" in content


def test_the_cells_of_a_notebook(kernel: Any) -> None:
    path = kernel.directory / "sums.ipynb"
    kernel.execute(
        "import nbformat\nnotebook = nbformat.v4.new_notebook()\n"
        "notebook.cells = [nbformat.v4.new_code_cell('one = 1')]\n"
        f"nbformat.write(notebook, {str(path)!r})"
    )
    viewed, inserted, first, second, missing, undone = carry_out(
        kernel,
        ("notebook", {"command": "view", "path": str(path)}),
        (
            "notebook",
            {"command": "insert", "path": str(path), "cell": 0, "source": "print(one + 1)"},
        ),
        ("notebook", {"command": "run", "path": str(path), "cell": 0}),
        ("notebook", {"command": "run", "path": str(path), "cell": 1}),
        ("notebook", {"command": "run", "path": str(path), "cell": 7}),
        ("file_editor", {"command": "undo_edit", "path": str(path)}),
    )
    assert "one = 1" in viewed
    assert "new cell [1]" in inserted
    assert not first.startswith("!")
    assert second.startswith("2\n")
    assert "has no code cell 7; it has 2 cells" in missing
    assert "undone successfully" in undone
    assert len(json.loads(path.read_text())["cells"]) == 1


def test_failures_are_errors_that_the_model_reads(kernel: Any) -> None:
    view, cell, notebook = carry_out(
        kernel,
        ("file_editor", {"command": "view", "path": "/no/such/file"}),
        ("ipython", {"code": "1/0"}),
        ("notebook", {"command": "run", "path": "/no/such.ipynb", "cell": 0}),
    )
    assert view.startswith("!")
    assert "ZeroDivisionError" in cell
    assert notebook.startswith("!")


def test_a_loop_on_the_main_thread_runs_cells_too(kernel: Any) -> None:
    kernel.execute("given = 20")
    shown = kernel.execute(
        "c = begin(('ipython', {'code': 'print(given + 1)'}))\nc.run()\nprint(observed(c))"
    )
    assert "'21\\n" in shown


@pytest.mark.parametrize("approve", [True, False])
def test_a_question_is_asked_once(kernel: Any, approve: bool) -> None:
    file = kernel.directory / f"{approve}.txt"
    file.touch(mode=0o600)
    command = f"chmod 777 {file}"
    msg_id = kernel.start(f"found = carry_out(('terminal', {{'command': {command!r}}}))")
    id = wait_for_command(kernel, command)
    fields, _ = kernel.ask("confirm", id=id, approve=approve)
    assert fields["status"] == "ok", fields
    assert kernel.finish(msg_id)["status"] == "ok"
    assert file.stat().st_mode & 0o777 == (0o777 if approve else 0o600)
    assert ("rejected by the user" in kernel.execute("print(found)")) is not approve


def test_an_interrupt_ends_the_running_tool_and_the_conversation_continues(kernel: Any) -> None:
    msg_id = kernel.start(
        "c = begin(('terminal', {'command': 'sleep 1000'}))\noh_jupyter.openhands.run(c)"
    )
    wait_for_command(kernel, "sleep 1000")
    kernel.manager.interrupt_kernel()
    assert kernel.finish(msg_id)["ename"] == "KeyboardInterrupt"
    assert "paused" in kernel.execute("print(c.state.execution_status.value)")
    shown = kernel.execute(
        "c.send_message('Continue.')\noh_jupyter.openhands.run(c)\n"
        "print(c.state.execution_status.value, observed(c), oh.status()['running'])"
    )
    assert "finished" in shown
    assert shown.rstrip().endswith("[]")


def test_the_log_names_the_agent(kernel: Any) -> None:
    carry_out(kernel, ("terminal", {"command": "echo for the log"}))
    shown = kernel.execute(
        "print([event.source for event in oh.events.search() "
        "if getattr(event, 'command', '') == 'echo for the log'])"
    )
    assert shown.startswith("['agent', 'agent']")


def test_secrets_of_the_conversation_are_exported_and_masked(kernel: Any) -> None:
    kernel.execute(
        "c = begin(('terminal', {'command': 'echo \"$API_KEY\" | rev; echo $API_KEY'}), "
        "('terminal', {'command': 'read -p \"$API_KEY?\"', 'timeout': 1}))\n"
        "c.update_secrets({'API_KEY': 'hush-hush', 'UNUSED': 'not-named'})\n"
        "oh_jupyter.openhands.run(c)",
        timeout=120,
    )
    first, second = json.loads(kernel.execute("print(json.dumps(observed(c)))"))
    assert first.startswith("hsuh-hsuh\n<secret-hidden>\n")
    assert second.startswith("<secret-hidden>?")
    assert "hush-hush" not in kernel.execute("print([vars(event) for event in oh.events.search()])")
    assert kernel.execute("import os; print('API_KEY' in os.environ)").startswith("False")
    kernel.execute("oh.run('C-c', is_input=True)")
    assert kernel.execute("print(oh.run('echo ${UNUSED-none}').content)").startswith("none")


def test_variables_of_the_tool_are_set(kernel: Any) -> None:
    kernel.execute(
        "from types import SimpleNamespace\n"
        "from oh_jupyter.openhands.tools import KernelTerminalTool\n"
        "state = SimpleNamespace(workspace=SimpleNamespace(working_dir=os.getcwd()), "
        "env_observation_persistence_dir=None)\n"
        "[tool] = KernelTerminalTool.create(state, env={'FROM_THE_TOOL': 'value of it'})"
    )
    assert kernel.execute("print(oh.run('echo $FROM_THE_TOOL').content)").startswith("value of it")


def test_a_literal_is_refused_and_a_reset_with_input_raises(kernel: Any) -> None:
    literal, both = carry_out(
        kernel,
        ("terminal", {"command": '[{"a": 1}]'}),
        ("terminal", {"command": "x", "is_input": True, "reset": True}),
    )
    assert literal.startswith("![Tool-argument error]") or "[Tool-argument error]" in literal
    assert "Cannot use reset=True with is_input=True" in both


def test_a_shell_that_does_not_react_is_replaced(kernel: Any) -> None:
    _, not_replaced, stuck, replaced, after = carry_out(
        kernel,
        ("terminal", {"command": "sleep 1000", "timeout": 1}),
        ("terminal", {"command": "echo kept", "reset": True}),
        ("terminal", {"command": "trap '' INT; while :; do sleep 1000; done", "timeout": 1}),
        ("terminal", {"command": "", "reset": True}),
        ("terminal", {"command": "echo fine"}),
    )
    assert "interrupted and not replaced" in not_replaced
    assert "\nkept" in not_replaced
    assert "timed out" in stuck
    assert "was replaced" in replaced
    assert after.startswith("fine\n")
