"""Files as a browser shows them, by login and by the key in the file of ``server_url_file``."""

from __future__ import annotations

import base64
import html
import io
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageDraw

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
FILES = {
    "a.pdf": (b"%PDF-1.4 a", "application/pdf"),
    "a.png": (PIXEL, "image/png"),
    "a.txt": ("héllo".encode(), "text/plain; charset=utf-8"),
    "a.html": (b"<script>alert(1)</script>", "text/html; charset=utf-8"),
    "a.unknown-kind": (b"\x00", "application/octet-stream"),
    "empty.txt": (b"", "text/plain; charset=utf-8"),
    "a.tar.gz": (b"zipped", "application/octet-stream"),
}


@pytest.fixture
def url_file(tmp_path: Path) -> Path:
    return tmp_path / "oh-server-url"


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any], url_file: Path) -> dict[str, Any]:
    return {**jp_server_config, "OhJupyter": {"server_url_file": str(url_file)}}


@pytest.fixture
def keyed_url(jp_serverapp: Any, http_server: Any, url_file: Path, jp_asyncio_loop: Any) -> str:
    """The address that an agent reads; the tests' server does not run start hooks."""
    (app,) = jp_serverapp.extension_manager.extension_apps["oh_jupyter"]
    url_file.write_text("of an earlier server")
    jp_asyncio_loop.run_until_complete(app._start_jupyter_server_extension(jp_serverapp))
    return url_file.read_text()


async def test_an_address_file_that_is_a_mount_point_is_written_in_place(
    jp_serverapp: Any, url_file: Path, tmp_path: Path, request: Any
) -> None:
    mounted = tmp_path / "mounted"
    mounted.touch()
    url_file.touch()
    command = ["mount", "--bind", str(mounted), str(url_file)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    request.addfinalizer(lambda: subprocess.run(["umount", str(url_file)], check=True))
    (app,) = jp_serverapp.extension_manager.extension_apps["oh_jupyter"]
    await app._start_jupyter_server_extension(jp_serverapp)
    assert "/oh_jupyter/viewer/" in mounted.read_text()


@pytest.mark.thorough
async def test_files_are_sent_with_their_types(
    mcp_url: str, jp_auth_header: dict[str, str], keyed_url: str, tmp_path: Path
) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        for name, (contents, kind) in FILES.items():
            (tmp_path / name).write_bytes(contents)
            path = {"path": str(tmp_path / name)}
            for address, headers in ((mcp_url, jp_auth_header), (keyed_url, {})):
                answer = await client.get(f"{address}/view", params=path, headers=headers)
                assert (answer.status_code, answer.content) == (200, contents), answer.text
                assert answer.headers["Content-Type"] == kind
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                client.cookies.clear()


async def test_files_are_private(
    mcp_url: str, keyed_url: str, url_file: Path, tmp_path: Path, jp_serverapp: Any
) -> None:
    assert stat.S_IMODE(url_file.stat().st_mode) == 0o600
    (tmp_path / "a.txt").write_text("secret")
    path = {"path": str(tmp_path / "a.txt")}
    key = keyed_url.rpartition("/")[2]
    async with httpx.AsyncClient(timeout=60) as client:
        for below in ("view", f"viewer/{key[:-1]}/view", "viewer/x/view", f"viewer/{key}/alive"):
            answer = await client.get(f"{mcp_url}/{below}", params=path)
            assert answer.status_code == 403, below
        # The key is good for nothing else.
        answer = await client.post(f"{keyed_url}/view", params=path, json={})
        assert answer.status_code in (403, 405)
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


async def test_special_files_are_refused(keyed_url: str, tmp_path: Path) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        for path, status in ((tmp_path, 400), (tmp_path / "none", 404), ("relative", 400)):
            answer = await client.get(f"{keyed_url}/view", params={"path": str(path)})
            assert answer.status_code == status, answer.text
        assert (await client.get(f"{keyed_url}/view")).status_code == 422


@pytest.mark.thorough
@pytest.mark.browser
async def test_an_agents_browser_opens_them(keyed_url: str, act: Any, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("found in the file")
    page = f"{keyed_url}/view?path={tmp_path / 'note.txt'}"
    status, observation = await act("browse", url=page)
    assert status == 200
    assert "found in the file" in observation["content"]


@pytest.mark.parametrize("name", ["plot.png", "plot.JPG", "plot.gif", "a & <b>.png"])
async def test_an_agents_browser_gets_a_page_that_shows_a_picture(
    mcp_url: str, jp_auth_header: dict[str, str], keyed_url: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(PIXEL)
    path = {"path": str(tmp_path / name)}
    window = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with httpx.AsyncClient(timeout=60, headers=window) as client:
        page = await client.get(f"{keyed_url}/view", params=path)
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert f"<title>File Viewer - {html.escape(name)}</title>" in page.text
        assert base64.b64encode(PIXEL).decode() in page.text
        missing = {"path": str(tmp_path / "none.png")}
        assert (await client.get(f"{keyed_url}/view", params=missing)).status_code == 404
        # A person's browser has a viewer of its own.
        own = await client.get(f"{mcp_url}/view", params=path, headers=jp_auth_header)
        assert own.content == PIXEL


@pytest.mark.browser
async def test_openhands_tests_of_the_file_viewer_pass(
    keyed_url: str, act: Any, tmp_path: Path
) -> None:
    """The requests and expectations of its test_read_pdf_browse and test_read_png_browse."""
    page = Image.new("RGB", (400, 200), "white")
    ImageDraw.Draw(page).text((20, 80), "This is a test", fill="black")
    page.save(tmp_path / "test_image.png")
    page.save(tmp_path / "test_document.pdf")
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.4 a")
    expected = {
        "test_document.pdf": "Canvas",
        "test_image.png": "File Viewer - test_image.png",
        "damaged.pdf": "damaged.pdf cannot be shown",
    }
    for name, text in expected.items():
        goto = f'goto("{keyed_url}/view?path={tmp_path / name}")'
        status, observation = await act(
            "browse_interactive", browser_actions=goto, return_axtree=False
        )
        assert status == 200
        assert observation["observation"] == "browse"
        for each in ("[Action executed successfully.]", text, ".browser_screenshots/screenshot_"):
            assert each in observation["content"], observation["content"]


@pytest.mark.browser
async def test_a_page_of_a_pdf_is_drawn_with_its_text(
    keyed_url: str, act: Any, tmp_path: Path
) -> None:
    figure = Figure(facecolor="red")
    figure.text(0.3, 0.5, "Hello PDF")
    figure.savefig(tmp_path / "a.pdf")
    goto = f'goto("{keyed_url}/view?path={tmp_path / "a.pdf"}")'
    _, observation = await act("browse_interactive", browser_actions=goto)
    assert "Page 1 of 1" in observation["content"]
    assert "Hello PDF" in observation["content"], observation["content"]
    picture = base64.b64decode(observation["extras"]["screenshot"].partition(",")[2])
    with Image.open(io.BytesIO(picture)) as shown:
        assert (255, 0, 0) in {color for _, color in shown.convert("RGB").getcolors(1_000_000)}


async def test_the_address_goes_with_the_server(
    keyed_url: str, url_file: Path, jp_serverapp: Any
) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["oh_jupyter"]
    assert keyed_url.rpartition("/")[2] in app._secrets()
    await app.stop_extension()
    assert not url_file.exists()
