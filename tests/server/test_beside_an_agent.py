"""A person works beside an agent on a real server: a rewind undoes the agent's work and no more."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from oh_jupyter.testing import LiveServer, run_server

EDITOR = """
import os, shutil, sys
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
"""Another program of the person, which stays open."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    with run_server(folder, environment={"OH_JUPYTER_CHECKPOINTS": "auto"}) as running:
        yield running


@pytest.fixture
def session(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Session]:
    name = f"work{abs(hash(request.node.name)):x}"
    (server.directory / "root" / name).mkdir()
    body = {"path": f"{name}/book.ipynb"}
    kernels = f"{server.url}/api/kernels"
    started = requests.post(kernels, json=body, headers=server.headers, timeout=60).json()
    made = Session(server, name, started["id"])
    yield made
    made.close()
    requests.delete(f"{kernels}/{started['id']}", headers=server.headers, timeout=60)


class Session:
    """The agent's client, and the person's programs, in one folder of a server."""

    def __init__(self, server: LiveServer, name: str, kernel: str) -> None:
        self.server, self.name, self.kernel = server, name, kernel
        self.root = server.directory / "root" / name
        self.editor = subprocess.Popen(
            [sys.executable, "-c", EDITOR],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.root,
        )

    def close(self) -> None:
        self.editor.communicate("")

    def ask(self, *path: str, **body: Any) -> Any:
        url = "/".join([self.server.url, "oh_jupyter", "kernels", self.kernel, *path])
        reply = requests.post(url, json=body, headers=self.server.headers, timeout=120)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def act(self, kind: str, **args: Any) -> Any:
        return self.ask("execute_action", action={"action": kind, "args": args})

    def run(self, command: str) -> Any:
        return self.act("run", command=command, blocking=True)

    def rewind(self, id: int | None = 1, **fields: Any) -> Any:
        return self.ask("rewind", id=id, source="user", **fields)

    def type(self, statement: str) -> None:
        """Change files in the person's other program."""
        assert self.editor.stdin is not None
        assert self.editor.stdout is not None
        print(statement, file=self.editor.stdin, flush=True)
        assert self.editor.stdout.readline() == "done\n"

    def contents(self, method: str, name: str, **body: Any) -> None:
        """Change files in JupyterLab."""
        url = f"{self.server.url}/api/contents/{self.name}/{name}"
        reply = requests.request(method, url, json=body, headers=self.server.headers, timeout=60)
        assert reply.ok, reply.text

    def save(self, path: str, text: str) -> None:
        self.contents("PUT", path, type="file", format="text", content=text)

    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.root).as_posix(): path.read_text()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


def test_right_after_a_step_everything_is_the_persons(session: Session) -> None:
    (session.root / "notes.txt").write_text("old\n")
    (session.root / "old.txt").write_text("old\n")
    session.run("echo agent > agents.txt")
    session.type(
        "open('mine.txt', 'w').write('mine'); open('notes.txt', 'a').write('mine\\n');"
        "os.rename('old.txt', 'new.txt'); os.makedirs('folder/deep')"
    )
    plan = session.rewind()
    assert plan["changes"] == [{"path": "agents.txt", "kind": "delete"}]
    assert session.files() == {"mine.txt": "mine", "new.txt": "old\n", "notes.txt": "old\nmine\n"}
    assert (session.root / "folder" / "deep").is_dir()


@pytest.mark.parametrize("during", [False, True])
def test_what_a_person_deletes_and_renames_in_jupyter_stays_so(
    session: Session, during: bool
) -> None:
    for name in ("notes.md", "draft.md"):
        (session.root / name).write_text("old\n")
    command = "echo agent > agents.txt; until [ -e go ]; do sleep 0.05; done"
    running = threading.Thread(target=session.run, args=[command])
    if during:
        running.start()
        _until(session.root / "agents.txt")
    else:
        session.run("echo agent > agents.txt")
    session.contents("DELETE", "notes.md")
    session.contents("PATCH", "draft.md", path=f"{session.name}/final.md")
    session.save("saved.md", "mine")
    if during:
        (session.root / "go").touch()
        running.join()
        (session.root / "go").unlink()
    session.rewind()
    assert session.files() == {"final.md": "old\n", "saved.md": "mine"}


@pytest.mark.parametrize("overwrite", ["echo agent > notes.md", "rm notes.md"])
def test_what_the_agent_overwrites_comes_back_as_the_person_left_it(
    session: Session, overwrite: str
) -> None:
    (session.root / "notes.md").write_text("old\n")
    session.act("write", path="notes.md", content="agent 1")
    session.save("notes.md", "the person's\n")
    session.run(overwrite)
    session.rewind()
    assert session.files() == {"notes.md": "the person's\n"}
    session.rewind(2)
    assert session.files() == ({"notes.md": "agent\n"} if "echo" in overwrite else {})


def test_a_persons_new_file_that_the_agent_edits_loses_only_the_agents_line(
    session: Session,
) -> None:
    session.run("true")
    lines = [f"line {number}\n" for number in range(10)]
    session.save("mine.md", "".join(lines))
    session.act("edit", path=str(session.root / "mine.md"), command="str_replace", old_str="line 2",
                new_str="agent 2")  # fmt: skip
    session.type("open('mine.md', 'a').write('the end\\n')")
    session.rewind()
    assert session.files() == {"mine.md": "".join([*lines, "the end\n"])}


def test_a_folder_that_the_agent_renames_gets_its_name_back(session: Session) -> None:
    (session.root / "folder" / "deep").mkdir(parents=True)
    (session.root / "folder" / "deep" / "a").write_text("old")
    session.run("mv folder new")
    plan = session.rewind()
    assert session.files() == {"folder/deep/a": "old"}
    assert not (session.root / "new").exists()
    assert not plan["kept"]


