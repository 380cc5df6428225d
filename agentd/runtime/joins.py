"""Steps that wait for several runs at once; they wake when enough of them are over."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done, Failed, Outcome, Wait

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live
    from agentd.runtime.timers import Timer

_Waiter = tuple[str, str]
"""``(run, entry)``."""


class Joins:
    """A wait is ``{join: [run, …], min, partials_at?}``; at `partials_at` it answers with what there is."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._waiting: dict[str, list[_Waiter]] = defaultdict(list)
        self._timers: dict[_Waiter, Timer] = {}

    def arm(self, live: Live, wait: Wait) -> None:
        """Register a wait; one that has enough already is woken on the next turn of the loop."""
        waiter = (live.id, wait.entry)
        for run in dict.fromkeys(wait.on["join"]):
            self._waiting[run].append(waiter)
        if (at := wait.on.get("partials_at")) is not None:
            self._timers[waiter] = self._instance.timers.at(at, lambda: self._answer(waiter))
        asyncio.get_running_loop().call_soon(self._look, waiter)

    def disarm(self, live: Live, wait: Wait) -> None:
        """Forget a wait."""
        waiter = (live.id, wait.entry)
        for run in dict.fromkeys(wait.on["join"]):
            if waiter in self._waiting.get(run, ()):
                self._waiting[run].remove(waiter)
                if not self._waiting[run]:
                    del self._waiting[run]
        if (timer := self._timers.pop(waiter, None)) is not None:
            timer.cancel()

    def run_ended(self, run: str) -> None:
        """One more is over."""
        for waiter in list(self._waiting.get(run, ())):
            self._look(waiter)

    def _look(self, waiter: _Waiter) -> None:
        wait = self._wait(waiter)
        if wait is None:
            return
        runs = wait.on["join"]
        lost = [run for run in runs if not self._instance.expected_run(run)]
        if lost:
            self._wake(waiter, Failed("step", f"there is no run {lost[0]}", retry=False))
        elif sum(run in self._instance.finished_runs for run in runs) >= wait.on["min"]:
            self._answer(waiter)

    def _answer(self, waiter: _Waiter) -> None:
        self._instance.background(self._tell(waiter))

    async def _tell(self, waiter: _Waiter) -> None:
        wait = self._wait(waiter)
        if wait is not None:
            self._wake(waiter, Done([await end_of(self._instance, run) for run in wait.on["join"]]))

    def _wait(self, waiter: _Waiter) -> Wait | None:
        live = self._instance.runs.live.get(waiter[0])
        return None if live is None else live.waits.get(waiter[1])

    def _wake(self, waiter: _Waiter, outcome: Outcome) -> None:
        live = self._instance.runs.live.get(waiter[0])
        if live is not None:
            self._instance.runs.wake(live, waiter[1], outcome)


async def end_of(instance: Instance, run: str) -> dict[str, Any] | None:
    """``{run, status, output}`` of a run that is over, None for one that is not."""
    record: Mapping[str, Any] | None = instance.finished_runs.get(run)
    if record is None:
        return None
    whole = await instance.spill.restore(dict(record))
    return {"run": run, "status": whole["status"], "output": whole.get("output")}
