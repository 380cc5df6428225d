"""From accepted event to run: accept means durable, and a queued event waits in the inbox.

An event of the inbox is ``{n, workflow, node, payload, inputs, priority, ts, parent?}``; its id becomes the id of its
run, so that turning it into one twice is doing it once. The run's record and the removal of its event are one commit.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentd.errors import AgentdError, BudgetExceeded, StoreError, UsageError
from agentd.journal.journal import Journal, Record
from agentd.ports.host import Clock
from agentd.runtime.pressure import Level

if TYPE_CHECKING:
    from agentd.engine.plan import Plan
    from agentd.telemetry.emitter import Telemetry

_LONGEST_ID = 256
_PRIORITIES = {"high": 0, "normal": 1, "low": 2}


class NotAccepted(StoreError):
    """The event was not accepted, and nothing of it is kept; try again later."""

    code = "not_accepted"


@dataclass(slots=True, kw_only=True)
class Event:
    """An accepted event, waiting to become a run."""

    id: str
    n: int
    workflow: str
    node: str
    payload: Any
    inputs: dict[str, Any]
    priority: int
    ts: float
    parent: dict[str, str] | None = None

    def state(self) -> dict[str, Any]:
        """As the inbox record keeps it."""
        state = {"n": self.n, "workflow": self.workflow, "node": self.node, "payload": self.payload,
                 "inputs": self.inputs, "priority": self.priority, "ts": self.ts}  # fmt: skip
        if self.parent is not None:
            state["parent"] = self.parent
        return state

    @classmethod
    def of(cls, id: str, state: dict[str, Any]) -> Event:
        """The event of an inbox record."""
        return cls(id=id, **state)


class Admission:
    """The inbox and its gate. `begin` makes a run of an event; `running` counts the live runs of a workflow.

    The order is by priority, then by arrival; a workflow at its limit lets others pass.
    """

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        log: Telemetry,
        *,
        max_runs: int,
        plan: Callable[[str], Plan | None],
        begin: Callable[[Event], None],
        running: Callable[[], tuple[int, Counter[str]]],
        known: Callable[[str], bool],
        replace: Callable[[str], None],
        new_id: Callable[[], str],
        level: Callable[[], Level],
        on_drop: Callable[[Event], None] = lambda event: None,
    ) -> None:
        """`on_drop` hears of events that will not become a run."""
        self._journal, self._clock, self._log = journal, clock, log
        self._max_runs, self._plan, self._begin, self._running = max_runs, plan, begin, running
        self._known, self._replace, self._new_id, self._level = known, replace, new_id, level
        self._on_drop = on_drop
        self._waiting: dict[str, Event] = {}
        self._accepting: dict[str, asyncio.Future[None]] = {}
        self._next = 0
        self._scheduled = False
        self.open = True
        """Whether events are accepted: off while draining, fenced, or while the store refuses writes."""
        self.paused = False
        """Whether accepted events wait, for an operator's resume."""

    @property
    def pending(self) -> int:
        """Events that wait in the inbox."""
        return len(self._waiting)

    @property
    def admissible(self) -> bool:
        """Whether an event waits that may become a run: one whose workflow is gone only waits for it to come back."""
        return any(self._plan(event.workflow) is not None for event in self._waiting.values())

    @property
    def accepting(self) -> int:
        """Events on their way to the store."""
        return len(self._accepting)

    @property
    def waiting_events(self) -> list[Event]:
        """Them, in the order they are admitted."""
        return sorted(self._waiting.values(), key=lambda e: (e.priority, e.n))

    def next_number(self) -> int:
        """The number of the next record of the inbox, which keeps the order across lives."""
        self._next += 1
        return self._next - 1

    def holds(self, id: str) -> bool:
        """Whether `id` waits here, or is on its way."""
        return id in self._waiting or id in self._accepting

    def restore(self, inbox: dict[str, dict[str, Any]]) -> None:
        """Take back the events of an earlier life, in order."""
        for id, state in inbox.items():
            event = Event.of(id, state)
            self._waiting[id] = event
            self._next = max(self._next, event.n + 1)
        self._soon()

    async def accept(
        self,
        workflow: str,
        node: str,
        payload: Any,
        inputs: dict[str, Any],
        *,
        key: str | None = None,
        id: str | None = None,
        parent: dict[str, str] | None = None,
        also: Iterable[Record] = (),
    ) -> str:
        """Make an event durable; its id, which will be its run's. The same `key` twice is one event.

        `also` is committed with it. Raises NotAccepted (draining, pressure, a store that fails): nothing was kept;
        UsageError for an `id` that cannot be a run's.
        """
        if id is not None and (not id or "/" in id or len(id) > _LONGEST_ID):
            raise UsageError(f"{id!r} cannot be the id of a run: it has 1 to {_LONGEST_ID} characters and no slash")
        plan = self._plan(workflow)
        if plan is None:
            raise NotAccepted(f"there is no workflow {workflow}")
        priority = _PRIORITIES[plan.workflow.priority]
        self._refuse(priority)
        if id is None:
            id = event_id(workflow, node, key) if key is not None else self._new_id()
        if id in self._accepting:
            await asyncio.shield(self._accepting[id])
        if id in self._waiting or self._known(id):
            return id
        event = Event(id=id, n=self.next_number(), workflow=workflow, node=node, payload=payload, inputs=inputs,
                      priority=priority, ts=self._clock.now(), parent=parent)  # fmt: skip
        future = self._journal.write([("inbox", id, event.state()), *also])
        assert future is not None
        self._accepting[id] = future
        try:
            await asyncio.shield(future)
        except AgentdError as error:
            raise NotAccepted(f"not accepted: {error.message}") from error
        finally:
            self._accepting.pop(id, None)
        if not self._known(id):
            self._waiting[id] = event
            self._soon()
        return id

    def _refuse(self, priority: int) -> None:
        if not self.open:
            raise NotAccepted("not accepted: the instance takes no new work")
        level = self._level()
        if level is Level.SHED or (level is Level.WARN and priority == _PRIORITIES["low"]):
            raise BudgetExceeded("not accepted: shed under pressure, try again later")

    def _soon(self) -> None:
        """Admit on the next turn of the loop, once for all that arrived in this one."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self.admit()

    def changed(self) -> None:
        """A run ended or a gate opened: look again."""
        if self._waiting:
            self._soon()

    def admit(self) -> None:
        """Begin every event that the gates allow; one look at all runs and one pass over the events."""
        if not self.open or self.paused:
            return
        active, live = self._running()
        for event in self.waiting_events:
            if active >= self._max_runs:
                return
            plan = self._plan(event.workflow)
            if plan is None:
                continue  # its definition is gone for now: reported at boot, kept
            gate = plan.workflow.concurrency
            if live[event.workflow] < gate.max_runs:
                del self._waiting[event.id]
                active += 1
                live[event.workflow] += 1
                self._begin(event)
            elif gate.on_overflow == "drop":
                self._drop(event)
            elif gate.on_overflow == "replace":
                self._replace(event.workflow)  # begun when the replaced run has ended

    def _drop(self, event: Event) -> None:
        del self._waiting[event.id]
        self._log("run.dropped", run=event.id, workflow=event.workflow, node=event.node, reason="concurrency")
        self._remove(event)

    def cancel(self, id: str) -> bool:
        """Take an event back before it became a run; whether it was there."""
        event = self._waiting.pop(id, None)
        if event is None:
            return False
        self._remove(event)
        return True

    def _remove(self, event: Event) -> None:
        """An event will not become a run; one whose removal the store refuses waits again, as after a restart."""
        self._journal.forget("inbox", event.id, lambda error: self._kept(event) if error else self._on_drop(event))

    def _kept(self, event: Event) -> None:
        self._waiting[event.id] = event

    def waiting(self, workflow: str) -> int:
        """Events of one workflow that wait."""
        return sum(event.workflow == workflow for event in self._waiting.values())


def event_id(workflow: str, node: str, key: str) -> str:
    """The id of the event that `key` names at a start node: the same key is the same event."""
    return "k" + hashlib.sha256(f"{workflow}\0{node}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()[:31]
