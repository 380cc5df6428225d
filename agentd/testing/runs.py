"""Driving a workflow in memory: no runtime, no store, no clock; for tests of graphs and of the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentd.engine.decide import begin, resume, settle
from agentd.engine.decision import Decision, Done, Effect, Finished, Run, TimedOut, Wait
from agentd.engine.definition import Kinds, compile_plan
from agentd.engine.plan import Plan

Perform = Callable[[Effect], Any]


def kernel_kinds() -> Kinds:
    """The kinds that the kernel itself declares."""
    from agentd.builtin import starts, steps_effect, steps_pure

    return Kinds(
        starts={spec.kind: spec for spec in starts.SPECS},
        steps={spec.kind: spec for spec in (*steps_pure.SPECS, *steps_effect.SPECS)},
    )


class Driver:
    """One run. `perform` answers each effect with an outcome (any other value is the output of a success).

    `records` is what is durable; :meth:`crash` forgets everything else. `performed` lists ``(entry, key)`` of each
    effect that was performed, in order. Time is `now`, moved by :meth:`fire`.
    """

    def __init__(
        self,
        workflow: Plan | dict[str, Any],
        perform: Perform = lambda effect: None,
        *,
        node: str = "s",
        payload: Any = None,
        inputs: Mapping[str, Any] | None = None,
        memory: Mapping[str, Any] | None = None,
        run: Run | None = None,
    ) -> None:
        self.plan = workflow if isinstance(workflow, Plan) else compile_plan(workflow, kernel_kinds())
        self.perform = perform
        self.memory = memory
        self.run = run or Run(id="r", node=node, payload=payload, inputs=inputs or {}, started=1000.0, instance="i")
        self.now = self.run.started
        self.records: dict[str, dict[str, Any]] = {}
        self.effects: dict[str, Effect] = {}
        self.waits: dict[str, Wait] = {}
        self.performed: list[tuple[str, str]] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.finished: Finished | None = None
        self.flushes = 0
        self.state, decision = begin(self.plan, self.run, memory=memory)
        self.act(decision)

    def act(self, decision: Decision) -> Decision:
        """Do what a decision says."""
        for entry, record in decision.records:
            self.records[entry] = record
        self.flushes += bool(decision.records)
        for entry in decision.cancelled:
            self.effects.pop(entry, None)
            self.waits.pop(entry, None)
        self.effects.update((effect.entry, effect) for effect in decision.effects)
        self.waits.update((wait.entry, wait) for wait in decision.waits)
        self.events += decision.events
        self.finished = decision.finished or self.finished
        return decision

    def settle(self, entry: str, outcome: Any) -> Decision:
        """The world's answer for `entry`."""
        self.effects.pop(entry, None)
        self.waits.pop(entry, None)
        return self.act(settle(self.state, entry, outcome, self.now))

    def do(self, entry: str) -> Decision:
        """Perform the effect `entry`."""
        effect = self.effects[entry]
        if effect.not_before is not None:
            self.now = max(self.now, effect.not_before)
        self.performed.append((entry, effect.key))
        answer = self.perform(effect)
        outcome = (
            answer if type(answer).__module__ in ("agentd.engine.decision", "agentd.ports.nodes") else Done(answer)
        )
        return self.settle(entry, outcome)

    def fire(self, entry: str) -> Decision:
        """Let the deadline of a wait pass."""
        wait = self.waits[entry]
        assert wait.until is not None
        self.now = max(self.now, wait.until)
        return self.settle(entry, TimedOut() if wait.on else Done())

    def pending(self) -> list[str]:
        """What may happen next: effects, and waits with a deadline."""
        return [*self.effects, *(entry for entry, wait in self.waits.items() if wait.until is not None)]

    def happen(self, entry: str) -> Decision:
        return self.do(entry) if entry in self.effects else self.fire(entry)

    def crash(self) -> Decision:
        """Forget all but the records, and resume."""
        self.effects, self.waits, self.finished = {}, {}, None
        self.state, decision = resume(self.plan, self.run, self.records.items(), self.now, memory=self.memory)
        return self.act(decision)

    def go(
        self, choose: Callable[[list[str]], str] = lambda pending: pending[0], bound: int = 100_000
    ) -> Finished | None:
        """Until the run is finished or nothing can happen. `choose` picks what happens next."""
        for _ in range(bound):
            pending = self.pending()
            if self.finished is not None or not pending:
                return self.finished
            self.happen(choose(pending))
        raise AssertionError(f"the run did not end within {bound} events")
