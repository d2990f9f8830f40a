"""The SDK's browser tools on the runtime's browser, in BrowserGym's action language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from openhands.sdk.tool import ToolDefinition
from openhands.tools.browser_use import definition as sdk

from oh_jupyter.events import BrowseInteractiveAction, BrowserOutputObservation
from oh_jupyter.openhands.tools import RuntimeExecutor, contents, failed, register

if TYPE_CHECKING:
    from openhands.sdk.conversation.state import ConversationState

SCROLL_PIXELS = 600
MAX_CONTENT_CHARS = 30_000
FIRST_FRAME_INDEX = 100_000
"""Number of the first element whose bid is no number, since it is within a frame."""

_TOOLS = (
    sdk.BrowserNavigateTool,
    sdk.BrowserClickTool,
    sdk.BrowserGetStateTool,
    sdk.BrowserGetContentTool,
    sdk.BrowserTypeTool,
    sdk.BrowserScrollTool,
    sdk.BrowserGoBackTool,
    sdk.BrowserListTabsTool,
    sdk.BrowserSwitchTabTool,
    sdk.BrowserCloseTabTool,
)


class _BrowserExecutor(RuntimeExecutor[sdk.BrowserAction, sdk.BrowserObservation]):
    """Executor of the SDK's browser Actions; elements are numbered by their bids."""

    def __init__(self) -> None:
        super().__init__()
        self._frame_bids: list[str] = []

    def __call__(self, action: sdk.BrowserAction, conversation: Any = None) -> Any:
        wants_text = isinstance(action, sdk.BrowserGetContentAction)
        observation = self.runtime.execute(
            BrowseInteractiveAction(self._calls(action), return_axtree=wants_text)
        )
        if not isinstance(observation, BrowserOutputObservation):
            return sdk.BrowserObservation(
                content=contents(observation.content), is_error=failed(observation)
            )
        if failed(observation):
            error = observation.last_browser_action_error or observation.content
            return sdk.BrowserObservation(content=contents(error), is_error=True)
        screenshot = None
        if isinstance(action, sdk.BrowserGetStateAction) and action.include_screenshot:
            screenshot = observation.screenshot.partition(",")[2] or None
        return sdk.BrowserObservation(
            content=contents(self._page_text_after(action, observation)), screenshot_data=screenshot
        )

    def _calls(self, action: sdk.BrowserAction) -> str:
        """Return an Action in the browser's action language."""
        match action:
            case sdk.BrowserNavigateAction(url=url, new_tab=new_tab):
                return f"new_tab()\ngoto({url!r})" if new_tab else f"goto({url!r})"
            case sdk.BrowserClickAction(index=index, new_tab=new_tab):
                button = ', button="middle"' if new_tab else ""
                return f"click({self._bid(index)!r}{button})"
            case sdk.BrowserTypeAction(index=index, text=text):
                return f"fill({self._bid(index)!r}, {text!r})"
            case sdk.BrowserScrollAction(direction=direction):
                return f"scroll(0, {SCROLL_PIXELS if direction == 'down' else -SCROLL_PIXELS})"
            case sdk.BrowserGoBackAction():
                return "go_back()"
            case sdk.BrowserSwitchTabAction(tab_id=tab):
                return f"tab_focus({_tab_index(tab)})"
            case sdk.BrowserCloseTabAction(tab_id=tab):
                return f"tab_focus({_tab_index(tab)})\ntab_close()"
            case _:
                return "noop(0)"

    def _page_text_after(
        self, action: sdk.BrowserAction, observation: BrowserOutputObservation
    ) -> str:
        """Return the text about the page that the model reads after an Action."""
        if isinstance(action, sdk.BrowserGetStateAction):
            return self._numbered(observation.content)
        if isinstance(action, sdk.BrowserGetContentAction):
            text = page_text(observation.axtree_object, action.extract_links)
            part = text[action.start_from_char :][:MAX_CONTENT_CHARS]
            end = action.start_from_char + len(part)
            more = (
                f"\n[Continue with start_from_char={end} of {len(text)}.]"
                if end < len(text)
                else ""
            )
            return f"{part}{more}" or "(The page has no text.)"
        if isinstance(action, sdk.BrowserListTabsAction):
            return "\n".join(
                f"{index:04}: {url}"
                + (" (active)" if index == observation.active_page_index else "")
                for index, url in enumerate(observation.open_pages_urls)
            )
        return f"Done. The page is {observation.url}"

    def _numbered(self, text: str) -> str:
        """Return the tree with numbers for bids in frames, since the SDK's tools take numbers."""
        self._frame_bids = sorted(set(re.findall(r"(?m)^\s*\[([a-zA-Z]+\d+)\]", text)))
        numbers = {bid: FIRST_FRAME_INDEX + at for at, bid in enumerate(self._frame_bids)}
        return re.sub(
            r"(?m)^(\s*)\[([a-zA-Z]+\d+)\]",
            lambda match: f"{match[1]}[{numbers[match[2]]}]",
            text,
        )

    def _bid(self, index: int) -> str:
        position = index - FIRST_FRAME_INDEX
        return self._frame_bids[position] if 0 <= position < len(self._frame_bids) else str(index)


def _tab_index(tab_id: str) -> int:
    """Return the index of a tab by its id; -1, which the browser rejects, for an invalid id."""
    return int(tab_id) if tab_id.isdecimal() else -1


def page_text(tree: Mapping[str, Any], with_links: bool) -> str:
    """Return the text of a page from its AXTree, with headings and links in Markdown."""
    nodes = {str(node.get("nodeId")): node for node in tree.get("nodes", [])}
    children = {child for node in nodes.values() for child in node.get("childIds", [])}
    waiting = [id for id in reversed(nodes) if id not in children]
    lines: list[str] = []
    while waiting:
        node = nodes.get(waiting.pop(), {})
        role, name = _value(node, "role"), _value(node, "name").strip()
        if role == "heading" and name:
            lines += ["", f"## {name}", ""]
        elif role == "link" and name and with_links:
            lines.append(f"[{name}]({_url(node)})")
        else:
            if role == "StaticText" and name:
                lines.append(name)
            waiting += reversed([str(child) for child in node.get("childIds", [])])
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _value(node: Mapping[str, Any], name: str) -> str:
    return str((node.get(name) or {}).get("value") or "")


def _url(node: Mapping[str, Any]) -> str:
    urls = (part for part in node.get("properties", []) if part.get("name") == "url")
    return _value(next(urls, {}), "value")


class KernelBrowserToolSet(sdk.BrowserToolSet):
    """``browser_tool_set`` on the browser that the person sees.

    Cookies and recordings belong to the person, so the SDK's four tools for them are left out.
    """

    name = sdk.BrowserToolSet.name

    @classmethod
    def is_usable(cls) -> bool:
        """Return True: the runtime reports a missing browser."""
        return True

    @classmethod
    def create(cls, conv_state: ConversationState, **params: Any) -> list[ToolDefinition]:
        """Make the tools; parameters of the SDK's own browser are ignored."""
        executor = _BrowserExecutor()
        guidance = {"prompt_guidance": sdk.BROWSER_PROMPT_GUIDANCE}
        made = [tool for one in _TOOLS for tool in one.create(executor)]
        return [tool.model_copy(update=guidance) for tool in made]


register(KernelBrowserToolSet)
