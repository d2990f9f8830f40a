"""The terms of a question about a waiting Action."""

from __future__ import annotations


def question_terms(sandboxed: bool | None, seconds_left: float) -> str:
    """Say whether an Action would run in a sandbox, and how long it waits.

    Args:
        sandboxed: Whether it would; None where nobody expects a sandbox.
        seconds_left: Time until it is rejected.
    """
    minutes, seconds = divmod(int(seconds_left), 60)
    rejected = f"rejected in {minutes}:{seconds:02} unless you decide"
    if sandboxed is None:
        return rejected
    return f"{'sandboxed' if sandboxed else 'not sandboxed'}; {rejected}"
