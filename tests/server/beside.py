"""A person and agents that change the files of one folder at the same time."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests

from oh_jupyter.testing import LiveServer, wait_until
from tests.other_program import OtherProgram


@contextlib.contextmanager
def open_session(server: LiveServer, name: str, kernels: int = 1) -> Iterator[Session]:
    """Yield the programs of a person, and kernels with agents, in a new folder of a server."""
    (server.directory / "root" / name).mkdir()
    url = f"{server.url}/api/kernels"
    ids = []
    for number in range(kernels):
        body = {"path": f"{name}/book{number}.ipynb"}
        reply = requests.post(url, json=body, headers=server.headers, timeout=60)
        ids.append(reply.json()["id"])
    session = Session(server, name, ids)
    try:
        yield session
    finally:
        session.close()
        for id in ids:
            requests.delete(f"{url}/{id}", headers=server.headers, timeout=60)


class Session:
    """The agent's client, and the person's programs, in one folder of a server."""

    def __init__(self, server: LiveServer, name: str, kernels: list[str]) -> None:
        self.server, self.name, self.kernels = server, name, kernels
        self.kernel = kernels[0]
        self.root = server.directory / "root" / name
        self.editor = OtherProgram(self.root)

    def close(self) -> None:
        self.editor.close()

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

    def last_checkpoint(self) -> int:
        url = f"{self.server.url}/oh_jupyter/kernels/{self.kernel}/checkpoints"
        entries = requests.get(url, headers=self.server.headers, timeout=60).json()
        return max(entry["id"] for entry in entries["checkpoints"])

    def type(self, statement: str) -> None:
        """Change files in the person's other program."""
        self.editor.do(statement)

    def contents(self, method: str, name: str, **body: Any) -> None:
        """Change files in JupyterLab."""
        url = f"{self.server.url}/api/contents/{self.name}/{name}"
        reply = requests.request(method, url, json=body, headers=self.server.headers, timeout=60)
        assert reply.ok, reply.text

    def save(self, path: str, text: str) -> None:
        self.contents("PUT", path, type="file", format="text", content=text)

    def files(self) -> dict[str, str]:
        """Return the contents of all files, and the targets of links, without what a box adds."""
        return {
            path.relative_to(self.root).as_posix(): contents(path)
            for path in sorted(self.root.rglob("*"))
            if path.name[0] != "." and (path.is_symlink() or path.is_file())
        }


def contents(path: Path) -> str:
    return f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()


SHORT_LIVED = "printf %s\\\\n {} > {}"
"""A command whose process ends right after its only write."""


