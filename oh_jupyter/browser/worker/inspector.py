"""Inspection of one page through DevTools: the contents of its frames, and element handles.

Out-of-process (cross-origin) frames have their own DevTools session. The inspector queries all
sessions concurrently and merges their responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.worker.devtools import (
    accessibility_trees,
    detach,
    read_loaders,
    send_large,
)
from oh_jupyter.browser.worker.long_text import long_texts, trees_around
from oh_jupyter.browser.worker.marks import BidRegistry, FrameBids
from oh_jupyter.browser.worker.nearby import (
    FIND,
    MAX_DRAWN,
    PAGE_TEXT,
    TOO_LARGE,
    accessibility_enabled,
    backend_ids,
    nearby_document,
    nearby_tree,
    partial_trees,
)
from oh_jupyter.browser.worker.snapshot import (
    CapturedFrame,
    SnapshotDocument,
    documents_of,
    match_elements,
)
from oh_jupyter.errors import BrowserActionError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, ElementHandle, Frame, Page

FRAME_EVENTS = (
    "Page.documentOpened",
    "Page.frameAttached",
    "Page.frameDetached",
    "Page.frameNavigated",
)
"""DevTools events that make a session's cached frames and documents stale."""
WORLD_NAME = "oh_jupyter"
LARGE_PAGE_NODES = 2000
"""Nodes above which a page is large."""
MAX_WORLDS = 500
"""Isolated worlds cached; beyond this, most belong to documents that no longer exist."""
PROBE = files("oh_jupyter.browser.worker").joinpath("probe.js").read_text("utf-8")
STORE_ELEMENT = """function (key) {
  if (this.isConnected) Object.defineProperty(window, key, {value: this, configurable: true});
}"""
TAKE_ELEMENT = "key => { const element = window[key]; delete window[key]; return element; }"
FRAME_TAGS = frozenset({"IFRAME", "FRAME"})


@dataclass
class _Target:
    """Capture of one DevTools session: its documents, and the probe and tree of each frame id."""

    session: Any
    loaders: dict[str, str]
    documents: list[SnapshotDocument]
    probes: dict[str, dict[str, Any] | None]
    trees: dict[str, asyncio.Task[list[dict[str, Any]]]]
    root: str


