"""Durable deadlines on one timer: absolute instants, fired in order, however the wall clock moves."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

from agentd.ports.host import Clock

_LONGEST = 60.0
"""Seconds between two looks at the wall clock, which may be stepped while we sleep."""

_STEP = 1.0
"""Seconds; less is a clock that is being slewed."""


class Timer:
    """One armed instant."""

    __slots__ = ("_call", "at")

    def __init__(self, at: float, call: Callable[[], object]) -> None:
        self.at = at
        self._call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Never fire; harmless when it has."""
        self._call = None

    @property
    def pending(self) -> bool:
        """Whether it is still to fire."""
        return self._call is not None

    def fire(self) -> None:
        """Call, once."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Timers:
    """All timers of an instance. Instants are epoch seconds; past ones fire on the next turn of the loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()
        self._handle: asyncio.TimerHandle | None = None
        self._next = float("inf")
        self._offset = clock.now() - clock.monotonic()
        self.stepped: list[Callable[[float], None]] = []
        """Called with the seconds by which the wall clock was set, when that is noticed (within a minute)."""

    def at(self, instant: float, call: Callable[[], object]) -> Timer:
        """Call `call` at `instant`."""
        timer = Timer(instant, call)
        heapq.heappush(self._heap, (instant, next(self._count), timer))
        if instant < self._next:
            self._arm()
        return timer

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        while self._heap and not self._heap[0][2].pending:
            heapq.heappop(self._heap)
        self._next = self._heap[0][0] if self._heap else float("inf")
        if self._heap:
            delay = min(_LONGEST, max(0.0, self._next - self._clock.now()))
            self._handle = asyncio.get_running_loop().call_later(delay, self.poll)

    def poll(self) -> None:
        """Fire what is due. A fake clock that was moved is followed by this call."""
        now = self._clock.now()
        self._notice_step(now)
        due: list[Timer] = []
        while self._heap and (self._heap[0][0] <= now or not self._heap[0][2].pending):
            due.append(heapq.heappop(self._heap)[2])
        self._next = float("-inf")  # what is armed meanwhile need not arm us again
        try:
            for timer in due:
                timer.fire()
        finally:
            self._arm()

    def _notice_step(self, now: float) -> None:
        offset = now - self._clock.monotonic()
        by, self._offset = offset - self._offset, offset
        if abs(by) > _STEP:
            for listener in self.stepped:
                listener(by)

    def __len__(self) -> int:
        return sum(timer.pending for _, _, timer in self._heap)

    def close(self) -> None:
        """Fire nothing any more."""
        if self._handle is not None:
            self._handle.cancel()
        self._heap.clear()
