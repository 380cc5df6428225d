"""What the steps that suspend by themselves wait for; pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agentd.engine.plan import Node

_NEEDS = {
    "signal": "name",
    "resource": "uri",
    "run": "run",
    "condition": "condition",
    "deadline": "until",
}


def suspension(node: Node, fields: Mapping[str, Any], now: float) -> tuple[dict[str, Any], float | None]:
    """``(on, until)`` of a `sleep` or `wait` step with these rendered fields. Raises ValueError."""
    if node.kind == "sleep":
        return {}, now + fields["duration"]
    if fields["on"] == "deadline":
        return {}, instant(fields["until"])
    on = {key: value for key, value in fields.items() if value is not None}
    return on, None if node.timeout is None else now + node.timeout


def incomplete(fields: Mapping[str, Any]) -> str | None:
    """The field that this `wait` lacks, None when it has what it needs."""
    need = _NEEDS.get(fields["on"])
    return need if need is not None and fields.get(need) is None else None


def instant(value: Any) -> float:
    """Epoch seconds of RFC 3339 text or a number. Raises ValueError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        when = datetime.fromisoformat(value)
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    raise ValueError(f"expected an instant, RFC 3339 or epoch seconds, got {value!r}")
