"""The magics, in a real kernel, as a person types them."""

from __future__ import annotations

import json
import textwrap

import pytest

MAGICS = [
    *("oh_run", "oh_edit", "oh_browse", "oh_store", "oh_skills", "oh_log", "oh_status"),
    *("oh_rewind", "oh_doctor", "oh_agent"),
]
BEFORE_THE_OPTION = ["oh_confirm 12", "oh_replay x"]
COMMANDS = ["oh_edit create", "oh_store put", "oh_skills add", "oh_agent use"]


@pytest.mark.parametrize("magic", MAGICS + BEFORE_THE_OPTION + COMMANDS)
def test_every_magic_explains_itself(kernel, magic: str) -> None:
    shown = kernel.execute(f"%{magic} --help")
    usage = f"%{magic} [options]" if magic in COMMANDS else f"%{magic.split()[0]} [-h]"
    assert shown.startswith(usage)
    if magic not in ("oh_status", "oh_doctor", "oh_edit", "oh_store"):
        assert "\nexamples:\n  " in shown
    assert "--help" in shown
    assert "``" not in shown
    assert "::" not in shown
    assert "Traceback" not in shown


def test_a_command_is_run_and_its_value_is_the_observation(kernel) -> None:
    assert kernel.execute("%oh_run echo 'two  spaces' \"$((1+1))\"") == "two  spaces 2"
    assert kernel.execute("o = %oh_run exit_code() { return 3; }; exit_code\no.exit_code") == "3"
    assert kernel.execute("%oh_run echo quiet;") == ""


def test_a_script_is_run(kernel) -> None:
    script = "%%oh_run\nfor n in 1 2; do\n  echo n=$n\ndone\n\n# a comment\ncat <<END\n{n} $n\nEND"
    assert kernel.execute(script) == "n=1\nn=2\n{n} 2"


def test_a_person_is_told_in_words_of_magics_what_became_of_the_shell(kernel) -> None:
    shown = kernel.execute("%oh_run -t 0.2 cat")
    assert "%oh_run --input TEXT answers it" in shown
    assert "%oh_run --blocking waits" in shown
    assert "execute_bash" not in shown
    kernel.execute("%oh_run -i C-c")
    shown = kernel.execute("%oh_run exit 3")
    assert "[exit code 3]\n[The shell itself has ended. A new shell was started in " in shown


def test_options_go_before_the_command_and_the_rest_is_its_own(kernel) -> None:
    assert kernel.execute("%oh_run --timeout 20 echo --timeout 5") == "--timeout 5"
    assert "timed out after 0.2" in kernel.execute("%oh_run -t 0.2 sleep 30")
    kernel.execute("%oh_run -i C-c")
    assert kernel.execute("%oh_run --static pwd").startswith("/")
    assert "Unknown option --no-such" in kernel.execute("%oh_run --no-such ls")


def complete(kernel, text: str) -> list[str]:
    reply = kernel.client.complete(text, reply=True, timeout=60)["content"]
    return list(reply["matches"])


def test_options_and_paths_are_completed_where_they_fit(kernel) -> None:
    kernel.execute("%oh_run mkdir -p elsewhere && touch elsewhere/found && cd elsewhere")
    assert complete(kernel, "%oh_run --") == [
        *("--blocking", "--cell", "--help", "--input", "--static", "--timeout")
    ]
    assert complete(kernel, "%oh_run ls --") == []
    assert complete(kernel, "%oh_run cat fo") == ["found"]
    assert complete(kernel, "%oh_confirm --r") == ["--reject"]
    assert complete(kernel, "%oh_edit view --") == ["--help", "--range"]
    assert complete(kernel, "%oh_agent use cl") == ["claude"]
    assert complete(kernel, "%oh_log --kind run_") == ["run_ipython"]
    assert complete(kernel, "%oh_replay --dir else") == ["elsewhere/"]
    assert complete(kernel, "%oh_store webhooks re") == ["replay"]
    kernel.execute("%oh_run cd ..")


@pytest.mark.parametrize(
    "typed", ["oh_status ", "oh_confirm ", "oh_edit --range ", "oh_edit view x ", "oh_agent me "]
)
def test_where_nothing_fits_no_names_of_python_are_offered(kernel, typed: str) -> None:
    assert complete(kernel, f"%{typed}") == []


def test_options_that_a_command_does_not_have_are_refused(kernel) -> None:
    assert "undo has no option --all. Options: --dry-run" in kernel.execute("%oh_edit undo x --all")


def test_a_decision_says_what_it_did(kernel) -> None:
    assert kernel.execute("%oh_confirm").strip() == "No actions are waiting."
    assert kernel.execute("%oh_confirm --all").strip() == "No actions are waiting."


def test_paths_of_oh_start_at_the_shells_directory(kernel) -> None:
    kernel.execute("%oh_run mkdir -p deep && cd deep")
    kernel.execute("oh.edit('create', 'p.txt', file_text='one\\n');")
    assert (kernel.directory / "deep/p.txt").read_text() == "one\n"
    kernel.execute("oh.edit('str_replace', 'p.txt', old_str='one', new_str='two');")
    assert "     1\ttwo" in kernel.execute("print(oh.read('p.txt', numbered=True).content)")
    assert kernel.execute("len(oh.history('p.txt'))") == "2"
    assert "+two" in kernel.execute("print(oh.diff('p.txt'))")
    assert "args.nonsense" in kernel.execute("oh.edit('create', 'p.txt', nonsense=1)")
    kernel.execute("%oh_run cd ..")


def test_a_cell_is_run_as_an_agent_would(kernel) -> None:
    assert kernel.execute("%%oh_run --cell\nx = 5\nprint('said')\nx + 1").startswith(
        "said\n6\n[Jupy"
    )
    assert kernel.execute("x") == "5"
    shown = kernel.execute("%%oh_run --cell\n1/0")
    assert "ZeroDivisionError" in shown
    assert kernel.execute("1 + 1") == "2"


def test_a_cell_within_a_cell_is_interrupted_when_its_time_is_over(kernel) -> None:
    shown = kernel.execute("%%oh_run --cell --timeout 0.5\nprint('begun')\nwhile True: pass")
    assert shown.startswith("begun\n")
    assert "[Execution timed out (0.5 seconds).]" in shown


def test_a_file_is_made_edited_viewed_and_restored(kernel) -> None:
    path = kernel.directory / "poem.txt"
    assert "+violets are {blue}" in kernel.execute(
        "%%oh_edit create poem.txt\nroses are red\nviolets are {blue}\n"
    )
    assert path.read_text() == "roses are red\nviolets are {blue}\n"
    block = "    assert "that checkpoint has no copies of them" in kernel.execute(
        f"%oh_rewind {id} --yes --variables"
    )


@pytest.mark.browser
def test_the_doctor_looks_at_this_environment(kernel) -> None:
    shown = kernel.execute("%oh_doctor")
    assert "all requirements are installed" in shown
    assert "wrong" not in shown
