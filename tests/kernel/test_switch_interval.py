"""The switch interval is short while a reply is due, and what it was afterwards."""

from __future__ import annotations

import sys

import pytest

from oh_jupyter.kernel.control.handler import SHORT_INTERVAL_SECONDS, ShortSwitchInterval


def test_it_is_short_while_any_reply_is_due() -> None:
    usual = sys.getswitchinterval()
    interval = ShortSwitchInterval()
    interval.acquire()
    interval.acquire()
    assert sys.getswitchinterval() == pytest.approx(SHORT_INTERVAL_SECONDS)
    interval.release()
    assert sys.getswitchinterval() == pytest.approx(SHORT_INTERVAL_SECONDS)
    interval.release()
    assert sys.getswitchinterval() == pytest.approx(usual)


LEFT_AS_IT_WAS = """
import sys, time
end = time.monotonic() + 60
while sys.getswitchinterval() != 0.005 and time.monotonic() < end:
    time.sleep(0.05)
sys.getswitchinterval()
"""


SOONER = "from oh_jupyter.kernel.control import handler; handler.RESTORE_DELAY_SECONDS = 0.1"


def test_a_kernel_is_left_as_it_was(kernel) -> None:
    kernel.execute(SOONER)
    seen = kernel.act("run_ipython", code="import sys; sys.getswitchinterval()")
    assert float(seen["content"].split("\n")[0]) == pytest.approx(SHORT_INTERVAL_SECONDS)
    assert kernel.execute(LEFT_AS_IT_WAS) == "0.005"
