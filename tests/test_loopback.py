"""Addresses of this machine, and of others."""

from __future__ import annotations

import pytest

from oh_jupyter.loopback import is_local


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8888/a",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://127.0.0.1:1",
        "https://127.1.2.3/",
        "http://[::1]:8888/",
        "http://[::ffff:127.0.0.1]/",
    ],
)
def test_this_machine(url: str) -> None:
    assert is_local(url)


@pytest.mark.parametrize(
    "url", ["http://example.org/", "http://10.0.0.1/", "http://localhost.example.org/", "", "x"]
)
def test_another_machine(url: str) -> None:
    assert not is_local(url)
