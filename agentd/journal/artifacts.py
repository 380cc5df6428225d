"""Artifacts: large or named values beside the records, referred to as ``{"$artifact": id, "size": bytes}``."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from agentd.journal.journal import Journal, Record


def make(run: str, name: str, value: Any, *, sensitive: bool = False) -> tuple[dict[str, Any], Record]:
    """The reference to `value` (JSON), and the record to be written in the commit that first mentions it.

    The id is ``<run>/<name>-<digest of the value>``: it goes with its run, and another value is another artifact.
    """
    text = json.dumps(value, separators=(",", ":"))
    id = f"{run}/{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    state: dict[str, Any] = {"value": value, "size": len(text)}
    if sensitive:
        state["sensitive"] = True
    return {"$artifact": id, "size": len(text)}, ("artifact", id, state)


def reference(value: Any) -> str | None:
    """The id if `value` is a reference to an artifact."""
    if isinstance(value, dict) and len(value) == 2 and "size" in value and isinstance(value.get("$artifact"), str):
        return str(value["$artifact"])
    return None


class Artifacts:
    """Reads and removals; writes are records of :func:`make`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def create(self, run: str, name: str, value: Any, *, sensitive: bool = False) -> dict[str, Any]:
        """Write an artifact of its own; the reference. The same value twice is one artifact."""
        ref, record = make(run, name, value, sensitive=sensitive)
        if await self._journal.read("artifact", record[1]) is None:
            await self._journal.write([record])
        return ref

    async def get(self, id: str) -> dict[str, Any] | None:
        """``{value, size, sensitive?}``, None if there is none."""
        return await self._journal.read("artifact", id)

    async def delete(self, id: str) -> None:
        """Remove it; absent is fine."""
        await self._journal.forget("artifact", id)
