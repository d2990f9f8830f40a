"""Options of a browser: state, profile, device, origins, another browser; and records."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PIL import Image

from oh_jupyter.browser import BrowserEnv, flatten_axtree
from oh_jupyter.browser.channel.addresses import OriginFilter
from oh_jupyter.browser.channel.pipe import PARTS, RECORDS
from oh_jupyter.browser.tables import read_elements, read_forms, read_links, read_tables
from oh_jupyter.errors import BrowserError
from oh_jupyter.testing import descendants

pytestmark = pytest.mark.browser

SECRET = "hunter2-hunter2"


@pytest.mark.thorough
def test_log_in_once(site, tmp_path: Path):
    page = site.put(
        "/login", "<script>document.cookie = 'who=ada'; localStorage.you = 'ada'</script>"
    )
    path = tmp_path / "state.json"
    with BrowserEnv() as env:
        env.step(f'goto("{page}")', include=[])
        state = env.storage_state(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == state
    ask = "document.cookie + localStorage.you"
    for source in (path, state):
        with BrowserEnv(storage_state=source) as env:
            env.step(f'goto("{site.put("/in", "in")}")', include=[])
            assert env.evaluate(ask) == "who=adaada"
    with pytest.raises(BrowserError, match=r"cannot be read.*BrowserEnv\.storage_state"):
        BrowserEnv(storage_state=tmp_path / "none.json")


@pytest.mark.thorough
def test_a_profile_is_kept(site, tmp_path: Path):
    page = site.put("/p", "<p>profile")
    for expected in ("", "kept"):
        with BrowserEnv(user_data_dir=tmp_path / "profile") as env:
            seen = env.step(f'goto("{page}")')
            assert "profile" in seen["text_content"]
            assert (env.evaluate("localStorage.mark") or "") == expected
            env.evaluate("localStorage.mark = 'kept'")
            assert env.check_alive()


@pytest.mark.thorough
def test_a_profile_that_cannot_be_used(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with (
        BrowserEnv(user_data_dir=tmp_path / "file") as env,
        pytest.raises(BrowserError, match=r"folder .*file cannot be created: File exists\. Set"),
    ):
        env.start()
    with BrowserEnv(user_data_dir=tmp_path / "profile") as first:
        first.start()
        with (
            BrowserEnv(user_data_dir=tmp_path / "profile") as second,
            pytest.raises(BrowserError, match="is in use by another browser") as caught,
        ):
            second.start()
        assert "\n" not in str(caught.value)


@pytest.fixture
def display() -> Iterator[str]:
    """A display that nobody looks at."""
    xvfb = shutil.which("Xvfb")
    if xvfb is None:
        pytest.skip("needs Xvfb")
    read, write = os.pipe()
    process = subprocess.Popen(
        [xvfb, "-displayfd", str(write), "-screen", "0", "1400x1000x24", "-nolisten", "tcp"],
        pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as numbers:
        # It says the number when it is ready.
        yield f":{numbers.readline().strip()}"
    process.terminate()
    process.wait(60)


@pytest.mark.skipif(sys.platform != "linux", reason="X11")
def test_a_browser_with_a_window(site, display: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DISPLAY", display)
    page = site.put("/window", "<button onclick=\"this.textContent = 'pressed'\">press</button>")
    with BrowserEnv(headless=False) as env:
        env.step(f'goto("{page}")', include=[])
        # The headless browsers have no frame around the page.
        assert env.evaluate("outerHeight > innerHeight")
        assert env.evaluate("[innerWidth, innerHeight]") == [1280, 720]
        seen = env.step("mouse_click(30, 20)")
        assert "pressed" in seen["text_content"]
        assert seen["screenshot"].startswith("data:image/png;base64,")


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="X11 and Wayland")
def test_a_window_needs_a_display(monkeypatch: pytest.MonkeyPatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with BrowserEnv(headless=False) as env, pytest.raises(BrowserError) as caught:
        env.start()
    assert str(caught.value).startswith("A browser with a window needs a display")
    assert "\n" not in str(caught.value)


@pytest.mark.thorough
def test_a_device(site):
    page = site.put("/d", "<p>device")
    with BrowserEnv(device="iPhone 13") as env:
        env.step(f'goto("{page}")', include=[])
        assert "iPhone" in env.evaluate("navigator.userAgent")
        assert env.evaluate("innerWidth") < 1000
        assert env.evaluate("navigator.maxTouchPoints") > 0
        seen = env.step("noop(0)", include=["screenshot", "set_of_marks"])
        density, width = env.evaluate("[devicePixelRatio, screen.width]")
        assert density > 1
        for picture in (seen["screenshot"], seen["set_of_marks"]):
            data = base64.b64decode(picture.partition(",")[2])
            assert Image.open(io.BytesIO(data)).width == density * width
    with BrowserEnv(device="iPhon 13") as env, pytest.raises(BrowserError, match="iPhone 13"):
        env.start()


@pytest.mark.thorough
def test_a_browser_that_runs_already(site, running: str):
    page = site.put(
        "/cdp", "<button onclick=\"setTimeout(() => this.textContent = 'pressed', 200)\">b"
    )
    with BrowserEnv(cdp_url=running) as env:
        seen = env.step(f'goto("{page}")')
        assert len(seen["open_pages_urls"]) == 2
        bid = next(
            node["browsergym_id"]
            for node in seen["axtree_object"]["nodes"]
            if node["role"]["value"] == "button"
        )
        seen = env.step(f'click("{bid}")')
        assert "pressed" in seen["text_content"]
    # It is not ours: it lives on, without the tab that was opened in it.
    with BrowserEnv(cdp_url=running) as env:
        assert page not in env.step("noop(0)")["open_pages_urls"]


def test_an_unused_devtools_address():
    with (
        BrowserEnv(cdp_url="http://127.0.0.1:9") as env,
        pytest.raises(BrowserError, match="No browser responds at"),
    ):
        env.start()


@pytest.mark.thorough
def test_allowed_and_blocked_origins(site):
    site.put("/other", "<p>other")
    page = site.put("/", f"<p>home<img src='//localhost:{site.port}/pixel'>")
    jump = site.put("/jump", f"<script>location = '{site.url('/other', 'localhost')}'</script>")
    for lists in (
        {"allowed_origins": [f"http://127.0.0.1:{site.port}"]},
        {"blocked_origins": ["localhost", "*.invalid"]},
    ):
        with BrowserEnv(**lists) as env:
            seen = env.step(f'goto("{page}")')
            assert seen["last_action_error"] == ""
            assert "home" in seen["text_content"]
            assert "Requests to http://localhost" in seen["notices"][0]
            seen = env.step(f'goto("{site.url("/other", "localhost")}")')
            assert "ERR_BLOCKED_BY_CLIENT: its origin is not allowed" in seen["last_action_error"]
            seen = env.step(f'goto("{jump}")')
            assert "other" not in seen["text_content"]


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.org/path", True),
        ("https://www.example.org", True),
        ("https://example.org:8443", False),
        ("http://example.org", False),
        ("https://example.org.evil.net", False),
        ("https://evil.net/?https://example.org", False),
        ("https://user@evil.net", False),
        ("https://secret.example.org", False),
        ("wss://example.org/socket", True),
        ("about:blank", True),
        ("data:text/html,x", True),
        ("file:///etc/passwd", False),
    ],
)
def test_origins(url: str, allowed: bool):
    origins = OriginFilter(
        ["https://example.org", "https://*.example.org"], ["https://secret.example.org"]
    )
    assert origins.allows(url) is allowed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://",
        "https://a/b",
        "http://a:port",
        "not an origin",
        "http://a b",
        "javascript:",
        "javascript://x",
        "about:blank",
        "http://",
    ],
)
def test_an_invalid_origin_is_refused(text: str):
    with pytest.raises(BrowserError, match="is not an origin"):
        BrowserEnv(allowed_origins=[text])


@pytest.mark.parametrize("text", ["javascript:alert(1)", "data:text/html,x", "mailto:a@b"])
def test_other_addresses_are_not_taken_for_a_host_and_a_port(text: str):
    with pytest.raises(BrowserError, match=r"is not an origin\. Examples: https:"):
        BrowserEnv(blocked_origins=[text])


@pytest.mark.thorough
def test_console_and_requests_are_recorded_where_they_are_asked_for(site):
    site.put("/data", "data")
    page = site.put(
        "/",
        """<script>
      console.warn("careful", 1); fetch("/data"); fetch("/none");
      setTimeout(() => { throw new Error("boom") });
    </script>""",
    )
    with BrowserEnv() as env:
        seen = env.step(f'goto("{page}")', include=["console_messages", "network_requests"])
        messages = {item["type"]: item["text"] for item in seen["console_messages"]}
        assert messages["warning"] == "careful 1"
        assert "boom" in messages["exception"]
        asked = {item["url"].removeprefix(site.url("")): item for item in seen["network_requests"]}
        assert asked["/data"]["status"] == 200
        assert asked["/data"]["type"] == "fetch"
        assert asked["/none"]["status"] == 404
        assert env.step("noop(0)", include=["console_messages"])["console_messages"] == []
        assert "console_messages" not in env.step("noop(0)", include=[])


@pytest.mark.thorough
def test_console_messages_have_the_line_of_their_script(site):
    site.put("/s.js", "\nconsole.info('second')\n\nthrow new Error('fourth')")
    page = site.put(
        "/lines",
        "<title>x</title><script>console.log('first')</script>\n<script src=/s.js></script>\n"
        "<script>\nsetTimeout(() => null.x)</script><script>fetch('/none')</script>",
    )
    with BrowserEnv() as env:
        seen = env.step(f'goto("{page}")', include=["console_messages"])["console_messages"]
    script = site.url("/s.js")
    locations = {(item["type"], item["url"], item["line"]) for item in seen}
    assert locations >= {
        ("log", page, 1),
        ("info", script, 2),
        ("exception", script, 4),
        ("exception", page, 4),
        ("error", site.url("/none"), 0),
    }


@pytest.mark.thorough
def test_a_trace(site, tmp_path: Path):
    page = site.put("/t", "<p>traced")
    with BrowserEnv() as env:
        with env.trace(tmp_path / "trace.zip"):
            env.step(f'goto("{page}")', include=[])
        with zipfile.ZipFile(tmp_path / "trace.zip") as archive:
            assert "trace.trace" in archive.namelist()


@pytest.mark.thorough
def test_secrets_are_hidden(site):
    page = site.put("/s", f"<input aria-label=key><p title='{SECRET}'>{SECRET}</p>")
    with BrowserEnv(secrets=[SECRET]) as env:
        seen = env.step(f'goto("{page}?{SECRET}")')
        bid = next(
            node["browsergym_id"]
            for node in seen["axtree_object"]["nodes"]
            if node["role"]["value"] == "textbox"
        )
        typed = env.step(f'fill("{bid}", "{SECRET}")')
        assert env.evaluate("document.querySelector('input').value") == SECRET
        failed = env.step(f'click("{SECRET}")')
        assert "<secret_hidden>" in failed["last_action_error"]
        for observation in (seen, typed, failed):
            shown = {
                k: v for k, v in observation.items() if k not in ("screenshot", "set_of_marks")
            }
            assert SECRET not in json.dumps(shown)
            assert "<secret_hidden>" in flatten_axtree(observation["axtree_object"])
        with pytest.raises(BrowserError) as caught:
            env.evaluate(f"throw new Error('{SECRET}')")
        assert SECRET not in str(caught.value)


@pytest.mark.thorough
def test_secrets_are_hidden_however_they_are_written(site, tmp_path: Path):
    """A value with all that is special in a call, an address or HTML, sent by a form."""
    secret = "p@ss_w*rd&<x>#1 y/z\"q'\\u00e9"
    site.put("/sent", "<a href='' id=link>sent</a><script>link.href = location.href</script>")
    page = site.put("/form", "<form action=/sent><input name=k aria-label=key><button>go</button>")
    parts = [*PARTS, *RECORDS]
    with BrowserEnv(secrets=[secret]) as env:
        env.step(f'goto("{page}")', include=[])
        env.evaluate("document.querySelector('input').focus()")
        typed = env.step(f"keyboard_insert_text({secret!r})", include=parts)
        sent = env.step('keyboard_press("Enter")', include=parts)
        assert env.evaluate("new URLSearchParams(location.search).get('k')") == secret
    assert "/sent?k=<secret_hidden>" in sent["url"]
    for observation in (typed, sent):
        shown = {k: v for k, v in observation.items() if k not in ("screenshot", "set_of_marks")}
        assert "w*rd" not in json.dumps(shown)


@pytest.mark.thorough
def test_an_archive_of_requests(site, tmp_path: Path):
    page = site.put("/archived", "<p>kept for later")
    with BrowserEnv(har_path=tmp_path / "all.har") as env:
        env.step(f'goto("{page}")', include=[])
    entries = json.loads((tmp_path / "all.har").read_text("utf-8"))["log"]["entries"]
    assert page in [each["request"]["url"] for each in entries]
    assert "kept for later" in json.dumps(entries)


def test_links_forms_and_elements_become_data_frames(env: BrowserEnv, show, site):
    show("""<a href=/one>One</a> <a href=#><img alt=Two src=x></a>
      <form><label>Name <input name=who value=Ada required></label>
        <input type=checkbox name=ok checked aria-label=Fine>
        <select name=size><option>small<option selected>large</select></form>
      <p class=note>first</p><p class=note>second</p><button>Outside</button>""")
    links = read_links(env)
    assert links.text.tolist() == ["One", "Two"]
    assert links.url[0] == site.url("/one")
    forms = read_forms(env)
    assert forms.form.tolist() == [0, 0, 0, -1]
    assert forms.label.tolist() == ["Name", "Fine", "", ""]
    assert forms.value.tolist() == ["Ada", True, "large", "Outside"]
    assert forms.required.tolist() == [True, False, False, False]
    assert forms.options[2] == ["small", "large"]
    assert read_elements(env, "p.note").text.tolist() == ["first", "second"]
    buttons = read_elements(env, role="button")
    assert buttons.name.tolist() == ["Outside"]
    assert env.step(f'focus("{buttons.bid[0]}")')["last_action_error"] == ""
    with pytest.raises(BrowserError, match=r"expression failed: .*not a valid selector"):
        read_elements(env, "p[")


def test_tables_become_data_frames(env: BrowserEnv, show):
    show("""<table>
      <thead><tr><th rowspan=2>Port<th colspan=2>Tide</tr><tr><th>high<th>low</tr></thead>
      <tr><td>Brest<td>6.9<td>1.2</tr>
      <tr><td rowspan=2>Calais<td>7.1<td>0.8</tr><tr><td>7.0<td>0.9</tr>
      </table><table><tr><td>a<td>b</table>""")
    tides, plain = read_tables(env)
    assert list(tides.columns) == ["Port", "Tide high", "Tide low"]
    assert tides["Tide high"].max() == 7.1
    assert list(tides["Port"]) == ["Brest", "Calais", "Calais"]
    assert plain.shape == (1, 2)


def test_without_pandas_the_extra_is_named(env: BrowserEnv, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(BrowserError, match=r"pip install 'oh_jupyter\[tables\]'"):
        read_tables(env)


def test_uploads_start_in_the_given_folder(env: BrowserEnv, show, bid, tmp_path: Path):
    (tmp_path / "note.txt").write_text("x")
    seen = show("<input type=file aria-label=file>")
    calls = f'upload_file("{bid(seen, "file")}", "note.txt")'
    assert "there is no file" in env.step(calls)["last_action_error"]
    assert env.step(calls, cwd=tmp_path)["last_action_error"] == ""
    assert env.evaluate("document.querySelector('input').files[0].name") == "note.txt"


@pytest.mark.slow
def test_memory_does_not_grow(site):
    """The worker's own memory over many steps; the benchmark takes five hundred."""
    page = site.put("/memory", "<p>memory" + "<b>x</b>" * 500)

    def workers() -> list[psutil.Process]:
        name = "oh_jupyter.browser.worker.main"
        return descendants(lambda process: process.cmdline()[-1:] == [name])

    others = workers()
    with BrowserEnv() as env:

        def own() -> int:
            (worker,) = set(workers()) - set(others)
            return int(worker.memory_info().rss)

        def walk(times: int) -> None:
            for _ in range(times):
                env.step(f'goto("{page}")', include=["axtree_object"])

        walk(20)
        before = own()
        walk(60)
        assert own() - before < 25 << 20
