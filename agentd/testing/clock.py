"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class FakeClock:
    """Implements :class:`agentd.ports.host.Clock`; its two times move together unless it is set."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._monotonic = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that have passed since this clock was made."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._count), future))
        await future

    def move(self, seconds: float) -> None:
        """Let time pass at once, and wake whoever slept so long. Timers are polled by whoever holds them."""
        self._now += seconds
        self._monotonic += seconds
        while self._sleepers and self._sleepers[0][0] <= self._monotonic:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)

    async def turn(self) -> None:
        """Let the loop turn, for a moment of real time and none of ours."""
        await asyncio.sleep(0.001)

    def set(self, by: float) -> None:
        """Set the wall clock by so many seconds; no time passes."""
        self._now += by
