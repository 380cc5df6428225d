"""`stream` fires for each event of a declared stream."""

from __future__ import annotations

from agentd.journal.streams import Event
from agentd.runtime.starts.follow import Follower, matches


class Stream(Follower):
    """The payload is the event. Cursor and event are one commit; a shed event is offered again until there is room."""

    async def take(self, event: Event) -> None:
        if matches(self.door.node.fields.subject, event.subject):
            await self.door.insist(self.told(event), key=str(event.n), state={"cursor": event.n})
