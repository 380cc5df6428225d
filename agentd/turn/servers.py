"""The MCP side of a turn: its servers, opened from the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentd.turn.offers import Observation, Offer, Servers

if TYPE_CHECKING:
    from agentd.turn.channel import Channel
    from agentd.turn.work import Work


class NoServers:
    """A turn without MCP servers."""

    def offers(self) -> Sequence[Offer]:
        return ()

    async def call(self, offer: Offer, args: dict[str, Any], *, key: str) -> Observation:
        raise LookupError(offer.full)

    async def close(self) -> None:
        return None


async def open_servers(work: Work, channel: Channel) -> Servers:
    """The servers that the work names."""
    if not work.frame.get("servers"):
        return NoServers()
    raise NotImplementedError
