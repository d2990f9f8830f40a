"""Random commands, one after the other: every exit code right, every byte there, none foreign."""

from __future__ import annotations

import os
import random

import pytest

COMMANDS = int(os.environ.get("STRESS_COMMANDS", "100"))
"""Give more for a long run; the test's own time limit follows."""


@pytest.mark.timeout(COMMANDS + 100)
@pytest.mark.parametrize("seed", [7])
def test_random_commands(run, start, session, seed):
    rng = random.Random(seed)
    for count in range(COMMANDS):
        where = f"seed {seed}, command {count}"
        status = rng.randrange(256)
        kind = rng.choice(
            ["silent", "short", "short", "process", "noisy", "slow", "long", "interrupt", "input"]
        )
        tag = f"{count}-{rng.random()}"
        if kind == "silent":
            command, content = f"(exit {status})", ""
        elif kind == "short":
            command, content = f"echo {tag}; (exit {status})", tag
        elif kind == "process":
            command, content = f"sh -c 'printf {tag}; echo err >&2; exit {status}'", f"{tag}err"
        elif kind == "noisy":
            lines = rng.randrange(1, 9000)
            command = f"seq {lines}; printf {tag}; (exit {status})"
            content = "\n".join([*map(str, range(1, lines + 1)), tag])
        elif kind == "slow":
            command = f"for i in 1 2 3; do printf $i; sleep 0.01; done; (exit {status})"
            content = "123"
        elif kind == "long":
            text = "".join(rng.choices("abc é日'\"$`!\\\n\t;|&", k=rng.randrange(5000)))
            quoted = "'" + text.replace("'", "'\\''") + f"{tag}'"
            command = f"printf %s {quoted} | md5sum >/dev/null; echo {tag}; (exit {status})"
            content = tag
        elif kind == "interrupt":
            moment = 0.02 + rng.random() / 20
            first = start(f"echo {tag}; sleep 100; echo no", shown=tag, timeout=moment)
            assert first.content == tag, where
            ended = run("C-c", is_input=True, blocking=True, timeout=30)
            assert (ended.exit_code, ended.content) == (130, ""), where
            continue
        else:
            first = run(f"read x; echo $x; (exit {status})", timeout=0.02)
            assert (first.exit_code, first.content) == (-1, ""), where
            ended = run(tag, is_input=True, blocking=True, timeout=30)
            assert (ended.exit_code, ended.content) == (status, tag), where
            continue
        observation = run(command, hidden=True, blocking=True)
        assert observation.exit_code == status, where
        assert observation.content == content, where
        assert observation.metadata.prefix == "", where
