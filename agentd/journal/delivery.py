"""Units of writes on their way to the store: in order, with a bounded retry, then halt or degrade.

Decisions: a conflict means that somebody else writes under this identity, so nothing is written any more (*fenced*).
Any other failure is retried while later units wait behind it, for a later sequence must not pass an earlier one.
When the retries are used up, `halt` fails every waiting unit (it is *not* written later: whoever was told "failed"
must not meet it after a restart) and each later one that fails; `degrade` acknowledges from memory and catches up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any

from agentd.errors import AgentdError, Conflict, StoreError
from agentd.ports.host import Clock, Log
from agentd.ports.store import Delete, Put, Store, Write

RETRIES = (0.05, 0.2, 0.8)
"""Seconds before each retry of a failed commit."""
CATCH_UP = 5.0
"""Seconds between two attempts to catch up while degraded."""

Done = Callable[[AgentdError | None], None]
"""Called once, on the loop: None when the unit is durable (or, degraded, kept in memory), else why it is not."""


class Health(Enum):
    """`ok`; `failing`: commits are refused with errors; `degraded`: acknowledged from memory; `fenced`: for good."""

    OK = "ok"
    FAILING = "failing"
    DEGRADED = "degraded"
    FENCED = "fenced"


Backlog = dict[str, list[Write]]
"""By key what is owed to the store: a put, a removal, or a removal and a put (whose sequence starts anew)."""


def _owe(backlog: Backlog, writes: Sequence[Write]) -> None:
    for write in writes:
        removal = [owed for owed in backlog.get(write.key, []) if isinstance(owed, Delete)]
        backlog[write.key] = [*removal, write] if isinstance(write, Put) else [write]


def _merged(*earlier_first: Sequence[Write]) -> Backlog:
    backlog: Backlog = {}
    for writes in earlier_first:
        _owe(backlog, writes)
    return backlog


def _all(backlog: Backlog) -> list[Write]:
    return [write for writes in backlog.values() for write in writes]


def unanswered(timeout: float) -> StoreError:
    """The error of an operation that exceeded `store.timeout`; the outcome of a write is then unknown."""
    return StoreError(f"the store did not answer within {timeout:g} s (store.timeout)")


class Unit:
    """Writes that belong together, and whom to tell."""

    __slots__ = ("at", "done", "number", "writes")

    def __init__(self, number: int, writes: Sequence[Write], done: Done, at: float) -> None:
        self.number, self.writes, self.done, self.at = number, writes, done, at


class Delivery:
    """Hands units to the store and settles them in order. `notify` is told every change of health."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        log: Log,
        timeout: float,
        degrade: bool,
        notify: Callable[[Health], None],
    ) -> None:
        self._store, self._clock, self._log, self._notify = store, clock, log, notify
        self._timeout, self._degrade = timeout, degrade
        self.health = Health.OK
        self._number = 0
        self._out: dict[int, Unit] = {}  # handed to the store
        self._held: list[Unit] = []  # waiting for a retry, in order
        self._passed: dict[str, int] = {}  # key -> number of the last unit that got through while others were held
        self._backlog: Backlog = {}  # degraded: what is only in memory
        self._retrying: asyncio.Task[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._quiet: list[asyncio.Future[None]] = []

    @property
    def outstanding(self) -> int:
        """Units that are not settled."""
        return len(self._out) + len(self._held)

    def submit(self, writes: Sequence[Write], done: Done) -> None:
        """Take one unit. `done` is never called before this returns."""
        self._number += 1
        unit = Unit(self._number, writes, done, self._clock.monotonic())
        if not writes:
            self._soon(unit, None)
            return
        if self.health is Health.OK or self.health is Health.FAILING:
            if self._retrying:
                self._held.append(unit)
            else:
                self._hand_over(unit)
        elif self.health is Health.FENCED:
            self._soon(unit, Conflict("the store was fenced: another process writes under this identity"))
        else:
            _owe(self._backlog, writes)
            self._soon(unit, None)

    def _soon(self, unit: Unit, error: AgentdError | None) -> None:
        asyncio.get_running_loop().call_soon(unit.done, error)

    def _hand_over(self, unit: Unit) -> None:
        waiter: Any = self._store.commit(unit.writes)
        if not hasattr(waiter, "add_done_callback"):
            waiter = asyncio.ensure_future(waiter)
        self._out[unit.number] = unit
        waiter.add_done_callback(partial(self._returned, unit))
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(self._timeout / 4, self._look)

    def _look(self) -> None:
        """Fail what the store has not answered in time; the outcome of such a write is unknown."""
        late = self._clock.monotonic() - self._timeout
        for unit in [unit for unit in self._out.values() if unit.at <= late]:
            self._settle(unit, unanswered(self._timeout))
        self._watch = asyncio.get_running_loop().call_later(self._timeout / 4, self._look) if self._out else None

    def _returned(self, unit: Unit, answer: Any) -> None:
        if unit.number not in self._out:
            return  # it timed out
        error = answer.exception()
        if error is not None:
            self._settle(unit, error if isinstance(error, AgentdError) else StoreError(f"the store failed: {error!r}"))
            return
        del self._out[unit.number]
        if self._retrying:
            self._passed.update((write.key, unit.number) for write in unit.writes)
        elif self.health is Health.FAILING:
            self._recovered()
        unit.done(None)
        if self._quiet:
            self._hush()

    def _settle(self, unit: Unit, error: AgentdError) -> None:
        """One unit came back with an error."""
        del self._out[unit.number]
        if isinstance(error, Conflict):
            self._fence(error)
        elif error.retryable and (self._retrying or self.health is Health.OK):
            self._hold(unit, error)
            return
        elif self.health is Health.DEGRADED:
            self._backlog = _merged(unit.writes, _all(self._backlog))
            self._end(unit, None)
            return
        self._end(unit, error)

    def _end(self, unit: Unit, error: AgentdError | None) -> None:
        unit.done(error)
        self._hush()

    def _hold(self, unit: Unit, error: AgentdError) -> None:
        self._held.append(unit)
        self._held.sort(key=lambda held: held.number)
        if self._retrying is None:
            self._log("store.error", level="error", msg=error.message, op="commit", key=unit.writes[0].key)
            self._retrying = asyncio.ensure_future(self._retry(error))

    async def _retry(self, error: AgentdError) -> None:
        for delay in RETRIES:
            await self._clock.sleep(delay)
            failed = await self._again()
            if failed is None or self.health is Health.FENCED:
                self._retrying = None
                self._passed.clear()
                self._hush()
                return
            error = failed
        held, self._held = self._held, []
        self._passed.clear()
        self._change(Health.DEGRADED if self._degrade else Health.FAILING)
        self._retrying = asyncio.ensure_future(self._catch_up()) if self._degrade else None
        if self._degrade:
            self._log("store.degraded", level="error", msg=error.message, reason=error.code)
        for unit in held:
            if self._degrade:
                _owe(self._backlog, unit.writes)
            self._end(unit, None if self._degrade else error)

    async def _again(self) -> AgentdError | None:
        """Commit the held units in order; the first failure is returned and ends it."""
        while self._held:
            unit = self._held[0]
            writes = [write for write in unit.writes if self._passed.get(write.key, 0) < unit.number]
            error = await self._commit(writes) if writes else None
            if isinstance(error, Conflict):
                self._fence(error)
                return None
            if error is not None and error.retryable:
                return error
            self._held.pop(0)
            self._end(unit, error)
        return None

    async def _commit(self, writes: Sequence[Write]) -> AgentdError | None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._store.commit(writes)
        except AgentdError as error:
            return error
        except TimeoutError:
            return unanswered(self._timeout)
        except Exception as error:
            return StoreError(f"the store failed: {error!r}")
        return None

    async def _catch_up(self) -> None:
        """Degraded: write what is only in memory, until nothing is."""
        while self._backlog:
            await self._clock.sleep(CATCH_UP)
            taken, self._backlog = self._backlog, {}
            error = await self._commit(_all(taken))
            if isinstance(error, Conflict):
                self._fence(error)
                return
            if error is not None:
                self._backlog = _merged(_all(taken), _all(self._backlog))
        self._retrying = None
        self._recovered()
        self._hush()

    def _recovered(self) -> None:
        self._log("store.recovered")
        self._change(Health.OK)

    def _fence(self, error: Conflict) -> None:
        if self.health is Health.FENCED:
            return
        self._log(
            "store.conflict", level="error", msg=error.message, **{k: error.fields.get(k) for k in ("key", "latest")}
        )
        self._change(Health.FENCED)
        held, self._held = self._held, []
        self._backlog.clear()
        for unit in held:
            unit.done(error)

    def _change(self, health: Health) -> None:
        if health is not self.health:
            self.health = health
            self._notify(health)

    def _hush(self) -> None:
        """Wake whoever waits for quiet."""
        if not self.outstanding:
            waiting, self._quiet = self._quiet, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def settled(self) -> None:
        """Return when every unit taken so far is settled."""
        if self.outstanding:
            future = asyncio.get_running_loop().create_future()
            self._quiet.append(future)
            await future

    async def close(self) -> None:
        """Settle what is on its way, try once more to catch up, and stop."""
        await self.settled()
        if self._watch:
            self._watch.cancel()
        if self._retrying:
            self._retrying.cancel()
            if self._backlog:
                await self._commit(_all(self._backlog))
