"""A clock that is moved by hand, and a store that fails on demand."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Sequence
from typing import Any

from agentd.builtin.store_memory import MemoryStore
from agentd.ports.store import Write


class Clock:
    """Time stands still until :meth:`advance`."""

    def __init__(self) -> None:
        self.time = 1000.0
        self._ties = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + seconds, next(self._ties), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass, waking sleepers in order, each with time to act."""
        end = self.time + seconds
        await breathe()
        while self._sleepers and self._sleepers[0][0] <= end:
            self.time, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
            await breathe()
        self.time = end


async def breathe() -> None:
    """Enough turns of the loop for everything that is ready."""
    for _ in range(20):
        await asyncio.sleep(0)


class Flaky(MemoryStore):
    """`failures` holds the errors of the next commits (None: it works); `hang` leaves them unanswered."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception | None] = []
        self.broken: Exception | None = None
        self.hang = False
        self.commits: list[list[str]] = []

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[None]:
        self.commits.append([write.key.rpartition("/")[2] for write in writes])
        error = self.broken or (self.failures.pop(0) if self.failures else None)
        if self.hang or error:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if error:
                future.set_exception(error)
            return future
        return super().commit(writes)


class Events(list[tuple[str, dict[str, Any]]]):
    """What was logged."""

    def __call__(self, event: str, /, *, level: str = "info", msg: str = "", **fields: Any) -> None:
        self.append((event, fields))

    @property
    def names(self) -> list[str]:
        return [event for event, _ in self]
