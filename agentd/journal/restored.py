"""What a restart finds."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentd.journal.envelope import State

FINISHED = frozenset({"completed", "failed", "refused", "cancelled", "stalled", "partial", "released"})
"""Statuses of a run that is over. Its step records are not read at a restart."""

WORK = ("inbox", "run", "step", "timer", "start", "gate", "task", "subagent", "context", "artifact")
"""Kinds that a fresh start retires. Memory, streams, budgets, pairings, caches and the audit stay."""

READ = ("run", "inbox", "timer", "start", "gate", "task", "subagent", "memory", "budget", "pairing")
"""Kinds that are read whole at a restart. The others are read when they are asked for."""

LISTED = ("artifact", "context", "stream", "cache", "audit")
"""Kinds of which a restart learns the keys only."""


@dataclass(slots=True, kw_only=True)
class Restored:
    """The live records of an instance, by kind and id, each in key order.

    `fresh`: nothing is resumed, either because there was nothing or because it was asked for; then `superseded` is
    the generation that ended (None: there was none) and `retired` counts the records that were removed.
    `steps` holds the step records of unfinished runs: run id -> scoped id -> state.
    """

    generation: int
    fresh: bool
    superseded: int | None = None
    retired: int = 0
    records: dict[str, dict[str, State]] = field(default_factory=dict)
    steps: dict[str, dict[str, State]] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, State]:
        """The records of one kind of :data:`READ`."""
        return self.records.setdefault(kind, {})

    @property
    def runs(self) -> dict[str, State]:
        """Every run record, finished ones too."""
        return self.of("run")

    @property
    def unfinished(self) -> dict[str, State]:
        """The runs that go on."""
        return {id: run for id, run in self.runs.items() if run.get("status") not in FINISHED}

    @property
    def inbox(self) -> dict[str, State]:
        """Accepted events that have not become a run, in the order they came."""
        return dict(sorted(self.of("inbox").items(), key=lambda item: item[1].get("n", 0)))

    @property
    def entities(self) -> int:
        """How many records were read."""
        return sum(map(len, self.records.values())) + sum(map(len, self.steps.values()))
