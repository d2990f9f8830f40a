"""An episode in an engine's worker: it runs in a child process with a deadline."""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.child import FILES, OUTCOME, REQUEST
from oh_jupyter.evaluation.episode import Trial
from oh_jupyter.evaluation.results import Results
from oh_jupyter.installed import python_command, python_environment
from oh_jupyter.process import Child, spawn

MAX_OUTPUT_CHARS = 200


@dataclass(frozen=True)
class EpisodeRequest:
    """Request to a worker: ``play`` is the pickled task and Player; ``out`` may be ""."""

    task: str
    seed: int
    play: bytes
    timeout: float
    out: str


class Children:
    """Running child processes of a run, which all end when the run is cancelled."""

    def __init__(self) -> None:
        self._running: set[Child] = set()
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def guarding(self, child: Child) -> Iterator[None]:
        """End a child and its descendants on exit; CancelledError if the run was cancelled."""
        with self._lock:
            self._running.add(child)
        try:
            self._check_open()
            yield
            self._check_open()
        finally:
            with self._lock:
                self._running.discard(child)
            child.terminate()

    def _check_open(self) -> None:
        if self._closed:
            raise CancelledError

    def close(self) -> None:
        """End all children."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            child.terminate(0)


def make_trial(request: EpisodeRequest, seconds: float = 0.0, **values: Any) -> Trial:
    """Return the result of an episode that ends now."""
    values = {"reward": 0.0, "steps": 0, **values}
    now = datetime.now(UTC).isoformat()
    return Trial(request.task, request.seed, seconds=round(seconds, 3), finished_at=now, **values)


def run_episode(request: EpisodeRequest, children: Children | None = None) -> Trial:
    """Run an episode and store its result, unless it has one, since engines repeat work."""
    results = Results(request.out) if request.out else None
    earlier = results.find(request.task, request.seed) if results is not None else None
    if earlier is not None:
        return earlier
    with tempfile.TemporaryDirectory(
        prefix="oh_jupyter-episode-", ignore_cleanup_errors=True
    ) as temp_dir:
        folder = Path(temp_dir)
        start = time.monotonic()
        ended, status = _run_child(request, folder, children or Children())
        trial = make_trial(request, time.monotonic() - start, **_values(folder, ended, status))
        return results.record(trial, folder / FILES) if results is not None else trial


def _run_child(request: EpisodeRequest, folder: Path, children: Children) -> tuple[str, int]:
    """Run the episode in a child; return how it ended, and its exit status."""
    (folder / FILES).mkdir()
    (folder / "tmp").mkdir()
    (folder / REQUEST).write_bytes(
        pickle.dumps({"play": request.play, "seed": request.seed, "search": sys.path})
    )
    with (folder / FILES / "output.txt").open("wb") as output:
        child = spawn(
            python_command("oh_jupyter.evaluation.child", str(folder)),
            env=python_environment(TMPDIR=str(folder / "tmp")),
            stdout=output, stderr=output, remove_when_orphaned=folder,
        )  # fmt: skip
        with children.guarding(child):
            try:
                return "finished", child.wait(request.timeout)
            except TimeoutError:
                return "deadline", 0


def _values(folder: Path, ended: str, status: int) -> dict[str, Any]:
    """Return the outcome that a child wrote, or else how the child ended."""
    try:
        outcome: dict[str, Any] = json.loads((folder / OUTCOME).read_text("utf-8"))
    except FileNotFoundError:
        if ended == "deadline":
            return {"ended": ended, "error": "It was stopped at its deadline."}
        lines = (folder / FILES / "output.txt").read_text("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1][:MAX_OUTPUT_CHARS]}" if lines else ""
        return {"ended": "died", "error": f"Its process ended with status {status}{last}"}
    if "refused" in outcome:
        raise EvaluationError(outcome["refused"])
    return outcome
