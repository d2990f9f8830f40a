"""``%oh_agent`` and ``oh.agent`` in a real kernel."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from guest_runtime import BROKEN, SCRIPTED, command

from oh_jupyter.testing import LiveKernel, wait_until


def start_kernel(folder: Path, confirmation: str) -> LiveKernel:
    agents = {
        "scripted": command(SCRIPTED),
        "optional": command(SCRIPTED, "--options"),
        "broken": command(BROKEN, "dies"),
    }
    os.environ["OH_JUPYTER_AGENTS"] = json.dumps(agents)
    os.environ["OH_JUPYTER_CONFIRMATION"] = confirmation
    try:
        return LiveKernel(folder, "--ext", "oh_jupyter")
    finally:
        del os.environ["OH_JUPYTER_AGENTS"], os.environ["OH_JUPYTER_CONFIRMATION"]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    live = start_kernel(tmp_path_factory.mktemp("workspace"), "never")
    yield live
    live.close()


def outputs(kernel: LiveKernel, code: str) -> list[dict[str, Any]]:
    """The messages of a cell on IOPub that show something."""
    shown: list[dict[str, Any]] = []
    kernel.client.execute_interactive(code, output_hook=shown.append, timeout=120)
    kinds = ("display_data", "update_display_data", "execute_result", "stream", "error")
    return [message for message in shown if message["msg_type"] in kinds]


@pytest.mark.thorough
def test_a_prompt_is_taken_as_it_is_typed(kernel: LiveKernel) -> None:
    (*_, last) = outputs(kernel, "%oh_agent scripted what's {in} $HOME # here?")
    assert "\n\nwhat's {in} $HOME # here?" in last["content"]["data"]["text/plain"]


@pytest.mark.thorough
def test_options_may_follow_the_name(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent scripted prompts")
    assert "prompt 1." in kernel.execute("%oh_agent scripted --new prompts")
    assert "prompt 2." in kernel.execute("%oh_agent scripted prompts")
    assert "unknown" in kernel.execute("%oh_agent scripted --no-such prompts").lower()


def test_a_turn_is_one_display_that_is_updated(kernel: LiveKernel) -> None:
    shown = outputs(
        kernel,
        "%%oh_agent scripted\nplan look; count\nsay hello world\nwrite a.txt: one\nrun echo out",
    )
    assert {message["msg_type"] for message in shown} <= {"display_data", "update_display_data"}
    assert len({m["content"]["transient"]["display_id"] for m in shown}) == 1
    data = shown[-1]["content"]["data"]
    assert "hello world" in data["text/plain"]
    assert "✓ echo out" in data["text/plain"]
    markdown = data["text/markdown"]
    assert "- ○ look" in markdown
    assert "<details><summary" in markdown
    assert "+one" in markdown
    assert not any("\n" in block for block in markdown.split("\n\n") if "<details" in block)


@pytest.mark.thorough
def test_a_following_prompt_goes_to_the_same_agent(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent scripted say hello")
    before = kernel.execute("turn = %oh_agent prompts")
    assert "That was prompt" in before
    assert "AgentTurn scripted" in kernel.execute("print(repr(turn))")
    assert "prompt 1." in kernel.execute('%oh_agent --new scripted "prompts"')


def test_from_python(kernel: LiveKernel) -> None:
    assert kernel.execute(
        "turn = oh.agent('say hi\\nwrite b.txt: two', 'scripted')\n"
        "print(turn.text, len(turn.steps), turn.cost is not None, '+two' in turn.diff)"
    ).startswith("hi  1 True True")
    assert (kernel.directory / "b.txt").read_text() == "two\n"
    kernel.execute("oh.rewind(turn)")
    assert not (kernel.directory / "b.txt").exists()
    assert "hi" in kernel.execute("turn")  # a turn shows itself as a value


@pytest.mark.thorough
def test_the_agent_gets_its_context_once(kernel: LiveKernel) -> None:
    kernel.execute("temperatures = [1, 2]")
    text = kernel.execute("print(oh.agent('x', 'scripted', new=True).text)")
    assert "temperatures" in text
    assert "You said" in kernel.execute("%oh_agent --new scripted x")
    assert "temperatures" not in kernel.execute("print(oh.agent('x').text)")


@pytest.mark.thorough
def test_options_of_the_agent(kernel: LiveKernel) -> None:
    line = "%oh_agent --new --mode plan optional --effort high --set web=on options"
    assert "mode plan, model small, reasoning high, web True" in kernel.execute(line)
    # They stay, and the agent's name is not needed any more.
    assert "model large" not in kernel.execute("%oh_agent options")
    shown = kernel.execute('%oh_agent --mode default --model large "options"')
    assert "mode default, model large" in shown
    table = kernel.execute("%oh_agent options")
    assert "reasoning" in table
    assert "low, high" in table
    assert "low" in kernel.execute("%oh_agent --effort low options").split("reasoning")[1][:8]
    kernel.execute("%oh_agent --effort high options")
    assert "default, large, high" in kernel.execute("%oh_agent list")
    reply = kernel.client.complete("%oh_agent --mode pl", reply=True, timeout=60)
    assert reply["content"]["matches"] == ["plan"]
    assert "say which agent" not in kernel.execute("%oh_agent sessions optional")
    assert "OPTION=VALUE" in kernel.execute("%oh_agent --set web optional hello")
    assert "has no mode 'plam'. Choose one of: default, plan" in kernel.execute(
        "%oh_agent --mode plam optional hello"
    )
    assert "is not running" in kernel.execute("%oh_agent options codex")
    _, listed = kernel.ask("agents")
    (optional,) = [each for each in listed["agents"] if each["name"] == "optional"]
    assert [each["id"] for each in optional["options"]] == ["mode", "model", "reasoning", "web"]
    kernel.execute("%oh_agent stop optional")


@pytest.mark.thorough
def test_fix_is_about_the_cell_that_failed(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent --new scripted say hello")
    kernel.execute("kelvins = missing_name + 1")
    output = kernel.execute("%oh_agent fix scripted")
    assert "kelvins = missing_name + 1" in output
    assert "NameError" in output


def test_list_use_and_stop(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent scripted say hello")
    table = kernel.execute("%oh_agent list")
    assert "claude" in table
    assert "ready" in table
    kernel.execute("%oh_agent stop scripted")
    states = "{each['state'] for each in get_ipython().run_line_magic('oh_agent', 'list')}"
    assert kernel.execute(f"{states} <= {{'busy', 'ready', 'installed', 'not installed'}}") == (
        "True"
    )
    assert "ready" not in kernel.execute("%oh_agent list")
    assert "•" in kernel.execute("%oh_agent use broken")
    assert "broken has ended" in kernel.execute("%oh_agent x")


def test_invalid_requests(kernel: LiveKernel) -> None:
    assert "There is no agent 'clod'" in kernel.execute('%oh_agent clod "hello"')
    assert "Unknown option --now" in kernel.execute("%oh_agent --now x")
    assert "Write a prompt: %oh_agent scripted" in kernel.execute("%oh_agent scripted")
    assert "--continue" in kernel.execute("%oh_agent --help")


@pytest.mark.thorough
def test_a_misspelled_name_is_not_sent_to_the_current_agent(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent --new scripted prompts")
    refused = kernel.execute("%oh_agent cluade fix it")
    assert "There is no agent 'cluade'. Did you mean claude?" in refused
    assert '%oh_agent "cluade fix it"' in refused
    assert "Did you mean scripted?" in kernel.execute("%%oh_agent scriptd\nprompts")
    for line in ("stop nobody", "use nobody"):
        assert "There is no agent 'nobody'. Agents: claude, " in kernel.execute(f"%oh_agent {line}")
    assert "prompt 2." in kernel.execute("%oh_agent prompts")
    assert "cluade" in kernel.execute('%oh_agent "cluade fix it"')
    kernel.execute("oh.agents.current = None")
    expected = kernel.execute("oh.agent('hi', 'claudee')")
    assert "There is no agent 'claudee'. Did you mean claude? Agents: claude, " in expected
    assert kernel.execute("%oh_agent claudee hello") == expected
    assert "Say which agent" in kernel.execute('%oh_agent "hello"')
    shown = kernel.execute("%oh_agent what is x?")
    assert "Name one of " in shown
    assert "first: %oh_agent claude what is x?" in shown


@pytest.mark.parametrize("turn", ["'x'", "True", "1.5"])
def test_an_unknown_turn_cannot_be_undone(kernel: LiveKernel, turn: str) -> None:
    shown = kernel.execute(f"oh.rewind({turn})")
    assert shown.startswith("CheckpointError: oh.rewind takes the id of a checkpoint, or a turn")


def test_an_interrupt_ends_the_turn_and_keeps_its_output(kernel: LiveKernel) -> None:
    # An agent that obeys is not ended because a busy machine lets it obey late.
    kernel.execute("from oh_jupyter.agents import session; session.CANCEL_TIMEOUT_SECONDS = 60")
    msg_id = kernel.client.execute("%%oh_agent scripted\nsay beginning\nrun sleep 1000")
    while True:
        message = kernel.client.get_iopub_msg(timeout=120)
        text = str(message["content"].get("event", {}).get("args", {}).get("command", ""))
        if text == "sleep 1000":
            break
    kernel.manager.interrupt_kernel()
    assert kernel.finish(msg_id)["status"] == "error"
    assert "hello" in kernel.execute("%oh_agent scripted say hello")


# Questions in the cell that waits.


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    live = start_kernel(tmp_path_factory.mktemp("asking"), "always")
    yield live
    live.close()


def ask(kernel: LiveKernel, name: str, answer: Callable[[], str | None]) -> str:
    """Have an agent write a file; the reply status. ``answer`` answers or lets others do it."""
    msg_id = kernel.client.execute(f"%oh_agent scripted ask write {name}: x")
    prompt = kernel.client.get_stdin_msg(timeout=120)["content"]["prompt"]
    assert f"Write {name}" in prompt or name in prompt
    assert "May Scripted do that?" in prompt
    reply = answer()
    if reply is not None:
        kernel.client.input(reply)
    return str(kernel.finish(msg_id)["status"])


@pytest.mark.thorough
@pytest.mark.parametrize(("answer", "written"), [("y", True), ("", False), ("use git", False)])
def test_a_question_is_answered_in_the_cell(asking: LiveKernel, answer: str, written: bool) -> None:
    name = f"asked-{written}.txt"
    assert ask(asking, name, lambda: answer) == "ok"
    assert (asking.directory / name).exists() is written


@pytest.mark.thorough
def test_always_in_the_cell_covers_later_questions(asking: LiveKernel) -> None:
    assert ask(asking, "always.txt", lambda: "always") == "ok"
    assert (asking.directory / "always.txt").exists()
    assert "DONE" not in asking.execute("%oh_agent scripted ask write later.txt: x")
    assert (asking.directory / "later.txt").exists()
    assert "workspace" in asking.execute("%oh_confirm --rules")
    asking.execute("%oh_confirm --forget")


def test_a_question_answered_by_the_panel_is_withdrawn(asking: LiveKernel) -> None:
    def in_the_panel() -> None:
        _, (waiting,) = asking.ask("confirmations")
        assert asking.ask("confirm", id=waiting["id"], approve=True)[0]["status"] == "ok"

    assert ask(asking, "panel.txt", in_the_panel) == "ok"
    assert (asking.directory / "panel.txt").exists()
    assert "2" in asking.execute("1 + 1")


def test_an_interrupt_at_a_question_ends_the_turn(asking: LiveKernel) -> None:
    assert ask(asking, "never.txt", asking.manager.interrupt_kernel) == "error"
    assert not (asking.directory / "never.txt").exists()
    assert "{}" in asking.execute("oh.waiting")


def test_an_agents_question_is_answered_in_the_cell(asking: LiveKernel) -> None:
    fields = '{"region": {"type": "string", "title": "Region", "enum": ["eu", "us"]}}'
    msg_id = asking.client.execute(f"turn = %oh_agent scripted question {fields}\nprint(turn.text)")
    prompts = []
    for answer in ("", "asia", "us"):
        prompts.append(asking.client.get_stdin_msg(timeout=120)["content"]["prompt"])
        asking.client.input(answer)
    asking.finish(msg_id)
    assert "Which ones?" in prompts[0]
    assert prompts[1:] == [
        "Region [eu/us; optional]: ",
        "Region cannot be 'asia' [eu/us; optional]. Region: ",
    ]
    assert 'accept {"region": "us"}' in asking.execute("print(turn.text)")


def test_an_agents_question_is_answered_with_the_magic(asking: LiveKernel) -> None:
    fields = '{"region": {"type": "string", "title": "Region"}}'
    asking.execute(f"%oh_agent scripted question {fields} &")
    ((waiting,),) = wait_until(lambda: [each] if (each := asking_list(asking)) else [])
    assert waiting["is_question"]
    assert waiting["form"][0]["title"] == "Region"
    shown = asking.execute("%oh_confirm")
    assert "--value region=…" in shown
    asking.execute("%oh_confirm --all")
    assert asking_list(asking)
    assert "Answered" in asking.execute(f"%oh_confirm {waiting['id']} --value 'region=far east'")
    wait_until(lambda: '"far east"' in asking.execute("print(oh.agents.turns[-1].text)"))


def asking_list(kernel: LiveKernel) -> list[dict[str, Any]]:
    return list(kernel.ask("confirmations")[1])


# In the background.


def shown_until(kernel: LiveKernel, text: str) -> dict[str, Any]:
    """The first message that shows a text, when it comes."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=120)
        if text in str(message["content"].get("data", {}).get("text/plain", "")):
            return dict(message)


