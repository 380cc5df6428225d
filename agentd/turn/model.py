"""The model side of a turn: the client, opened from the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentd.ports.model import ModelReply, ModelRequest

if TYPE_CHECKING:
    from agentd.turn.channel import Channel
    from agentd.turn.work import Work


class Model(Protocol):
    """What a turn needs of it (:class:`agentd.intelligence.client.ModelClient`)."""

    async def call(self, request: ModelRequest, *, deadline: float | None = None) -> ModelReply:
        """One answer; `deadline` in monotonic seconds. Raises AgentdError when no endpoint gives one."""

    async def close(self) -> None:
        """Let the connections go."""


def open_model(work: Work, channel: Channel) -> Model:
    """The client for the endpoints that the work names."""
    raise NotImplementedError
