"""The shell's ``python`` is that of the kernel, unless a setting says otherwise."""

from __future__ import annotations

import os
import sys

import pytest

from oh_jupyter.config import load_settings
from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime import Runtime

BIN = os.path.dirname(sys.executable)


@pytest.mark.parametrize("wanted", [True, False])
def test_the_shell_finds_the_python_of_the_kernel(tmp_path, monkeypatch, wanted):
    path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if p != BIN)
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("HOME", str(tmp_path))
    values = {"workspace_dir": str(tmp_path), "file_store": "memory"}
    switch = {} if wanted else {"OH_JUPYTER_SHELL_KERNEL_PYTHON": "false"}
    runtime = Runtime(load_settings(values, environ=switch))
    try:
        observation = runtime.submit_action(CmdRunAction("echo $PATH"), "agent").result(60)
    finally:
        runtime.close()
    assert observation.content == (f"{BIN}:{path}" if wanted else path)
    assert (observation.metadata.py_interpreter_path == f"{BIN}/python") is wanted
