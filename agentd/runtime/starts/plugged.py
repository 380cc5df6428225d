"""A start node of a plugin: its `arm` runs as a task for as long as the node is armed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agentd.runtime.starts.start import Expects, Start

if TYPE_CHECKING:
    from agentd.runtime.triggers import Door

_BACKOFF_FIRST, _BACKOFF_MOST = 1.0, 60.0


class Plugged(Start):
    """Runs the plugin's `arm` and, should it fail, again after a growing pause."""

    expects: Expects = "perhaps"

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._task: asyncio.Task[None] | None = None

    async def arm(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        door, pause = self.door, _BACKOFF_FIRST
        arm = door.node.spec.arm
        if arm is None:
            return
        while True:
            try:
                await arm(door.node.fields, Sink(door), door.instance.clock, door.instance.log)
                return
            except Exception as error:
                door.skip(f"{type(error).__name__}: {error}", level="error")
            await door.instance.clock.sleep(pause)
            pause = min(_BACKOFF_MOST, pause * 2)

    def disarm(self) -> None:
        if self._task is not None:
            self._task.cancel()


class Sink:
    """The door as a plugin sees it; implements :class:`agentd.ports.nodes.StartSink`."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def fire(self, payload: Any, *, key: str | None = None, state: dict[str, Any] | None = None) -> str | None:
        """Put an event in the inbox; its id once durable, None when a filter or its inputs kept it out."""
        return await self._door.fire(payload, key=key, state=state)

    async def state(self) -> dict[str, Any] | None:
        """The node's durable state."""
        return self._door.state

    async def save(self, state: dict[str, Any]) -> None:
        """Keep the node's durable state."""
        await self._door.save(state)
