"""The example for an evaluation harness, with the harness's real package."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oh_jupyter.testing import run_server

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("default")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def needs(package: str, distribution: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{distribution} is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with run_server(tmp_path_factory.mktemp("server")) as started:
        os.environ |= {"OH_URL": f"{started.url}/oh_jupyter", "OH_TOKEN": started.token}
        yield started
        del os.environ["OH_URL"], os.environ["OH_TOKEN"]


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    needs("minisweagent", "mini-swe-agent")
    os.environ["MSWEA_SILENT_STARTUP"] = "1"
    os.environ["MSWEA_GLOBAL_CONFIG_DIR"] = str(tmp_path_factory.mktemp("mini"))
    return load(ROOT / "examples" / "mini_swe_agent_environment.py")


def test_mini_swe_agent_solves_a_task(mini: ModuleType, server: Any, tmp_path: Path) -> None:
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.models.test_models import DeterministicModel, make_output

    commands = (
        "echo $GREETING from $(pwd) > made.txt",
        "cat made.txt",
        f"echo {mini.SUBMISSION}; cat made.txt",
    )
    model = DeterministicModel(
        outputs=[make_output("next", [{"command": command}]) for command in commands]
    )
    environment = mini.KernelEnvironment(cwd=str(tmp_path), env={"GREETING": "Hello, you"})
    agent = DefaultAgent(
        model,
        environment,
        system_template="You are on {{system}} {{machine}}.",
        instance_template="{{task}}",
    )
    result = agent.run("make a file")
    assert result["submission"].strip() == f"Hello, you from {tmp_path}"
    assert (tmp_path / "made.txt").read_text() == f"Hello, you from {tmp_path}\n"
    assert "You are on Linux" in str(agent.messages[0])
    assert server.token not in str(environment.serialize())


def test_mini_swe_agent_gets_error_messages(mini: ModuleType, server: Any) -> None:
    environment = mini.KernelEnvironment()
    failed = environment.execute({"command": "echo out; exit 3"})
    assert (failed["output"].strip(), failed["returncode"]) == ("out", 3)
    late = environment.execute({"command": "sleep 1000"}, timeout=1)
    assert late["returncode"] == -1
    assert "did not end within 1 s" in late["exception_info"]
    assert environment.execute({"command": "echo on"})["output"].strip() == "on"
