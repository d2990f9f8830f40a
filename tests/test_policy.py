"""An administrator's policy, from its sources to the settings and the runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_jupyter.config import Settings, load_settings
from oh_jupyter.errors import ConfigError, PolicyError
from oh_jupyter.events import BrowseURLAction, CmdRunAction, ErrorObservation, IPythonRunCellAction
from oh_jupyter.policy import (
    check_allowed,
    check_cells,
    check_change,
    kernel_network,
    refusal,
    restrictions,
)
from oh_jupyter.runtime import Runtime

VARIABLE = "OH_JUPYTER_POLICY"


@pytest.mark.parametrize(
    ("policy", "forced"),
    [
        ({"browser": "off"}, {"enable_browser": False}),
        ({"network": "off"}, {"sandbox_network": "none", "sandbox": "required"}),
        ({"network": "on"}, {"sandbox_network": "host", "sandbox": "off"}),
        ({"plugins": "jupyter, vscode"}, {"plugins": ("jupyter",)}),
        ({"plugins": "on"}, {"plugins": ("agent_skills", "jupyter")}),
        ({"plugins": "off"}, {"plugins": ()}),
        ({"shell": "off", "agents": "claude"}, {}),
    ],
    ids=lambda each: ",".join(f"{name}={value}" for name, value in each.items()),
)
def test_a_policy_forces_settings(policy, forced) -> None:
    explicit = {"policy": policy, "sandbox_network": "ask", "sandbox": "off"}
    settings = load_settings(explicit, environ={})
    assert {name: getattr(settings, name) for name in forced} == forced


def test_a_capability_is_forced_on() -> None:
    settings = load_settings(
        {"enable_browser": False}, environ={VARIABLE: '{"browser": "on", "shell": "off"}'}
    )
    assert settings.enable_browser


def test_the_variable_takes_precedence_for_its_entries() -> None:
    settings = load_settings(
        {"policy": {"browser": "on", "shell": "off"}}, environ={VARIABLE: '{"browser": "off"}'}
    )
    assert settings.policy == {"browser": "off", "shell": "off"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"camera": "off"}', "unknown capability 'camera'. Capabilities: browser, shell"),
        ('{"shell": "perhaps"}', "one of on, off for shell, not 'perhaps'"),
        ('{"network": "none"}', "one of off, listed, ask, on for network"),
        ("off", "must be a mapping"),
    ],
)
def test_a_policy_that_cannot_be_applied(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_settings(environ={VARIABLE: text})


def test_agents_are_allowed_by_name() -> None:
    policy = {"agents": "claude, codex"}
    assert refusal(policy, "agents", "codex") == refusal({}, "agents", "goose") == ""
    with pytest.raises(PolicyError, match="does not allow goose"):
        check_allowed(policy, "agents", "goose")
    with pytest.raises(PolicyError, match="has switched off agents"):
        check_allowed({"agents": "off"}, "agents", "claude")


def test_restrictions_are_readable() -> None:
    policy = {"shell": "off", "browser": "on", "network": "listed", "plugins": "jupyter"}
    assert [tuple(each.values()) for each in restrictions(policy)] == [
        ("shell", "off", "The administrator has switched off shell (policy: shell=off)."),
        ("network", "listed", "The administrator limits network (policy: network=listed)."),
        ("plugins", "jupyter", "The administrator limits plugins (policy: plugins=jupyter)."),
    ]
    assert restrictions({}) == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [("enable_browser", True), ("plugins", ("jupyter", "vscode")), ("policy", {})],
)
def test_a_forced_setting_cannot_be_changed(setting: str, value: object) -> None:
    policy = {"browser": "off", "plugins": "jupyter"}
    with pytest.raises(PolicyError, match="policy"):
        check_change(policy, setting, value)
    check_change(policy, "confirmation", "always")
    check_change(policy, "enable_browser", False)


@pytest.mark.parametrize(
    ("value", "network", "is_allowed"),
    [
        ("on", "", True),
        ("off", "", False),
        ("off", "none", True),
        ("off", "listed", False),
        ("listed", "listed", True),
        ("ask", "none", True),
        ("ask", "host", False),
    ],
)
def test_agents_cells_have_no_more_network_than_allowed(value, network, is_allowed) -> None:
    policy = {"network": value}
    if is_allowed:
        check_cells(policy, network)
        return
    with pytest.raises(PolicyError, match=f"network={value}.*choose Python 3 .sandboxed."):
        check_cells(policy, network)


@pytest.mark.parametrize(
    ("value", "wanted", "network"),
    [
        ("on", "host", "host"),
        ("listed", "host", "listed"),
        ("ask", "none", "none"),
        ("off", "listed", "none"),
    ],
)
def test_a_sandboxed_kernel_has_no_more_network_than_allowed(value, wanted, network) -> None:
    assert kernel_network({"network": value}, wanted) == network


def test_actions_are_refused_with_the_reason(tmp_path: Path) -> None:
    policy = {"browser": "off", "shell": "off"}
    settings = Settings(workspace_dir=str(tmp_path), file_store="memory", policy=policy)
    runtime = Runtime(settings)
    try:
        for action in (CmdRunAction("echo x"), BrowseURLAction("https://example.org")):
            for source in ("user", "agent"):
                observation = runtime.submit_action(action, source).result(60)
                assert isinstance(observation, ErrorObservation)
                assert "The administrator has switched off" in observation.content
        assert runtime.executor.status()["shell"] is None
    finally:
        runtime.close()


def test_an_agents_cell_needs_a_kernel_with_a_limited_network(tmp_path: Path) -> None:
    settings = Settings(workspace_dir=str(tmp_path), file_store="memory", policy={"network": "off"})
    runtime = Runtime(settings)
    try:
        observation = runtime.submit_action(IPythonRunCellAction("1"), "agent").result(60)
        assert isinstance(observation, ErrorObservation)
        assert "Agents run cells only in a sandboxed kernel" in observation.content
        person = runtime.submit_action(IPythonRunCellAction("1"), "user").result(60)
        assert "The administrator" not in person.content
    finally:
        runtime.close()
