"""A person's trust in the settings of the notebook's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_the_notebook_names_ignored_settings(fresh_kernel: Any, tmp_path: Path) -> None:
    fresh_kernel.execute(f"%cd -q {tmp_path}")
    (tmp_path / "config.toml").write_text('[core]\nconfirmation = "never"\nmax_upload_mb = 5\n')
    shown = fresh_kernel.execute("%reload_ext oh_jupyter")
    assert "config.toml sets confirmation, which can loosen what limits agents" in shown
    assert fresh_kernel.execute("oh.settings.max_upload_mb, oh.settings.confirmation") == (
        "(5.0, None)"
    )
    assert "config.toml sets confirmation" in fresh_kernel.execute("%oh_status")
    assert fresh_kernel.execute("%oh_trust --show").split()[-2:] == ["confirmation", '"never"']

    def read() -> str:
        code = (
            "from oh_jupyter.config import load_settings; from oh_jupyter.trust import is_trusted\n"
            "print(load_settings(is_trusted=is_trusted).confirmation)"
        )
        return str(fresh_kernel.execute(code)).splitlines()[0]

    code = "get_ipython().run_line_magic('oh_trust', '')"
    refused = fresh_kernel.act("run_ipython", code=code)["content"]
    assert "Only a cell of yours can trust settings" in refused
    later = "get_ipython().events.register('post_run_cell', lambda *_: "
    fresh_kernel.act("run_ipython", code=f"{later}{code})")
    fresh_kernel.execute("'%oh_trust'")
    assert read() == "None"
    assert "is trusted" in fresh_kernel.execute("%oh_trust")
    assert read() == "never"
    assert "no longer trusted" in fresh_kernel.execute("%oh_trust --forget")


def test_a_kernel_refuses_a_misspelled_setting(fresh_kernel: Any) -> None:
    shown = fresh_kernel.execute('%config OhJupyter.sandbx = "required"')
    assert "There is no setting c.OhJupyter.sandbx. Did you mean sandbox?" in shown
    fresh_kernel.execute("get_ipython().config.OhJupyter.sandbx = 'required'")
    shown = fresh_kernel.execute("%reload_ext oh_jupyter")
    assert "Did you mean sandbox? Nothing was reloaded" in shown.replace("?.", "?")


def test_the_panel_trusts_the_displayed_settings(fresh_kernel: Any, tmp_path: Path) -> None:
    fresh_kernel.execute(f"%cd -q {tmp_path}")
    file = tmp_path / "config.toml"
    file.write_text('[core]\nconfirmation = "never"\n')
    seen = fresh_kernel.ask("untrusted_settings")[1]
    assert seen["file"] == str(file)
    assert seen["settings"] == [{"name": "confirmation", "value": '"never"'}]
    file.write_text('[core]\nconfirmation = "never"\nbrowser_path = "/evil"\n')
    refused = fresh_kernel.ask("trust_folder", digest=seen["digest"])[0]
    assert "has changed since it was shown" in str(refused)
    assert len(fresh_kernel.ask("untrusted_settings")[1]["settings"]) == 2
    file.write_text('[core]\nconfirmation = "never"\n')
    fresh_kernel.ask("trust_folder", digest=seen["digest"])
    assert fresh_kernel.ask("untrusted_settings")[1]["settings"] == []
    assert "no longer trusted" in fresh_kernel.execute("%oh_trust --forget")
