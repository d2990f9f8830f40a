"""One page through DevTools: what is in its frames, and how to get hold of an element.

Frames in a process of their own (cross-origin ones) have their own DevTools session; all
sessions are asked at the same time, and their answers are put together here.
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

from oh_jupyter.browser.worker.bids import BidRegistry, FrameBids
from oh_jupyter.browser.worker.devtools import (
    accessibility_trees,
    detach,
    read_loaders,
    send_large,
)
from oh_jupyter.browser.worker.nearby import (
    FIND,
    MAX_DRAWN,
    PAGE_TEXT,
    TOO_LARGE,
    accessibility_enabled,
    backend_ids,
    nearby_document,
    nearby_tree,
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
"""After which a session's frames or their documents may be others."""
WORLD_NAME = "oh_jupyter"
LARGE_PAGE_NODES = 2000
"""Nodes from which on a page is large."""
MAX_WORLDS = 500
"""Isolated worlds remembered; more would mostly be those of documents that are gone."""
PROBE = files("oh_jupyter.browser.worker").joinpath("probe.js").read_text("utf-8")
STORE_ELEMENT = """function (key) {
  if (this.isConnected) Object.defineProperty(window, key, {value: this, configurable: true});
}"""
TAKE_ELEMENT = "key => { const held = window[key]; delete window[key]; return held; }"
FRAME_TAGS = frozenset({"IFRAME", "FRAME"})


@dataclass
class _Target:
    """The answers of one session: documents, and per frame id the probe and the tree."""

    session: Any
    loaders: dict[str, str]
    documents: list[SnapshotDocument]
    probes: dict[str, dict[str, Any] | None]
    trees: dict[str, asyncio.Task[list[dict[str, Any]]]]
    root: str


