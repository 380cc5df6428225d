"""The system's clock behind the port that tests can hold still."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Real time; see :class:`agentd.ports.host.Clock`."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds of a clock that never steps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait; a negative value is zero."""
        await asyncio.sleep(max(0.0, seconds))
