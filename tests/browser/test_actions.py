"""Every call of the action language, on real pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oh_jupyter.browser import BrowserEnv, flatten_axtree

pytestmark = pytest.mark.browser

LOG = """<p id=log></p><script>
const log = text => document.getElementById('log').textContent += text + ' ';
</script>"""


@pytest.mark.thorough
def test_fill_clear_press_focus(env: BrowserEnv, show, bid, tree):
    seen = show("<input aria-label=name><textarea aria-label=notes></textarea>")
    name = bid(seen, "'name'")
    seen = env.step(f'fill("{name}", "Ada \\"L\\"")')
    assert "value='Ada \"L\"'" in tree(seen)
    seen = env.step(f'press("{name}", "Control+a")\npress("{name}", "x")')
    assert "value='x'" in tree(seen)
    seen = env.step(f'clear("{name}")')
    assert "value='x'" not in tree(seen)
    notes = bid(seen, "'notes'")
    seen = env.step(f'focus("{notes}")')
    assert seen["focused_element_bid"] == notes
    seen = env.step(f'fill("{name}", "menu", enable_autocomplete_menu=True)')
    assert "value='menu'" in tree(seen)


def test_click_button_modifiers_and_double_click(env: BrowserEnv, show, bid, tree):
    seen = show(
        LOG
        + """<button onmousedown="log(event.button + (event.shiftKey ? 's' : ''))"
        ondblclick="log('twice')">go</button>"""
    )
    go = bid(seen, "'go'")
    seen = env.step(f'click("{go}", button="middle", modifiers=["Shift"])\nclick("{go}")')
    assert "1s 0" in tree(seen)
    assert "twice" in tree(env.step(f'dblclick("{go}")'))


def test_hover_select_check_uncheck(env: BrowserEnv, show, bid, tree):
    seen = show(
        LOG
        + """<p role=note aria-label=spot onmouseenter="log('over')">spot</p>
        <select aria-label=one><option value=r>Red</option><option value=g>Green</option></select>
        <select aria-label=many multiple><option>A</option><option>B</option></select>
        <input type=checkbox aria-label=box>"""
    )
    assert "over" in tree(env.step(f'hover("{bid(seen, "spot")}")'))
    seen = env.step(f'select_option("{bid(seen, "one")}", "Green")')
    assert "combobox 'one' value='Green'" in tree(seen)
    seen = env.step(f'select_option("{bid(seen, "one")}", "r")')
    assert "combobox 'one' value='Red'" in tree(seen)
    seen = env.step(f'select_option("{bid(seen, "many")}", ["A", "B"])')
    assert tree(seen).count("selected=True") == 3
    box = bid(seen, "'box'")
    assert "checked='true'" in tree(env.step(f'check("{box}")'))
    assert "checked='false'" in tree(env.step(f'uncheck("{box}")'))


def test_drag_and_drop(env: BrowserEnv, show, bid, tree):
    seen = show(
        LOG
        + """<div draggable=true role=note aria-label=thing
        ondragstart="event.dataTransfer.setData('text/plain', 'cargo')">thing</div>
        <div role=note aria-label=place style="height:80px" ondragover="event.preventDefault()"
        ondrop="log('got ' + event.dataTransfer.getData('text/plain'))">place</div>"""
    )
    seen = env.step(f'drag_and_drop("{bid(seen, "thing")}", "{bid(seen, "place")}")')
    assert seen["last_action_error"] == ""
    assert "got cargo" in tree(seen)


def test_upload_by_path_directly_and_through_a_button(
    env: BrowserEnv, show, bid, tree, tmp_path: Path
):
    (tmp_path / "a.txt").write_text("aaa")
    (tmp_path / "b.txt").write_text("bb")
    seen = show(
        LOG
        + """<input type=file multiple aria-label=files
        onchange="for (const f of this.files) log(f.name + f.size)"><button style="display:block"
        onclick="document.querySelector('input').click()">choose</button>"""
    )
    both = f'["{tmp_path}/a.txt", "{tmp_path}/b.txt"]'
    seen = env.step(f'upload_file("{bid(seen, "files")}", {both})')
    assert "a.txt3 b.txt2" in tree(seen)
    seen = env.step(f'upload_file("{bid(seen, "choose")}", "{tmp_path}/b.txt")')
    assert seen["last_action_error"] == ""
    assert tree(seen).count("b.txt2") >= 2 or "b.txt2 b.txt2" in tree(seen)
    x, y, width, height = seen["extra_element_properties"][bid(seen, "choose")]["bbox"]
    seen = env.step(f'mouse_upload_file({x + width / 2}, {y + height / 2}, "{tmp_path}/a.txt")')
    assert seen["last_action_error"] == ""
    assert "b.txt2 a.txt3" in tree(seen)
    missing = env.step(f'upload_file("{bid(seen, "files")}", "{tmp_path}/none.txt")')
    assert "there is no file" in missing["last_action_error"]


def test_mouse_by_coordinates(env: BrowserEnv, show, tree):
    show(
        LOG
        + """<style>body{margin:0;height:3000px}</style>
        <div style="position:fixed;left:100px;top:100px;width:100px;height:100px"
        onmousemove="log('move')" onmousedown="log('down' + event.button)"
        onmouseup="log('up')" ondblclick="log('twice')"></div>"""
    )
    text = tree(env.step("mouse_move(150, 150)\nmouse_down(150, 150)\nmouse_up(160, 160)"))
    assert "move down0" in text
    assert "up" in text
    assert "down2" in tree(env.step('mouse_click(150, 150, "right")'))
    assert "twice" in tree(env.step("mouse_dblclick(150, 150)"))
    text = tree(env.step("mouse_drag_and_drop(110, 110, 190, 190)"))
    assert text.count("down0") >= 4


def test_keyboard(env: BrowserEnv, show, bid, tree):
    seen = show(LOG + '<input aria-label=name onkeydown="log(event.key)" onkeyup="log(\'^\')">')
    env.step(f'click("{bid(seen, "name")}")')
    assert "value='hey'" in tree(env.step('keyboard_type("hey")'))
    text = tree(env.step('keyboard_insert_text(" you")'))
    assert "value='hey you'" in text
    assert "y ^" in text
    text = tree(env.step('keyboard_down("Shift") keyboard_press("a") keyboard_up("Shift")'))
    assert "Shift a ^ ^" in text
    assert "value=''" not in tree(env.step('keyboard_press("Control+a") keyboard_press("Delete")'))
    assert "Unknown key" in env.step('keyboard_press("Wumpus")')["last_action_error"]


def test_scrolling_is_done_when_observed(env: BrowserEnv, show, bid):
    seen = show(
        """<style>body{margin:0}</style><div style="height:2000px"></div><button>low</button>
        <div style="position:fixed;top:0;left:0;width:200px;height:200px;overflow:auto">
        <div style="height:900px"></div><button>inner</button></div>"""
    )
    before = seen["extra_element_properties"][bid(seen, "'low'")]
    assert before["visibility"] == 0
    seen = env.step("scroll_at(600, 400, 0, 1600)")
    after = seen["extra_element_properties"][bid(seen, "'low'")]
    assert before["bbox"][1] - after["bbox"][1] == pytest.approx(1316, abs=300)
    assert after["visibility"] == 1
    seen = env.step("scroll_at(100, 100, 0, 5000)")
    assert seen["extra_element_properties"][bid(seen, "'inner'")]["visibility"] == 1
    seen = env.step("mouse_move(600, 400)\nscroll(0, -5000)")
    assert seen["extra_element_properties"][bid(seen, "'low'")]["visibility"] == 0


def test_navigation(env: BrowserEnv, site, show):
    show("<p>one", "/one")
    show("<p>two", "/two")
    assert "one" in env.step("go_back()")["text_content"]
    assert "two" in env.step("go_forward()")["text_content"]
    refused = env.step('goto("/none/x")')
    assert "not an absolute address" in refused["last_action_error"]
    assert "two" in refused["text_content"]
    for address, word in (
        ("javascript:document.body.innerHTML='run'", "do not open as a page"),
        ("view-source:about:blank", "do not open as a page"),
        ("mailto:me@example.org", "do not open as a page"),
        ("http://[bad", "not a valid address"),
        ("http://127.0.0.1:99999/", "not a valid address: check host and port"),
    ):
        refused = env.step(f'goto("{address}")')
        assert word in refused["last_action_error"]
        assert "two" in refused["text_content"]
    assert "data page" in env.step('goto("data:text/html,<p>data page")')["text_content"]
    refused = env.step('goto("file:///none.html")')
    assert "ERR_FILE_NOT_FOUND: there is no such file" in refused["last_action_error"]
    refused = env.step('goto("http://127.0.0.1:9/")')
    assert "net::ERR_" in refused["last_action_error"]
    assert env.step(f'goto("{site.url("/one")}")')["last_action_error"] == ""
    for path, word in (
        ("/204", "the server sent no page, as with 204 No Content"),
        ("/401", "the server requires a user name and a password (401)"),
    ):
        refused = env.step(f'goto("{site.url(path)}")')
        assert refused["last_action_error"].startswith("Error: Page.goto: net::ERR_")
        assert word in refused["last_action_error"]
    refused = env.step('goto("chrome-extension://abc/page.html")')
    assert "chrome-extension: addresses do not open" in refused["last_action_error"]


def test_an_address_without_a_scheme(env: BrowserEnv, site, show, tmp_path: Path):
    show("<p>typed", "/typed")
    (tmp_path / "a.html").write_text("<p>file page")
    for address, text in (
        (site.url("/typed").removeprefix("http://"), "typed"),
        (site.url("/typed", "localhost").removeprefix("http://"), "typed"),
        (f"{tmp_path}/a.html", "file page"),
    ):
        seen = env.step(f'goto("{address}")')
        assert seen["last_action_error"] == ""
        assert text in seen["text_content"]
    seen = env.step('goto("a.html")', cwd=tmp_path)
    assert "file page" in seen["text_content"]


def test_chat_and_noop(env: BrowserEnv, show):
    show("<p>x")
    seen = env.step('send_msg_to_user("42 is it")\nreport_infeasible("no way")\nnoop(1)')
    assert [item["message"] for item in seen["chat_messages"]][-2:] == ["42 is it", "no way"]
    assert seen["chat_messages"][-2]["role"] == "assistant"
    # Since the browser was started, as BrowserGym counts.
    later = env.step("noop(300)")["elapsed_time"]
    assert later >= seen["elapsed_time"] + 0.3


@pytest.mark.parametrize(
    ("body", "action", "reason"),
    [
        ("<button>b</button>", "select", "Element is not a <select> element: click(bid)"),
        ("<button style='visibility:hidden' id=b>b</button>", "click", "element is not visible"),
        ("<button disabled>b</button>", "click", "disabled"),
        ("<input readonly aria-label=b>", "fill", "read-only"),
        ("<h1>b</h1>", "fill", "Element is not an <input>"),
        ("<select aria-label=b><option>x</select>", "select", "no such option"),
        (
            "<button>b</button><div class=veil style='position:fixed;inset:0'></div>",
            "click",
            'covered by another element: <div class="veil"',
        ),
    ],
)
def test_errors_name_the_cause(env: BrowserEnv, show, body, action, reason):
    seen = show(body)
    names = {"click": "", "fill": ', "text"', "select": ', "nothing"'}
    function = {"select": "select_option"}.get(action, action)
    properties = seen["extra_element_properties"]
    # html, head, title, body, and then the element
    target = list(properties)[4]
    failed = env.step(f'{function}("{target}"{names[action]})\nsend_msg_to_user("not reached")')
    assert reason in failed["last_action_error"], failed["last_action_error"]
    assert failed["last_action_error"].startswith(("TimeoutError: Locator.", "Error: Locator."))
    assert all(item["message"] != "not reached" for item in failed["chat_messages"])
    assert env.step("noop(0)")["last_action_error"] == ""


SLOW = "for (const t = performance.now(); performance.now() - t < 900;);"


@pytest.mark.parametrize(
    ("body", "action"),
    [
        (f"<button onclick='{SLOW} log(1)'>b</button>", "click({})"),
        (f"<button onmousedown='{SLOW}' onclick='log(1)'>b</button>", "click({})"),
        (f"<button ondblclick='{SLOW} log(1)'>b</button>", "dblclick({})"),
        (f"<button onmouseenter='{SLOW} log(1)'>b</button>", "hover({})"),
        ("<button onclick='for (let i = 0; i < 30; i++) alert(i); log(1)'>b</button>", "click({})"),
        (f"<input onkeydown='{SLOW} log(1)'>", "press({}, 'a')"),
        (f"<input oninput='{SLOW} log(1)'>", "fill({}, 'a')"),
        (f"<input value=x oninput='{SLOW} log(1)'>", "clear({})"),
        (f"<input type=checkbox onchange='{SLOW} log(1)'>", "check({})"),
        (f"<input type=checkbox checked onchange='{SLOW} log(1)'>", "uncheck({})"),
        (
            f"<select onchange='{SLOW} log(1)'><option>a<option>b</select>",
            "select_option({}, 'b')",
        ),
    ],
)
def test_a_performed_action_is_done_despite_slow_handlers(
    env: BrowserEnv, show, body: str, action: str
):
    seen = show(body + LOG)
    target = next(
        node["browsergym_id"]
        for node in seen["axtree_object"]["nodes"]
        if node["role"]["value"] in ("button", "textbox", "checkbox", "combobox")
    )
    seen = env.step(action.format(repr(target)))
    assert seen["last_action_error"] == ""
    assert seen["text_content"].split()[-1] == "1"


def test_a_click_that_opens_many_windows_is_done(env: BrowserEnv, show, bid):
    seen = show("""<button onclick="for (let i = 0; i < 9; i++) window.open('about:blank')">b""")
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert seen["last_action_error"] == ""
    assert len(seen["open_pages_urls"]) == 10
    env.step("tab_close()\n" * 9)


def test_files_are_for_upload(env: BrowserEnv, show, bid, tmp_path: Path):
    (tmp_path / "a.txt").write_text("a")
    seen = show("<input type=file aria-label=one><input type=file webkitdirectory aria-label=all>")
    one, folder = bid(seen, "'one"), bid(seen, "'all")
    assert "use upload_file(bid, path)" in env.step(f'fill("{one}", "x")')["last_action_error"]
    seen = env.step(f'click("{one}")')
    assert "use upload_file(bid, path) instead of the click" in seen["notices"][0]
    refused = env.step(f'upload_file("{one}", "{tmp_path}")')
    assert refused["last_action_error"].startswith("Error: ")
    seen = env.step(f'upload_file("{folder}", "{tmp_path}")')
    assert seen["last_action_error"] == ""
    assert env.evaluate("document.querySelectorAll('input')[1].files[0].name") == "a.txt"


@pytest.mark.thorough
def test_uploads_to_other_elements_are_errors(env: BrowserEnv, show, bid, tmp_path: Path):
    (tmp_path / "a.txt").write_text("a")
    seen = show("<input aria-label=words><button>b</button>")
    for name, message in (
        ("'words'", "ValueError: the element is a field of type text and accepts no file. Use"),
        ("'b'", "TimeoutError: the click opened no file chooser. Use"),
    ):
        seen = env.step(f'upload_file("{bid(seen, name)}", "{tmp_path}/a.txt")')
        assert seen["last_action_error"].startswith(message)


def test_bids_of_a_page_that_was_not_shown_are_unknown(env: BrowserEnv, site, show, bid):
    """As after `browse`, which gives the text of a page and no bids."""
    seen = show("<button>one</button>")
    target = bid(seen, "'one'")
    other = site.put("/b", "<!doctype html><title>t</title><button onclick='this.remove()'>two")
    env.step(f'goto("{other}")', include=["text_content"])
    failed = env.step(f'click("{target}")', include=["text_content"])
    assert f'Could not find element with bid "{target}"' in failed["last_action_error"]
    assert "two" in env.evaluate("document.body.textContent")
    env.step("noop(0)", include=["set_of_marks"])  # a person reads them in the picture
    assert env.step(f'click("{target}")')["last_action_error"] == ""


def test_unknown_and_stale_bids(env: BrowserEnv, show, bid):
    seen = show("<button onclick='this.remove()'>b</button>")
    assert 'Could not find element with bid "999"' in env.step('click("999")')["last_action_error"]
    target = bid(seen, "'b'")
    failed = env.step(f'click("{target}")\nclick("{target}")')
    assert f'Could not find element with bid "{target}"' in failed["last_action_error"]
    assert "Malformed" in env.step("click(target)")["last_action_error"]
    assert env.step('click("999")')["last_action_error"].startswith(
        'ValueError: Could not find element with bid "999"'
    )


@pytest.mark.thorough
def test_a_page_that_is_busy_is_no_page_that_refuses(env: BrowserEnv, show, bid):
    # Whether an element stands still is seen in two frames, which take 1.4 s here.
    seen = show("""<button onclick="p.textContent = 'clicked'">go</button><p id=p>-</p><script>
      requestAnimationFrame(function draw() {
        const start = performance.now();
        if (window.slow-- > 0) while (performance.now() - start < 700);
        requestAnimationFrame(draw);
      });
    </script>""")
    env.evaluate("window.slow = 4")
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert seen["last_action_error"] == ""
    assert "clicked" in seen["text_content"]


ASKING = """<button onclick="log(confirm('sure?'))">confirm</button>
<button onclick="log(prompt('name?', 'Bob'))">prompt</button>"""


def test_a_dialog_is_answered_as_prepared(env: BrowserEnv, show, bid):
    seen = show(ASKING + LOG)
    confirm, prompt = (f'click("{bid(seen, repr(name))}")' for name in ("confirm", "prompt"))
    for action, answer in (
        (f"handle_dialog() {confirm}", "true"),
        (f"handle_dialog(accept=False) {confirm}", "false"),
        (f'handle_dialog(True, "Ada") {prompt}', "Ada"),
        (f"handle_dialog(True) {prompt}", "Bob"),
        (f"handle_dialog(False) handle_dialog(True) {prompt} {confirm}", "null true"),
        # It is for one.
        (f"handle_dialog(True) {confirm} {confirm}", "true false"),
    ):
        seen = env.step(action)
        assert seen["last_action_error"] == ""
        assert seen["text_content"].rstrip().endswith(answer)
    assert "handle_dialog(accept=True) before the action" in seen["notices"][-1]
    # In the next step, and not in a later one.
    env.step("handle_dialog(True)")
    assert env.step(confirm)["text_content"].rstrip().endswith("true")
    env.step("handle_dialog(True)")
    env.step("noop(0)")
    assert env.step(confirm)["text_content"].rstrip().endswith("false")


def test_a_page_with_a_draft_is_left_only_on_request(env: BrowserEnv, site, show, bid):
    other = site.put("/other", "<p>other page")
    draft = f"""<input aria-label=draft><a href="{other}">away</a>
      <script>onbeforeunload = (event) => event.preventDefault()</script>"""
    seen = show(draft)
    away = bid(seen, "'away'")
    env.step(f'fill("{bid(seen, "draft")}", "my words")')
    for action in (f'goto("{other}")', f'click("{away}")', "tab_close()"):
        seen = env.step(action)
        assert seen["last_action_error"].startswith("Error: The page asked whether to leave it")
        assert "handle_dialog(accept=True)" in seen["last_action_error"]
        assert env.evaluate("document.querySelector('input').value") == "my words"
    assert "ERR_ABORTED" not in seen["last_action_error"]
    seen = env.step(f'handle_dialog(True) goto("{other}")')
    assert seen["last_action_error"] == ""
    assert "other page" in seen["text_content"]
    seen = show(draft)
    env.step(f'fill("{bid(seen, "draft")}", "my words")')
    seen = env.step("handle_dialog() tab_close()")
    assert seen["last_action_error"] == ""
    assert seen["url"] == "about:blank"


def test_a_page_with_a_draft_does_not_delay_going_back(env: BrowserEnv, site, show, bid):
    env.step(f'goto("{site.put("/first", "<p>first page")}")')
    seen = show(
        "<input aria-label=draft><script>onbeforeunload = (e) => e.preventDefault()</script>"
    )
    env.step(f'fill("{bid(seen, "draft")}", "my words")')
    seen = env.step("go_back()")
    assert seen["last_action_error"].startswith("Error: The page asked whether to leave it")
    assert env.evaluate("document.querySelector('input').value") == "my words"
    seen = env.step("handle_dialog(True) go_back()")
    assert seen["last_action_error"] == ""
    assert "first page" in seen["text_content"]


def test_many_dialogs_are_one_notice(env: BrowserEnv, show, bid):
    seen = show("<button onclick='for (let i = 0; i < 50; i++) alert(i)'>b</button>")
    seen = env.step(f'click("{bid(seen, "button")}")')
    assert seen["notices"] == [
        "The page showed alert 50 times, first '0', '1', '2'; each was accepted."
    ]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("type=date", "04.03.2026", "now holds '': write a date as 2026-03-04"),
        ("type=date value=2020-01-02", "04.03.2026", "now holds '2020-01-02': write a date as"),
        ("type=date value=2020-01-02", "2026-02-30", "now holds '2020-01-02': write a date as"),
        ("type=time value=10:00", "noon", "now holds '10:00': write a time as 17:05"),
        ("type=month value=2020-01", "May", "now holds '2020-01': write a month as 2026-03"),
        ("type=week value=2020-W01", "1", "now holds '2020-W01': write a week as 2026-W10"),
        ("type=color value=#ff0000", "red", "now holds '#ff0000': write a color as #00aaff"),
        (
            "type=datetime-local value=2020-01-02T10:00",
            "2026-03-04",
            "now holds '2020-01-02T10:00': write a datetime-local as 2026-03-04T17:05",
        ),
        ("type=range max=70", "abc", "now holds '35': it accepts numbers from 0 to 70"),
        ("type=range", "200", "now holds '100'"),
        ("type=range min=10 max=20", "1", "now holds '10'"),
        ("type=range max=9 step=.5", "2.50", ""),
        ("maxlength=3", "abcdef", "now holds 'abc': it accepts at most 3 characters"),
        ("oninput='value = value.replace(/[a-z]/g, 0)'", "a1", "now holds '01'"),
        ("value=x oninput='value = 0'", "", "now holds '0'"),
        ("type=date", "2026-03-04", ""),
        ("type=color", "#00AAFF", ""),
        ("type=email", " a@example.org ", ""),
        ("oninput='value = value.toUpperCase() + \" €\"'", "12 eur", ""),
    ],
)
def test_a_rejected_field_value_is_reported(env: BrowserEnv, show, field, value, expected):
    seen = show(f"<input aria-label=f {field}>")
    target = list(seen["extra_element_properties"])[4]
    error = env.step(f"fill({target!r}, {value!r})")["last_action_error"]
    if expected:
        assert error.startswith(f"ValueError: the field did not accept the value and {expected}")
    else:
        assert error == ""


def test_a_rejected_date_reaches_no_script_of_the_page(env: BrowserEnv, show):
    seen = show(
        "<input type=date value=2020-01-02 oninput='n.textContent += 1' "
        "onchange='n.textContent += 2'>"
        "<p id=n>events"
    )
    target = list(seen["extra_element_properties"])[4]
    for more in ("", ", True"):
        seen = env.step(f"fill({target!r}, '4 March'{more})")
        assert "now holds '2020-01-02'" in seen["last_action_error"]
        assert seen["text_content"].strip().endswith("events")
    seen = env.step(f"fill({target!r}, '2026-03-04')")
    assert seen["last_action_error"] == ""
    assert "events12" in seen["text_content"]


@pytest.mark.parametrize(
    ("element", "advice"),
    [
        ("<select><option>a<option>b</select>", "it is a <select>. Use select_option({bid!r}, "),
        ("<select multiple><option>a</select>", "it is a <select>. Use select_option({bid!r}, "),
        ("<input type=checkbox>", "use check(bid)"),
        ("<input type=radio>", "use check(bid)"),
        ("<input type=submit>", "use click(bid)"),
        ("<input type=file>", "use upload_file(bid, path)"),
        ("<input type=number>", "it accepts numbers"),
        ("<button>b</button>", "it accepts no text"),
    ],
)
def test_the_alternative_to_fill_is_named(env: BrowserEnv, show, element, advice):
    seen = show(element)
    bid = list(seen["extra_element_properties"])[4]
    error = env.step(f"fill({bid!r}, 'text')")["last_action_error"]
    assert advice.format(bid=bid) in error


def test_an_element_without_an_area_is_not_offered_as_clickable(env: BrowserEnv, show):
    hidden = "style='width:0; height:0; position:absolute; overflow:hidden'"
    seen = show(
        f"<a href='#1' {hidden}>no link</a><div onclick='1' {hidden}>no box</div>"
        "<a href='#2'>a link</a>"
        "<button style='display:contents' onclick='1'>a button</button>"
        "<a href='#3'><div>a block</div></a>"
    )
    text = flatten_axtree(
        seen["axtree_object"],
        seen["extra_element_properties"],
        with_clickable=True,
        skip_generic=False,
    )
    clickable = [line for line in text.splitlines() if "clickable" in line]
    assert [re.search(r"'(.*?)'", line)[1] for line in clickable] == [
        *("a link", "a button", "a block")
    ]
    for line in text.splitlines():
        if match := re.search(r"\[(\w+)\] (?:link|button) '", line):
            error = env.step(f"click({match[1]!r})")["last_action_error"]
            assert (error == "") is ("clickable" in line), line


def test_an_editor_that_empties_its_field_has_taken_the_text(env: BrowserEnv, show):
    seen = show("<textarea oninput='p.textContent = value; value = \"\"'></textarea><p id=p>")
    target = list(seen["extra_element_properties"])[4]
    seen = env.step(f'fill({target!r}, "some text")')
    assert seen["last_action_error"] == ""
    assert "some text" in seen["text_content"]
