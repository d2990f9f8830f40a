"""The store of a kernel is a drive of the file browser; what its webhook misses is sent again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pictures import take_pictures
from playwright.sync_api import Page, expect
from run_cells import run_all_cells

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NAME = "store.ipynb"


class Receiver(ThreadingHTTPServer):
    """A receiver that refuses requests until ``accepts`` is set."""

    accepts = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.accepted: list[str] = []


class Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.accepts:
            self.server.accepted.append(self.path)
        self.send_response(200 if self.server.accepts else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_POST

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_files_of_the_store_and_deliveries(
    lab, receiver: Receiver, open_notebook, write_notebook
) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/"
    write_notebook(
        NAME,
        "from oh_jupyter.storage import InMemoryFileStore, WebHookFileStore\n"
        "%load_ext oh_jupyter\n"
        f"hook = oh._executor.file_store = WebHookFileStore(InMemoryFileStore(), {url!r})\n"
        "hook.write('notes/first.txt', 'one line')\n"
        "hook.flush()",
    )
    page: Page = open_notebook(NAME)
    run_all_cells(page)
    expect(page.locator("#oh-jupyter-log")).to_contain_text("%oh_run ls")

    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-store')")
    files = page.get_by_role("region", name="Files of the store")
    item = files.locator(".jp-DirListing-item")
    item.filter(has_text="notes").dblclick()
    expect(item.filter(has_text="first.txt")).to_be_visible()
    page.get_by_role("tab", name="File Browser").click()
    page.evaluate("jupyterapp.commands.execute('oh-jupyter:show-store')")
    expect(item.filter(has_text="first.txt")).to_be_visible()
    take_pictures(page, "store")
    item.filter(has_text="first.txt").dblclick()
    editor = page.locator(".jp-FileEditor:visible .cm-content")
    expect(editor).to_have_text("one line")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" more")
    kernel = f"oh_jupyter/kernels/{lab.kernel_of(NAME)}"
    address = f"{kernel}/store/notes"
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    assert lab.request(f"{address}/first.txt?info=true")["size"] == len("one line more")

    with page.expect_file_chooser() as chooser:
        files.get_by_role("button", name="Upload Files").click()
    chooser.value.set_files(
        {"name": "up.bin", "mimeType": "application/octet-stream", "buffer": bytes(range(256))}
    )
    expect(item.filter(has_text="up.bin")).to_be_visible()
    item.filter(has_text="up.bin").click()
    page.keyboard.press("F2")
    files.locator(".jp-DirListing-editor").fill("down.bin")
    page.keyboard.press("Enter")
    expect(item.filter(has_text="down.bin")).to_be_visible()
    assert lab.request(f"{address}/down.bin?info=true")["size"] == 256
    page.keyboard.press("Delete")
    page.locator(".jp-Dialog").locator(".jp-mod-accept").click()
    expect(item.filter(has_text="down.bin")).to_have_count(0)

    # All have had their answer before they are listed.
    flush = {"action": "run_ipython", "args": {"code": "len(hook.flush().failed) > 0"}}
    assert "True" in lab.request(f"{kernel}/execute_action", {"action": flush})["content"]
    files.get_by_role("button", name="Deliveries").click()
    rows = page.locator("#oh-jupyter-deliveries tbody").get_by_role("row")
    expect(rows.filter(has_text="first.txt").last).to_contain_text("HTTP status 403")
    take_pictures(page, "deliveries")
    upload = rows.filter(has_text="POST notes/up.bin")
    upload.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(upload).to_have_count(0)
    receiver.accepts = True
    page.get_by_role("button", name="Send all again").click()
    expect(rows).to_have_count(0)
    assert "/notes/first.txt" in receiver.accepted
    assert "/notes/up.bin" in receiver.accepted
