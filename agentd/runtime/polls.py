"""Waits for something that nobody announces: a condition, a resource. They are looked at now and then."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any

from agentd.engine import decide
from agentd.engine.decision import Done, Failed, Outcome, Wait

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live

KINDS = ("condition", "resource")
_INTERVAL = {"condition": 1.0, "resource": 5.0}
_MOST = 30.0


class Polls:
    """One task for each such wait.

    A condition ends the wait when it holds. A resource ends it when its `filter` holds of what is there, or without
    one when the content differs from what the wait first saw.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    def arm(self, live: Live, wait: Wait) -> None:
        """Begin to look."""
        watch = self._condition if wait.on["on"] == "condition" else self._resource
        self._tasks[live.id, wait.entry] = self._instance.background(self._end(live, wait, watch(live, wait)))

    def disarm(self, live: Live, wait: Wait) -> None:
        """Look no more."""
        task = self._tasks.pop((live.id, wait.entry), None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _end(self, live: Live, wait: Wait, watch: Any) -> None:
        outcome: Outcome = await watch
        self._instance.runs.wake(live, wait.entry, outcome)

    async def _condition(self, live: Live, wait: Wait) -> Outcome:
        while not decide.holds(live.state, wait.entry):
            await self._instance.clock.sleep(_interval(wait))
        return Done({"condition": True})

    async def _resource(self, live: Live, wait: Wait) -> Outcome:
        from agentd.mcp.records import McpFault
        from agentd.runtime.steps.mcp import content_of

        on, pause, seen = wait.on, _interval(wait), None
        server = on.get("server")
        declared = [s.name for s in self._instance.document.mcp.servers]
        if server is None and len(declared) == 1:
            server = declared[0]
        if server not in declared:
            known = ", ".join(sorted(declared)) or "none"
            return Failed("step", f"there is no MCP server {server}; declared: {known}", retry=False)
        connections = await self._instance.connections.use()
        while True:
            try:
                found = content_of(on["uri"], await connections.read_resource(server, on["uri"]))
            except McpFault:
                pause = min(_MOST, pause * 2)  # it may come back: the wait's own timeout bounds this
            else:
                pause = _interval(wait)
                told = {"server": server, "ts": self._instance.clock.now(), **found}
                digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()
                if decide.holds(live.state, wait.entry, told) if on.get("filter") else seen not in (None, digest):
                    return Done(told)
                seen = digest
            await self._instance.clock.sleep(pause)


def _interval(wait: Wait) -> float:
    return float(wait.on.get("interval") or _INTERVAL[wait.on["on"]])
