"""The engine's five questions. Pure: time and jitter come with the event, everything else is in plan and state.

A run is a fold over its events. Each event (the beginning, an outcome) changes the state in place and returns the
:class:`~agentd.engine.decision.Decision` that follows; work per event is proportional to what changed, never to the
size of the graph. Step records, applied again in their order, rebuild the state, so that a resumed run decides what
the first life decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentd.engine.decision import Decision, Outcome, Run, RunStatus
    from agentd.engine.plan import Plan
    from agentd.engine.state import RunState


def begin(plan: Plan, run: Run, *, memory: Mapping[str, Any] | None = None) -> tuple[RunState, Decision]:
    """Start `run` at its start node, at ``run.started``.

    The run's own record must be durable before the decision is acted on (the same commit will do). `memory` is the
    live view that `{{memory.<key>}}` reads; what was read is recorded with the step.
    """
    raise NotImplementedError


def settle(state: RunState, entry: str, outcome: Outcome, now: float, jitter: float = 0.5) -> Decision:
    """What follows from `outcome` of `entry` at `now` (epoch seconds); `jitter` is uniform in [0, 1).

    An entry that is not in flight (cancelled, already settled, of an ended run) yields an empty decision.
    """
    raise NotImplementedError


def cancel(state: RunState, now: float, *, reason: str, status: RunStatus = "cancelled", code: str = "cancelled") -> Decision:
    """End the run from outside: an operator's cancel, its deadline (``status="failed", code="deadline"``), a drain."""
    raise NotImplementedError


def resume(
    plan: Plan,
    run: Run,
    step_records: Iterable[tuple[str, dict[str, Any]]],
    now: float,
    *,
    memory: Mapping[str, Any] | None = None,
) -> tuple[RunState, Decision]:
    """Rebuild a run from what is durable: `run` as it began, and every step record ``(entry, state)`` of it.

    Outputs that were spilled must be put back into the records first. Done steps are never repeated; entries found
    running come back as effects with ``replay=True`` and the next attempt's number, or are skipped or failed, as
    `on_replay` says; suspended ones come back as waits. The decision may also finish the run (all was done but the
    run record said so too late).
    """
    raise NotImplementedError
