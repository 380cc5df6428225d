"""`signal` fires when a signal of its name is sent."""

from __future__ import annotations

from typing import Any

from agentd.runtime.starts.start import Expects, Start


class Signal(Start):
    """Starts a run for each; with `deliver: wait` a signal only wakes those who wait, and nothing starts here.

    The payload is the signal's own. A signal that is offered again after a crash is the same event.
    """

    expects: Expects = "perhaps"

    async def signalled(self, name: str, payload: Any, sender: str, id: str) -> bool:
        fields = self.door.node.fields
        if name != fields.name or fields.deliver == "wait":
            return False
        return await self.door.fire(payload, key=id) is not None

    def describe(self) -> dict[str, Any]:
        return {"signal": self.door.node.fields.name}
