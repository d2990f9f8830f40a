"""Sources of settings and their precedence."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from oh_jupyter.config import Settings, load_settings
from oh_jupyter.errors import ConfigError
from oh_jupyter.traits import KernelTraits, explicit_settings


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_explicit_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = toml(tmp_path, '[core]\nfile_store = "s3"\nfile_store_path = "a"\nworkspace_dir = "w"\n')
    environ = {"FILE_STORE": "memory", "FILE_STORE_PATH": "b", "NO_CHANGE_TIMEOUT_SECONDS": "3"}
    settings = load_settings({"file_store_path": "c"}, environ=environ, config_file=file)
    assert (settings.file_store, settings.file_store_path) == ("memory", "c")
    assert (settings.workspace_dir, settings.no_change_timeout_seconds) == ("w", 3.0)
    assert load_settings(environ={}) == Settings()


def test_headers_are_json_or_a_table(tmp_path: Path) -> None:
    environ = {"FILE_STORE_WEB_HOOK_HEADERS": '{"A": "b"}', "FILE_STORE_WEB_HOOK_BATCH": "yes"}
    settings = load_settings(environ=environ)
    assert settings.file_store_web_hook_headers == {"A": "b"}
    assert settings.file_store_web_hook_batch is True
    environ = {"FILE_STORE_WEB_HOOK_HEADERS": "{'A': 'b'}"}  # as OpenHands reads it
    assert load_settings(environ=environ).file_store_web_hook_headers == {"A": "b"}
    file = toml(tmp_path, '[core.file_store_web_hook_headers]\nA = "b"\n')
    assert load_settings(environ={}, config_file=file).file_store_web_hook_headers == {"A": "b"}


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({"NO_CHANGE_TIMEOUT_SECONDS": "soon"}, "NO_CHANGE_TIMEOUT_SECONDS"),
        ({"FILE_STORE_WEB_HOOK_HEADERS": "{"}, "FILE_STORE_WEB_HOOK_HEADERS"),
        ({"FILE_STORE_WEB_HOOK_HEADERS": "[]"}, "FILE_STORE_WEB_HOOK_HEADERS"),
        ({"FILE_STORE_WEB_HOOK_BATCH": "maybe"}, "FILE_STORE_WEB_HOOK_BATCH"),
        ({"OH_JUPYTER_CONFIG_FILE": "/no/such/file.toml"}, "/no/such/file.toml"),
    ],
)
def test_an_unusable_value_is_named(environ: dict[str, str], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        load_settings(environ=environ)


def test_an_unknown_setting_and_a_broken_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no setting 'file_shop'.*file_store"):
        load_settings({"file_shop": "x"}, environ={})
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read"):
        load_settings(environ={}, config_file=toml(tmp_path, "[core"))
    with pytest.raises(ConfigError, match="must be a string"):
        load_settings(environ={}, config_file=toml(tmp_path, "[core]\nfile_store = 5\n"))


def test_traits_are_the_documented_settings() -> None:
    traits = KernelTraits(file_store="memory", plugins=["jupyter"])
    assert type(traits).__name__ == "OhJupyter"
    assert explicit_settings(traits) == {"file_store": "memory", "plugins": ("jupyter",)}
    assert set(Settings.__dataclass_fields__) <= set(traits.trait_names())
    for name in Settings.__dataclass_fields__:
        assert traits.traits()[name].help


def test_printed_settings_contain_no_secrets() -> None:
    settings = load_settings({"file_store_web_hook_secret": "s3cr3t"}, environ={})
    assert settings.file_store_web_hook_secret == "s3cr3t"
    assert "s3cr3t" not in repr(settings)


NUMBERS = [
    name for name, hint in get_type_hints(Settings).items() if hint in (int, float, float | None)
]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_without_meaning_is_rejected(name: str) -> None:
    for value in (-1, float("nan"), "5", True):
        with pytest.raises(ConfigError, match=f"The setting {name} must be a number .*, not "):
            load_settings({name: value}, environ={})
    assert getattr(load_settings({name: 1}, environ={}), name) == 1


def test_the_source_of_a_number_without_meaning_is_named(tmp_path: Path) -> None:
    environ = {"OH_JUPYTER_CHECKPOINT_VARIABLES_MB": "-1"}
    rule = "OH_JUPYTER_CHECKPOINT_VARIABLES_MB must be a number of at least 0, not -1.0"
    with pytest.raises(ConfigError, match=rule):
        load_settings(environ=environ)
    file = toml(tmp_path, "[core]\nmax_upload_mb = 0\n")
    with pytest.raises(
        ConfigError, match=r"max_upload_mb in .* must be a number greater than 0, not 0"
    ):
        load_settings(environ={}, config_file=file)
