"""A log that a test can read: strict about the vocabulary, and no output."""

from __future__ import annotations

from typing import Any

from agentd.telemetry.vocabulary import require


class Events:
    """Implements :class:`agentd.ports.host.Log`; keeps what was logged.

    Raises :class:`agentd.telemetry.vocabulary.UnknownEvent` for an event or field outside the vocabulary.
    """

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, /, *, level: str = "", msg: str = "", err: Any = None,
                 dur_ms: float | None = None, **fields: Any) -> None:  # fmt: skip
        """Keep one event; `level` is kept as given, or the vocabulary's."""
        known = require(event, fields)
        block = {"level": level or known.level, "msg": msg, "err": err, "dur_ms": dur_ms}
        self.all.append((event, {**{k: v for k, v in block.items() if v not in (None, "")}, **fields}))

    def named(self, event: str) -> list[dict[str, Any]]:
        """The fields of every event called `event`, in order."""
        return [fields for name, fields in self.all if name == event]
