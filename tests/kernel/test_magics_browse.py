"""``%oh_browse`` in a real kernel, with a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>Harbour</title>
<h1>Harbour</h1><button onclick="this.textContent = 'pressed'">press</button>
<table><tr><th>ship<th>tons</tr><tr><td>Ada<td>12</tr><tr><td>Bob<td>30</tr></table>
<a href=cargo.csv download>cargo</a><p>the key is tide-and-time-7</p>
<script>console.log("anchored")</script>"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(PAGE)
    (folder / "cargo.csv").write_text("a,b\n1,2\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def shown(kernel: Any, code: str) -> list[dict[str, Any]]:
    """The MIME bundles that a cell shows."""
    bundles: list[dict[str, Any]] = []
    kernel.client.execute_interactive(
        code,
        output_hook=lambda m: bundles.append(m["content"].get("data") or {}),
        timeout=120,
        allow_stdin=False,
    )
    return [bundle for bundle in bundles if bundle]


@pytest.mark.thorough
def test_a_page_is_shown_and_is_a_value(kernel, url: str):
    picture, card = shown(kernel, f"page = %oh_browse {url}\npage")
    assert picture["image/png"]
    assert card["text/plain"] == url
    assert "<details>" in card["text/html"]
    assert kernel.execute("'# Harbour' in page.content, page.error") == "(True, False)"
    (card,) = shown(kernel, f"%oh_browse --no-picture {url}")
    assert "What an agent reads" in card["text/html"]
    picture, card = shown(kernel, "%oh_browse")
    assert picture["image/png"]
    assert card["text/plain"] == url
    kernel.execute("%oh_browse close")
    assert "say where to go" in kernel.execute("%oh_browse")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("''", "the address is empty"),
        ("what's up", "neither an address nor a command"),
        ('fill a5 "green tea"', 'fill("a5", "green tea")'),
        ("fill a5 it's", 'fill("a5", "it\'s")'),
    ],
)
def test_an_invalid_address_is_reported_in_one_line(kernel, line: str, message: str):
    output = kernel.execute(f"%oh_browse {line}")
    assert message in output
    assert output.startswith("UsageError")


@pytest.mark.thorough
def test_an_error_stands_before_its_picture(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    error, picture, card = shown(kernel, '%oh_browse click("no-such-bid")')
    assert "no-such-bid" in error["text/plain"]
    assert "oh-mod-error" in error["text/html"]
    assert picture["image/png"]
    assert "no-such-bid" in card["text/html"]


@pytest.mark.thorough
def test_actions_in_the_body_and_in_the_line(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    kernel.execute("import re\ntree = oh.interact('noop(0)').content")
    kernel.execute("bid = re.search(r\"\\[(\\w+)\\] button 'press'\", tree)[1]")
    kernel.execute("shell = get_ipython().run_line_magic")
    assert "pressed" in kernel.execute(
        "print(shell('oh_browse', f'--no-picture click(\"{bid}\")').content)"
    )
    failed = kernel.execute('%%oh_browse --no-picture\nclick("99")\nnoop(0)')
    assert 'Could not find element with bid "99"' in failed


def test_views_of_open_pages(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    assert "# Harbour" in kernel.execute("%oh_browse text")
    assert "Harbour" in kernel.execute("%oh_browse tabs")
    (picture,) = shown(kernel, "%oh_browse marks")
    assert picture["image/png"]
    assert kernel.execute("ships, = %oh_browse tables\nint(ships.tons.sum())") == "42"
    assert kernel.execute(f"list(oh.tables('{url}')[0].columns)") == "['ship', 'tons']"
    assert (
        kernel.execute("cells = %oh_browse elements td\ncells.text[0] in set(ships.ship)") == "True"
    )
    assert kernel.execute("rows = %oh_browse elements role=row\nlen(rows) > 1") == "True"
    assert (
        kernel.execute("a = %oh_browse links\nf = %oh_browse forms\n(len(a), len(f))") == "(1, 1)"
    )
    kernel.execute("%oh_browse console")
    kernel.execute(f"%oh_browse --no-picture {url}")
    seen = kernel.execute("%oh_browse console")
    assert "anchored" in seen
    assert "200" in seen
    assert "yes" in kernel.execute("%oh_browse status")


@pytest.mark.thorough
def test_downloads_are_listed(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    kernel.execute("oh.browser.evaluate(\"document.querySelector('a').click()\")")
    kernel.execute("oh.interact('noop(500)')")
    assert "cargo.csv" in kernel.execute("%oh_browse downloads")


@pytest.mark.thorough
def test_sessions_side_by_side(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    kernel.execute("oh.browser.evaluate(\"document.cookie = 'who=ada'\")")
    assert "guest" in kernel.execute("%oh_browse session guest")
    kernel.execute(f"%oh_browse --no-picture {url}")
    assert kernel.execute("oh.browser.evaluate('document.cookie')") == "''"
    kernel.execute("%oh_browse close")
    kernel.execute("%oh_browse session default")
    assert kernel.execute("oh.browser.evaluate('document.cookie')") == "'who=ada'"
    assert "guest" not in kernel.execute("%oh_browse status")


def test_logged_in_state_is_saved(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    kernel.execute("oh.browser.evaluate(\"document.cookie = 'key=1'\")")
    assert "cookies" in kernel.execute("%oh_browse save state.json")
    state = json.loads(Path(kernel.directory, "state.json").read_text())
    assert "key" in {cookie["name"] for cookie in state["cookies"]}
    assert "say where to" in kernel.execute("%oh_browse save")


def test_secrets_of_the_environment_are_hidden(kernel, url: str):
    assert "tide-and-time-7" in kernel.execute(f"print(oh.browse('{url}').content)")
    kernel.execute("oh.set_env({'TIDE': 'tide-and-time-7'})")
    seen = kernel.execute(f"print(oh.browse('{url}').content)")
    assert "tide-and-time-7" not in seen
    assert "the key is <secret_hidden>" in seen


AGENT = """
import re
from oh_jupyter.browser import flatten_axtree

