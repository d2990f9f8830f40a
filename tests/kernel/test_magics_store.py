"""``%oh_store``, ``%oh_log`` and ``%oh_replay``, as a person types them."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path

import pytest


def test_a_tree_of_files_and_its_value(kernel) -> None:
    kernel.execute("%%oh_store put site/index.html\n<h1>Tide</h1>\n")
    kernel.execute("%%oh_store put site/data/today.csv\nhigh,low\n")
    assert kernel.execute("%oh_store tree site") == (
        "site\n├── data/\n│   └── today.csv\n└── index.html"
    )
    assert kernel.execute("t = %oh_store tree site\nt.paths") == (
        "['site/data/today.csv', 'site/index.html']"
    )
    shown = kernel.execute("%oh_store info site/index.html")
    assert "14 B" in shown
    assert "modified" in shown
    assert kernel.execute("e = %oh_store ls site\n[(x['path'], x['size']) for x in e]") == (
        "[('site/data/', ''), ('site/index.html', 14)]"
    )


def test_folders_go_in_and_out(kernel) -> None:
    folder = kernel.directory / "in/deep"
    folder.mkdir(parents=True)
    for n in range(5):
        (folder / f"{n}.txt").write_text(str(n))
    (kernel.directory / "in/large").write_bytes(b"x" * 20_000_000)
    shown = kernel.execute("%oh_store put box ./in")
    assert "box/deep/4.txt" in shown
    assert "20 MB" in shown
    sizes = kernel.execute("e = %oh_store ls box\n[x['size'] for x in e if x['path'][-1] != '/']")
    assert sizes == "[20000000]"
    kernel.execute("%oh_store get box ./out")
    out = kernel.directory / "out"
    assert (out / "deep/3.txt").read_text() == "3"
    assert (out / "large").stat().st_size == 20_000_000
    assert kernel.execute("p = %oh_store get box/deep/1.txt\np.read_text()") == "'1'"
    assert "no file ./nothing" in kernel.execute("%oh_store put x ./nothing/there")
    assert "%oh_store put hosts /etc/hosts" in kernel.execute("%oh_store put /etc/hosts")
    assert "not from both" in kernel.execute("%%oh_store put x /etc/hosts\ny")
    assert not (kernel.directory / "nothing").exists()
    kernel.execute("%oh_store rm box")


def test_copies_and_synchronised_folders(kernel) -> None:
    kernel.execute("%%oh_store put a/1\none\n")
    kernel.execute("%%oh_store put a/2\ntwo\n")
    kernel.execute("%oh_store cp a/1 b/")
    kernel.execute("%oh_store cp a c")
    assert kernel.execute("%oh_store cat b/1") == kernel.execute("%oh_store cat c/1") == "one\n"
    assert "itself" in kernel.execute("%oh_store cp a a/b")
    assert "copied" in kernel.execute("%oh_store sync a ./mirror")
    assert kernel.execute("%oh_store sync a ./mirror").split() == (
        ["what", "path", "unchanged", "2", "files"]
    )
    kernel.execute("%%oh_store put a/2\nTWO\n")
    kernel.execute("%oh_store rm a/1")
    shown = kernel.execute("%oh_store sync a ./mirror --delete")
    assert [line.split() for line in shown.splitlines()[1:]] == [["copied", "2"], ["deleted", "1"]]
    mirror = kernel.directory / "mirror"
    assert [(p.name, p.read_text()) for p in mirror.iterdir()] == [("2", "TWO\n")]
    kernel.execute("%oh_store cp a/2 memory://elsewhere/x")
    assert kernel.execute("s = %oh_store use memory://elsewhere\ns.read('x')") == "'TWO\\n'"
    assert "x" in kernel.execute("%oh_store ls")
    assert "LocalFileStore" in kernel.execute("%oh_store use")
    for name in "abc":
        kernel.execute(f"%oh_store rm {name}")


def test_a_transfer_of_many_files_is_summarised(kernel) -> None:
    folder = kernel.directory / "many"
    folder.mkdir()
    for n in range(300):
        (folder / f"{n:03}").touch()
    shown = kernel.execute("%oh_store sync ./many ./many-too").splitlines()
    assert shown[0] == "300 copied"
    assert "… 280 more, all of them in the value" in shown
    assert len(shown) < 25
    (folder / "new").touch()
    assert kernel.execute("t = %oh_store sync ./many ./many-too\nlen(t)") == "2"
    assert kernel.execute("t = %oh_store sync ./many ./third\nlen(t), t[150]") == (
        "(301, {'what': 'copied', 'path': 'third/150'})"
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%oh_store ls no/such/folder", "no/such/folder"),
        ("%oh_store cp only-one", "FROM and TO"),
        ("%oh_store webhooks", "no webhook"),
        ("%oh_store flush", "no webhook"),
        ("%oh_store use nosuch://x", "nosuch"),
        ("%oh_store use no-such-folder", "no folder no-such-folder"),
        ("%oh_store use s3", "no folder s3"),
        ("%oh_store rm no-such-file", "has no no-such-file; nothing was deleted"),
        ("%%oh_store ls\nbody", "takes no text"),
        ("%oh_store get kept no-folder/x/f", "no-folder/x/f cannot be written: the directory /"),
        ("%oh_replay no-such-session", "no-such-session"),
        ("%oh_log --since whenever", "whenever"),
        ("%oh_log 99999", "99999"),
    ],
)
def test_failures_are_reported_in_one_line(kernel, line: str, says: str) -> None:
    (kernel.directory / "no-folder").touch()
    kernel.execute("oh.store.write('kept', 'x')")
    shown = kernel.execute(line)
    assert says in shown
    assert "Traceback" not in shown


def test_a_folder_is_used_and_a_mistyped_one_is_not_made(kernel) -> None:
    (kernel.directory / "shelf").mkdir()
    (kernel.directory / "shelf/book").write_text("words\n")
    kernel.execute("%oh_store use shelf")
    assert kernel.execute("%oh_store cat book") == "words\n"
    kernel.execute("%oh_store use shelv")
    assert kernel.execute("%oh_store cat book") == "words\n"
    kernel.execute("%oh_store use")
    assert sorted(p.name for p in kernel.directory.glob("sh*")) == ["shelf"]
    assert not (kernel.directory / "s3").exists()


def answered(kernel, code: str, answer: str) -> None:
    """Run a cell that asks a question."""
    kernel.client.execute_interactive(
        code, allow_stdin=True, stdin_hook=lambda message: kernel.client.input(answer), timeout=60
    )


def test_everything_is_deleted_only_on_explicit_request(kernel) -> None:
    kernel.execute("%oh_store use memory://all")
    kernel.execute("%%oh_store put a\nx\n")
    kernel.execute("%%oh_store put b\nx\n")
    assert "nothing was deleted" in kernel.execute("%oh_store rm /")
    assert "nothing was deleted" in kernel.execute("%oh_store rm a missing")
    answered(kernel, "%oh_store rm /", "n")
    assert kernel.execute("l = %oh_store ls\nlen(l)") == "2"
    answered(kernel, "%oh_store rm /", "y")
    assert kernel.execute("l = %oh_store ls\nlen(l)") == "0"
    kernel.execute("%oh_store use")


def test_long_contents_are_shown_in_part(kernel) -> None:
    kernel.execute("%oh_store use memory://long")
    kernel.execute("%%oh_store put text\n" + "x" * 50_000)
    shown = kernel.execute("%oh_store cat text")
    assert shown.endswith("… 20,001 more characters, all of them in the value")
    for line in (
        "m = %oh_store use memory://long",
        "for n in range(300): m.write(f'd/{n:03}', '')",
    ):
        kernel.execute(line)
    shown = kernel.execute("%oh_store ls d").splitlines()
    assert shown[0] == "300 entries"
    assert "… 100 more, all of them in the value" in shown
    kernel.execute("%oh_store use")


def complete(kernel, text: str) -> list[str]:
    msg_id = kernel.client.complete(text)
    while True:
        reply = kernel.client.get_shell_msg(timeout=30)
        if reply["parent_header"].get("msg_id") == msg_id:
            return list(reply["content"]["matches"])


def test_commands_paths_and_sessions_are_completed(kernel) -> None:
    kernel.execute("%%oh_store put notes/first.txt\nx\n")
    kernel.execute("%%oh_store put notes/sub/second.txt\nx\n")
    assert complete(kernel, "%oh_store wEB".lower()) == ["webhooks"]
    assert complete(kernel, "%oh_store cat notes/") == ["notes/first.txt", "notes/sub/"]
    assert complete(kernel, "x = %oh_store cat notes/f") == ["notes/first.txt"]
    assert complete(kernel, "%oh_store sync --de") == ["--delete"]
    (kernel.directory / "disk.txt").touch()
    assert complete(kernel, "%oh_store put x ./dis") == ["./disk.txt"]
    assert "--since" in complete(kernel, "%oh_log --s")
    kernel.execute("%oh_store rm notes")


def test_the_log_is_filtered(kernel) -> None:
    kernel.execute("%oh_run echo tide-table")
    kernel.execute("%oh_run echo something else")
    first = int(kernel.execute("l = %oh_log --text tide-table --kind run\nl[0]['id']"))
    assert kernel.execute("l = %oh_log --text TIDE-table\nlen(l)") == "2"
    assert kernel.execute("l = %oh_log --limit 1\nl[0]['what'][:7]").startswith("'")
    assert kernel.execute(f"l = %oh_log --since {first} --kind run\nlen(l) >= 4") == "True"
    assert kernel.execute("l = %oh_log --since 5m --source user\nlen(l) > 0") == "True"
    assert kernel.execute("l = %oh_log --since 2001-01-01T00:00\nlen(l) > 0") == "True"
    assert kernel.execute("l = %oh_log --since 0s\nlen(l)") == "0"
    assert kernel.execute(f"e = %oh_log {first}\ntype(e).__name__, e.command") == (
        "('CmdRunAction', 'echo tide-table')"
    )


@pytest.mark.thorough
def test_a_session_is_replayed_and_differences_are_shown(fresh_kernel) -> None:
    kernel = fresh_kernel
    work = kernel.directory
    kernel.execute(f"%oh_run cd {work} && date && echo one > f.txt")
    kernel.execute("%oh_run cat f.txt")
    (work / "made by hand").touch()
    kernel.execute("%%oh_run --cell\nx = 2\nx * 21")
    kernel.execute("%oh_run ls made*")
    session = kernel.execute("print(oh.events.sid)").strip()
    shown = kernel.execute(f"replay = %oh_replay {session}\nreplay", timeout=120)
    assert "same" in shown
    assert "different" in shown
    rows = json.loads(kernel.execute("import json; print(json.dumps(list(replay)))"))
    assert [row["result"] for row in rows] == ["same", "same", "same", "different"]
    difference = kernel.execute("print(replay.diff())")
    assert "-'made by hand'" in difference
    assert "+exit code: 2" in difference
    # The question changed nothing.
    assert kernel.execute("%oh_run pwd") == str(work)


class Refusing(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(403 if self.path.endswith("/bad") else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_webhooks_are_listed_and_sent_again(kernel, receiver, tmp_path: Path) -> None:
    kernel.execute(
        "from oh_jupyter.storage import WebHookFileStore, InMemoryFileStore\n"
        f"hook = WebHookFileStore(InMemoryFileStore(), {receiver!r}, outbox={str(tmp_path)!r})\n"
        "magics = get_ipython().magics_manager.magics['line']['oh_store'].__self__\n"
        "magics._used = hook"
    )
    kernel.execute("%%oh_store put good\nx\n")
    kernel.execute("%%oh_store put bad\nx\n")
    shown = kernel.execute("%oh_store flush")
    assert [line.split() for line in shown.splitlines()[-4:]] == [
        ["delivered", "1"],
        ["pending", "0"],
        ["failed", "1"],
        ["POST", "bad", "HTTP", "status", "403"],
    ]
    assert "HTTP status 403" in kernel.execute("%oh_store webhooks")
    kernel.execute("%oh_store webhooks replay")
    kernel.execute("%oh_store flush")
    assert kernel.execute(
        "w = %oh_store webhooks\n[(d['path'], d['state'], d['attempts']) for d in w]"
    ) == ("[('bad', 'dead', 2)]")
    kernel.execute("executor = oh._executor\nown, executor.file_store = executor.file_store, hook")
    fields, listed = kernel.ask("deliveries")
    (dead,) = listed["deliveries"]
    assert (fields["status"], listed["has_webhook"], listed["total"]) == ("ok", True, 1)
    assert (dead["path"], dead["state"], dead["reason"]) == ("bad", "dead", "HTTP status 403")
    assert kernel.ask("resend_deliveries", ids=[])[0]["ename"] == "WireError"
    assert kernel.ask("resend_deliveries", ids=[dead["id"]])[1] == 1
    assert kernel.ask("deliveries")[1]["deliveries"][0]["attempts"] == 3
    assert kernel.ask("discard_deliveries", ids=[dead["id"]])[1] == 1
    kernel.execute("executor.file_store = own")
    assert kernel.ask("deliveries")[1]["has_webhook"] is False
    assert kernel.execute("%oh_store webhooks discard") == "(nothing)"
    kernel.execute("hook.close(); hook.client.close(); magics._used = None")
