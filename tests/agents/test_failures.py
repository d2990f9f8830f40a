"""Advice that a person gets with an agent's failure."""

from __future__ import annotations

from oh_jupyter.agents.failures import advice

OLD_NODE = """\
file:///usr/lib/node_modules/agent/dist/index.js:12
import data from "./data.json" with { type: "json" };
                               ^^^^
SyntaxError: Unexpected token 'with'
    at ESMLoader.moduleStrategy (node:internal/modules/esm/translators:119:18)
"""


def test_an_old_node_is_named_by_the_version_that_it_reports() -> None:
    hint = advice(f"{OLD_NODE}\nNode.js v17.9.1\n")
    assert "newer Node.js than the one here (v17.9.1): install Node.js 20" in hint
    assert "newer Node.js" in advice(OLD_NODE)


def test_a_syntax_error_of_python_is_not_one_of_node() -> None:
    traceback = 'File "agent.py", line 2\n    print "x"\nSyntaxError: invalid syntax'
    assert advice(traceback) == ""


def test_the_last_failure_decides_the_advice() -> None:
    output = "unexpected status 401 Unauthorized\nerror sending request: ENOTFOUND"
    assert "check the network" in advice(output)