def presser(seen):
    wanted = re.search('"(.*)"', seen["goal"])[1]
    return 'click("%s")' % re.search(
        r"\\[(\\w+)\\] button '%s'" % wanted, flatten_axtree(seen["axtree_object"]))[1]

class Wait:
    name = "wait"
    def setup(self, page, seed):
        page.set_content("<button>go</button>")
        return 'Press "go".'
    def validate(self, page, messages):
        return seen_before.append(1) or (float(len(seen_before) > 1), len(seen_before) > 1)

seen_before = []
wait = Wait()
"""


@pytest.mark.thorough
def test_an_agent_is_evaluated(kernel):
    kernel.execute(AGENT)
    seen = kernel.execute("results = %oh_browse eval click-* wait --agent presser --seeds 2", 120)
    assert "of 4 solved" in seen
    rows = kernel.execute("[(r['task'], r['seed'], r['reward']) for r in results][:3]")
    assert rows == (
        "[('oh_jupyter/click-button', 0, 1.0),\n ('oh_jupyter/click-button', 1, 1.0),\n"
        " ('wait', 0, 1.0)]"
    )
    assert "oh_jupyter/log-in" in kernel.execute("%oh_browse eval --help")
    kernel.execute("%oh_browse eval click-button --agent presser --out run.jsonl")
    assert "1 of 1 solved" in kernel.execute("%oh_browse eval show run.jsonl")
    seen = kernel.execute("%oh_browse eval show run.jsonl oh_jupyter/click-button 0")
    assert "finished, reward 1" in seen
    assert "browse_interactive" in seen


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("%oh_browse eval", "name a function of yours: --agent"),
        ("%oh_browse eval --agent nobody", "no function 'nobody'"),
        ("%oh_browse eval fly --agent print", "There is no task 'fly'"),
        ("%oh_browse eval 'log-in", "no closing quotation"),
        ("%oh_browse eval show", "say which: %oh_browse eval show FILE.jsonl"),
        ("%oh_browse eval show none.jsonl log-in 0", "has no result of log-in with seed 0"),
        ("%oh_browse eval show no/such.jsonl", "/no/such.jsonl"),
        ("%oh_browse eval log-in --nope", "Unknown option --nope. Options: --agent"),
        ("%oh_browse eval log-in --agent get_ipython --executor nobody", "no variable 'nobody'"),
        (
            "%oh_browse eval log-in --agent get_ipython --executor get_ipython",
            "neither an executor",
        ),
        ("%oh_browse eval log-in --timeout soon", "invalid float value"),
        ("%oh_browse eval log-in --agent get_ipython --seeds 0", "seeds is a number of 1 or more"),
        ("%oh_browse eval browsergym/* --agent print", "name its family"),
        ("%oh_browse text now", "text takes no arguments"),
        ("%oh_browse save /nowhere/state.json", "Choose a writable path"),
        ("%oh_browse session ../etc", "cannot be the name of a session"),
        ("%oh_browse close nobody", "there is no session 'nobody'"),
        ("%oh_browse click 12", 'write an action as a call: %oh_browse click("12")'),
        ("%oh_browse txt", "there is no command 'txt'"),
        ("%oh_browse look at this", "neither an address nor a command"),
        ("%oh_browse ./none.html", "there is no file"),
        ("%oh_browse eval --seeds many", "invalid int value"),
        ("oh.browser.evaluate('throw 1')", "The expression failed"),
    ],
)
def test_wrong_input_gets_one_clear_answer(kernel, line: str, word: str):
    seen = kernel.execute(line)
    assert word in seen
    assert "Traceback" not in seen


def test_files_and_hosts_are_distinguished(kernel, url: str):
    Path(kernel.directory, "page.html").write_text("<h1>From a file</h1>")
    for name in ("page.html", "./page.html"):
        seen = kernel.execute(f"print(get_ipython().run_line_magic('oh_browse', '{name}').content)")
        assert "# From a file" in seen
    host = url.removeprefix("http://")
    kernel.execute(f"page = %oh_browse --no-picture {host}")
    assert kernel.execute("page.error, page.url") == f"(False, '{url}')"
    assert "GET_EVAL_GOAL" in kernel.execute(
        "print(get_ipython().run_line_magic('oh_browse', '--no-picture GET_EVAL_GOAL').content)"
    )


def test_an_interrupt_stops_the_step_and_leaves_the_browser(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    cell = kernel.start("%oh_browse noop(600000)")
    while "noop(600000)" not in json.dumps(kernel.ask("status")[1]["running"]):
        pass
    kernel.manager.interrupt_kernel()
    assert kernel.finish(cell)["status"] == "error"
    assert "# Harbour" in kernel.execute("%oh_browse text")


def test_an_interrupted_pick_is_reported_in_one_line(kernel, url: str):
    kernel.execute(f"%oh_browse --no-picture {url}")
    cell = kernel.start("%oh_browse pick")
    while kernel.client.get_iopub_msg(timeout=120)["msg_type"] != "stream":
        pass
    kernel.manager.interrupt_kernel()
    assert kernel.finish(cell)["traceback"] == ["KeyboardInterrupt"]


def test_commands_are_completed(kernel, url: str):
    def complete(code: str) -> list[str]:
        reply = kernel.client.complete(code, reply=True, timeout=30)
        return list(reply["content"]["matches"])

    assert {"tables", "tabs", "text", "tab_focus(", "tab_close()"} == set(complete("%oh_browse t"))
    assert complete("value = %oh_browse --no") == ["--no-picture"]
    assert complete("%oh_browse eval oh_jupyter/l") == ["oh_jupyter/log-in"]
    assert complete("%oh_browse eval --se") == ["--seeds"]
    kernel.execute("def my_agent(seen): ...")
    assert complete("%oh_browse eval log-in --agent my_a") == ["my_agent"]
    kernel.execute("open('state of it.json', 'w').close()")
    kernel.execute("open('state.json', 'w').close()")
    assert "state.json" in complete("%oh_browse save sta")
    kernel.execute(f"%oh_browse --no-picture goto('{url}')")
    kernel.execute("tree = oh.interact('noop(0)').content; oh.events.flush()")
    pressed = kernel.execute("import re\nre.search(r\"\\[(\\w+)\\] button 'press'\", tree)[1]")
    bid = pressed.strip("'")
    for code in ('%oh_browse click("', "%oh_browse click(", '%%oh_browse\nnoop(0)\nclick("'):
        assert f'"{bid}"' in complete(code), code
    assert f"'{bid}'" in complete("%oh_browse drag_and_drop('1', '")
    assert f'"{bid}"' not in complete('%oh_browse fill("1", "')
    assert complete("%oh_browse tab_focus(") == ["0"]
    assert complete(f"%oh_browse {url[:-2]}")[0].startswith("http://127.0.0.1")
    assert f'"{url}"' in complete('%oh_browse goto("http')
    assert complete("%oh_browse session de") == ["default"]
    kernel.execute("%unload_ext oh_jupyter")
    assert "tables" not in complete("%oh_browse t")
    kernel.execute("%load_ext oh_jupyter")


@pytest.mark.thorough
def test_agents_wait_while_a_person_has_the_browser(kernel, url: str):
    assert kernel.ask("use_browser", actions=f'goto("{url}")')[1] == ""
    mark, *_ = kernel.ask("browser_marks")[1]
    x, y, *_ = mark["bbox"]
    assert kernel.ask("use_browser", actions=f"mouse_click({x + 2}, {y + 2})")[1] == ""
    refused = kernel.act("browse_interactive", timeout=0.1, browser_actions="noop(0)")
    assert "A person has taken over the browser" in refused["content"]
    assert "pressed" in kernel.execute("oh.interact('noop(0)').content")
    body = {"action": {"action": "browse_interactive", "args": {"browser_actions": "noop(0)"}}}
    asked = kernel.send("execute_action", body)
    assert kernel.ask("hold_browser", hold=False)[1] is False
    assert "pressed" in kernel.reply(asked)[1]["content"]


@pytest.mark.thorough
def test_a_page_as_data(kernel, url: str):
    assert kernel.execute(f"list(oh.links('{url}').text)") == "['cargo']"
    assert kernel.execute("list(oh.forms().type)") == "['submit']"
    assert kernel.execute("list(oh.elements('h1').text)") == "['Harbour']"
    assert kernel.execute("list(oh.elements(role='button').name)") == "['press']"
    assert "Say which elements" in kernel.execute("oh.elements()")
    assert "cannot be read" in kernel.execute("oh.links('http://127.0.0.1:9/')")


@pytest.mark.thorough
def test_a_person_logs_in_once(kernel, url: str, tmp_path: Path):
    kernel.execute(f"import os; os.environ['XDG_STATE_HOME'] = '{tmp_path}'")
    kernel.execute("os.environ.pop('DISPLAY', None)")
    assert "--as NAME" in kernel.execute(f"%oh_browse login {url}")
    # Instead of a person who logs in and presses Enter.
    logged_in = kernel.execute(
        "import builtins\nbuiltins.input = lambda prompt: "
        "oh.browser.evaluate(\"document.cookie = 'who=ada; max-age=900'\")\n"
        f"get_ipython().run_line_magic('oh_browse', 'login {url} --as ada')"
    )
    assert "Session 'ada' is logged in" in logged_in
    (state,) = tmp_path.rglob("ada.json")
    assert state.stat().st_mode & 0o777 == 0o600
    kernel.execute("%oh_browse close ada")
    kernel.execute(f"%oh_browse session ada\n%oh_browse --no-picture {url}")
    assert kernel.execute("oh.browser.evaluate('document.cookie')") == "'who=ada'"
    kernel.execute("%oh_browse close ada\n%oh_browse session default")
    kernel.execute("del os.environ['XDG_STATE_HOME']")
