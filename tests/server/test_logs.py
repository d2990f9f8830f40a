"""The extension's log: as JSON lines where that is asked for, and never with secrets."""

from __future__ import annotations

import io
import json
import logging
import os

import pytest
from jupyter_client.manager import KernelManager

from oh_jupyter.events.masking import HIDDEN
from oh_jupyter.logs import SecretFormatter, set_up_logging


@pytest.fixture
def app_log():
    """A logger as an application has it, and what it has written."""
    log = logging.Logger("OhJupyter", logging.DEBUG)
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("[%(levelname)s] %(message)s"))
    log.addHandler(handler)
    log.written = written
    return log


def test_lines_of_json_for_the_app_and_its_modules(app_log) -> None:
    undo = set_up_logging(app_log, list, {"LOG_JSON": "1"})
    app_log.info("Kernel %s is here", "k1")
    logging.getLogger("oh_jupyter.server.links").warning("two\nlines")
    try:
        raise ValueError("because")
    except ValueError:
        app_log.exception("It failed")
    undo()
    app_log.info("plain again")
    *lines, last = app_log.written.getvalue().splitlines()
    first, second, third = map(json.loads, lines)
    assert (first["level"], first["logger"]) == ("INFO", "OhJupyter")
    assert first["message"] == "Kernel k1 is here"
    assert set(first) == {"timestamp", "level", "logger", "message"}
    assert second["message"] == "two\nlines"
    assert second["logger"] == "oh_jupyter.server.links"
    assert "ValueError: because" in third["exception"]
    assert last == "[INFO] plain again"


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_logging_is_unchanged_by_default(app_log, value: str) -> None:
    undo = set_up_logging(app_log, list, {"LOG_JSON": value})
    app_log.warning("as ever")
    undo()
    assert app_log.written.getvalue() == "[WARNING] as ever\n"
    assert not logging.getLogger("oh_jupyter").handlers


@pytest.mark.parametrize("as_json", ["0", "1"])
def test_no_secret_is_written(app_log, as_json: str) -> None:
    secrets = ["geheim-1"]
    undo = set_up_logging(app_log, lambda: secrets, {"LOG_JSON": as_json})
    app_log.info("the key is %s", "geheim-1")
    secrets.append("made-later")
    app_log.info("made-later and geheim-1")
    app_log.info("GET /x?token=abc123&y=1 and Authorization: Bearer abc123")
    app_log.info('{"X-Session-API-Key": "abc123", "password": "abc123"}')
    try:
        raise ValueError("https://x/?tkn=abc123 geheim-1")
    except ValueError:
        app_log.exception("with a traceback")
    app_log.info("a token for the kernel, y=1")
    undo()
    text = app_log.written.getvalue()
    for secret in ("geheim-1", "made-later", "abc123"):
        assert secret not in text
    assert text.count(HIDDEN) >= 8
    assert "a token for the kernel, y=1" in text
    assert "y=1 and" in text


async def test_a_server_writes_its_extensions_log_so(ask, jp_serverapp) -> None:
    (app,) = jp_serverapp.extension_manager.extension_apps["oh_jupyter"]
    token = jp_serverapp.identity_provider.token
    assert token
    assert token in app._secrets()
    handlers = [h for h in app.log.handlers if isinstance(h.formatter, SecretFormatter)]
    assert handlers
    for handler in handlers:
        record = logging.LogRecord("x", logging.INFO, "", 1, "it is %s", (token,), None)
        assert token not in handler.format(record)
    assert (await ask("alive"))[0] == 200


def test_lines_of_a_kernel_name_it_and_go_to_the_real_standard_error(tmp_path) -> None:
    code = (
        "import logging, os; os.environ['SECRET'] = 'geheim-12345'\n"
        "oh.set_env({'SECRET': 'geheim-12345'})\n"
        "logging.getLogger('oh_jupyter.runtime').warning('it is %s', 'geheim-12345')"
    )
    with (tmp_path / "err").open("w") as errors:
        manager = KernelManager(
            kernel_name="python3", connection_file=str(tmp_path / "kernel-k1.json")
        )
        manager.start_kernel(
            extra_arguments=["--ext", "oh_jupyter"],
            env={**os.environ, "LOG_JSON": "1"},
            stderr=errors,
        )
        client = manager.client()
        client.start_channels()
        shown = []
        try:
            client.wait_for_ready(timeout=60)
            client.execute_interactive(code, output_hook=shown.append, timeout=60)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    lines = [line for line in (tmp_path / "err").read_text().splitlines() if line[:1] == "{"]
    (line,) = map(json.loads, lines)
    assert line["message"] == f"it is {HIDDEN}"
    assert (line["kernel_id"], line["level"]) == ("k1", "WARNING")
    assert not [message for message in shown if message["msg_type"] == "stream"]