def wait_for_command(kernel: LiveKernel, command: str) -> None:
    """Wait until an agent runs a command."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=120)
        if message["content"].get("event", {}).get("args", {}).get("command") == command:
            return


def test_in_the_background_the_cell_returns_and_its_display_updates(kernel: LiveKernel) -> None:
    gate = kernel.directory / "gate"
    os.mkfifo(gate)
    msg_id = kernel.client.execute(f"%%oh_agent scripted &\nrun cat {gate}\nsay it is over")
    assert kernel.finish(msg_id)["status"] == "ok"
    wait_for_command(kernel, f"cat {gate}")
    assert "busy" in kernel.execute("%oh_agent list")
    gate.write_text("opened\n")
    last = shown_until(kernel, "it is over")
    assert last["parent_header"]["msg_id"] == msg_id
    assert last["msg_type"] == "update_display_data"


@pytest.mark.thorough
def test_a_background_turn_is_stopped(kernel: LiveKernel) -> None:
    msg_id = kernel.client.execute('%oh_agent scripted "run sleep 1000" &')
    assert kernel.finish(msg_id)["status"] == "ok"
    wait_for_command(kernel, "sleep 1000")
    kernel.execute("%oh_agent stop scripted")
    assert "hello" in kernel.execute("%oh_agent scripted say hello")
    assert "[]" in kernel.execute("oh.status()['running']")


def test_a_problem_in_the_background_is_shown(kernel: LiveKernel) -> None:
    msg_id = kernel.client.execute("%oh_agent broken x &")
    assert kernel.finish(msg_id)["status"] == "ok"
    shown_until(kernel, "broken has ended: exit status 3")


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits for nothing but its parent."""
    try:
        return not Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.thorough
