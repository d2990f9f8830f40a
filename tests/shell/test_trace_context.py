"""The trace context of an Action in the environment of its command, and of no other."""

from __future__ import annotations

import pytest

from oh_jupyter.events import Actor, CmdRunAction

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SHOW = 'printenv TRACEPARENT TRACESTATE BAGGAGE | paste -sd " "'


@pytest.fixture
def traced(session):
    """Runs a command with a trace context."""

    def execute(command: str, **options: object):
        action = CmdRunAction(command, **options)
        action.actor = Actor(traceparent=PARENT, tracestate="a='1'", baggage="user=a%20b")
        return session.execute(action)

    return execute


def test_a_command_and_its_programs_have_the_trace_context(run, traced):
    assert traced(SHOW).content == f"{PARENT} a='1' user=a%20b"
    assert traced(f"(bash -c '{SHOW}')").content == f"{PARENT} a='1' user=a%20b"
    assert run(SHOW).content == ""
    assert run("echo ${TRACEPARENT-unset}").content == "unset"


def test_a_temporary_shell_has_it_too(run, traced):
    assert traced(SHOW, is_static=True).content.startswith(PARENT)
    assert run(SHOW).content == ""


@pytest.mark.parametrize("command", ["false", "kill -INT $$", "set -u", "echo ${x?}", "x() { :; }"])
def test_nothing_stays_after_any_end(run, traced, command):
    traced(command)
    assert run(SHOW).content == ""


def test_a_persons_own_variables_come_back_with_their_attributes(run, traced):
    run("export TRACEPARENT=mine; TRACESTATE=$'two\\nlines'")
    assert traced(SHOW).content.startswith(PARENT)
    assert run("echo $TRACEPARENT; env | grep -c TRACESTATE").content == "mine\n0"
    assert run('echo "$TRACESTATE"').content == "two\nlines"


def test_a_value_that_the_command_sets_stays(run, traced):
    traced("export TRACEPARENT=new")
    assert run(SHOW).content == "new"


def test_a_read_only_variable_stays_as_it_is(run, traced):
    run("readonly TRACEPARENT=fixed")
    assert traced('echo "$TRACEPARENT $BAGGAGE"').content == "fixed user=a%20b"
    assert run("echo $TRACEPARENT").content == "fixed"


def test_a_bash_that_replaces_the_shell_does_not_keep_it(run, traced):
    traced("exec bash --norc")
    assert run(SHOW).content == ""


def test_the_status_and_the_last_argument_are_those_of_the_previous_command(run, traced):
    run("false")
    assert traced("echo $?").content == "1"
    run("mkdir other")
    assert traced("echo $_").content == "other"


def test_a_command_that_is_still_running_keeps_it(run, traced, gate):
    first = traced(f"read x <{gate.path}; {SHOW}", timeout=0.5)
    assert first.metadata.exit_code == -1
    gate.open()
    assert PARENT in run("", timeout=60).content
    assert run(SHOW).content == ""


def test_malformed_values_are_dropped(run, session):
    action = CmdRunAction(SHOW)
    action.actor = Actor(traceparent="x'; touch here; '", tracestate="\t", baggage="a\nb")
    assert session.execute(action).content == ""
