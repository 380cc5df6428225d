"""Named signals: durable in the inbox before they act, then offered to waiting steps and to start nodes.

The inbox record of a signal is ``{n, ts, signal: {name, payload, from, run}}``. A signal for one run stays there until
a wait of that run takes it or the run ends; one for nobody in particular reaches those who wait now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentd.errors import AgentdError
from agentd.runtime.admission import NotAccepted
from agentd.runtime.ids import new_id

if TYPE_CHECKING:
    from agentd.journal.restored import Restored
    from agentd.runtime.instance import Instance


class NoSuchRun(AgentdError):
    """There is no such run, or it is over."""

    code = "no_run"
    template = "there is no run {run} that could take this: agentd status lists those that can"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Where a signal went. `kept`: it waits for its run to ask for it."""

    id: str
    woken: int = 0
    started: int = 0
    kept: bool = False


class Signals:
    """The signals of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._unsent: dict[str, dict[str, Any]] = {}

    def restore(self, restored: Restored) -> dict[str, dict[str, Any]]:
        """Take back the signals among the records of the inbox; the other records, in order."""
        inbox, unfinished = restored.inbox, restored.unfinished
        events = {id: state for id, state in inbox.items() if "signal" not in state}
        for id, state in inbox.items():
            if (signal := state.get("signal")) is None:
                continue
            run = signal["run"]
            if run is None:
                self._unsent[id] = signal
            elif run in unfinished or run in events:
                self._instance.waits.keep(id, signal)
            else:
                self._forget(id)
        return events

    async def resume(self) -> None:
        """Offer what a crash kept from being offered; once the start nodes are armed."""
        unsent, self._unsent = self._unsent, {}
        for id, signal in unsent.items():
            await self._offer(id, signal)

    async def send(self, name: str, payload: Any, *, sender: str = "", run: str | None = None) -> Taken:
        """Accept a signal, durably, and pass it on. Raises NoSuchRun, NotAccepted."""
        instance = self._instance
        if run is not None and (run in instance.finished_runs or not instance.expected_run(run)):
            raise NoSuchRun(run=run)
        if instance.draining:
            raise NotAccepted("not accepted: the instance takes no new work")
        id, signal = new_id(), {"name": name, "payload": payload, "from": sender, "run": run}
        state = {"n": instance.admission.next_number(), "ts": instance.clock.now(), "signal": signal}
        await instance.journal.write([("inbox", id, state)])
        return await self._offer(id, signal)

    async def _offer(self, id: str, signal: dict[str, Any]) -> Taken:
        instance = self._instance
        if signal["run"] is not None:
            found = instance.waits.post(id, signal)
            return Taken(id=id, woken=int(found), kept=not found)
        woken = instance.waits.deliver(signal["name"], signal["payload"], signal["from"])
        started = await instance.triggers.signal(signal["name"], signal["payload"], signal["from"], id)
        self._forget(id)
        return Taken(id=id, woken=woken, started=started)

    def _forget(self, id: str) -> None:
        self._instance.journal.forget("inbox", id, lambda error: None)
