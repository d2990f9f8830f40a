"""The snippets of README and documentation do what they say, in an open notebook or a terminal.

A comment before a block, ``<!-- not run: REASON -->``, says why it cannot be run here; such a block
is only checked. With ``<!-- needs NAME -->``, it is run where there is this program or package.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
import requests
from IPython.core.inputtransformer2 import TransformerManager

from oh_jupyter.client import RuntimeClient
from oh_jupyter.testing import LiveServer, run_server

ROOT = Path(__file__).parents[1]
MADE = {"_build", "reference", "tutorials"}
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if MADE.isdisjoint(page.parts)
)
BLOCK = re.compile(
    r"(?: *<!-- (?:not run: (?P<reason>[^\n]+)|needs (?P<needed>\w+)) -->\n)?"
    r"^ *```(?P<language>python|bash|ipython)\n"
    r"(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
OTHER_LANGUAGES = {
    *("", "json", "text", "toml", "yaml", "ini", "js", "javascript", "dockerfile", "mermaid"),
    *("{eval-rst}", "{toctree}", "{include}", "{literalinclude}", "{note}", "{tip}", "{warning}"),
}
"""Languages of blocks that are no code of ours, or an output."""

NOTEBOOKS = ("00-tour.ipynb", "analysis.ipynb")
END = "this was the end"


def snippets(*, are_run: bool) -> Iterator[object]:
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start("code")) + 1
            if (block["reason"] is None) == are_run:
                code = textwrap.dedent(block["code"])
                needed = block["needed"]
                is_missing = needed and not (shutil.which(needed) or find_spec(needed))
                marks = [pytest.mark.skip(reason=f"needs {needed}")] if is_missing else []
                yield pytest.param(block["language"], code, id=f"{page}:{line}", marks=marks)


@dataclass
class Place:
    """A directory with an open notebook, and a terminal in it."""

    server: LiveServer
    kernel_id: str

    def in_notebook(self, code: str) -> None:
        prepared = f"token = {self.server.token!r}\nget_config = type(get_ipython().config)\n"
        own = code.replace("http://127.0.0.1:8888", self.server.url)
        with RuntimeClient(self.server.url, self.server.token, self.kernel_id) as runtime:
            seen = runtime.run_ipython(f"{prepared}{own}\nprint({END!r})")
        assert END in seen.content.splitlines(), seen.content
        assert "UsageError" not in seen.content

    def in_terminal(self, code: str) -> None:
        url = f"{self.server.url}/oh_jupyter/kernels/{self.kernel_id}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.server.directory / "root",
            env={
                **os.environ,
                "HOME": str(self.server.directory),
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "OH_URL": url,
                "OH_TOKEN": self.server.token,
            },
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert '"error"' not in done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("snippets")
    root = directory / "root"
    (root / "project").mkdir(parents=True)
    (root / "work").mkdir()
    (root / "work" / "Makefile").write_text("all:\n\t@echo made\n")
    (root / "examples").symlink_to(ROOT / "examples")
    with (
        run_server(directory) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("JUPYTER_RUNTIME_DIR", str(directory / "run"))
        kernel: dict[str, str] = {"name": "python3"}
        for name in NOTEBOOKS:
            nbformat.write(nbformat.v4.new_notebook(), root / name)
            answer = requests.post(
                f"{server.url}/api/sessions",
                json={"path": name, "name": name, "type": "notebook", "kernel": kernel},
                headers=server.headers,
                timeout=60,
            )
            answer.raise_for_status()
            # The notebooks share one kernel, which is enough for what is shown.
            kernel = {"id": answer.json()["kernel"]["id"]}
        yield Place(server, kernel["id"])


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not here")
@pytest.mark.parametrize(("language", "code"), list(snippets(are_run=True)))
def test_a_snippet(place: Place, language: str, code: str) -> None:
    if language == "bash":
        place.in_terminal(code)
    else:
        place.in_notebook(code)


@pytest.mark.parametrize(("language", "code"), list(snippets(are_run=False)))
def test_a_snippet_that_is_not_run_is_valid(language: str, code: str) -> None:
    if language == "bash":
        done = subprocess.run(["bash", "-n"], input=code, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return
    tree = ast.parse(TransformerManager().transform_cell(code.replace("…", "...")))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("oh_jupyter"):
            if ".adapters." in str(node.module):
                continue  # its framework may be missing; tests/adapters imports it
            module = import_module(str(node.module))
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


def test_no_block_is_in_an_unknown_language() -> None:
    """Otherwise a block could be neither run nor have a reason."""
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        fences = re.findall(r"^ *```([^`\n]*)$", text, re.MULTILINE)
        named = {(each.split() or [""])[0] for each in fences}
        assert named - {"python", "bash", "ipython"} <= OTHER_LANGUAGES, page
