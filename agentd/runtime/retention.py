"""Letting go of finished runs and of what is too old in streams: at boot, every minute, and when runs have ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentd.errors import AgentdError
from agentd.journal.retention import expired

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance

INTERVAL = 60.0
"""Seconds between two looks when nothing ends."""

_SOON = 1.0
"""Seconds after an end: many ends are one look."""


class Retention:
    """`store.retention.runs` of one instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._keep = instance.document.store.retention.runs
        self._ended = asyncio.Event()

    def run_ended(self) -> None:
        """There is one more to keep."""
        if self._keep.keep_last is not None:
            self._ended.set()

    async def keep(self) -> None:
        """Look again and again, for as long as the instance lives."""
        clock = self._instance.clock
        while True:
            try:
                self._instance.streams.sweep()
                await self.sweep()
            except AgentdError:
                pass  # the store has said so, and the next look finds the same runs
            self._ended.clear()
            await self._pause(INTERVAL)
            await clock.sleep(_SOON)

    async def _pause(self, seconds: float) -> None:
        """Until a run ended, at most so long."""
        waits = [asyncio.ensure_future(self._ended.wait()), asyncio.ensure_future(self._instance.clock.sleep(seconds))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def sweep(self) -> int:
        """Remove the finished runs that are no longer kept, with all that is theirs; how many there were."""
        instance, keep = self._instance, self._keep
        if keep.keep_last is None and keep.ttl is None:
            return 0
        ends = [(id, float(record.get("ended", 0))) for id, record in instance.finished_runs.items()]
        gone = expired(ends, keep_last=keep.keep_last, ttl=keep.ttl, now=instance.clock.now())
        for id in gone:
            await instance.journal.remove_run(id)
            instance.finished_runs.pop(id, None)
        return len(gone)
