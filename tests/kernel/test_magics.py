"""The magics, in a real kernel, as a person types them."""

from __future__ import annotations

import json
import textwrap

import pytest

from oh_jupyter.sandbox import find_engine

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


@pytest.mark.parametrize(
    ("cell", "is_shown"),
    [
        (r"%oh_run find seen -name x -exec echo {} \;", True),
        (r"%oh_run find seen -name x -exec echo {} ';'", True),
        ("%oh_run echo seen/x # note;", True),
        ("%oh_run echo seen/x ;", False),
        ("%oh_run for i in 1; do echo seen/x; done;", False),
        ("%%oh_run\ncat <<END\nseen/x\nEND\n# note;", True),
        ("%%oh_run\nfind seen -name x \\\n -exec echo {} \\;", True),
        ("%%oh_run\ncd .\necho seen/x;", False),
    ],
)
def test_only_a_semicolon_of_the_shell_hides_the_value(kernel, cell: str, is_shown: bool) -> None:
    kernel.execute("%oh_run mkdir -p seen && touch seen/x;")
    assert kernel.execute(cell) == ("seen/x" if is_shown else "")


def test_a_script_is_run(kernel) -> None:
    script = "%%oh_run\nfor n in 1 2; do\n  echo n=$n\ndone\n\n# a comment\ncat <<END\n{n} $n\nEND"
    assert kernel.execute(script) == "n=1\nn=2\n{n} 2"


def test_a_person_gets_the_state_of_the_shell_in_words_of_magics(kernel) -> None:
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
        *("--blocking", "--cell", "--help", "--input", "--sandbox", "--static", "--timeout")
    ]
    assert complete(kernel, "%oh_run ls --") == []
    assert complete(kernel, "%oh_run cat fo") == ["found"]
    assert complete(kernel, "%oh_confirm --r") == ["--reject", "--rules"]
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


def test_a_decision_reports_its_effect(kernel) -> None:
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
    shown = kernel.execute("%%oh_run --cell --timeout 0.5\nprint('started')\nwhile True: pass")
    assert shown.startswith("started\n")
    assert "[Execution timed out (0.5 seconds).]" in shown


