"""The engine's questions. Pure: time and jitter come with the event, everything else is in plan and state.

A run is a fold over its events. Each event (the beginning, an outcome) changes the state in place and returns the
:class:`~agentd.engine.decision.Decision` that follows; work per event is proportional to what changed, never to the
size of the graph. Step records, applied again in their order, rebuild the state, so that a resumed run decides what
the first life decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Decision
from agentd.engine.fold import Fold
from agentd.engine.paths import With
from agentd.engine.replay import replay
from agentd.engine.state import RunState, Step

if TYPE_CHECKING:
    from agentd.engine.decision import Outcome, Run, RunStatus
    from agentd.engine.plan import Plan


def begin(plan: Plan, run: Run, *, memory: Mapping[str, Any] | None = None) -> tuple[RunState, Decision]:
    """Start `run` at its start node, at ``run.started``.

    The run's own record must be durable before the decision is acted on (the same commit will do). `memory` is the
    live view that `{{memory.<key>}}` reads; what was read is recorded with the step.
    """
    state = RunState(plan, run, memory)
    fold = Fold(state, run.started)
    fold.begin()
    return state, fold.decision


def settle(state: RunState, entry: str, outcome: Outcome, now: float, jitter: float = 0.5) -> Decision:
    """What follows from `outcome` of `entry` at `now` (epoch seconds); `jitter` is uniform in [0, 1).

    An entry that is not in flight (cancelled, already settled, of an ended run) yields an empty decision.
    """
    fold = Fold(state, now, jitter)
    fold.settle(entry, outcome)
    return fold.decision


def cancel(
    state: RunState, now: float, *, reason: str, status: RunStatus = "cancelled", code: str = "cancelled"
) -> Decision:
    """End the run from outside: an operator's cancel, its deadline (``status="failed", code="deadline"``), a drain."""
    fold = Fold(state, now)
    fold.cancel(status, code, reason)
    return fold.decision


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
    state = RunState(plan, run, memory)
    return state, replay(state, dict(step_records), now)


def holds(state: RunState, entry: str, payload: Any = None) -> bool:
    """Whether the `filter` (over the payload that came) or the `condition` of a waiting entry holds now."""
    step = state.flying.get(entry)
    if not isinstance(step, Step):
        return False
    tests = step.node.tests
    test = tests.get("condition") or tests.get("filter")
    if test is None:
        return True
    more = {**payload, "payload": payload} if isinstance(payload, dict) else {"payload": payload}
    return test(With(step.scope, more))
