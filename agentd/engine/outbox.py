"""What a decision tells the runtime: records to keep, effects to perform, waits to arm, what to abandon; pure."""

from __future__ import annotations

from agentd.engine import records
from agentd.engine.decision import Decision, Effect, Wait
from agentd.engine.state import Record, RunState, Scope, Step, idempotency_key


class Outbox:
    """Fills `decision`; `now` is the event's instant."""

    __slots__ = ("decision", "now", "state")

    def __init__(self, state: RunState, now: float) -> None:
        self.state, self.now = state, now
        self.decision = Decision()
        state.now = now

    def announce(self, step: Step, *, not_before: float | None = None, replay: bool = False) -> None:
        """The record of an attempt that begins, and its effect or wait."""
        step.started = self.now
        self.decision.events.append(records.begun(step))
        if step.node.role == "wait":
            self.suspend(step)
            return
        self.decision.records.append((step.entry, records.running(step, self.now, not_before)))
        self.hand_out(step, not_before, replay=replay)

    def hand_out(self, step: Step, not_before: float | None, *, replay: bool) -> None:
        """The effect of an attempt that is on record."""
        node = step.node
        assert node.spec is not None
        key = idempotency_key(self.state.run.id, step.entry)
        effect = Effect(step.entry, node.kind, node.spec, step.fields, step.attempt, key, node.timeout, node.options)
        effect.not_before, effect.cache, effect.replay = not_before, step.cache, replay
        self.decision.effects.append(effect)

    def wait(self, step: Step) -> None:
        """The wait of a step that is on record as suspended."""
        key = idempotency_key(self.state.run.id, step.entry)
        self.decision.waits.append(Wait(step.entry, step.node.kind, step.on, step.until, key))

    def wait_for(self, entry: str, until: float, *, recorded: bool) -> None:
        """A timer of a body, and its record unless there is one."""
        if not recorded:
            self.decision.records.append((entry, {"status": "suspended", "on": {}, "until": until, "at": self.now}))
        self.decision.waits.append(Wait(entry, "pause", {}, until))

    def suspend(self, step: Step) -> None:
        """The record of a step that waits, and its wait."""
        self.decision.records.append((step.entry, records.suspended(step, self.now)))
        self.wait(step)

    def end(self, entry: str, record: Record) -> None:
        """The record of an end, numbered: the order of a replay."""
        self.state.n += 1
        record["n"] = self.state.n
        self.decision.records.append((entry, record))

    # --- abandoning ---

    def discard(self, scope: Scope) -> None:
        """Abandon what goes on in `scope`."""
        scope.dead = True
        for step in scope.steps:
            if step is not None and not step.left:
                self.withdraw(step)

    def withdraw(self, step: Step) -> None:
        """Abandon a step that is not over."""
        step.status = "cancelled"
        self.drop(step.entry)
        self.empty(step)

    def empty(self, step: Step) -> None:
        """Abandon what goes on in the body of `step`, if it has one."""
        body, step.body = step.body, None
        if body is not None:
            for scope in body.scopes.values():
                self.discard(scope)
            for entry in body.pauses:
                self.drop(entry)

    def drop(self, entry: str) -> None:
        """Nothing of `entry` is awaited any more."""
        if self.state.flying.pop(entry, None) is not None:
            self.decision.cancelled.append(entry)
