"""Suspended steps and what wakes them: signals, other runs, deadlines.

A wait is durable as its step's record. A signal for one run that comes before anybody waits for it is kept in that
run's mailbox (an inbox record) until a wait takes it or the run ends; a signal for nobody in particular reaches those
who wait now.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentd.engine import decide
from agentd.engine.decision import Done, Failed, Wait
from agentd.journal.journal import Record
from agentd.runtime import polls
from agentd.runtime.gates import Gates
from agentd.runtime.joins import Joins, end_of
from agentd.runtime.outcome import Ended
from agentd.runtime.polls import Polls

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live

_Waiter = tuple[str, str]
"""``(run, entry)``."""


class Waits:
    """Who waits for what. Used by the runs (arm, disarm), by signals and by ends of runs."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._signals: dict[str, list[_Waiter]] = defaultdict(list)
        self._runs: dict[str, list[_Waiter]] = defaultdict(list)
        self._mailbox: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.joins, self.gates, self.polls = Joins(instance), Gates(instance), Polls(instance)

    # --- waits come and go ---------------------------------------------------------------------------------------

    def arm(self, live: Live, wait: Wait) -> None:
        """Register a wait; one whose answer is here already is woken on the next turn of the loop."""
        on = wait.on
        if (name := signal_of(on)) is not None:
            self._signals[name].append((live.id, wait.entry))
            self._take_mail(live, wait.entry, name)
        elif (run := run_of(on)) is not None:
            self._runs[run].append((live.id, wait.entry))
            self._look_for_end(live, wait.entry, run, on)
        elif (rest := self._elsewhere(on)) is not None:
            rest.arm(live, wait)

    def _elsewhere(self, on: Mapping[str, Any]) -> Joins | Gates | Polls | None:
        if on.get("on") in polls.KINDS:
            return self.polls
        return self.joins if "join" in on else self.gates if "gate" in on else None

    def disarm(self, live: Live, wait: Wait) -> None:
        """Forget a wait."""
        if (rest := self._elsewhere(wait.on)) is not None:
            rest.disarm(live, wait)
        for table, key in ((self._signals, signal_of(wait.on)), (self._runs, run_of(wait.on))):
            if key is not None and (live.id, wait.entry) in table.get(key, ()):
                table[key].remove((live.id, wait.entry))
                if not table[key]:
                    del table[key]

    # --- signals -------------------------------------------------------------------------------------------------

    def deliver(self, name: str, payload: Any, sender: str) -> int:
        """Wake whoever waits for the signal `name` and lets it through; how many there were."""
        value = _signal(name, payload, sender)
        return sum([self._hand(run, entry, value) for run, entry in list(self._signals.get(name, ()))])

    def post(self, id: str, state: dict[str, Any]) -> bool:
        """Give a durable signal to a wait of its run, with the removal of its record; else keep it. Whether it woke."""
        value = _signal(state["name"], state.get("payload"), state.get("from", ""))
        for run, entry in list(self._signals.get(state["name"], ())):
            if run == state["run"] and self._hand(run, entry, value, [("inbox", id, None)]):
                return True
        self.keep(id, state)
        return False

    def _hand(self, run: str, entry: str, value: dict[str, Any], also: Sequence[Record] = ()) -> bool:
        """Wake one wait for a signal unless its `filter` (over the payload) keeps it out; whether it woke."""
        live = self._instance.runs.live.get(run)
        if live is None or not decide.holds(live.state, entry, value["payload"]):
            return False
        return self._instance.runs.wake(live, entry, Done(value), also)

    def keep(self, id: str, state: dict[str, Any]) -> None:
        """A durable signal ``{name, payload, from, run}`` for a run that does not wait for it yet."""
        self._mailbox[state["run"]][id] = state

    def _take_mail(self, live: Live, entry: str, name: str) -> None:
        for id, state in self._mailbox.get(live.id, {}).items():
            if state["name"] == name and decide.holds(live.state, entry, state.get("payload")):
                del self._mailbox[live.id][id]
                value = _signal(name, state.get("payload"), state.get("from", ""))
                self._soon(live.id, entry, Done(value), [("inbox", id, None)])
                return

    # --- runs ----------------------------------------------------------------------------------------------------

    def run_ended(self, ended: Ended, live: Live) -> None:
        """Wake whoever waits for this run, and drop its mail."""
        for waiter in list(self._runs.get(ended.run, ())):
            self._wake(waiter, {"run": ended.run, "status": ended.status, "output": ended.output}, ended)
        self.joins.run_ended(ended.run)
        self.gates.run_ended(ended.run)
        for id in self._mailbox.pop(ended.run, {}):
            self._instance.journal.forget("inbox", id, lambda error: None)

    def _look_for_end(self, live: Live, entry: str, run: str, on: Mapping[str, Any]) -> None:
        record = self._instance.finished_runs.get(run)
        if record is not None:
            self._instance.background(self._tell_end(live.id, entry, run, on))
        elif not self._instance.expected_run(run):
            self._soon(live.id, entry, Failed("step", f"there is no run {run}", retry=False))

    async def _tell_end(self, waiter: str, entry: str, run: str, on: Mapping[str, Any]) -> None:
        value = await end_of(self._instance, run)
        live = self._instance.runs.live.get(waiter)
        if value is not None and live is not None:
            outcome = _end(on, value, self._instance.finished_runs[run].get("err"))
            self._instance.runs.wake(live, entry, outcome)

    # --- waking --------------------------------------------------------------------------------------------------

    def _wake(self, waiter: _Waiter, value: Any, ended: Ended | None = None) -> None:
        live = self._instance.runs.live.get(waiter[0])
        if live is None or waiter[1] not in live.waits:
            return
        outcome = Done(value) if ended is None else _end(live.waits[waiter[1]].on, value, ended.error)
        self._instance.runs.wake(live, waiter[1], outcome)

    def _soon(self, run: str, entry: str, outcome: Done | Failed, also: list[Record] | None = None) -> None:
        def wake() -> None:
            live = self._instance.runs.live.get(run)
            if live is not None:
                self._instance.runs.wake(live, entry, outcome, also or [])

        asyncio.get_running_loop().call_soon(wake)


def signal_of(on: Mapping[str, Any]) -> str | None:
    """The signal that a wait is for."""
    if on.get("on") == "signal":
        return str(on.get("name"))
    return str(on["signal"]) if "signal" in on else None


def run_of(on: Mapping[str, Any]) -> str | None:
    """The run that a wait is for."""
    if on.get("on") == "run":
        return str(on.get("run"))
    return str(on["run"]) if "run" in on and "on" not in on else None


def _signal(name: str, payload: Any, sender: str) -> dict[str, Any]:
    return {"signal": name, "payload": payload, "from": sender}


def _end(on: Mapping[str, Any], value: dict[str, Any], error: Mapping[str, Any] | None) -> Done | Failed:
    """A `workflow` step in sync mode fails with the run it called; a `wait` tells its status."""
    if on.get("must_complete") and value["status"] not in ("completed", "partial"):
        told = (error or {}).get("message") or f"the run {value['run']} ended as {value['status']}"
        return Failed(str((error or {}).get("code") or "step"), str(told), retry=False)
    return Done(value)
