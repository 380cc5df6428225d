"""Durable memory: ``memory.<key>``, read at once from the process and written with whatever changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentd.journal.envelope import State
from agentd.journal.journal import Record


class Memory:
    """Values by key. A change gives the record to be written in the same commit as the step that made it."""

    def __init__(self, restored: Mapping[str, State]) -> None:
        """`restored` is ``Restored.of("memory")``."""
        self._entries: dict[str, State] = dict(restored)

    def get(self, key: str, default: Any = None) -> Any:
        """The JSON value of `key`."""
        entry = self._entries.get(key)
        return default if entry is None else entry["value"]

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def keys(self, prefix: str = "", *, sensitive: bool = True) -> list[str]:
        """Keys that begin with `prefix`, in order; those of sensitive values on request only."""
        found = (key for key, e in self._entries.items() if key.startswith(prefix))
        return sorted(key for key in found if sensitive or not self.is_sensitive(key))

    def is_sensitive(self, key: str) -> bool:
        """Whether the value is to be kept out of prompts and of reads by others."""
        return bool(self._entries.get(key, {}).get("sensitive"))

    def values(self, *, sensitive: bool = False) -> dict[str, Any]:
        """Everything by key, as templates see it."""
        return {key: e["value"] for key, e in self._entries.items() if sensitive or not e.get("sensitive")}

    @property
    def view(self) -> Mapping[str, Any]:
        """The live values by key, as the engine reads them."""
        return _View(self._entries)

    def set(self, key: str, value: Any, *, sensitive: bool = False) -> Record:
        """Change a value; the record to be written."""
        entry: State = {"value": value}
        if sensitive:
            entry["sensitive"] = True
        self._entries[key] = entry
        return ("memory", key, entry)

    def delete(self, key: str) -> Record:
        """Remove a value, absent is fine; the record to be written."""
        self._entries.pop(key, None)
        return ("memory", key, None)


class _View(Mapping[str, Any]):
    def __init__(self, entries: Mapping[str, State]) -> None:
        self._entries = entries

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]["value"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
