"""Turns are short while an answer is due, and what they were afterwards."""

from __future__ import annotations

import sys

import pytest

from oh_jupyter.kernel.urgency import INTERVAL, Urgency


def test_turns_are_short_while_any_answer_is_due() -> None:
    usual = sys.getswitchinterval()
    urgency = Urgency()
    urgency.begin()
    urgency.begin()
    assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    urgency.end()
    assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    urgency.end()
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_kernel_is_left_as_it_was(kernel) -> None:
    kernel.act("run", command="true")
    kernel.ask("ping")
    assert kernel.execute("import sys; sys.getswitchinterval()") == "0.005"
