"""`event` fires on what the instance says of itself: an end of a workflow, a restore, a question nobody answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.errors import AgentdError
from agentd.runtime.outcome import Ended, happening
from agentd.runtime.starts.start import Expects, Start

if TYPE_CHECKING:
    from agentd.runtime.triggers import Door


class Event(Start):
    """Starts a run for each happening. Ends of runs of its own workflow do not count: it would never end.

    State ``{since}``: ends of runs from that instant on are looked at when armed, so that none is lost to a crash
    between an end and what it fires; the key of a happening makes twice once.
    """

    expects: Expects = "perhaps"

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._on: str | None = door.node.fields.on

    async def arm(self) -> None:
        instance, state = self.door.instance, self.door.state
        if state is None:
            self.door.note({"since": instance.clock.now()})
            return
        if self._on in ("workflow.finished", "workflow.failed"):
            for id, record in sorted(instance.finished_runs.items(), key=lambda item: item[1].get("ended", 0)):
                if record.get("ended", 0) >= state["since"]:
                    whole = await instance.spill.restore(record)
                    self.happened(*happening(_ended(id, whole)))

    def happened(self, name: str, payload: dict[str, Any], key: str | None) -> None:
        if name == self._on and payload.get("workflow") != self.door.plan.name:
            self.door.instance.background(self._fire(payload, key))

    async def _fire(self, payload: dict[str, Any], key: str | None) -> None:
        instance = self.door.instance
        since = instance.finished_runs.get(payload.get("run", ""), {}).get("ended", instance.clock.now())
        try:
            await self.door.fire(payload, key=key, state={"since": since})
        except AgentdError:
            return  # the door has said why; the next life looks again

    def disarm(self) -> None:
        self._on = None

    def describe(self) -> dict[str, Any]:
        return {"on": self.door.node.fields.on}


def _ended(id: str, record: Mapping[str, Any]) -> Ended:
    return Ended(run=id, workflow=record["workflow"], status=record["status"], output=record.get("output"),
                 error=record.get("err"))  # fmt: skip
