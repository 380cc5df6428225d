"""Following a declared stream: from a durable position, event by event, woken by what is added."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agentd.errors import AgentdError, ConfigError
from agentd.journal.streams import Event
from agentd.runtime.starts.start import Expects, Start
from agentd.runtime.starts.ticks import iso
from agentd.runtime.triggers import Door

_BATCH = 100
_REST = 5.0
"""Seconds of rest after the store failed."""


class Follower(Start):
    """A start node that follows a stream. State ``{cursor, …}``: the position of the last event that was dealt with."""

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._streams, self._name = door.instance.streams, door.node.fields.stream
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._deaf: Callable[[], None] = _nothing
        self.cursor = 0

    @property
    def expects(self) -> Expects:  # type: ignore[override]
        if self._task is None:
            return "nothing"
        return "surely" if self.cursor < self._streams.last(self._name) else "perhaps"

    async def arm(self) -> None:
        if self._name not in self._streams:
            place = f"workflows.{self.door.plan.name}.steps.{self.door.node.id}.stream"
            raise ConfigError(findings=[(place, f"there is no stream {self._name}: declare it in streams")])
        if self.door.state is None:
            last = self._streams.last(self._name)
            self.door.note({"cursor": last if self.begin == "new" else 0})
        self.cursor = int((self.door.state or {})["cursor"])
        await self.restore()
        self._deaf = self._streams.listen(self._name, lambda event: self.ring())
        self._task = asyncio.get_running_loop().create_task(self._follow())
        self.ring()

    @property
    def begin(self) -> str:
        """`new` or `earliest`: where a stream that was never followed is begun."""
        return str(getattr(self.door.node.fields, "from_", "new"))

    def ring(self) -> None:
        """There is, or may be, something to do."""
        self._bell.set()

    async def _follow(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            try:
                while events := await self._streams.read(self._name, after=self.cursor, limit=_BATCH):
                    for event in events:
                        await self.take(event)
                        self.cursor = event.n
                    self.caught_up()
                await self.rest()
            except AgentdError as error:
                self.door.skip(error.message, level="warn")
                await self.door.instance.clock.sleep(_REST)
                self.ring()
            self.door.instance.idle.check()

    async def restore(self) -> None:
        """Take back what the state says beyond the cursor; before the first event."""

    async def take(self, event: Event) -> None:
        """One event. It is dealt with when this returns; raising an AgentdError offers it again later."""
        raise NotImplementedError

    def caught_up(self) -> None:
        """A batch of events was dealt with: keep the cursor, if nothing kept it meanwhile."""
        if (self.door.state or {}).get("cursor") != self.cursor:
            self.door.note({**(self.door.state or {}), "cursor": self.cursor})

    async def rest(self) -> None:
        """Every event there is was dealt with."""

    def told(self, event: Event) -> dict[str, Any]:
        """An event as filters and runs see it: ``{stream, subject, data, n, ts}``."""
        return {"stream": self._name, "subject": event.subject, "data": event.data, "n": event.n, "ts": iso(event.at)}

    def disarm(self) -> None:
        self._deaf()
        self._deaf = _nothing
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def describe(self) -> dict[str, Any]:
        return {"stream": self._name, "cursor": self.cursor}


def _nothing() -> None:
    pass


def matches(pattern: str | None, subject: str) -> bool:
    """Whether `subject` is meant by `pattern`: exact, ``prefix.*``, ``*`` or None for all."""
    if pattern is None or pattern == "*":
        return True
    return subject.startswith(pattern[:-1]) if pattern.endswith(".*") else subject == pattern
