"""`once` fires at boot, `manual` on command only."""

from __future__ import annotations

from agentd.runtime.ids import new_id
from agentd.runtime.starts.start import Start


class Once(Start):
    """At boot, unless a run is live, ever ran, or is queued; with `policy: always` at each boot.

    That it fired is committed with the event, so a crash in between fires neither twice nor never. A job that is asked
    again for a unit of work (`lifecycle.run_id`) it has done tells the result it has; another id is another unit.
    """

    async def arm(self) -> None:
        door, asked = self.door, self._run_id()
        before = door.state or {}
        if before and door.node.fields.policy == "ensure" and asked in (None, before.get("run")):
            door.skip("it fired before", level="debug")
            door.instance.recall(before.get("run"))
            return
        run = asked or new_id()
        await door.fire(None, id=run, state={"fired": door.instance.clock.now(), "run": run})

    def _run_id(self) -> str | None:
        """`lifecycle.run_id` names a job's unit of work: `<id>.<workflow>` when there are several."""
        instance = self.door.instance
        given = instance.document.lifecycle.run_id
        if given is None or instance.shape != "job":
            return None
        several = (
            sum(any(n.kind == "once" for n in p.starts.values()) for p in instance.definitions.current.values()) > 1
        )
        return f"{given}.{self.door.plan.name}" if several else given


class Manual(Start):
    """Never by itself."""
