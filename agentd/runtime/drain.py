"""The stop order, as a table: each rung has its share of the time that is left, and the next begins without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agentd.ports.host import Clock, Log

KILL_GRACE = 5.0
"""Seconds from SIGTERM to SIGKILL for a child that is still there near the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step down. `most(left)` bounds it, in seconds; overrunning it is logged and the drain goes on."""

    name: str
    act: Callable[[float], Awaitable[None]]
    most: Callable[[float], float]


async def descend(rungs: list[Rung], budget: float, clock: Clock, log: Log) -> list[str]:
    """Go down `rungs` in order within `budget` seconds; the names of those that did not finish."""
    end = clock.monotonic() + budget
    overran: list[str] = []
    for rung in rungs:
        left = max(0.1, end - clock.monotonic())
        share = max(0.1, rung.most(left))
        try:
            async with asyncio.timeout(share):
                await rung.act(share)
        except TimeoutError:
            overran.append(rung.name)
        except Exception as error:
            log("drain.abandon", level="error", live=0, msg=f"{rung.name}: {error}")
    return overran