class PageInspector:
    """DevTools view of one page."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self.session = session
        self.bids = BidRegistry()
        self.documents_shown = 0
        self.has_stopped_script = False
        self._differences: tuple[object, int] = (None, 0)
        self._worlds: dict[tuple[int, str, str], int] = {}
        self._changes = 0
        self._cached_loaders: dict[CDPSession, dict[str, str]] = {}
        self._small: set[CDPSession] = set()
        self._frame_sessions: dict[Frame, CDPSession | None] = {}
        self._detaching: set[asyncio.Task[None]] = set()
        page.on("framenavigated", self._forget_session)
        page.on("framedetached", self._forget_session)

    def _forget_session(self, frame: Frame) -> None:
        session = self._frame_sessions.pop(frame, None)
        if session is not None:
            task = asyncio.ensure_future(detach(session))
            self._detaching.add(task)
            task.add_done_callback(self._detaching.discard)

    @property
    def sessions(self) -> list[CDPSession]:
        """Sessions of the page and of its out-of-process frames."""
        return [self.session, *filter(None, self._frame_sessions.values())]

    @classmethod
    async def attach(cls, page: Page) -> PageInspector:
        """Open a DevTools session to a page."""
        session = await page.context.new_cdp_session(page)
        inspector = cls(page, session)
        await inspector._listen(session)
        return inspector

    async def _listen(self, session: CDPSession) -> None:
        session.on("Page.frameNavigated", self._document_changed)
        for event in FRAME_EVENTS:
            session.on(event, self._frames_changed)
        await session.send("Page.enable")

    def _document_changed(self, event: dict[str, Any]) -> None:
        # This event reports only navigations to another document.
        self.bids.forget(event["frame"]["id"])
        if "parentId" not in event["frame"]:
            self.has_stopped_script = False
        self.documents_shown += 1

    async def capture(
        self,
        *,
        probe: bool = True,
        accessibility: bool = True,
        nearby: bool = False,
        max_tree_chars: int = 0,
    ) -> CapturedFrame:
        """Capture all frames and assign bids to new elements.

        With ``nearby``, capture only the viewport's surroundings of a large page, or only their
        part of a tree with more than ``max_tree_chars`` characters (0: no limit).
        """
        sessions = [self.session, *await self._other_sessions()]
        large = await self._evaluate_first(f"{TOO_LARGE}({max_tree_chars})") if nearby else ""
        if large == "page":
            captures = [self._capture_nearby(session, accessibility) for session in sessions]
        else:
            captures = [
                self._capture_session(session, probe, accessibility, large or "")
                for session in sessions
            ]
        results = await asyncio.gather(*captures, return_exceptions=True)
        if isinstance(results[0], BaseException):
            raise results[0]
        targets = [result for result in results if isinstance(result, _Target)]
        owners = await self._owners(targets)
        captured: list[CapturedFrame] = []
        root = self._build(targets[0], 0, None, None, (0.0, 0.0), owners, captured)
        self.bids.replace(
            (frame.bids, {frame.document.backend_ids[i]: bid for i, bid in frame.by_index.items()})
            for frame in captured
        )
        return root

    def is_consistent(self, frames: Iterable[CapturedFrame]) -> bool:
        """Return whether a capture's snapshot and measurements show the same page state."""
        # A difference that two captures share is permanent: some elements are never measured.
        frames = list(frames)
        differences = frames[0].bids.document, sum(frame.differences() for frame in frames)
        is_new, self._differences = differences != self._differences, differences
        return not (differences[1] and is_new)

    async def element(self, bid: str) -> ElementHandle:
        """Return a Playwright handle of the element with a bid."""
        location = self.bids.find(bid)
        if location is None:
            raise BrowserActionError(
                f'ValueError: Could not find element with bid "{bid}". Use a bid from the last '
                "observation; the page may have changed since."
            )
        try:
            return await self._handle(*location)
        except Exception as error:
            if "crashed" in str(error) or "closed" in str(error):
                raise
            raise BrowserActionError(
                f'ValueError: Could not find element with bid "{bid}": it is no longer on the page.'
            ) from error

    async def _handle(self, frame: FrameBids, backend_id: int) -> ElementHandle:
        """Convert a DevTools node to a Playwright handle, through a short-lived global variable."""
        playwright_frame: Frame | None = self.page.main_frame
        if frame.parent is not None and frame.owner is not None:
            owner = await self._handle(frame.parent, frame.owner)
            playwright_frame = await owner.content_frame()
            await owner.dispose()
        if playwright_frame is None:
            raise LookupError("The frame is no longer on the page.")
        key = f"_{secrets.token_hex(8)}"
        resolved = await frame.session.send("DOM.resolveNode", {"backendNodeId": backend_id})
        object_id = resolved["object"]["objectId"]
        await frame.session.send(
            "Runtime.callFunctionOn",
            {
                "objectId": object_id,
                "functionDeclaration": STORE_ELEMENT,
                "arguments": [{"value": key}],
            },
        )
        js_handle, _ = await asyncio.gather(
            playwright_frame.evaluate_handle(TAKE_ELEMENT, key),
            frame.session.send("Runtime.releaseObject", {"objectId": object_id}),
        )
        handle = js_handle.as_element()
        if handle is None:
            raise LookupError("The element is no longer on the page.")
        return handle

    async def _other_sessions(self) -> list[CDPSession]:
        """Return the sessions of out-of-process frames."""
        frames = self.page.frames[1:]
        await asyncio.gather(*(self._attach(f) for f in frames if f not in self._frame_sessions))
        present = set(self.page.frames)
        return [s for frame, s in self._frame_sessions.items() if s and frame in present]

    async def _attach(self, frame: Frame) -> None:
        """Open a session to a frame that has its own process."""
        try:
            session = await self.page.context.new_cdp_session(frame)
        except Exception:  # the frame shares its parent's process, or no longer exists
            self._frame_sessions[frame] = None
            return
        with contextlib.suppress(Exception):
            await self._listen(session)
            self._frame_sessions[frame] = session

    async def page_text(self, start: int, limit: int) -> dict[str, Any]:
        """Return part of the page's text: text, start, end and total, in characters."""
        expression = f"{PAGE_TEXT}({json.dumps([start, limit])})"
        empty = {"text": "", "start": start, "end": start, "total": 0}
        return await self._evaluate_first(expression) or empty

    async def find(self, text: str) -> tuple[int, int] | None:
        """Scroll to the next match of a text; return its number and the count of matches."""
        expression = f"{FIND}({json.dumps(text)})"
        for session in [self.session, *await self._other_sessions()]:
            for frame in (await self._loaders(session)).items():
                result = await self._evaluate(session, *frame, expression)
                if result and result.get("value"):
                    number, count = result["value"]
                    return number, count
        return None

    async def _evaluate_first(self, expression: str) -> Any:
        """Evaluate an expression in the main frame."""
        main = next(iter((await self._loaders(self.session)).items()))
        result = await self._evaluate(self.session, *main, expression)
        return result.get("value") if result else None

    async def _capture_nearby(self, session: Any, accessibility: bool) -> _Target:
        """Capture the viewport of each frame and its surroundings."""
        loaders = await self._loaders(session)
        target = _Target(session, loaders, [], {}, {}, next(iter(loaders)))
        for frame, loader in loaders.items():
            probe = await self._probe(session, frame, loader, "page")
            objects = await self._nearby_objects(session, frame, loader)
            if probe is None or objects is None:
                continue
            ids = await backend_ids(session, objects)
            target.probes[frame] = probe
            document = nearby_document(frame, probe, ids)
            with contextlib.suppress(Exception):
                owner = await session.send("DOM.getFrameOwner", {"frameId": frame})
                for outer in target.documents:
                    if owner["backendNodeId"] in outer.backend_ids:
                        index = outer.backend_ids.index(owner["backendNodeId"])
                        outer.content_documents[index] = len(target.documents)
            target.documents.append(document)
            if accessibility:
                async with accessibility_enabled(session):
                    tree = nearby_tree(session, frame, probe, dict(enumerate(ids)))
                    target.trees[frame] = asyncio.ensure_future(tree)
                    await target.trees[frame]
        return target

    async def _nearby_objects(self, session: Any, frame: str, loader: str) -> list[str] | None:
        """Return the object ids of the nearby elements from the last probe."""
        array = await self._evaluate(session, frame, loader, "nearby", by_value=False)
        if array is None:
            return None
        properties = await session.send(
            "Runtime.getProperties", {"objectId": array["objectId"], "ownProperties": True}
        )
        return [
            each["value"]["objectId"] for each in properties["result"] if each["name"].isdigit()
        ]

    async def _near_tree(
        self, session: Any, frame: str, loader: str, probe: dict[str, Any] | None
    ) -> list[dict[str, Any]]:
        """Fetch the nearby part of a tree that is too large to read."""
        with contextlib.suppress(Exception):  # the frame disappeared in between
            objects = await self._nearby_objects(session, frame, loader)
            if objects and probe:
                ids = await backend_ids(session, objects)
                indices = [*probe["roots"], *probe["spine"]]
                by_index = dict(zip(indices, ids, strict=True))
                return await nearby_tree(session, frame, probe, by_index)
        return []

    async def _capture_session(
        self, session: Any, probe: bool, accessibility: bool, large: str
    ) -> _Target:
        loaders = await self._loaders(session)
        # The probes start right before the snapshot, so that little can change in between.
        probed = loaders if probe or large else {}
        probing = self._probing(session, probed, large)
        await asyncio.sleep(0)
        snapshotting = asyncio.ensure_future(
            send_large(session, "DOMSnapshot.captureSnapshot", {"computedStyles": []})
        )
        await asyncio.sleep(0)
        tree_frames = loaders if accessibility and not large else {}
        # Fetch the trees at once if these documents were small before: in a small step each
        # round trip counts.
        was_small = session in self._small
        trees = accessibility_trees(session, tree_frames) if was_small else {}
        snapshot = await snapshotting
        # Frame events that arrive before the snapshot happened before it.
        loaders = await self._loaders(session)
        long = {} if large else long_texts(snapshot)
        size = sum(len(document["nodes"]["nodeName"]) for document in snapshot["documents"])
        is_small = size <= LARGE_PAGE_NODES and not long
        (self._small.add if is_small else self._small.discard)(session)
        if not is_small or large:
            # Large trees take long; this process prepares the rest while the browser builds them.
            await probing
            if trees:
                # The trees delayed the probes, whose measurements are then incomplete.
                await asyncio.gather(*trees.values())
                probing = self._probing(session, probed, large)
        if large:
            probes = dict(zip(probed, await probing, strict=True))
            near = (self._near_tree(session, *each, probes[each[0]]) for each in probed.items())
            trees = partial_trees(session, dict(zip(probed, near, strict=True)))
        elif long and not trees:
            trees = trees_around(session, tree_frames, long)
        elif not was_small:
            trees = accessibility_trees(session, tree_frames)
        documents = documents_of(snapshot)
        probes = dict(zip(probed, await probing, strict=True))
        return _Target(session, loaders, documents, probes, trees, next(iter(loaders)))

    async def _loaders(self, session: Any) -> dict[str, str]:
        """Return a session's frames and documents, cached until an event reports a change."""
        if session not in self._cached_loaders:
            changes = self._changes
            loaders = await read_loaders(session)
            if changes != self._changes:
                return loaders
            self._cached_loaders[session] = loaders
        return self._cached_loaders[session]

    def expect_long_text(self) -> None:
        """Read the page before its trees in the next capture, although it was small."""
        self._small.clear()

    def _frames_changed(self, _event: dict[str, Any]) -> None:
        self._changes += 1
        self._cached_loaders.clear()
        self._small.clear()

    def _probing(
        self, session: Any, loaders: Mapping[str, str], large: str
    ) -> asyncio.Future[list[dict[str, Any] | None]]:
        return asyncio.gather(*(self._probe(session, *each, large) for each in loaders.items()))

    async def _probe(
        self, session: Any, frame_id: str, loader: str, large: str
    ) -> dict[str, Any] | None:
        result = await self._evaluate(
            session, frame_id, loader, f"{PROBE}({json.dumps(large)}, {MAX_DRAWN})"
        )
        encoded = result.get("value") if result else None
        probe: dict[str, Any] | None = json.loads(encoded) if encoded else None
        return probe

    async def _evaluate(
        self, session: Any, frame_id: str, loader: str, expression: str, *, by_value: bool = True
    ) -> dict[str, Any] | None:
        """Evaluate in an isolated world, invisible to the page; None if the frame is gone."""
        key = (id(session), frame_id, loader)
        if len(self._worlds) > MAX_WORLDS:
            self._worlds.clear()
        for _ in range(2):
            try:
                if key not in self._worlds:
                    world = await session.send(
                        "Page.createIsolatedWorld", {"frameId": frame_id, "worldName": WORLD_NAME}
                    )
                    self._worlds[key] = world["executionContextId"]
                response = await session.send(
                    "Runtime.evaluate",
                    {
                        "expression": expression,
                        "contextId": self._worlds[key],
                        "awaitPromise": True,
                        "returnByValue": by_value,
                    },
                )
                result: dict[str, Any] = response["result"]
                return result
            except Exception:  # the world's document is gone: retry once in a new world
                self._worlds.pop(key, None)
        return None

    async def _owners(self, targets: list[_Target]) -> dict[tuple[int, int], _Target]:
        """Map owner elements, by session and node id, to frames that have their own session."""
        owners: dict[tuple[int, int], _Target] = {}
        for target in targets[1:]:
            for candidate in targets:
                if candidate is target:
                    continue
                with contextlib.suppress(Exception):
                    owner = await candidate.session.send(
                        "DOM.getFrameOwner", {"frameId": target.root}
                    )
                    owners[(id(candidate), owner["backendNodeId"])] = target
                    break
        return owners

    def _build(
        self,
        target: _Target,
        number: int,
        parent: FrameBids | None,
        owner: tuple[str, int] | None,
        offset: tuple[float, float],
        owners: dict[tuple[int, int], _Target],
        captured: list[CapturedFrame],
    ) -> CapturedFrame:
        document = target.documents[number]
        prefix, owner_id = owner or ("", None)
        bids = self.bids.frame(prefix)
        if bids is None or bids.owner != owner_id:
            bids = FrameBids(prefix, parent, owner_id, target.session, document.frame_id)
        bids.parent, bids.session, bids.frame_id = parent, target.session, document.frame_id
        bids.renew((document.frame_id, target.loaders.get(document.frame_id)))
        frame = CapturedFrame(
            bids,
            document,
            target.probes.get(document.frame_id),
            target.trees.get(document.frame_id),
            offset=offset,
        )
        captured.append(frame)
        probe_indices = match_elements(frame)
        for index in document.elements:
            is_frame = document.names[index] in FRAME_TAGS
            backend_id = document.backend_ids[index]
            bid = bids.assign(backend_id, is_frame)
            frame.by_index[index] = bid
            if not is_frame:
                continue
            inner = document.content_documents.get(index)
            other = owners.get((id(target), backend_id))
            insides = (frame.probe or {}).get("insides", {})
            inside = insides.get(str(probe_indices.get(index)), (0, 0))
            corner = (offset[0] + inside[0], offset[1] + inside[1])
            if inner is not None or other is not None:
                frame.children[index] = self._build(
                    other or target, 0 if other else inner or 0, bids, (bid, backend_id), corner,
                    owners, captured,
                )  # fmt: skip
        return frame
