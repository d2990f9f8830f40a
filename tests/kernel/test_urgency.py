"""Turns are short while an answer is due, and what they were afterwards."""

from __future__ import annotations

import sys

import pytest

from oh_jupyter.kernel.control.switch_interval import INTERVAL, Urgency


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


LEFT_AS_IT_WAS = """
import sys, time
end = time.monotonic() + 60
while sys.getswitchinterval() != 0.005 and time.monotonic() < end:
    time.sleep(0.05)
sys.getswitchinterval()
"""


def test_a_kernel_is_left_as_it_was(kernel) -> None:
    kernel.act("run", command="true")
    assert float(kernel.execute("import sys; sys.getswitchinterval()")) == pytest.approx(INTERVAL)
    assert kernel.execute(LEFT_AS_IT_WAS) == "0.005"
