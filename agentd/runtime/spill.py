"""Large outputs are kept as artifacts: `{"$artifact": id, "size": n}` in the record, dereferenced transparently."""

from __future__ import annotations

import json
from typing import Any

from agentd.journal.journal import Journal, Record

MARK = "$artifact"
_SCALARS = (bool, int, float, type(None))
_SHORT = 256


class Spill:
    """Decides what is too large for a record. `limit` is in bytes of JSON (`limits.inline_max_bytes`)."""

    def __init__(self, journal: Journal, limit: int) -> None:
        self._journal, self._limit = journal, limit
        self._kept: dict[str, Any] = {}

    def record(self, run: str, entry: str, state: dict[str, Any], records: list[Record]) -> dict[str, Any]:
        """`state` of a step with a large output replaced; the artifact joins `records`, the same commit."""
        output = state.get("output")
        if _small(output):
            return state
        value = self.value(run, entry, output, records)
        return state if value is output else {**state, "output": value}

    def value(self, run: str, name: str, value: Any, records: list[Record]) -> Any:
        """`value`, or the reference to the artifact ``<run>/<name>`` that holds it."""
        if _small(value):
            return value
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        if size <= self._limit:
            return value
        id = f"{run}/{name}"
        records.append(("artifact", id, {"value": value, "size": size}))
        if name == "output":
            self._kept[id] = value
        return {MARK: id, "size": size}

    def original(self, run: str, value: Any) -> Any:
        """The output of a run that just ended, as it was before :meth:`value`."""
        if isinstance(value, dict) and value.get(MARK) == f"{run}/output":
            return self._kept.pop(value[MARK], value)
        return value

    async def restore(self, state: dict[str, Any]) -> dict[str, Any]:
        """`state` of a record with its artifact put back."""
        output = state.get("output")
        if isinstance(output, dict) and output.keys() == {MARK, "size"}:
            artifact = await self._journal.read("artifact", output[MARK])
            if artifact is not None:
                return {**state, "output": artifact["value"]}
        return state


def _small(value: Any) -> bool:
    """Quickly: surely far below any limit."""
    if isinstance(value, _SCALARS):
        return True
    if isinstance(value, str):
        return len(value) < _SHORT
    if isinstance(value, dict):
        return len(value) <= 8 and all(
            isinstance(v, _SCALARS) or (isinstance(v, str) and len(v) < _SHORT) for v in value.values()
        )
    return False
