"""Authentication in a turn: the supervisor holds the schemes and their secrets, a child asks it for headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentd.ports.auth import OutboundRequest

if TYPE_CHECKING:
    from agentd.turn.channel import Channel


class Asked:
    """One target's credential, asked for over the channel; implements :class:`agentd.ports.auth.Auth`.

    `target` is ``intelligence`` or ``mcp:<server>``. Nothing is kept: each request has headers of its own.
    """

    def __init__(self, channel: Channel, target: str) -> None:
        self._channel, self._target = channel, target

    async def headers(self, request: OutboundRequest) -> Mapping[str, str]:
        """What the supervisor's scheme adds to `request`."""
        headers, _ = await self._channel.auth(self._target, request)
        return headers

    async def on_unauthorized(self, request: OutboundRequest, challenge: str) -> bool:
        """Whether the supervisor's scheme could mend it."""
        _, retry = await self._channel.auth(self._target, request, challenge=challenge)
        return retry
