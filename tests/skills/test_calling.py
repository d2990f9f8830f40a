"""Skills called as tools, beside cells that print."""

from __future__ import annotations

import contextlib
import io
import sys
import threading

from oh_jupyter.skills import call_skill
from oh_jupyter.skills.calling import captured_output


def text_of(result):
    (content,) = result["content"]
    assert content["type"] == "text"
    return content["text"]


def test_output_and_result_of_a_skill():
    def both(a: int, b: int = 2) -> int:
        print("adding", a, "and", b)
        return a + b

    result = call_skill("both", both, {"a": 1})
    assert result == {
        "meta": None,
        "content": [
            {"type": "text", "text": "adding 1 and 2\n3", "annotations": None, "meta": None}
        ],
        "structuredContent": {"result": 3},
        "isError": False,
    }


def test_kinds_of_values():
    def give(value):
        return call_skill("give", lambda: value, {})

    assert (text_of(give("text")), give("text")["structuredContent"]) == ("text", None)
    assert (text_of(give(None)), give(None)["structuredContent"]) == ("", None)
    assert give({"a": [1]})["structuredContent"] == {"a": [1]}
    assert text_of(give({"a": "é"})) == '{"a": "é"}'
    assert text_of(give({1, 2})) == "{1, 2}"
    assert give(float("nan"))["structuredContent"] is None
    assert text_of(give((1, "b"))) == '[1, "b"]'


def test_a_coroutine_function_is_awaited():
    async def slow(name: str) -> str:
        print("waiting")
        return f"hello {name}"

    assert text_of(call_skill("slow", slow, {"name": "Ada"})) == "waiting\nhello Ada"


def test_failures_are_error_results():
    def fail(reason: str) -> None:
        print("trying")
        raise LookupError(reason)

    result = call_skill("fail", fail, {"reason": "not there"})
    assert result["isError"] is True
    assert text_of(result) == "trying\nLookupError: not there"
    result = call_skill("fail", fail, {"cause": 1})
    assert result["isError"] is True
    assert "missing a required argument: 'reason'" in text_of(result)
    assert "(reason: str)" in text_of(result)


def test_other_threads_keep_their_output():
    """A skill and a cell print at the same time, line by line."""
    turns = threading.Barrier(2)
    results = []

    def skill() -> None:
        for number in range(3):
            turns.wait(60)
            print("skill", number)
            turns.wait(60)

    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        worker = threading.Thread(target=lambda: results.append(call_skill("s", skill, {})))
        worker.start()
        for number in range(3):
            turns.wait(60)
            print("cell", number)
            turns.wait(60)
        worker.join(60)
        assert sys.stdout is stream
    assert stream.getvalue() == "cell 0\ncell 1\ncell 2\n"
    assert text_of(results[0]) == "skill 0\nskill 1\nskill 2"


def test_two_skills_at_once_and_the_stream_is_put_back():
    before = sys.stdout
    turns = threading.Barrier(2)
    results = {}

    def skill(name: str) -> None:
        print(name, "begins")
        turns.wait(60)
        print(name, "ends")

    workers = [
        threading.Thread(
            target=lambda name=name: results.update({name: call_skill("s", skill, {"name": name})})
        )
        for name in ("one", "two")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert {name: text_of(result) for name, result in results.items()} == {
        "one": "one begins\none ends",
        "two": "two begins\ntwo ends",
    }
    assert sys.stdout is before


def test_a_stream_replaced_meanwhile_stays():
    before = sys.stdout
    theirs = io.StringIO()
    with captured_output() as printed:
        print("mine")
        sys.stdout = theirs
    assert sys.stdout is theirs
    sys.stdout = before
    assert printed.getvalue() == "mine\n"


def test_everything_else_of_the_stream_is_there():
    with captured_output():
        assert sys.stdout.encoding == sys.__stdout__.encoding or sys.stdout.encoding
        sys.stdout.flush()
