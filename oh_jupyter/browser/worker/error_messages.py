"""Why an action failed: the cause in Playwright's call log, said in a sentence."""

from __future__ import annotations

import re

__all__ = ["error_cause"]

CAUSE_PATTERNS = (
    (r"(<[^\n]*?>)(?: from (<[^\n]*?>) subtree)? intercepts pointer events",
     "it is covered by another element: {0} intercepts pointer events. Close or use that one, "
     "or scroll"),
    (r"element is not visible", "element is not visible. Open what hides it, or use another one"),
    (r"element is not enabled", "element is not enabled: it is disabled. Do first what enables it"),
    (r"element is not editable", "element is not editable: it is read-only"),
    (r"did not find some options",
     "the select has no such option (value or label). Read its options in the tree"),
    (r"Element is not an <input>, <textarea>",
     "Element is not an <input>, <textarea> or [contenteditable] element: it takes no text"),
    (r"(Element is not an? [^\n]*)", "{0}"),
    (r'(Input of type "file" cannot be filled)', "{0}: use upload_file(bid, path)"),
    (r"(File input does not support directories[^\n]*|\[webkitdirectory\] input[^\n]*)", "{0}"),
    (r"(Not a checkbox or radio button)", "{0}"),
    (r"(Clicking the checkbox did not change its state)", "{0}"),
    (r"element is outside of the viewport",
     "element is outside of the viewport and cannot be scrolled into it"),
    (r"not attached to the DOM", "the element was removed from the page meanwhile"),
    (r"element is not stable", "element is not stable: it keeps moving"),
    (r'(Unknown key: "[^\n]*")', '{0}. Examples: "Enter", "a", "Control+a", "Shift+Tab"'),
    (r"(net::ERR_BLOCKED_BY_CLIENT)", "{0}: its origin is not allowed in this browser"),
    (r"(net::ERR_NAME_NOT_RESOLVED)", "{0}: no host of that name is known, or there is no network"),
    (r"(net::ERR_CONNECTION_REFUSED)", "{0}: nothing listens at that host and port"),
    (r"(net::ERR_UNSAFE_PORT)", "{0}: browsers do not use that port"),
    (r"(net::ERR_FILE_NOT_FOUND)", "{0}: there is no such file"),
    (r"(net::ERR_INVALID_AUTH_CREDENTIALS)",
     "{0}: the server asks for a user name and a password (401). Put them into the address, as in "
     "https://name:password@host/, or begin with a storage state that is logged in"),
    (r"(net::ERR_ABORTED)",
     "{0}: the server answered without a page, as with 204 No Content; the one from before stays"),
    (r"(net::ERR_\w+)", "{0}"),
    (r"Cannot navigate to invalid URL", "it is not a valid address: check host and port"),
)  # fmt: skip


def error_cause(kind: str, message: str) -> str:
    """Say why Playwright could not do it: type and call as BrowserGym says them, and the cause."""
    found = re.match(r"(?:(\w+)\.(\w+): )?((?:Timeout \d+ms exceeded\.)?)", message)
    assert found is not None  # all of it is optional
    owner, method, timeout = found.groups()
    said = found.end()
    # BrowserGym acts on locators.
    owner = "Locator" if owner == "ElementHandle" else owner
    where = f"{owner}.{method}: " if owner else ""
    beginning = f"{kind}: {where}{timeout}{' ' if timeout else ''}"
    for pattern, text in CAUSE_PATTERNS:
        found = re.search(pattern, message)
        if found:
            shown = [group[:200] for group in found.groups() if group]
            return f"{beginning}{text.format(*shown)}."
    if timeout and method == "goto":
        return f"{beginning}The server did not answer in time."
    rest = message[said:].split("\nCall log:")[0].strip()
    return f"{beginning}{rest.removesuffix('.')}."