def test_a_file_is_made_edited_viewed_and_restored(kernel) -> None:
    path = kernel.directory / "poem.txt"
    assert "+violets are {blue}" in kernel.execute(
        "%%oh_edit create poem.txt\nroses are red\nviolets are {blue}\n"
    )
    assert path.read_text() == "roses are red\nviolets are {blue}\n"
    block = "<<<<<<< SEARCH\nroses are red\n=======\nroses are white\n>>>>>>> REPLACE\n"
    shown = kernel.execute("%%oh_edit str_replace poem.txt\n" + block)
    assert "-roses are red" in shown
    assert "+roses are white" in shown
    kernel.execute("%%oh_edit insert poem.txt --line 1\nand so on\n")
    assert path.read_text() == "roses are white\nand so on\nviolets are {blue}\n"
    assert "     2\tand so on" in kernel.execute("%oh_edit view poem.txt --range 2 2")
    kernel.execute("%oh_edit undo poem.txt")
    kernel.execute("%oh_edit undo poem.txt")
    assert path.read_text() == "roses are red\nviolets are {blue}\n"
    assert "poem.txt" in kernel.execute("%oh_edit view .")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("%oh_edit fly x", "invalid choice"),
        ("%oh_edit create --nope x", "Unknown option --nope. Options: --dry-run, --lint"),
        ("%oh_store cat x --nope=5", "Unknown option --nope. Options: none"),
        ("%oh_status --nope", "Unknown option --nope. Options: --help, -h"),
        ("%oh_status now", "unrecognized arguments: now. %oh_status --help explains its use"),
        ("%oh_edit create x", "%%oh_edit create x"),
        ("%oh_edit view no-such-file", "ERROR:"),
        ("%%oh_edit insert x\nbody", "--line N"),
        ("%%oh_edit str_replace x\nbody", "<<<<<<< SEARCH"),
        ("%oh_edit undo never-edited", "ERROR:"),
        ("%oh_browse", "%oh_browse URL"),
        ("%oh_store cat", "needs a path"),
        ("%oh_store cat no-such-entry", "no-such-entry"),
        ("%oh_store cat ../../etc/passwd", "StorePathError"),
        ("%oh_store put x", "say what is put where: %oh_store put x FILE"),
        ("%oh_skills no_such_skill", "no skill"),
        ("%oh_log --last many", "invalid int"),
        ("%oh_log --kind runn", "no type 'runn'. Did you mean run?"),
        ("%oh_confirm --rules 99", "--rules takes no number"),
        ("oh.run(5)", "args.command"),
        ("oh.run('pwd', cwd='/nowhere')", "cwd is for static commands: add is_static, or put cd"),
        ("oh.store.read('nothing')", "StoreNotFoundError"),
        ("%oh_run", "say what to run: %oh_run COMMAND"),
        ("%oh_run -t -3 ls", "argument -t/--timeout: '-3' is not a number of seconds"),
        ("%%oh_edit insert x 99\nbody", "arguments: 99. Did you mean --line 99?"),
        ("%oh_edit view x 5 9", "arguments: 5 9. Did you mean --range 5 9?"),
        ("%oh_edit view x two", "unrecognized arguments: two. %oh_edit view --help explains"),
        ("%oh_edit /etc/hosts", "say what to do with it, such as %oh_edit view /etc/hosts"),
        ("oh.execute({'action': 'fly'})", "fly"),
        ("oh.read('/no/such/file').content", "File not found"),
    ],
)
def test_wrong_input_gets_one_clear_answer(kernel, line: str, word: str) -> None:
    shown = kernel.execute(line)
    assert word in shown
    assert "Traceback" not in shown
    assert kernel.execute("1 + 1") == "2"


def test_an_open_bracket_in_a_command_is_no_python(kernel) -> None:
    assert kernel.execute("%oh_run echo '('") == "("
    assert kernel.execute("%%oh_run\necho '('\n") == "("


def test_a_line_may_end_in_a_question_mark(kernel) -> None:
    assert kernel.execute("%oh_run echo Are you there?") == "Are you there?"
    assert kernel.execute("if True:\n    o = oh_run echo really??  \no.content") == "'really??'"
    assert "pinfo" in kernel.execute("get_ipython().transform_cell('%oh_run?')")
    assert kernel.execute('len("""\n%oh_run is it?\n""")') == "16"


def test_each_line_of_a_cell_shows_its_value(kernel) -> None:
    cell = """
        %oh_run echo one
        %oh_run echo quiet;
        for n in range(2):
            %oh_run echo within
        kept = %oh_run echo kept
        %oh_run echo last
    """
    assert kernel.execute(textwrap.dedent(cell)) == "onewithinwithinlast"
    kernel.execute("get_ipython().ast_node_interactivity = 'none'")
    assert kernel.execute("%oh_run echo one\n%oh_run echo two") == ""
    kernel.execute("get_ipython().ast_node_interactivity = 'all'")
    assert kernel.execute("%oh_run echo one\n%oh_run echo two") == "onetwo"
    kernel.execute("get_ipython().ast_node_interactivity = 'last_expr'")


def test_the_store_keeps_things(kernel) -> None:
    kernel.execute("%%oh_store put notes/a.txt\nfirst\n")
    (kernel.directory / "b.bin").write_bytes(bytes(range(256)))
    kernel.execute("%oh_store put notes/b.bin b.bin")
    shown = kernel.execute("%oh_store ls notes")
    assert "notes/a.txt  6 B" in shown
    assert "notes/b.bin  256 B" in shown
    assert kernel.execute("%oh_store cat notes/a.txt") == "first\n"
    assert kernel.execute("t = %oh_store cat notes/a.txt\nisinstance(t, str), t[-2:]") == (
        r"(True, 't\n')"
    )
    kernel.execute("%oh_store get notes/b.bin c.bin")
    assert (kernel.directory / "c.bin").read_bytes() == bytes(range(256))
    assert (
        kernel.execute("listing = %oh_store ls notes\n[e['size'] for e in listing]") == "[6, 256]"
    )
    kernel.execute("%oh_store rm notes")
    assert "a.txt" not in kernel.execute("%oh_store ls")


