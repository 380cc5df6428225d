"""The stop order, as a table: each rung has its share of the time that is left, and the next begins without it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentd.ports.host import Clock, Log

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance

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


def rungs(instance: Instance) -> list[Rung]:
    """How an instance stops: doors, work, stragglers, checkpoint. The store is closed after the last."""

    async def close_doors(_: float) -> None:
        instance.admission.open = False
        instance.runs.stopped = True
        await instance.triggers.disarm()

    async def wait_for_work(share: float) -> None:
        # Turns are told to stop at their next boundary; other effects in flight may end.
        instance.turns.wind_down(share)
        while tasks := instance.runs.in_flight:
            await asyncio.wait(tasks)

    async def stop_work(_: float) -> None:
        tasks = instance.runs.in_flight
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def checkpoint(_: float) -> None:
        await instance.operations.close()
        await instance.steps.close()
        await instance.journal.settled()
        instance.timers.close()

    return [
        Rung(name="close", act=close_doors, most=lambda left: left),
        Rung(name="wait", act=wait_for_work, most=lambda left: left - KILL_GRACE - 2),
        Rung(name="stop", act=stop_work, most=lambda left: min(left - 1, KILL_GRACE + 1)),
        Rung(name="checkpoint", act=checkpoint, most=lambda left: left),
    ]
