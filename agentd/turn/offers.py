"""What MCP servers offer to a turn, and what their tools bring home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentd.ports.model import ToolSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool of an MCP server: its full name `<ns or server>.<tool>` and the safe one that the model calls it by."""

    server: str
    tool: str
    full: str
    schema: ToolSchema
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a call brought home: the text the model reads, and whether that is an error."""

    text: str
    is_error: bool = False


class Servers(Protocol):
    """The MCP side of a turn."""

    def offers(self) -> Sequence[Offer]:
        """Every tool of every server that is reachable."""

    async def call(self, offer: Offer, args: dict[str, Any], *, key: str) -> Observation:
        """Call it. Raises AgentdError for a fault; an error of the tool is an observation."""

    async def close(self) -> None:
        """Let the connections go."""
