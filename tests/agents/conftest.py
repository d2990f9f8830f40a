"""A runtime, and agents that are real processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from guest_runtime import Guests

from oh_jupyter.errors import RuntimeClosedError


@pytest.fixture
def make_guests(tmp_path: Path) -> Iterator[Callable[..., Guests]]:
    made: list[Guests] = []

    def make(**settings: Any) -> Guests:
        made.append(Guests(tmp_path, **settings))
        return made[-1]

    yield make
    for guests in made:
        with suppress(RuntimeClosedError):  # the test has closed it
            guests.call(guests.agents.stop())
        guests.runtime.close()


@pytest.fixture
def guests(make_guests: Callable[..., Guests]) -> Guests:
    return make_guests(confirmation="never")
