"""Which names a step may read, known at the author's time; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agentd.engine.findings import near
from agentd.engine.paths import STEP_FACTS, Read, write_path

RUN = ("id", "workflow", "node", "started", "hash")
ENV = ("instance", "run", "step", "attempt", "idempotency_key", "ts")
ROOTS = frozenset({"inputs", "run", "steps", "vars", "env", "memory", "signals"})


@dataclass(frozen=True, slots=True)
class Sight:
    """What can be seen from a place: root names, steps, and of those the ones that are surely over (`before`)."""

    roots: frozenset[str] = ROOTS
    steps: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    closed: Mapping[str, Any] = field(default_factory=dict)
    """Roots whose first segments are all known."""

    def plus(self, *names: str) -> Sight:
        return replace(self, roots=self.roots | set(names))

    def at(self, steps: Iterable[str], before: Iterable[str]) -> Sight:
        """Seen from a step of a graph with `steps`, after `before`; outer steps of the same id are hidden."""
        own = frozenset(steps)
        return replace(self, steps=self.steps | own, before=(self.before - own) | frozenset(before))

    def problem(self, read: Read) -> str | None:
        """Why `read` cannot be, None when it may."""
        root, *rest = read.path
        if root not in self.roots:
            hint = near(str(root), self.roots) or "; text belongs in quotes"
            return f'{write_path(read.path)}: there is no name "{root}" here{hint}'
        if root == "steps":
            return self._step_problem(read)
        known = self.closed.get(str(root))
        if known is not None and rest and rest[0] not in known:
            return f"{write_path(read.path)}: {root} has no {rest[0]!r}{near(str(rest[0]), known)}"
        return None

    def _step_problem(self, read: Read) -> str | None:
        if len(read.path) < 2:
            return "steps must be followed by a step's id"
        id = str(read.path[1])
        if id not in self.steps:
            return f'{write_path(read.path)}: there is no step "{id}" here{near(id, self.steps)}'
        fact = read.path[2] if len(read.path) > 2 else "output"
        if fact not in STEP_FACTS:
            return f"{write_path(read.path)}: a step has {', '.join(STEP_FACTS)}, not {fact!r}"
        if len(read.path) > 2 and fact == "output" and not read.optional and id not in self.before:
            return (
                f'{write_path(read.path)}: step "{id}" does not come before this one; depend on it, or give a fallback'
            )
        return None
