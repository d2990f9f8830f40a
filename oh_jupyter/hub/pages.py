"""Pages for the person: the question whether a client may connect, errors, the front page.

They have neither scripts nor pictures, so a client's name can do nothing but be read.
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

from oh_jupyter.hub.clients import is_document_address, is_loopback
from oh_jupyter.hub.grants import PendingRequest

SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 34em; margin: 4em auto; padding: 0 1em }}
code {{ overflow-wrap: anywhere }}
button {{ font: inherit; padding: .4em 1.2em; margin-right: .6em }}
</style>
<h1>{title}</h1>
{body}
</html>
"""


def _page(title: str, body: str) -> str:
    return _PAGE.format(title=escape(title), body=body)


def consent_page(request: PendingRequest, key: str, action: str) -> str:
    """Return the question about a client's request, as a form that posts to ``action``."""
    user = request.grant.user if request.grant else ""
    name = request.client.name or "An MCP client without a name"
    return _page(
        "Connect to your Jupyter servers?",
        f"""<p><strong>{escape(name)}</strong> wants to use your Jupyter servers on this hub as
<strong>{escape(user)}</strong>: run code, read and change files and notebooks.</p>
<p>The name is what the client says about itself{_origin(request.client.id)}. Your decision
is sent to
{_destination(request.redirect_uri)}. Allow it only if you have just started to connect this
client.</p>
<p>Address: <code>{escape(request.resource)}</code></p>
<form method="post" action="{escape(action)}">
<input type="hidden" name="request" value="{escape(key)}">
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny" autofocus>Deny</button>
</form>
<p>To end it later, revoke this service on the hub's page <em>Token</em>.</p>""",
    )


def _origin(id: str) -> str:
    """Return the site that vouches for a client, for a person."""
    if not is_document_address(id):
        return ""
    return f", at <strong>{escape(urlsplit(id).netloc)}</strong>"


def _destination(uri: str) -> str:
    parts = urlsplit(uri)
    if is_loopback(uri):
        return f"a program on this computer (<code>{escape(uri)}</code>)"
    if parts.scheme == "https":
        return f"the website <strong>{escape(parts.netloc)}</strong> (<code>{escape(uri)}</code>)"
    return f"the program that opens <code>{escape(uri)}</code>"


def error_page(message: str) -> str:
    """Return a page about an error that cannot be sent to the client."""
    return _page("Not connected", f"<p>{escape(message)}</p>")


def front_page(address: str) -> str:
    """Return the page that a person opens from the hub's list of services."""
    base = address.removesuffix("/mcp")
    return _page(
        "Agents in your notebooks",
        f"""<p>Connect an MCP client to <code>{escape(address)}</code>: it opens the hub's log-in
page in your browser, and works on your running server.</p>
<p><code>oh-jupyter connect claude --url {escape(base)}</code></p>
<p>For a named server, add its name: <code>{escape(address)}/NAME</code>.</p>""",
    )
