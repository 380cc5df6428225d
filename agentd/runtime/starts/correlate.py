"""`correlate` fires when events that belong together have all arrived within a window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentd.engine.starts import passes, value_at
from agentd.journal.streams import Event
from agentd.runtime.starts.follow import Follower
from agentd.runtime.starts.sets import Set, Sets

if TYPE_CHECKING:
    from agentd.runtime.timers import Timer
    from agentd.runtime.triggers import Door


class Correlate(Follower):
    """The payload is ``{key, complete, events: {pattern: event}}``.

    State ``{cursor, pending}``: positions of the events in incomplete sets, read again from the stream at a restart.
    The event of a set and the state without it are one commit.
    """

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        fields = door.node.fields
        self._sets = Sets(fields.on, fields.window, fields.max_pending)
        self._timer: Timer | None = None
        door.filters = False  # the filter is for events, not for the set of them

    async def restore(self) -> None:
        wanted = set((self.door.state or {}).get("pending") or ())
        after = min(wanted, default=0) - 1
        while wanted and (events := await self._streams.read(self._name, after=after)):
            for event in events:
                if event.n in wanted:
                    self._sets.put(self._key(event) or "", event)
            wanted = {n for n in wanted if n > events[-1].n}
            after = events[-1].n

    async def take(self, event: Event) -> None:
        door = self.door
        env = {"instance": door.instance.name, "ts": door.instance.clock.now()}
        if not self._sets.wants(event.subject) or not passes(door.plan, door.node.id, self.told(event), env):
            return
        if (key := self._key(event)) is not None:
            await self._end(self._sets.take(key, event), event.n)

    def _key(self, event: Event) -> str | None:
        """What the event belongs to; None when it does not say."""
        by = self.door.node.fields.by
        if by is None:
            return ""
        told = self.told(event)
        value = value_at(by, {**event.data, **told} if isinstance(event.data, dict) else told, {})
        return None if value is None else json.dumps(value, sort_keys=True)

    async def _end(self, over: Sequence[Set], n: int) -> None:
        """Fire or drop the sets that are over, after the event at position `n`."""
        for index, ended in enumerate(over):
            if ended.reason and self.door.node.fields.on_incomplete == "drop":
                self.door.skip(ended.reason)
                continue
            left = over[index + 1 :]
            # While there are others to fire, a crash has to find the event and their sets again.
            cursor = n - 1 if left else n
            pending = [*self._sets.positions(), *(p for one in left for p in one.positions)]
            state = {"cursor": cursor, "pending": sorted(p for p in pending if p <= cursor)}
            key = f"{ended.key}:{','.join(map(str, ended.positions))}"
            await self.door.insist(self._payload(ended), key=key, state=state)

    def _payload(self, ended: Set) -> dict[str, Any]:
        key = json.loads(ended.key) if ended.key else None
        events = {pattern: self.told(event) for pattern, event in ended.got.items()}
        return {"key": key, "complete": not ended.reason, "events": events}

    def caught_up(self) -> None:
        state = {"cursor": self.cursor, "pending": sorted(self._sets.positions())}
        if state != self.door.state:
            self.door.note(state)

    async def rest(self) -> None:
        await self._end(self._sets.expire(self.door.instance.clock.now()), self.cursor)
        self.caught_up()
        if self._timer is not None:
            self._timer.cancel()
        if (end := self._sets.next_end) is not None:
            self._timer = self.door.instance.timers.at(end, self.ring)

    def disarm(self) -> None:
        super().disarm()
        if self._timer is not None:
            self._timer.cancel()

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "pending": len(self._sets)}