class Workplace:
    """A session of a person and agents, and the files as the person alone would leave them."""

    def __init__(self, session: Session, dice: random.Random) -> None:
        self.session, self.dice, self.number = session, dice, 0
        self.files: dict[str, str] = {}
        self._markers: list[Path] = []

    def _text(self, who: str) -> str:
        self.number += 1
        return f"{who} {self.number}\n"

    def person(self) -> None:
        """Change one file of the person's, in one of their programs, at any moment."""
        name = self.dice.choice(("p1", "p2", "both1", "both2", "sub/p3"))
        kinds: tuple[Callable[[str], None], ...] = (
            *(self._save, self._type, self._type, self._type_link, self._run_program),
            *(self._delete, self._remove, self._rename, self._rename_folder),
        )
        self.dice.choice(kinds)(name)

    def _save(self, name: str) -> None:
        if "/" in name or (self.session.root / name).is_symlink():
            return
        self.files[name] = self._text("person")
        self.session.save(name, self.files[name])

    def _type(self, name: str) -> None:
        self.files[name] = self._text("person")
        self._replace(name, f"open({name!r}, 'w').write({self.files[name]!r})")

    def _type_link(self, name: str) -> None:
        target = self._text("target").strip()
        self.files[name] = f"-> {target}"
        link = f"os.symlink({target!r}, {name!r})"
        self._replace(name, f"os.path.lexists({name!r}) and os.remove({name!r}); {link}")

    def _run_program(self, name: str) -> None:
        """Write with a program that ends at once."""
        text = self._text("person").strip()
        self.files[name] = f"{text}\n"
        command = SHORT_LIVED.format(shlex.quote(text), name)
        self._replace(name, f"subprocess.run({command!r}, shell=True, check=True)")

    def _replace(self, name: str, statement: str) -> None:
        folder = os.path.dirname(name) or "."
        self.session.type(
            f"os.makedirs({folder!r}, exist_ok=True); remove_link({name!r}); {statement}"
        )

    def _delete(self, name: str) -> None:
        # Jupyter's contents API has no dangling links.
        if self._is_there(name) and not (self.session.root / name).is_symlink():
            self.session.contents("DELETE", name)
            del self.files[name]

    def _remove(self, name: str) -> None:
        if self._is_there(name):
            self.session.type(f"os.remove({name!r})")
            del self.files[name]

    def _rename(self, name: str) -> None:
        if self._is_there(name):
            target = f"p-{self._text('to').split()[1]}"
            self.session.type(f"os.rename({name!r}, {target!r})")
            del self.files[name]
            self.files[target] = contents(self.session.root / target)

    def _rename_folder(self, name: str) -> None:
        if self._is_there("sub/p3"):
            target = f"sub-{self._text('to').split()[1]}"
            self.session.type(f"os.rename('sub', {target!r})")
            self.files[f"{target}/p3"] = self.files.pop("sub/p3")

    def _is_there(self, name: str) -> bool:
        return name in self.files and os.path.lexists(self.session.root / name)

    def agent(self) -> None:
        """Let an agent change one file in a step."""
        self.session.kernel = self.dice.choice(self.session.kernels)
        name = self.dice.choice(("a1", "a2", "both1", "both2", "dir/a3"))
        kinds: tuple[Callable[[str], None], ...] = (
            *(self._agent_writes, self._agent_runs, self._agent_runs, self._agent_links),
            *(self._agent_removes, self._agent_moves, self._agent_runs_cell),
        )
        self.dice.choice(kinds)(name)

    def _agent_writes(self, name: str) -> None:
        if not (self.session.root / name).is_symlink():
            self.session.act("write", path=name, content=self._text("agent"))

    def _agent_runs(self, name: str) -> None:
        text = self._text("agent")
        self.session.run(f"mkdir -p dir; [ -L {name} ] && rm {name}; printf '{text}' > {name}")

    def _agent_links(self, name: str) -> None:
        self.session.run(f"mkdir -p dir; ln -sfn agents{self.number} {name}")

    def _agent_removes(self, name: str) -> None:
        self.session.run(f"rm -f {name}")

    def _agent_moves(self, name: str) -> None:
        self.session.run(f"mv {name} {self._text('moved').replace(' ', '-').strip()} || true")

    def _agent_runs_cell(self, name: str) -> None:
        self.session.act(
            "run_ipython",
            code="import os, contextlib; os.makedirs('dir', exist_ok=True)\n"
            f"if os.path.islink({name!r}): os.remove({name!r})\n"
            f"open({name!r}, 'w').write({self._text('agent')!r})",
        )

    def during(self) -> None:
        """Let the person work during a step of an agent, before and after the agent's change."""
        name, text = self.dice.choice(("a1", "both1", "both2")), self._text("agent")
        self.session.kernel = self.dice.choice(self.session.kernels)
        write = f"[ -L {name} ] && rm {name}; printf '{text}' > {name}"
        command = f"sleep 0.35; {write}; sleep 0.4"
        running = threading.Thread(target=self.session.run, args=[command])
        began = time.monotonic()
        running.start()
        moments = self.dice.choices((0.02, 0.1, 0.15, 0.6, 0.65), k=self.dice.randrange(1, 4))
        for moment in sorted(moments):
            time.sleep(max(0, began + moment - time.monotonic()))
            self.person()
        running.join()

    def start_job(self) -> None:
        """Let an agent start a program that changes files after its step."""
        self.session.kernel = self.dice.choice(self.session.kernels)
        name, text = self.dice.choice(("a1", "late", "both1")), self._text("late").strip()
        marker = self.session.server.directory / f"{self.session.name}-{self.number}"
        self._markers.append(marker)
        write = f"[ -L {name} ] && rm {name}; echo {text} > {name}"
        if self.dice.random() < 0.5:  # by a process of its own, which ends right after it
            write = f"sh -c {shlex.quote(write)}"
        delay = self.dice.choice((0.05, 0.2, 0.5, 1))
        job = f"sleep {delay}; {write}; touch {marker}; sleep {self.dice.choice((0, 60))}"
        self.session.run(f"(trap '' HUP; {job}) > /dev/null 2>&1 &")

    def wait_for_jobs(self) -> None:
        """Wait until the programs in the background have changed their files."""
        wait_until(lambda: all(marker.exists() for marker in self._markers))
