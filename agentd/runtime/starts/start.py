"""What all start nodes share: they are armed once, hear what concerns them, and fire through their door."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from agentd.runtime.live import Live
    from agentd.runtime.outcome import Ended
    from agentd.runtime.triggers import Door

Expects = Literal["nothing", "perhaps", "surely"]
"""Whether a start node will fire again: not by itself, when something happens, or at an instant that is known."""


class Start:
    """One start node. A kind overrides what it cares for."""

    expects: Expects = "nothing"

    def __init__(self, door: Door) -> None:
        self.door = door

    async def arm(self) -> None:
        """Begin to watch for whatever fires it; called once, after the restore."""

    def disarm(self) -> None:
        """Fire no more."""

    def describe(self) -> dict[str, Any]:
        """What `trigger.armed` and a status tell beside workflow, node and kind; `next` is RFC 3339."""
        return {}

    def run_ended(self, ended: Ended, live: Live) -> None:
        """A run of this very node is final."""

    def dropped(self, run: str) -> None:
        """An event of this node, accepted, will not become a run."""

    def happened(self, name: str, payload: dict[str, Any], key: str | None) -> None:
        """Something the instance says of itself; the same `key` is the same happening."""

    async def signalled(self, name: str, payload: Any, sender: str, id: str) -> bool:
        """A signal was sent; whether it started something here."""
        return False
