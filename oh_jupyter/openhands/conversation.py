"""Agent loop in another thread, so that the kernel's main thread can run its cells."""

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

    An interrupt of the cell cancels the agent's running Actions and pauses the conversation; the
    next call continues it.

    Args:
        conversation: The conversation, with the messages sent to it.

    Raises:
        KeyboardInterrupt: The cell was interrupted.
        openhands.sdk.conversation.exceptions.ConversationRunError: The agent failed.
    """
    done: Future[None] = Future()

    def work() -> None:
        try:
            asyncio.run(conversation.arun())
        except BaseException as error:
            done.set_exception(error)
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
    """Wait for a result; the main thread runs cells meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        return done.result()
    from oh_jupyter.kernel.cells.main_thread import MainThreadWait

    async def nothing() -> None:
        """Do nothing: another thread runs the loop."""

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
