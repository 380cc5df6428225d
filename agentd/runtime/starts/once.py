"""`once` fires at boot, `manual` on command only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.runtime.live import Live
    from agentd.runtime.outcome import Ended
    from agentd.runtime.triggers import Door


class Once:
    """At boot, unless a run is live, ever ran, or is queued; with `policy: always` at each boot.

    That it fired is committed with the event, so a crash in between fires neither twice nor never.
    """

    def __init__(self, door: Door) -> None:
        self._door = door

    async def arm(self) -> None:
        door = self._door
        if door.state is not None and door.node.fields.policy == "ensure":
            door.instance.log(
                "start.skipped", level="debug", workflow=door.plan.name, node=door.node.id, reason="it fired before"
            )
            return
        await door.fire(None, id=self._run_id(), state={"fired": door.instance.clock.now()})

    def _run_id(self) -> str | None:
        """`lifecycle.run_id` names a job's unit of work: `<id>.<workflow>` when there are several."""
        instance = self._door.instance
        given = instance.document.lifecycle.run_id
        if given is None or instance.shape != "job":
            return None
        several = (
            sum(any(n.kind == "once" for n in p.starts.values()) for p in instance.definitions.current.values()) > 1
        )
        return f"{given}.{self._door.plan.name}" if several else given

    def disarm(self) -> None:
        return None

    def run_ended(self, ended: Ended, live: Live) -> None:
        return None


class Manual:
    """Never by itself."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def arm(self) -> None:
        return None

    def disarm(self) -> None:
        return None

    def run_ended(self, ended: Ended, live: Live) -> None:
        return None
