"""Private names of other packages that oh_jupyter uses, with the releases that have them.

A release without one fails here first; the names of jupyter_server_documents are covered by the
slow test that installs its newest release.
"""

from __future__ import annotations

from operator import attrgetter
from pkgutil import resolve_name

import pytest

PRIVATE_NAMES = {
    "s3fs:S3FileSystem._call_s3": "s3fs 2024.6 to 2026.9",
    "gcsfs:GCSFileSystem._request.__wrapped__": "gcsfs 2024.6 to 2026.10",
    "ipykernel.kernelbase:Kernel._execute_sleep": "ipykernel 6.29 to 7.4",
    "sse_starlette.sse:_get_shutdown_state": "sse-starlette 3.2 to 3.7; not needed before",
    "acp.connection:Connection.send_request": "agent-client-protocol 0.11 to 0.12",
    "argparse:RawDescriptionHelpFormatter._fill_text": "Python 3.11 to 3.13",
    "asyncio:_set_running_loop": "Python 3.11 to 3.13",
    "asyncio:_get_running_loop": "Python 3.11 to 3.13",
    "tornado.web:RequestHandler._log": "tornado 6.5 to 6.6",
}


@pytest.mark.parametrize("name", PRIVATE_NAMES)
def test_the_installed_release_has_it(name: str) -> None:
    module, _, path = name.partition(":")
    assert attrgetter(path)(resolve_name(module)) is not None, PRIVATE_NAMES[name]
