"""Search in the cells of a notebook with a regular expression.

The expression is an agent's, and Python's matcher can neither be stopped nor run beside others, so
it runs in a process of its own: this file is its program, too.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

LIMIT_SECONDS = 5.0
"""Time that a search may take."""

MAX_MATCHES = 40
MAX_LINE_CHARS = 160


def matching_lines(pattern: str, texts: list[str]) -> list[tuple[int, int, str]]:
    """Return index of the text, number of the line from 1, and the line, of each matching line."""
    expression = re.compile(pattern)
    matches: list[tuple[int, int, str]] = []
    for index, text in enumerate(texts):
        for number, line in enumerate(text.splitlines(), 1):
            match = expression.search(line)
            if match is None:
                continue
            start = max(0, match.start() - MAX_LINE_CHARS // 2)
            matches.append((index, number, line[start : start + MAX_LINE_CHARS].strip()))
            if len(matches) > MAX_MATCHES:
                return matches
    return matches


async def search(pattern: str, texts: list[str]) -> list[tuple[int, int, str]]:
    """Search in a process; raise ValueError with the reason if that fails or takes too long."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", __file__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            output, _ = await process.communicate(json.dumps([pattern, texts]).encode())
    except TimeoutError:
        raise ValueError(
            f"The search took longer than {LIMIT_SECONDS:g} s. Use a simpler expression"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return [(index, number, line) for index, number, line in json.loads(output)]


if __name__ == "__main__":
    json.dump(matching_lines(*json.load(sys.stdin)), sys.stdout)