def test_what_another_program_writes_during_a_step_is_not_the_agents(session: Session) -> None:
    command = "echo agent > agents.txt; until [ -e go ]; do sleep 0.05; done; echo late > its.txt"
    running = threading.Thread(target=session.run, args=[command])
    running.start()
    _until(session.root / "agents.txt")
    session.type("open('mine.txt', 'w').write('mine'); os.mkdir('folder')")
    session.type("open('folder/mine.txt', 'w').write('mine')")
    session.type("open('agents.txt', 'w').write('mine'); open('go', 'w').close()")
    running.join()
    session.rewind()
    expected = {"agents.txt": "mine", "folder/mine.txt": "mine", "mine.txt": "mine", "go": ""}
    if os.geteuid() == 0:  # the system names the processes
        assert session.files() == expected


def test_the_late_work_of_a_job_is_undone_and_what_others_do_meanwhile_is_not(
    session: Session,
) -> None:
    job = "until [ -e go ]; do sleep 0.05; done; echo late > late.txt; sleep 600"
    session.run(f"(trap '' HUP; {job}) > log.txt 2>&1 & echo started > started.txt")
    session.type("open('mine.txt', 'w').write('mine'); open('go', 'w').close()")
    _until(session.root / "late.txt")
    plan = session.rewind(preview=True)
    listed = {each["path"] for each in plan["changes"]} | plan["kept"].keys()
    assert {"late.txt", "log.txt", "started.txt"} <= listed
    session.rewind()
    assert (session.root / "mine.txt").read_text() == "mine"
    if os.geteuid() == 0:
        assert not (session.root / "late.txt").exists()


def _until(path: Path) -> None:
    """Wait until a file exists and is not empty, as its writer has closed it."""
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, path
        time.sleep(0.01)


class Model:
    """The files as they would be if only the person had worked."""

    def __init__(self, session: Session, dice: random.Random) -> None:
        self.session, self.dice, self.number = session, dice, 0
        self.files: dict[str, str] = {}

    def text(self, who: str) -> str:
        self.number += 1
        return f"{who} {self.number}\n"

    def person(self) -> None:
        """Change one file of the person's, in one of their programs, at any moment."""
        name = self.dice.choice(("p1", "p2", "both1", "both2", "sub/p3"))
        kind = self.dice.choice(("save", "type", "type", "delete", "rename", "remove"))
        text, exists = self.text("person"), (self.session.root / name).exists()
        if kind == "save" and "/" not in name:
            self.session.save(name, text)
        elif kind in ("save", "type"):
            folder = os.path.dirname(name) or "."
            self.session.type(
                f"os.makedirs({folder!r}, exist_ok=True); open({name!r}, 'w').write({text!r})"
            )
        elif not exists or name not in self.files:
            return
        elif kind == "delete":
            self.session.contents("DELETE", name)
        elif kind == "remove":
            self.session.type(f"os.remove({name!r})")
        else:
            target = f"p{self.number}"
            self.session.type(f"os.rename({name!r}, {target!r})")
            del self.files[name]
            self.files[target] = (self.session.root / target).read_text()
            return
        if kind in ("delete", "remove"):
            del self.files[name]
        else:
            self.files[name] = text

    def agent(self) -> None:
        """Let the agent change one file in a step."""
        name = self.dice.choice(("a1", "a2", "both1", "both2", "dir/a3"))
        kind = self.dice.choice(("write", "run", "run", "remove", "move", "cell"))
        text, quoted = self.text("agent"), shlex.quote(name)
        if kind == "write":
            self.session.act("write", path=name, content=text)
        elif kind == "cell":
            folder = "import os; os.makedirs('dir', exist_ok=True)"
            self.session.act("run_ipython", code=f"{folder}; open({name!r}, 'w').write({text!r})")
        elif kind == "remove":
            self.session.run(f"rm -f {quoted}")
        elif kind == "move":
            self.session.run(f"mv {quoted} moved{self.number} 2>/dev/null || true")
        else:
            self.session.run(f"mkdir -p dir; printf '{text}' > {quoted}")

    def both(self) -> None:
        """Let the person work during a step of the agent, at any moment of it."""
        name, text = self.dice.choice(("a1", "both1", "both2")), self.text("agent")
        command = f"sleep 0.2; printf '{text}' > {name}; sleep 0.2"
        running = threading.Thread(target=self.session.run, args=[command])
        running.start()
        for _ in range(self.dice.randrange(1, 4)):
            time.sleep(self.dice.choice((0.02, 0.1, 0.15)))
            self.person()
        running.join()


@pytest.fixture
def model(session: Session, seed: int) -> Model:
    made = Model(session, random.Random(seed))
    for _ in range(3):
        made.person()
    session.run("true")
    return made


def check(model: Model) -> None:
    """See that a rewind leaves what the person made, and that another rewind undoes it."""
    before = model.session.files()
    plan = model.session.rewind()
    assert model.session.files() == model.files, plan
    model.session.rewind(2)
    assert model.session.files() == before


SEEDS = [
    *range(3),
    *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(3, 20)),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 300)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_person_works_while_the_agent_thinks(model: Model) -> None:
    for _ in range(model.dice.randrange(3, 9)):
        for _ in range(model.dice.randrange(3)):
            model.person()
            time.sleep(model.dice.choice((0, 0, 0.05, 0.2)))
        model.agent()
    for _ in range(model.dice.randrange(3)):
        model.person()
    check(model)


@pytest.mark.skipif(os.geteuid() != 0, reason="the system names processes only with a privilege")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_person_works_during_the_agents_steps(model: Model) -> None:
    for _ in range(model.dice.randrange(2, 6)):
        model.dice.choice((model.agent, model.both, model.both, model.person))()
    check(model)
