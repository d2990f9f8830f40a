"""A server that has a password and no token: programs of its user find it all the same."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
import requests
from jupyter_server.auth.security import passwd
from nbformat.v4 import new_notebook

from oh_jupyter.kernel.own_server import find_server as find_own_server
from oh_jupyter.server.running import find_server
from oh_jupyter.testing import LiveServer, run_server


def login(server: LiveServer) -> requests.Session:
    """Log in as a person does, with the password."""
    browser = requests.Session()
    browser.get(f"{server.url}/login", timeout=60)
    form = {"password": "sesame", "_xsrf": browser.cookies["_xsrf"]}
    browser.post(f"{server.url}/login", data=form, timeout=60).raise_for_status()
    browser.headers["X-XSRFToken"] = browser.cookies["_xsrf"]
    return browser


@pytest.mark.thorough
def test_its_notebooks_are_found_with_the_key_that_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (
        "--IdentityProvider.token=",
        f"--PasswordIdentityProvider.hashed_password={passwd('sesame')}",
    )
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "run"))
    with run_server(tmp_path, *options) as server:
        nbformat.write(new_notebook(), tmp_path / "root" / "book.ipynb")
        browser = login(server)
        body = {"path": "book.ipynb", "name": "book.ipynb", "type": "notebook"}
        created = browser.post(
            f"{server.url}/api/sessions", json=body | {"kernel": {"name": "python3"}}, timeout=60
        )
        kernel_id = created.json()["kernel"]["id"]
        (note,) = (tmp_path / "run").glob("oh_jupyter-*.key")
        assert note.stat().st_mode & 0o777 == 0o600

        address = find_server("book.ipynb")
        assert address.url.endswith(f"/oh_jupyter/kernels/{kernel_id}")
        tools = find_own_server(kernel_id)
        assert tools is not None
        assert (tools.url, tools.headers) == (address.url, address.headers)
        action = {"action": {"action": "run", "args": {"command": "echo here"}}}
        answer = requests.post(
            f"{address.url}/execute_action", json=action, headers=address.headers, timeout=60
        )
        assert answer.json()["content"] == "here"
        # The key is for our addresses, and decides nothing.
        kernels = requests.get(f"{server.url}/api/kernels", headers=address.headers, timeout=60)
        assert kernels.status_code == 403
        decision = requests.post(
            f"{address.url}/confirmations/0",
            json={"approve": True},
            headers=address.headers,
            timeout=60,
        )
        assert decision.status_code == 403
        wrong = requests.get(
            f"{address.url}/alive", headers={"Authorization": "token x"}, timeout=60
        )
        assert wrong.status_code == 403
    assert not note.exists()


def test_a_server_with_a_token_leaves_no_key(tmp_path: Path) -> None:
    with run_server(tmp_path):
        assert list((tmp_path / "run").glob("jpserver-*.json"))
        assert list((tmp_path / "run").glob("oh_jupyter-*.key")) == []
