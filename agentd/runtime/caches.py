"""Results of steps that may be reused: in memory for speed, in the journal for the next life."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

from agentd.engine.decision import Cache
from agentd.journal.journal import Journal
from agentd.ports.host import Clock

_KEPT = 10_000


class Caches:
    """By rendered key. A miss costs nothing; what is kept is written without waiting: losing it repeats a step."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self._entries: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def open(self) -> None:
        """Take back what earlier lives kept, and let go what has expired."""
        for id, state in (await self._journal.read_many("cache")).items():
            if self._fresh(state):
                self._entries[id] = state
            else:
                self._journal.forget("cache", id, lambda error: None)

    def look(self, workflow: str, cache: Cache) -> tuple[Any] | None:
        """The output kept for `cache`, in a tuple of one, None when there is none."""
        entry = self._entries.get(_id(workflow, cache.key))
        if entry is None or not self._fresh(entry):
            return None
        return (entry["output"],)

    def keep(self, workflow: str, cache: Cache, output: Any) -> None:
        """Keep `output` for `cache`."""
        id = _id(workflow, cache.key)
        entry = {"output": output, "until": None if cache.ttl is None else self._clock.now() + cache.ttl}
        self._entries[id] = entry
        self._entries.move_to_end(id)
        records: list[Any] = [("cache", id, entry)]
        while len(self._entries) > _KEPT:
            records.append(("cache", self._entries.popitem(last=False)[0], None))
        self._journal.write(records, lambda error: None)

    def _fresh(self, entry: dict[str, Any]) -> bool:
        return entry.get("until") is None or entry["until"] > self._clock.now()


def _id(workflow: str, key: str) -> str:
    return hashlib.sha256(f"{workflow}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
