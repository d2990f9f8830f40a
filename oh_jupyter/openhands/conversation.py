"""The loop of an agent beside the kernel's main thread, which its cells need."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import start_thread

if TYPE_CHECKING:
    from openhands.sdk.conversation import LocalConversation


def run(conversation: LocalConversation) -> None:
    """Run a conversation until the agent is done, and let the main thread run the agent's cells.

    An interrupt of the cell cancels what the agent has under way and leaves the conversation
    paused; it goes on with the next call.

    Args:
        conversation: The conversation, with the messages that were sent to it.

    Raises:
        KeyboardInterrupt: The cell was interrupted.
        openhands.sdk.conversation.exceptions.ConversationRunError: The agent failed.
    """
    done: Future[None] = Future()

    def work() -> None:
        try:
            asyncio.run(conversation.arun())
        except BaseException as problem:
            done.set_exception(problem)
        else:
            done.set_result(None)

    thread = start_thread(work, "oh-openhands-conversation")
    try:
        _wait(done)
    except KeyboardInterrupt:
        conversation.interrupt()
        _wait(done)
        raise
    finally:
        thread.join()


def _wait(done: Future[None]) -> None:
    """Wait for a result; on the main thread cells can run meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        return done.result()
    from oh_jupyter.kernel.cells.main_thread import MainThreadWait

    async def nothing() -> None:
        """Stand for the loop, which another thread runs."""

    def start(coroutine: Any) -> Future[None]:
        coroutine.close()
        waited: Future[None] = Future()

        def end(_: Future[None]) -> None:
            if waited.set_running_or_notify_cancel():
                waited.set_result(None)

        done.add_done_callback(end)
        return waited

    MainThreadWait().wait_for(start, nothing())
    done.result()
