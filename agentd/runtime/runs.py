"""Runs: performs what the engine decides, after the journal has it.

The way of a step: an outcome goes to the engine, its decision's records go to the journal in one commit, and only when
they are durable its effects are performed. Nothing here waits: outcomes, durable commits and timers call back, and
many runs share a flush. A task is made only for an effect that is itself asynchronous.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agentd.engine import decide
from agentd.engine.decision import Decision, Done, Effect, Failed, Outcome, Run, TimedOut, Wait
from agentd.errors import AgentdError, DeadlineExceeded, StepFailed
from agentd.journal.envelope import TooLarge
from agentd.journal.journal import Journal, Record
from agentd.ports.host import Clock
from agentd.ports.nodes import Suspend
from agentd.runtime.live import Call, Live
from agentd.runtime.outcome import Ended
from agentd.runtime.spill import Spill
from agentd.runtime.timers import Timers

if TYPE_CHECKING:
    from agentd.engine.plan import Plan
    from agentd.engine.state import RunState
    from agentd.telemetry.emitter import Telemetry

Performer = Callable[[Call], Any]
"""Performs one effect: its output or an awaitable of it; Suspend and StepFailed as in :mod:`agentd.ports.nodes`."""


class Runs:
    """The live runs of an instance.

    `performer` finds who performs a kind, `on_end` hears of every final run, `on_wait` and `on_unwait` of waits for
    something other than time, `on_store_error` of a commit that failed for good.
    """

    def __init__(
        self,
        journal: Journal,
        timers: Timers,
        clock: Clock,
        log: Telemetry,
        *,
        performer: Callable[[str], Performer | None],
        host: Any,
        memory: Mapping[str, Any],
        spill: Spill,
        step_timeout: float,
        on_end: Callable[[Ended, Live], None],
        on_wait: Callable[[Live, Wait], None],
        on_unwait: Callable[[Live, Wait], None],
        on_store_error: Callable[[AgentdError], None],
        caches: Any = None,
    ) -> None:
        self.live: dict[str, Live] = {}
        self._journal, self._timers, self._clock, self._log = journal, timers, clock, log
        self._performer, self._host, self._memory, self._spill = performer, host, memory, spill
        self._step_timeout = step_timeout
        self._on_end, self._on_wait, self._on_unwait = on_end, on_wait, on_unwait
        self._on_store_error = on_store_error
        self._caches = caches
        self._leaving: set[asyncio.Task[None]] = set()
        self.stopped = False
        """Set by a drain: outcomes are still recorded, no new effect is performed."""
        self.finished = 0

    # --- the life of a run ---------------------------------------------------------------------------------------

    def start(self, run: Run, plan: Plan, record: dict[str, Any], also: Iterable[Record] = ()) -> Live:
        """Begin a run. `record` is its durable record; `also` is committed with it (its inbox event's removal)."""
        state, decision = decide.begin(plan, run, memory=self._memory)
        live = self._adopt(run.id, plan, record, state)
        began = {"workflow": plan.name, "node": run.node, "inbox_event": record.get("event", run.id)}
        decision.events.insert(0, ("run.start", began))
        self._apply(live, decision, [("run", run.id, record), *also])
        return live

    def resume(
        self, run: Run, plan: Plan, record: dict[str, Any], steps: Iterable[tuple[str, dict[str, Any]]]
    ) -> Callable[[], None]:
        """Rebuild a run of an earlier life. The call that is returned lets it go on."""
        state, decision = decide.resume(plan, run, steps, self._clock.now(), memory=self._memory)
        live = self._adopt(run.id, plan, record, state)
        return lambda: self._apply(live, decision)

    def _adopt(self, run: str, plan: Plan, record: dict[str, Any], state: RunState) -> Live:
        live = self.live[run] = Live(run, plan, record, state, self._log.bind(run_id=run))
        if live.absolute_deadline is not None:
            live.deadline = self._timers.at(live.absolute_deadline, lambda: self._overdue(live))
        return live

    def _overdue(self, live: Live) -> None:
        self._apply(
            live,
            decide.cancel(
                live.state,
                self._clock.now(),
                reason="the run's deadline passed",
                status="failed",
                code=DeadlineExceeded.code,
            ),
        )

    def cancel(self, run: str, reason: str) -> bool:
        """End a run from outside; whether there was one."""
        live = self.live.get(run)
        if live is None:
            return False
        self._apply(live, decide.cancel(live.state, self._clock.now(), reason=reason))
        return True

    def pause(self, run: str) -> bool:
        """Perform no further effect of a run until it is resumed; what is in flight ends. Whether there was one."""
        return self._hold(run, "paused")

    def unpause(self, run: str) -> bool:
        """Let a paused run go on; whether there was one."""
        live = self.live.get(run)
        if live is None or not self._hold(run, "running"):
            return False
        held, live.held = live.held, []
        for effect in held:
            self._begin(live, effect)
        return True

    def _hold(self, run: str, status: str) -> bool:
        live = self.live.get(run)
        if live is None:
            return False
        live.paused = status == "paused"
        live.record["status"] = status
        self._journal.write([("run", run, live.record)], lambda error: self._failed(live, error))
        return True

    # --- decisions -----------------------------------------------------------------------------------------------

    def settle(self, live: Live, entry: str, outcome: Outcome, also: Iterable[Record] = ()) -> None:
        """`entry` of `live` came out so; `also` is committed with what follows."""
        if live.broken or self.live.get(live.id) is not live:
            return
        self._apply(live, decide.settle(live.state, entry, outcome, self._clock.now(), random.random()), also)

    def _apply(self, live: Live, decision: Decision, also: Iterable[Record] = ()) -> None:
        run = live.id
        records: list[Record] = [*also]
        for entry, state in decision.records:
            records.append(("step", f"{run}/{entry}", self._spill.record(run, entry, state, records)))
        if (end := decision.finished) is not None:
            record = live.record
            status = record.get("verdict", end.status) if end.status == "completed" else end.status
            record.update(status=status, ended=self._clock.now())
            if end.output is not None:
                record["output"] = self._spill.value(run, "output", end.output, records)
            if end.err is not None:
                record["err"] = end.err
            records.append(("run", run, record))
        elif live.touched:
            records.append(("run", run, live.record))
        live.touched = False
        if not records:
            self._act(live, decision)
            return
        live.unwritten += 1
        try:
            self._journal.write(records, lambda error: self._durable(live, decision, error))
        except (TypeError, ValueError) as error:
            live.unwritten -= 1
            self._unwritable(live, f"a step's output is not JSON: {error}")

    def _durable(self, live: Live, decision: Decision, error: AgentdError | None) -> None:
        live.unwritten -= 1
        if live.broken:
            return
        if error is None:
            self._act(live, decision)
        elif isinstance(error, TooLarge):
            self._unwritable(live, error.message)
        else:
            self._failed(live, error)

    def _unwritable(self, live: Live, message: str) -> None:
        """What a run wants to keep cannot be kept: the run fails, the others go on."""
        self._discard(live)
        live.record.update(status="failed", ended=self._clock.now(), err={"code": "store", "message": message})
        live.record.pop("output", None)
        self._journal.write([("run", live.id, live.record)], lambda error: self._ended(live, error))

    def _failed(self, live: Live, error: AgentdError | None) -> None:
        if error is not None:
            live.broken = True
            self._discard(live)
            self._on_store_error(error)

    def _act(self, live: Live, decision: Decision) -> None:
        # Told only now: what a log line says happened is there after a crash.
        for event, fields in decision.events:
            live.log(event, run=live.id, **fields)
        for entry in decision.cancelled:
            self._abandon(live, entry)
        if decision.finished is not None:
            self._discard(live)
            self._ended(live, None)
            return
        for cache, output in decision.caches:
            self._caches.keep(live.plan.name, cache, output)
        for wait in decision.waits:
            self._arm(live, wait)
        for effect in decision.effects:
            self._begin(live, effect)

    def _ended(self, live: Live, error: AgentdError | None) -> None:
        if error is not None:
            self._on_store_error(error)
            return
        record = live.record
        self.live.pop(live.id, None)
        self.finished += 1
        output = self._spill.original(live.id, record.get("output"))
        ended = Ended(
            run=live.id, workflow=live.plan.name, status=record["status"], output=output, error=record.get("err")
        )
        live.log(
            "run.done", run=live.id, workflow=live.plan.name, status=ended.status, err=ended.error,
            dur_ms=(record["ended"] - record["started"]) * 1000, output=output,
        )  # fmt: skip
        self._on_end(ended, live)

    # --- effects -------------------------------------------------------------------------------------------------

    def _begin(self, live: Live, effect: Effect) -> None:
        """Perform `effect`, now or when its time has come."""
        if live.paused or self.stopped:
            live.held.append(effect)
            return
        if effect.not_before is not None and effect.not_before > self._clock.now():
            at, effect.not_before = effect.not_before, None
            live.timers[effect.entry] = self._timers.at(at, lambda: self._begin(live, effect))
            return
        if effect.cache is not None and (found := self._caches.look(live.plan.name, effect.cache)) is not None:
            self.settle(live, effect.entry, Done(found[0], cached=True))
            return
        perform = effect.spec.perform or self._performer(effect.kind)
        if perform is None:
            self.settle(live, effect.entry, Failed("step", f"nobody performs steps of kind {effect.kind}", retry=False))
            return
        timeout = effect.timeout if effect.timeout is not None else self._step_timeout
        call = Call(live, effect, self._clock.monotonic() + timeout, self._host)
        try:
            result = perform(call)
        except Exception as error:
            self.settle(live, effect.entry, failure(error))
            return
        if hasattr(result, "__await__"):
            task = asyncio.get_running_loop().create_task(self._drive(call, result, timeout))
            live.tasks[effect.entry] = task
        else:
            self.settle(live, effect.entry, result if is_outcome(result) else Done(result), call.also)

    async def _drive(self, call: Call, work: Awaitable[Any], timeout: float) -> None:
        live, entry = call.live, call.effect.entry
        outcome: Outcome
        also: list[Record] = []
        try:
            async with asyncio.timeout(timeout) as bound:
                call.bound = bound
                result = await work
            outcome, also = result if is_outcome(result) else Done(result), call.also
        except asyncio.CancelledError:
            # A drain or a cancelled entry: the step stays as its last record says.
            live.tasks.pop(entry, None)
            raise
        except TimeoutError as error:
            outcome = TimedOut(f"no result within {timeout:g} s") if bound.expired() else failure(error)
        except Exception as error:
            outcome = failure(error)
        live.tasks.pop(entry, None)
        self.settle(live, entry, outcome, also)

    # --- waits ---------------------------------------------------------------------------------------------------

    def _arm(self, live: Live, wait: Wait) -> None:
        plain = not wait.on
        live.waits[wait.entry] = wait
        if wait.until is not None:
            outcome: Outcome = Done() if plain else TimedOut("nothing came in time")
            live.timers[wait.entry] = self._timers.at(wait.until, partial(self.wake, live, wait.entry, outcome))
        if not plain and "body" not in wait.on:
            self._on_wait(live, wait)

    def wake(self, live: Live, entry: str, outcome: Outcome, also: Iterable[Record] = ()) -> bool:
        """What `entry` waited for came, or its time is over; whether it still waited. `also` as in :meth:`settle`."""
        wait = live.waits.pop(entry, None)
        if wait is None:
            return False
        if (timer := live.timers.pop(entry, None)) is not None:
            timer.cancel()
        if wait.on and "body" not in wait.on:
            self._on_unwait(live, wait)
        self.settle(live, entry, outcome, also)
        return True

    # --- letting go ----------------------------------------------------------------------------------------------

    def _abandon(self, live: Live, entry: str) -> None:
        if (task := live.tasks.pop(entry, None)) is not None:
            task.cancel()
            self._leaving.add(task)  # a turn has a child to see off
            task.add_done_callback(self._leaving.discard)
        if (timer := live.timers.pop(entry, None)) is not None:
            timer.cancel()
        if (wait := live.waits.pop(entry, None)) is not None and wait.on and "body" not in wait.on:
            self._on_unwait(live, wait)
        live.held = [effect for effect in live.held if effect.entry != entry]

    def _discard(self, live: Live) -> None:
        for entry in [*live.tasks, *live.timers, *live.waits]:
            self._abandon(live, entry)
        live.held.clear()
        if live.deadline is not None:
            live.deadline.cancel()

    def forget(self, run: str) -> None:
        """Let go of a live run without ending it: the journal has it, a later life (or :meth:`resume`) goes on."""
        if (live := self.live.pop(run, None)) is not None:
            self._discard(live)

    @property
    def in_flight(self) -> list[asyncio.Task[None]]:
        """The tasks of asynchronous effects, those that are being abandoned included."""
        return [*self._leaving, *(task for live in self.live.values() for task in live.tasks.values())]


_OUTCOMES = (Suspend, Done, Failed, TimedOut)


def is_outcome(result: Any) -> bool:
    """Whether a performer answered in the engine's words rather than with a plain output."""
    return isinstance(result, _OUTCOMES)


def failure(error: BaseException) -> Failed:
    """An exception of a performer as an outcome; a mistake of ours fails the step, not the instance."""
    if isinstance(error, StepFailed):
        return Failed(error.fields.get("code") or error.code, error.message, retry=error.retry)
    if isinstance(error, AgentdError):
        return Failed(error.code, error.message, retry=error.retryable)
    return Failed("internal", f"{type(error).__name__}: {error}")