class PageInspector:
    """DevTools' view of one page."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self.session = session
        self.bids = BidRegistry()
        self.documents_shown = 0
        self.has_stopped_script = False
        self._differences: tuple[object, int] = (None, 0)
        self._worlds: dict[tuple[int, str, str], int] = {}
        self._changes = 0
        self._shown_loaders: dict[CDPSession, dict[str, str]] = {}
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
        """The page's session, and those of its frames that have their own."""
        return [self.session, *filter(None, self._frame_sessions.values())]

    @classmethod
    async def attach(cls, page: Page) -> PageInspector:
        """Open a DevTools session to a page."""
        session = await page.context.new_cdp_session(page)
        inspector = cls(page, session)
        await inspector._listen(session)
        return inspector

    async def _listen(self, session: CDPSession) -> None:
        session.on("Page.frameNavigated", self._document_shown)
        for event in FRAME_EVENTS:
            session.on(event, self._frames_changed)
        await session.send("Page.enable")

    def _document_shown(self, event: dict[str, Any]) -> None:
        # Only navigations to another document are reported by this event.
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
        """Look at all frames, or nearby in a large page, and give bids to what has none."""
        # If a number is given, of a tree with more characters only what is nearby.
        sessions = [self.session, *await self._other_sessions()]
        large = await self._evaluate_first(f"{TOO_LARGE}({max_tree_chars})") if nearby else ""
        if large == "page":
            looks = [self._capture_nearby(session, accessibility) for session in sessions]
        else:
            looks = [
                self._capture_session(session, probe, accessibility, large or "")
                for session in sessions
            ]
        answers = await asyncio.gather(
            *looks,
            return_exceptions=True,
        )
        if isinstance(answers[0], BaseException):
            raise answers[0]
        targets = [answer for answer in answers if isinstance(answer, _Target)]
        owners = await self._owners(targets)
        captured: list[CapturedFrame] = []
        root = self._build(targets[0], 0, None, None, (0.0, 0.0), owners, captured)
        self.bids.replace(
            (frame.bids, {frame.document.backend_ids[i]: bid for i, bid in frame.by_index.items()})
            for frame in captured
        )
        return root

    def is_consistent(self, frames: Iterable[CapturedFrame]) -> bool:
        """Tell whether snapshot and measures of a look are of the same state of the page."""
        # What is different in the same way twice is so for good: some are never measured.
        frames = list(frames)
        found = frames[0].bids.document, sum(frame.differences() for frame in frames)
        is_new, self._differences = found != self._differences, found
        return not (found[1] and is_new)

    async def element(self, bid: str) -> ElementHandle:
        """Get hold of an element."""
        found = self.bids.find(bid)
        if found is None:
            raise BrowserActionError(
                f'ValueError: Could not find element with bid "{bid}". Use a bid of the last '
                "observation; the page may have changed since."
            )
        try:
            return await self._handle(*found)
        except Exception as error:
            if "crashed" in str(error) or "closed" in str(error):
                raise
            raise BrowserActionError(
                f'ValueError: Could not find element with bid "{bid}": it is no longer in the page.'
            ) from error

    async def _handle(self, frame: FrameBids, backend_id: int) -> ElementHandle:
        """Hand an element from DevTools to Playwright, through a name that lives a moment."""
        playwright_frame: Frame | None = self.page.main_frame
        if frame.parent is not None and frame.owner is not None:
            owner = await self._handle(frame.parent, frame.owner)
            playwright_frame = await owner.content_frame()
            await owner.dispose()
        if playwright_frame is None:
            raise LookupError("The frame is no longer in the page.")
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
        taken, _ = await asyncio.gather(
            playwright_frame.evaluate_handle(TAKE_ELEMENT, key),
            frame.session.send("Runtime.releaseObject", {"objectId": object_id}),
        )
        handle = taken.as_element()
        if handle is None:
            raise LookupError("The element is no longer in the page.")
        return handle

    async def _other_sessions(self) -> list[CDPSession]:
        """Find the sessions of frames that live in a process of their own."""
        frames = self.page.frames[1:]
        await asyncio.gather(*(self._attach(f) for f in frames if f not in self._frame_sessions))
        present = set(self.page.frames)
        return [s for frame, s in self._frame_sessions.items() if s and frame in present]

    async def _attach(self, frame: Frame) -> None:
        """Open a session to a frame, if it has a process of its own."""
        try:
            session = await self.page.context.new_cdp_session(frame)
        except Exception:  # in the process of the frame around it, or already gone
            self._frame_sessions[frame] = None
            return
        with contextlib.suppress(Exception):
            await self._listen(session)
            self._frame_sessions[frame] = session

    async def page_text(self, start: int, limit: int) -> dict[str, Any]:
        """Read a piece of the page's text: text, start, end and total, in characters."""
        question = f"{PAGE_TEXT}({json.dumps([start, limit])})"
        nothing = {"text": "", "start": start, "end": start, "total": 0}
        return await self._evaluate_first(question) or nothing

    async def find(self, text: str) -> tuple[int, int] | None:
        """Scroll to a text, or to where it stands next; which of how many places that is."""
        question = f"{FIND}({json.dumps(text)})"
        for session in [self.session, *await self._other_sessions()]:
            for frame in (await self._shown(session)).items():
                answer = await self._evaluate(session, *frame, question)
                if answer and answer.get("value"):
                    number, count = answer["value"]
                    return number, count
        return None

    async def _evaluate_first(self, expression: str) -> Any:
        """Evaluate an expression in the page itself."""
        main = next(iter((await self._shown(self.session)).items()))
        answer = await self._evaluate(self.session, *main, expression)
        return answer.get("value") if answer else None

    async def _capture_nearby(self, session: Any, accessibility: bool) -> _Target:
        """Look at what is in sight of each frame, and around it."""
        loaders = await self._shown(session)
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
                for around in target.documents:
                    if owner["backendNodeId"] in around.backend_ids:
                        index = around.backend_ids.index(owner["backendNodeId"])
                        around.content_documents[index] = len(target.documents)
            target.documents.append(document)
            if accessibility:
                places = dict(enumerate(objects)), dict(enumerate(ids))
                async with accessibility_enabled(session):
                    tree = nearby_tree(session, frame, probe, *places)
                    target.trees[frame] = asyncio.ensure_future(tree)
                    await target.trees[frame]
        return target

    async def _nearby_objects(self, session: Any, frame: str, loader: str) -> list[str] | None:
        """Get hold of the elements that the last probe has found nearby."""
        held = await self._evaluate(session, frame, loader, "nearby", by_value=False)
        if held is None:
            return None
        listed = await session.send(
            "Runtime.getProperties", {"objectId": held["objectId"], "ownProperties": True}
        )
        return [each["value"]["objectId"] for each in listed["result"] if each["name"].isdigit()]

    def _near_trees(
        self, session: Any, loaders: Mapping[str, str], probes: Mapping[str, dict[str, Any] | None]
    ) -> dict[str, asyncio.Task[list[dict[str, Any]]]]:
        """Start to fetch of each frame's tree what is nearby."""

        async def fetch() -> dict[str, list[dict[str, Any]]]:
            async with accessibility_enabled(session):
                trees = (
                    self._near_tree(session, *each, probes[each[0]]) for each in loaders.items()
                )
                return dict(zip(loaders, await asyncio.gather(*trees), strict=True))

        async def tree_of(frame: str) -> list[dict[str, Any]]:
            return (await fetching)[frame]

        fetching = asyncio.ensure_future(fetch())
        return {frame: asyncio.ensure_future(tree_of(frame)) for frame in loaders}

    async def _near_tree(
        self, session: Any, frame: str, loader: str, probe: dict[str, Any] | None
    ) -> list[dict[str, Any]]:
        """Fetch of a tree too large to be read what is nearby."""
        with contextlib.suppress(Exception):  # the frame went away in between
            objects = await self._nearby_objects(session, frame, loader)
            if objects and probe:
                ids = await backend_ids(session, objects)
                places = [*probe["roots"], *probe["spine"]]
                by_place = (dict(zip(places, each, strict=True)) for each in (objects, ids))
                return await nearby_tree(session, frame, probe, *by_place)
        return []

    async def _capture_session(
        self, session: Any, probe: bool, accessibility: bool, large: str
    ) -> _Target:
        loaders = await self._shown(session)
        # The probes are asked for right before the snapshot, so that little can change between.
        asked = loaders if probe or large else {}
        probing = self._probing(session, asked, large)
        await asyncio.sleep(0)
        taking = asyncio.ensure_future(
            send_large(session, "DOMSnapshot.captureSnapshot", {"computedStyles": []})
        )
        await asyncio.sleep(0)
        wanted = loaders if accessibility and not large else {}
        # At once if these documents were small before: each round trip counts in a small step.
        was_small = session in self._small
        trees = accessibility_trees(session, wanted) if was_small else {}
        taken = await taking
        # What is told of frames before the answer has happened before the snapshot.
        loaders = await self._shown(session)
        size = sum(len(document["nodes"]["nodeName"]) for document in taken["documents"])
        is_small = size <= LARGE_PAGE_NODES
        (self._small.add if is_small else self._small.discard)(session)
        if not is_small or large:
            # Its trees take long: the rest is prepared here while the browser makes them.
            await probing
            if trees:
                # They have kept the probes waiting, which then know less.
                await asyncio.gather(*trees.values())
                probing = self._probing(session, asked, large)
        if large:
            probes = dict(zip(asked, await probing, strict=True))
            trees = self._near_trees(session, asked, probes)
        elif not was_small:
            trees = accessibility_trees(session, wanted)
        documents = documents_of(taken)
        probes = dict(zip(asked, await probing, strict=True))
        return _Target(session, loaders, documents, probes, trees, next(iter(loaders)))

    async def _shown(self, session: Any) -> dict[str, str]:
        """List a session's frames and documents; anew only after an event has told of another."""
        if session not in self._shown_loaders:
            changes = self._changes
            loaders = await read_loaders(session)
            if changes != self._changes:
                return loaders
            self._shown_loaders[session] = loaders
        return self._shown_loaders[session]

    def _frames_changed(self, _event: dict[str, Any]) -> None:
        self._changes += 1
        self._shown_loaders.clear()
        self._small.clear()

    def _probing(
        self, session: Any, loaders: Mapping[str, str], large: str
    ) -> asyncio.Future[list[dict[str, Any] | None]]:
        return asyncio.gather(*(self._probe(session, *each, large) for each in loaders.items()))

    async def _probe(
        self, session: Any, frame_id: str, loader: str, large: str
    ) -> dict[str, Any] | None:
        answer = await self._evaluate(
            session, frame_id, loader, f"{PROBE}({json.dumps(large)}, {MAX_DRAWN})"
        )
        measured = answer.get("value") if answer else None
        value: dict[str, Any] | None = json.loads(measured) if measured else None
        return value

    async def _evaluate(
        self, session: Any, frame_id: str, loader: str, expression: str, *, by_value: bool = True
    ) -> dict[str, Any] | None:
        """Evaluate in a world of our own, which the page cannot see; None if the frame is gone."""
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
                answer = await session.send(
                    "Runtime.evaluate",
                    {
                        "expression": expression,
                        "contextId": self._worlds[key],
                        "awaitPromise": True,
                        "returnByValue": by_value,
                    },
                )
                result: dict[str, Any] = answer["result"]
                return result
            except Exception:  # the world is of a document that is gone: once more in a new one
                self._worlds.pop(key, None)
        return None

    async def _owners(self, targets: list[_Target]) -> dict[tuple[int, int], _Target]:
        """Find which element, of which session, holds each frame with a session of its own."""
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
        measured = match_elements(frame)
        for index in document.elements:
            is_frame = document.names[index] in FRAME_TAGS
            backend_id = document.backend_ids[index]
            bid = bids.give(backend_id, is_frame)
            frame.by_index[index] = bid
            if not is_frame:
                continue
            inner = document.content_documents.get(index)
            other = owners.get((id(target), backend_id))
            inside = (frame.probe or {}).get("insides", {}).get(str(measured.get(index)), (0, 0))
            corner = (offset[0] + inside[0], offset[1] + inside[1])
            if inner is not None or other is not None:
                frame.children[index] = self._build(
                    other or target, 0 if other else inner or 0, bids, (bid, backend_id), corner,
                    owners, captured,
                )  # fmt: skip
        return frame