def test_the_extension_is_reloaded_and_no_agent_is_left(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent scripted say hello")
    pid = int(kernel.execute("print(oh.agents.at_work['scripted'].pid)"))
    kernel.execute("%reload_ext oh_jupyter")
    wait_until(lambda: has_ended(pid), what="the end of the agent")
    assert "hello" in kernel.execute("%oh_agent scripted say hello")


@pytest.mark.thorough
def test_in_a_terminal_it_is_printed_as_it_comes(tmp_path: Path) -> None:
    import subprocess

    code = "%load_ext oh_jupyter\n%oh_agent scripted say hello world\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--quiet"],
        input=code,
        capture_output=True,
        text=True,
        timeout=200,
        cwd=tmp_path,
        env={**os.environ, "OH_JUPYTER_AGENTS": json.dumps({"scripted": command(SCRIPTED)})},
    )
    assert "hello world" in done.stdout


# The panel, which shares the agents with the magic.


def test_the_panel_and_the_magic_have_one_conversation(kernel: LiveKernel) -> None:
    kernel.execute("%oh_agent --new scripted prompts")
    msg_id = kernel.send("prompt_agent", text="prompts\nrun echo hi", wait=True)
    fields, turn = kernel.reply(msg_id)
    assert fields["status"] == "ok", fields
    sent: dict[str, Any] = {}
    while sent != turn:  # at last it is broadcast as it is
        message = kernel.client.get_iopub_msg(timeout=120)
        if message["msg_type"] == "oh_jupyter_turn":
            sent = message["content"]["turn"]
    text, step = turn["parts"]
    assert text.strip() == "That was prompt 2."
    assert (step["title"], step["status"], step["output"].strip()) == ("echo hi", "completed", "hi")
    _, listing = kernel.ask("agents")
    assert listing["current"] == "scripted"
    assert [each["prompt"] for each in listing["turns"][-2:]] == ["prompts", "prompts\nrun echo hi"]
    states = {each["name"]: each["state"] for each in listing["agents"]}
    assert (states["scripted"], "claude" in states) == ("ready", True)


