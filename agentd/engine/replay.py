"""Rebuilding a run: the same fold over recorded ends, in their recorded order; pure.

Every end carries its number ``n``. Whatever led to end n was caused by ends before it, so that the least number among
those in flight is always the next one of the first life, and the state passes through the same points. Records that
the replay never reaches are of no account: their causes were not durable, and the effects will be announced anew under
the same keys.
"""

from __future__ import annotations

import heapq

from agentd.engine.decision import Decision, Done, Failed, Outcome, Skipped, TimedOut
from agentd.engine.fold import Fold
from agentd.engine.state import Pause, Record, RunState, Step


def replay(state: RunState, records: dict[str, Record], now: float) -> Decision:
    """Bring `state` to where `records` end, and decide how it goes on at `now`."""
    state.replay = records
    past = Fold(state, state.run.started)
    past.begin()
    found = list(past.decision.records)
    while state.due and state.finished is None:
        n, entry = heapq.heappop(state.due)
        step = state.flying.get(entry)
        if step is None:
            continue
        record = records[entry]
        if isinstance(step, Step):
            step.attempt = record.get("attempt", 1)
        state.n = n - 1
        past = Fold(state, record["at"])
        past.settle(entry, _outcome(record))
        found += past.decision.records
    state.replay = None
    state.n = max((r["n"] for r in records.values() if "n" in r), default=0)
    state.due.clear()
    fold = Fold(state, now)
    fold.decision.records = [(entry, record) for entry, record in found if entry not in records]
    if state.finished is not None:
        fold.decision.finished = state.finished
        return fold.decision
    _go_on(fold, records)
    return fold.decision


def _outcome(record: Record) -> Outcome:
    status, tokens, rounds = record["status"], record.get("tokens", 0), record.get("rounds", 0)
    if status == "done":
        return Done(record.get("output"), tokens, rounds)
    if status == "skipped":
        return Skipped()
    error = record.get("error") or {}
    if status == "timeout":
        return TimedOut(error.get("message", ""), tokens, rounds)
    return Failed(error.get("code", "failed"), error.get("message", ""), False, error.get("fields", {}), tokens, rounds)


def _go_on(fold: Fold, records: dict[str, Record]) -> None:
    """Hand out again what is in flight."""
    interrupted: list[tuple[str, Outcome]] = []
    for entry, thing in list(fold.state.flying.items()):
        record = records.get(entry)
        if isinstance(thing, Pause):
            fold.wait_for(entry, thing.until, recorded=record is not None)
        elif thing.node.role == "body":
            fold.wait(thing)
        elif record is None:
            fold.announce(thing)
        elif record["status"] == "suspended":
            _wait_on(fold, thing, record)
        elif thing.node.on_replay == "retry":
            _repeat(fold, thing, record)
        else:
            skip = thing.node.on_replay == "skip"
            why = "interrupted by a restart; on_replay says fail"
            interrupted.append((entry, Skipped("interrupted") if skip else Failed("interrupted", why, retry=False)))
    for entry, outcome in interrupted:
        fold.settle(entry, outcome)


def _restore(step: Step, record: Record) -> None:
    step.attempt = record.get("attempt", 1)
    step.failures = record.get("failures", 0)
    step.tokens = record.get("tokens", 0)
    step.scope.state.tokens += step.tokens


def _wait_on(fold: Fold, step: Step, record: Record) -> None:
    _restore(step, record)
    step.status, step.on, step.until = "suspended", record.get("on") or {}, record.get("until")
    fold.wait(step)


def _repeat(fold: Fold, step: Step, record: Record) -> None:
    """An attempt that was announced: perhaps performed, perhaps not. A held back one was not."""
    _restore(step, record)
    not_before = record.get("not_before")
    if not_before is not None and not_before > fold.now:
        fold.hand_out(step, not_before, replay=False)
        return
    step.attempt += 1
    fold.decision.events.append(("restore.step.replay", {"step": step.entry, "attempt": step.attempt}))
    fold.announce(step, replay=True)
