"""Pages see the files of the machine that a sandbox sees, whatever leads to the others."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from oh_jupyter.browser.worker.local_files import LocalFiles
from oh_jupyter.config import Settings
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowserOutputObservation,
    BrowseURLAction,
)
from oh_jupyter.runtime import Runtime
from oh_jupyter.sandbox import find_engine
from oh_jupyter.visibility import Visibility
from tests.runtime.test_path_races import changing

needs_engine = pytest.mark.skipif(
    find_engine().program is None or os.uname().sysname != "Linux",
    reason="needs bubblewrap, and user namespaces",
)

ROUNDS = 40


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's home, with a secret and a report beside the workspace."""
    home = tmp_path_factory.mktemp("home")
    for name in (".ssh", "report", "project"):
        (home / name).mkdir()
    (home / ".ssh" / "id_rsa").write_text("a secret\n")
    (home / "report" / "index.html").write_text(
        '<iframe src="part.html"></iframe><iframe src="../.ssh/id_rsa"></iframe>'
    )
    (home / "report" / "part.html").write_text("one part")
    (home / "project" / "part.html").write_text("own part")
    (home / "project" / "link").symlink_to(home / ".ssh" / "id_rsa")
    secret = f"file://{home}/.ssh/id_rsa"
    (home / "project" / "page.html").write_text(
        '<iframe src="part.html"></iframe><iframe src="link"></iframe>'
        f'<iframe src="{secret}"></iframe><object data="{secret}"></object>'
        f"""<iframe srcdoc='<iframe src="{secret}"></iframe>'></iframe>"""
        f'<a href="{secret}">go</a><a href="{secret}" target="_blank">tab</a>'
    )
    return home


@pytest.fixture(scope="module")
def runtime(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A runtime that rejects at once what would wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        runtime = Runtime(
            Settings(
                workspace_dir=str(home / "project"),
                file_store="memory",
                confirmation="risky",
                confirmation_timeout=0.001,
                checkpoints="off",
                sandbox="required",
            )
        )
        yield runtime
        runtime.close()


def browsed(runtime: Runtime, action: Action, source: str = "agent") -> str:
    observation = runtime.submit_action(action, source).result(60)  # type: ignore[arg-type]
    if isinstance(observation, BrowserOutputObservation):
        assert "a secret" not in str(observation.axtree_object)
    return observation.content


@needs_engine
def test_a_page_of_the_workspace_shows_nothing_that_is_hidden(runtime: Runtime, home: Path) -> None:
    page = f"file://{home}/project/page.html"
    content = browsed(runtime, BrowseURLAction(page, return_axtree=True))
    assert "own part" in content
    assert "a secret" not in content
    for text in ("go", "tab"):
        tree = browsed(runtime, BrowseInteractiveAction("noop()"))
        bid = next(line for line in tree.splitlines() if f"link '{text}'" in line)
        bid = bid.split("[")[1].split("]")[0]
        assert "a secret" not in browsed(runtime, BrowseInteractiveAction(f"click('{bid}')"))
        tree = browsed(runtime, BrowseInteractiveAction("noop()"))
        assert "ERR_ACCESS_DENIED" in tree or "denied" in tree
        browsed(runtime, BrowseURLAction(page))


@needs_engine
def test_a_page_opened_by_a_person_shows_files_beside_it(runtime: Runtime, home: Path) -> None:
    page = BrowseURLAction(f"file://{home}/report/index.html")
    assert "rejected" in browsed(runtime, page)
    content = browsed(runtime, page, "user")
    assert "one part" in content
    assert "a secret" not in content
    listing = browsed(runtime, BrowseURLAction(f"file://{home}/project/"))
    assert f"[part.html]({home}/project/part.html)" in listing
    assert "own part" in browsed(runtime, BrowseURLAction(f"file://{home}/project/part.html"))
    missing = browsed(runtime, BrowseURLAction(f"file://{home}/project/missing.html"))
    assert f"FileNotFoundError: there is no file '{home}/project/missing.html'" in missing


@needs_engine
@pytest.mark.thorough
def test_an_address_that_becomes_a_link(runtime: Runtime, home: Path) -> None:
    path = home / "project" / "r.txt"
    targets = itertools.cycle((home / ".ssh" / "id_rsa", home / "project" / "part.html"))

    def swap() -> None:
        os.symlink(next(targets), f"{path}.new")
        os.replace(f"{path}.new", path)

    swap()
    with changing(swap):
        for _ in range(ROUNDS):
            assert "a secret" not in browsed(runtime, BrowseURLAction(f"file://{path}"))


def test_an_upload_is_the_judged_file(tmp_path: Path) -> None:
    work, secret = tmp_path / "work", tmp_path / "secret"
    (work / "folder").mkdir(parents=True)
    secret.write_text("a secret")
    for name in ("a.txt", "folder/b.txt"):
        (work / name).write_text(name)
    (work / "folder" / "link").symlink_to(secret)
    rules = Visibility(hidden=[str(secret)], homes=[], shown=[], roots=[str(work)])
    files = LocalFiles([])
    judged = [str(work / "a.txt"), str(work / "folder"), str(tmp_path)]
    files.begin_step({"rules": asdict(rules), "opened": judged, "is_persons": False})
    copied = Path(files.uploaded(work / "a.txt"))
    assert (copied.name, copied.read_text()) == ("a.txt", "a.txt")
    assert work not in copied.parents
    folder = Path(files.uploaded(work / "folder"))
    assert (folder.name, os.listdir(folder)) == ("folder", ["b.txt"])
    (work / "a.txt").unlink()
    (work / "a.txt").symlink_to(secret)
    with pytest.raises(PermissionError, match="about which nobody was asked"):
        files.uploaded(work / "a.txt")