def test_the_panel_adds_context_to_a_prompt(kernel: LiveKernel) -> None:
    kernel.execute("total = 42; open('numbers.csv', 'w').close()")
    _, files = kernel.ask("workspace_files", text="numb")
    assert files == ["numbers.csv"]
    cell = {"kind": "text", "name": "Cell 1", "id": "a.ipynb#x", "text": "print(1)"}
    context = [cell, {"kind": "variable", "name": "total"}, {"kind": "file", "name": files[0]}]
    fields, turn = kernel.ask("prompt_agent", text="context", agent="scripted", context=context)
    assert fields["status"] == "ok", fields
    (text,) = turn["parts"]
    assert "Embedded: Cell 1:\nprint(1)" in text
    assert "Embedded: Variable total:\ntotal: int\n42\n" in text
    assert "Link: numbers.csv file://" in text
    assert turn["attachments"] == ["Cell 1", "Variable total", "numbers.csv"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x", "'context' must be an array of objects"),
        ({"kind": "text"}, "must be an object with a 'name'"),
        ({"name": "x", "kind": "text"}, "must be variable, file, or text"),
        ({"name": "missing.csv", "kind": "file"}, "There is no file"),
        ({"name": "missing", "kind": "variable"}, "There is no variable 'missing'"),
    ],
    ids=["string", "no name", "no text", "file", "variable"],
)
def test_context_that_cannot_be_added(kernel: LiveKernel, entry: Any, words: str) -> None:
    prompt = {"text": "context", "agent": "scripted", "context": [entry]}
    assert words in kernel.ask("prompt_agent", **prompt)[0]["evalue"]


