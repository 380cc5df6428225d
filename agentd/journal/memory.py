"""Durable memory: ``memory.<key>``, read at once from the process and written with whatever changed it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentd.journal.envelope import State
from agentd.journal.journal import Record


class Memory:
    """Values by key. A change gives the record to be written in the same commit as the step that made it."""

    def __init__(self, restored: Mapping[str, State], *, now: Callable[[], float] = time.time) -> None:
        """`restored` is ``Restored.of("memory")``; `now` gives epoch seconds, for values that expire."""
        self._entries: dict[str, State] = dict(restored)
        self._now = now

    def get(self, key: str, default: Any = None) -> Any:
        """The JSON value of `key`."""
        return self._entries[key]["value"] if key in self else default

    def __contains__(self, key: str) -> bool:
        return key in self._entries and not self._over(self._entries[key])

    def _over(self, entry: State) -> bool:
        return "until" in entry and bool(entry["until"] <= self._now())

    def keys(self, prefix: str = "", *, sensitive: bool = True) -> list[str]:
        """Keys that begin with `prefix`, in order; those of sensitive values on request only."""
        found = (key for key, e in self._entries.items() if key.startswith(prefix) and not self._over(e))
        return sorted(key for key in found if sensitive or not self.is_sensitive(key))

    def is_sensitive(self, key: str) -> bool:
        """Whether the value is to be kept out of prompts and of reads by others."""
        return bool(self._entries.get(key, {}).get("sensitive"))

    def values(self, *, sensitive: bool = False) -> dict[str, Any]:
        """Everything by key, as templates see it."""
        return {key: self._entries[key]["value"] for key in self.keys(sensitive=sensitive)}

    @property
    def view(self) -> Mapping[str, Any]:
        """The live values by key, as templates read them; sensitive ones are for `memory.get` alone."""
        return _View(self)

    def set(self, key: str, value: Any, *, sensitive: bool = False, until: float | None = None) -> Record:
        """Change a value, which is there `until` (epoch seconds, None for ever); the record to be written."""
        entry: State = {"value": value}
        if sensitive:
            entry["sensitive"] = True
        if until is not None:
            entry["until"] = until
        self._entries[key] = entry
        return ("memory", key, entry)

    def delete(self, key: str) -> Record:
        """Remove a value, absent is fine; the record to be written."""
        self._entries.pop(key, None)
        return ("memory", key, None)

    def expired(self) -> list[Record]:
        """Let go of what is over; the records to be written."""
        return [self.delete(key) for key, entry in list(self._entries.items()) if self._over(entry)]


class _View(Mapping[str, Any]):
    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __getitem__(self, key: str) -> Any:
        if key not in self._memory or self._memory.is_sensitive(key):
            raise KeyError(key)
        return self._memory.get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._memory.keys(sensitive=False))

    def __len__(self) -> int:
        return len(self._memory.keys(sensitive=False))