def test_skills_are_listed_and_explained(kernel) -> None:
    assert "search_dir" in kernel.execute("%oh_skills")
    assert "search_dir(" in kernel.execute("%oh_skills search_dir")


@pytest.mark.thorough
def test_the_log_shows_actors_and_actions(fresh_kernel) -> None:
    fresh_kernel.act("run", command="echo agent")
    fresh_kernel.execute("%oh_run echo person")
    log = fresh_kernel.execute("%oh_log")
    assert "agent" in log
    assert "person" in log
    assert "person" not in fresh_kernel.execute("%oh_log --source agent --kind run")
    assert "shell" in fresh_kernel.execute("%oh_status")


def test_the_log_names_paths_relative_to_the_workspace(kernel) -> None:
    path = kernel.directory / "named.txt"
    kernel.act("write", path=str(path), content="x")
    assert "write named.txt" in kernel.execute("%oh_log --last 2")
    kernel.act("read", path=str(path))
    log = kernel.execute("%oh_log --last 2")
    assert "read named.txt" in log
    assert "I read the file named.txt." in log


def test_the_log_of_a_file_is_shown(kernel, tmp_path) -> None:
    path = tmp_path / "events.jsonl"
    events = [
        {"action": "message", "args": {"content": "Count the rows"}, "source": "user"},
        {"action": "run", "args": {"command": "wc -l a.csv"}},
        {"observation": "run", "content": "7", "extras": {"command": "wc -l a.csv"}},
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    log = kernel.execute(f"%oh_log --file {path}")
    assert "user" in log
    assert "Count the rows" in log
    assert "agent" in kernel.execute(f"%oh_log --file '{path}' --kind run")
    assert kernel.execute(f"e = %oh_log --file {path} 2\ne.content") == "'7'"
    path.write_text("nothing")
    assert "cannot be read" in kernel.execute(f"%oh_log --file {path}")
    assert "cannot be read" in kernel.execute("%oh_log --file /no/such")


def test_observations_are_shown_as_text_and_html_and_never_as_script(kernel) -> None:
    bundles = []
    kernel.client.execute_interactive(
        "%oh_run echo '<script>alert(1)</script>'",
        output_hook=lambda m: bundles.append(m["content"].get("data")),
        timeout=60,
    )
    (bundle,) = [bundle for bundle in bundles if bundle]
    assert bundle["text/plain"] == "<script>alert(1)</script>"
    assert "<script" not in bundle["text/html"]
    assert "&lt;script&gt;" in bundle["text/html"]


@pytest.mark.thorough
def test_loading_twice_and_reloading_work(fresh_kernel) -> None:
    fresh_kernel.execute("%oh_run cd /; x=1")
    fresh_kernel.execute("%load_ext oh_jupyter")
    assert fresh_kernel.execute("%oh_run echo $x") == "1"
    first, _ = fresh_kernel.ask("ping")
    for _ in range(2):
        assert fresh_kernel.execute("%reload_ext oh_jupyter") == ""
        assert fresh_kernel.execute("%oh_run echo [$x]") == "[]"
    second, _ = fresh_kernel.ask("ping")
    assert first["generation"] != second["generation"]
    fresh_kernel.execute("%unload_ext oh_jupyter")
    assert "not found" in fresh_kernel.execute("%oh_run ls")
    assert fresh_kernel.execute("'oh' in globals()") == "False"


def test_an_interrupted_magic_leaves_the_shell_alive(kernel) -> None:
    kernel.execute("%oh_run keep=1")
    cell = kernel.start("%oh_run -b sleep 600")
    while not json.dumps(kernel.ask("status")[1]["running"]).count("sleep"):
        pass
    kernel.manager.interrupt_kernel()
    assert kernel.finish(cell)["traceback"] == ["KeyboardInterrupt"]
    assert kernel.execute("%oh_run echo keep=$keep").endswith("keep=1")


def test_a_turn_of_an_agent_is_undone(kernel) -> None:
    mine, its = kernel.directory / "mine.txt", kernel.directory / "its.txt"
    mine.write_text("mine\n")
    assert kernel.execute("%oh_rewind --mark 'before all'").startswith("Checkpoint ")
    kernel.act("run", command=f"cd {kernel.directory}; echo x > its.txt; echo its >> mine.txt")
    kernel.execute("oh.write('other.txt', 'the person writes');")
    shown = kernel.execute("%oh_rewind last")
    assert shown.startswith("Preview; add --yes to apply it:")
    assert "delete      its.txt\nrestore     mine.txt" in shown
    diff = kernel.execute("%oh_rewind last --diff")
    assert "-x\n" in diff
    assert " mine\n-its" in diff
    assert "mine.txt" not in kernel.execute("%oh_rewind last --diff --path its.txt")
    assert "omit --yes and --variables" in kernel.execute("%oh_rewind last --diff --yes")
    assert its.exists()
    assert "delete      its.txt" in kernel.execute("%oh_rewind last --yes")
    assert not its.exists()
    assert mine.read_text() == "mine\n"
    assert (kernel.directory / "other.txt").exists()
    table = kernel.execute("%oh_rewind")
    assert "before all" in table
    assert "back to " in table
    assert "CheckpointError: No checkpoint 99999 in" in kernel.execute("%oh_rewind 99999")
    assert "takes the id of a checkpoint, or last, not 'x'" in kernel.execute("%oh_rewind x")
    assert "[-h] [-y] [--diff] [--everything]" in kernel.execute("%oh_rewind --help")
    assert "rewind" in kernel.execute("%oh_log --text rewind")


def test_variables_come_back_if_they_were_copied(kernel) -> None:
    kernel.execute("import os\nrows = [1]\nsame = rows\nlog = open(os.devnull)")
    shown = kernel.execute("%oh_rewind --mark 'with variables' --variables")
    id = shown.split()[1].rstrip(":")
    for _ in range(2):
        kernel.execute("rows.append(2); same = 3; new = 4; os = None")
        done = kernel.execute(f"%oh_rewind {id} --yes --variables")
        assert "not kept    log  (TextIOWrapper, " in done
        assert "an open file cannot be copied)" in done
        assert kernel.execute("rows, same is rows, 'new' in globals(), os.name") == (
            "([1], True, False, 'posix')"
        )
    assert kernel.execute("log.closed") == "False"
    shown = kernel.execute("%oh_rewind --mark plain")
    id = shown.split()[1].rstrip(":")
    for option in ("", "--variables"):
        output = kernel.execute(f"%oh_rewind {id} --yes {option}")
        assert output == "No agent changes since this checkpoint; nothing to undo."


@pytest.mark.browser
def test_the_doctor_looks_at_this_environment(kernel) -> None:
    shown = kernel.execute("%oh_doctor")
    assert "all requirements are installed" in shown
    assert "wrong" not in shown


@pytest.mark.skipif(find_engine().program is None, reason="needs bubblewrap")
def test_a_command_in_a_sandbox_is_marked(kernel) -> None:
    shown = kernel.execute("%oh_run --sandbox touch /etc/x")
    assert "Read-only file system" in shown
    assert "[sandboxed]" in shown
    assert "[sandboxed]" in kernel.execute("%oh_log --last 1")
    assert "[sandboxed]" not in kernel.execute("%oh_run echo plain")
    kernel.execute("oh.set_env({'KEPT_OUT': 'a-value'}, sandbox=False)")
    assert "<>" in kernel.execute('%oh_run --sandbox echo "<$KEPT_OUT>"')
    assert "not sandboxed: sandbox is off" in kernel.execute("%oh_status")
