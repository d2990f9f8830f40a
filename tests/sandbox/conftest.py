"""Folders of a person, and a box for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.layout import Layout, make_layout


@pytest.fixture
def layout() -> Iterator[Layout]:
    with make_layout() as made:
        yield made
