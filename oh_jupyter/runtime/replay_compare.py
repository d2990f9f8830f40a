"""What of an Observation has to be the same when its Action is carried out again."""

from __future__ import annotations

import re
from typing import Any

from oh_jupyter.events import CmdOutputObservation, Observation

__all__ = ["comparable_text"]

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_VOLATILE = [
    (re.compile(rf"{_DAY}\w*,? +(?:\d+ +)?{_MONTH}\w*(?: +\d+)?(?:,? +\d{{4}})?"), "DATE"),
    (re.compile(rf"\b{_MONTH} +\d{{1,2}} +(?=\d\d:\d\d)"), "DATE "),
    (
        re.compile(
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
        ),
        "DATE",
    ),
    (
        re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?(?: [A-Z]{3,4})?(?: \d{4})?\b"),
        "TIME",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|seconds|m\d+\.\d+s)\b"), "DURATION"),
    (re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "ADDRESS"),
    (re.compile(r"(?m)^(\[\d+\][+-]?) +\d+$"), r"\1 PID"),
    (re.compile(r"(?i)\b(pid|process)([ =:]+)\d+"), r"\1\2PID"),
    (re.compile(r"\b(127\.0\.0\.1|localhost|0\.0\.0\.0):\d+"), r"\1:PORT"),
    (re.compile(r"/tmp/[\w.-]+"), "TEMPORARY"),
    (re.compile(r"\[Jupyter Python interpreter: [^\]]*\]"), "[Jupyter Python interpreter]"),
    (re.compile(r"screenshot_\d{8}_\d{6}(?:_\d+)?"), "screenshot_TIME"),
]


def comparable_text(observation: Observation, workspace: str) -> str:
    """Type, exit code, error flag and content, without what is never the same twice.

    The folder of the runtime stands as WORKSPACE.
    """
    own: dict[str, Any] = vars(observation)
    lines = [f"type: {observation.kind}"]
    if isinstance(observation, CmdOutputObservation):
        lines.append(f"exit code: {observation.exit_code}")
    if own.get("error"):
        lines.append("error: True")
    text = observation.content.replace(workspace, "WORKSPACE")
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return "\n".join([*lines, *(line.rstrip() for line in text.splitlines())])
