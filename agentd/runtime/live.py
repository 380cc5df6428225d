"""A run that is not final, and one execution of a step of it: what is in flight, in memory only."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Effect, Wait
from agentd.journal.journal import Record
from agentd.runtime.timers import Timer

if TYPE_CHECKING:
    from agentd.engine.plan import Plan
    from agentd.engine.state import RunState
    from agentd.telemetry.emitter import Telemetry


class Call:
    """One execution of an effect step; implements :class:`agentd.ports.nodes.StepCall`."""

    __slots__ = ("also", "bound", "deadline", "effect", "host", "live")

    def __init__(self, live: Live, effect: Effect, deadline: float | None, host: Any) -> None:
        self.live, self.effect, self.deadline, self.host = live, effect, deadline, host
        self.bound: asyncio.Timeout | None = None
        self.also: list[Record] = []
        """What the performer changed: committed with the step's own record when it succeeds."""

    run_id = property(lambda self: self.live.id)
    step_id = property(lambda self: self.effect.entry)
    workflow = property(lambda self: self.live.plan.name)
    attempt = property(lambda self: self.effect.attempt)
    key = property(lambda self: self.effect.key)
    fields = property(lambda self: self.effect.fields)
    options = property(lambda self: self.effect.options)
    log = property(lambda self: self.live.log)

    @contextlib.asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """The step's time stands still: for a person who is asked, or a model that cannot be reached."""
        bound, loop = self.bound, asyncio.get_running_loop()
        left = None if bound is None or (when := bound.when()) is None else when - loop.time()
        if bound is not None:
            bound.reschedule(None)
        try:
            yield
        finally:
            if bound is not None and left is not None:
                bound.reschedule(loop.time() + left)


class Live:
    """A run that is not final, with what is in flight of it."""

    __slots__ = ("broken", "deadline", "held", "id", "log", "paused", "plan", "record", "state", "tasks", "timers",
                 "touched", "unwritten", "waits")  # fmt: skip

    def __init__(self, run: str, plan: Plan, record: dict[str, Any], state: RunState, log: Telemetry) -> None:
        self.id, self.plan, self.record, self.state, self.log = run, plan, record, state, log
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.timers: dict[str, Timer] = {}
        self.waits: dict[str, Wait] = {}
        self.deadline: Timer | None = None
        self.paused = record.get("status") == "paused"
        self.held: list[Effect] = []
        self.unwritten = 0
        self.touched = False
        """The record changed: it is written with the next decision."""
        self.broken = False
        """A commit failed: memory is ahead of the journal, so nothing is performed any more in this form."""

    @property
    def absolute_deadline(self) -> float | None:
        """Epoch seconds; it survives a restart."""
        return self.record.get("deadline")
