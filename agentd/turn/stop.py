"""Stopping a turn: what is waited for gives way, and how hard."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from agentd.errors import DeadlineExceeded

T = TypeVar("T")

_LET_GO = 1.0
"""Seconds that something cancelled may take to notice."""


class Stopped(Exception):
    """The turn was told to stop; `str()` is the reason."""


class Stop:
    """A one-way latch in two steps.

    Requested: waiting for the model or for leave is given up, and no further tool is called; a tool call that runs is
    heard out, since its effect is happening. Requested with `now`: that one is given up too.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._soon = asyncio.Event()
        self._now = asyncio.Event()

    def request(self, reason: str, *, now: bool = False) -> None:
        """Stop; the first reason stays."""
        self.reason = self.reason or reason
        self._soon.set()
        if now:
            self._now.set()

    def check(self) -> None:
        """Raises :class:`Stopped` once requested."""
        if self.reason is not None:
            raise Stopped(self.reason)

    async def race(self, work: Coroutine[Any, Any, T], *, deadline: float | None, hard: bool = False) -> T:
        """The result of `work`, unless a stop (`hard`: one with `now`) or the loop time `deadline` comes first.

        Raises :class:`Stopped` or DeadlineExceeded; `work` is then cancelled.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        latch = loop.create_task((self._now if hard else self._soon).wait())
        try:
            left = None if deadline is None else max(0.0, deadline - loop.time())
            await asyncio.wait({task, latch}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if latch.done():
                raise Stopped(self.reason)
            raise DeadlineExceeded("the deadline of the run passed")
        finally:
            latch.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=_LET_GO)
                # Whatever it raised on the way out is of no interest, and must not be reported as never retrieved.
                if task.done() and not task.cancelled():
                    task.exception()
