"""The connection of ``%oh_agent openhands`` to its kernel, for any agent that makes Actions."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.testing import LiveKernel, wait_until

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    program = Path(__file__).with_name("guest_agent.py")
    with pytest.MonkeyPatch.context() as patch:
        agents = {"guest": shlex.join([sys.executable, str(program)])}
        patch.setenv("OH_JUPYTER_AGENTS", json.dumps(agents))
        live = LiveKernel(tmp_path_factory.mktemp("workspace"))
    yield live
    live.close()


def test_its_actions_run_in_the_kernel(kernel: LiveKernel) -> None:
    kernel.execute("number = 1")
    shown = kernel.execute("%oh_agent guest actions")
    assert "2" in shown
    assert "from the shell" in shown
    kinds = kernel.execute("print([(type(e).__name__, e.source) for e in oh.events.search()])")
    assert "('CmdRunAction', 'agent')" in kinds


def test_an_interrupt_cancels_them(kernel: LiveKernel) -> None:
    assert "It was cancelled." in kernel.execute("%oh_agent guest interrupted")
    wait_until(lambda: kernel.ask("status")[1]["running"] == [])