def test_a_prompt_is_followed_by_its_key(asking: LiveKernel) -> None:
    """As Jupyter AI's persona does, whose request for the progress may arrive first."""
    follower = asking.send("follow_turn", of="a-prompt", wait=60)
    prompt = asking.send("prompt_agent", text="run sudo -n true", agent="scripted", key="a-prompt")
    _, progress = asking.reply(follower)
    while not (waiting := progress["waiting"]):
        known = progress["state"]
        _, progress = asking.ask("follow_turn", of="a-prompt", known=known, wait=60)
    assert progress["turn"]["parts"][-1]["title"] == "sudo -n true"
    assert waiting[0]["reason"] == "it becomes another user"
    asking.ask("confirm", id=waiting[0]["id"], approve=False)
    _, ended = asking.reply(prompt)
    assert ended["stop_reason"] == "end_turn"
    _, progress = asking.ask("follow_turn", of="a-prompt", known="")
    assert progress == {"state": "", "ended": True, "waiting": [], "turn": None}
    fields, _ = asking.ask("follow_turn", of="a-prompt", wait="long")
    assert fields["field"] == "wait"


def test_a_prompt_with_the_same_key_is_sent_once(kernel: LiveKernel) -> None:
    """Two windows may have the same queue."""
    prompt = {"text": "say once", "agent": "scripted", "key": "queued"}
    _, turn = kernel.ask("prompt_agent", **prompt)
    assert (turn["request"], turn["stop_reason"]) == ("queued", "end_turn")
    fields, repeated = kernel.ask("prompt_agent", **prompt)
    assert (fields["status"], repeated) == ("ok", None)
    fields, _ = kernel.ask("prompt_agent", text="x", key=1)
    assert fields["field"] == "key"
    _, conversation = kernel.ask("agents")
    assert [turn["request"] for turn in conversation["turns"]].count("queued") == 1


def test_the_panel_interrupts_a_turn_and_the_agent_stays(kernel: LiveKernel) -> None:
    kernel.execute("from oh_jupyter.agents import session; session.CANCEL_TIMEOUT_SECONDS = 60")
    msg_id = kernel.send("prompt_agent", text="run sleep 1000", agent="scripted", wait=True)

    def runs() -> bool:
        return "sleep 1000" in str(kernel.ask("status")[1]["running"])

    wait_until(runs, what="the agent's command running")
    pid = kernel.execute("print(oh.agents.at_work['scripted'].pid)")
    kernel.ask("interrupt_agent", agent="scripted")
    fields, turn = kernel.reply(msg_id)
    assert (fields["status"], turn["stop_reason"]) == ("ok", "cancelled")
    assert kernel.execute("print(oh.agents.at_work['scripted'].pid)") == pid
    fields, _ = kernel.ask("prompt_agent", text="x", agent=1)
    assert fields["field"] == "agent"


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OH_JUPYTER_POLICY", '{"agents": "claude", "browser": "off"}')
        live = start_kernel(tmp_path_factory.mktemp("limited"), "never")
        yield live
        live.close()


def test_an_administrators_policy_is_shown_and_applied(limited: LiveKernel) -> None:
    assert "not allowed" in limited.execute("%oh_agent list")
    assert "PolicyError" in limited.execute("%oh_agent scripted hello")
    changed = limited.execute("%config OhJupyter.enable_browser = True")
    assert "The administrator's policy sets enable_browser to False" in changed
    assert "cannot be changed" in limited.execute("%config OhJupyter.policy = {}")
    assert "switched off browser" in limited.execute("%oh_browse https://example.org")
    _, body = limited.ask("agents")
    agents = {each["name"]: each for each in body["agents"]}
    assert agents["scripted"]["state"] == "forbidden"
    assert "does not allow scripted" in agents["scripted"]["reason"]
