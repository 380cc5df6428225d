"""One run in fake time: what the engine decides is answered by the world, the next thing first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from agentd.engine.decide import begin, cancel, holds, settle
from agentd.engine.decision import Decision, Done, Effect, Finished, Limits, Outcome, Run, TimedOut, Wait
from agentd.engine.plan import Plan
from agentd.engine.starts import render_inputs
from agentd.errors import AgentdError
from agentd.runtime.rehearsal.world import Reply, World, asked

STARTED = 1_767_225_600.0
"""When every rehearsal begins: 2026-01-01T00:00:00Z."""
_MOST = 100_000
_STEPS, _TOKENS, _DEADLINE = 500, 2_000_000, 3600.0


class Endless(AgentdError):
    """The run goes on and on."""

    code = "endless"


class Line(NamedTuple):
    """Something that happened: seconds since the beginning, the event, the step's entry, and what is known of it."""

    at: float
    event: str
    step: str
    facts: Mapping[str, Any]


class Play:
    """A rehearsal of `plan`, begun by its start node `node`. Iterate :meth:`lines`, then read `finished`."""

    def __init__(self, plan: Plan, world: World, node: str, payload: Any, inputs: dict[str, Any] | None) -> None:
        """Raises :class:`agentd.engine.starts.InputsInvalid`; `inputs` given are those, else the start node's."""
        own = plan.workflow.limits
        env = {"instance": "rehearsal", "run": "rehearsal"}
        given = render_inputs(plan, node, payload if inputs is None else inputs, env)
        limits = Limits(steps=own.steps or _STEPS, tokens=own.tokens or _TOKENS)
        self.run = Run(
            id="rehearsal", node=node, payload=payload, inputs=given, started=STARTED, instance="rehearsal",
            limits=limits,
        )  # fmt: skip
        self.plan, self.world, self.now = plan, world, STARTED
        self.deadline = STARTED + (own.deadline or _DEADLINE)
        self.finished: Finished | None = None
        self._due: list[tuple[float, int, str, Outcome | Effect]] = []
        self._numbers = count()
        self._live: dict[str, int] = {}
        self._waits: dict[str, Wait] = {}
        self._caches: dict[str, Any] = {}

    def lines(self) -> Iterator[Line]:
        """Play it to its end. Raises ConfigError when the script has no answer, :class:`Endless`."""
        self._state, decision = begin(self.plan, self.run, memory=self.world.memory)
        yield Line(
            0.0, "start", self.run.node, {"kind": self.plan.starts[self.run.node].kind, "inputs": self.run.inputs}
        )
        yield from self._act(decision)
        for _ in range(_MOST):
            for entry in [e for e, w in self._waits.items() if w.on.get("on") == "condition" and holds(self._state, e)]:
                del self._waits[entry]
                self._later(entry, 0.0, Done({"condition": True}))
            if self.finished is not None or not self._due:
                return
            due, number, entry, outcome = heapq.heappop(self._due)
            if self._live.get(entry) != number:
                continue
            if due > self.deadline:
                self.now = self.deadline
                yield from self._act(
                    cancel(self._state, self.now, reason="the deadline of the run", status="failed", code="deadline")
                )
                return
            self.now = max(self.now, due)
            if isinstance(outcome, Effect):
                yield from self._perform(outcome)
                continue
            self._forget(entry)
            yield from self._act(settle(self._state, entry, outcome, self.now))
        raise Endless(f"the run did not end within {_MOST} events")

    def waiting(self) -> list[Wait]:
        """What the run waits for and the script does not bring."""
        return list(self._waits.values())

    def _act(self, decision: Decision) -> Iterator[Line]:
        ends = {entry: record.get("output") for entry, record in decision.records if "n" in record}
        for event, facts in decision.events:
            step = str(facts.get("step") or facts.get("from"))
            output = ends[step] if step in ends else self._computed(step)
            yield Line(self.now - STARTED, event, step, {**facts, "output": output})
        for entry in decision.cancelled:
            self._forget(entry)
        for cache, output in decision.caches:
            self._caches[cache.key] = output
        for effect in decision.effects:
            if effect.not_before is not None and effect.not_before > self.now:
                self._later(effect.entry, effect.not_before - self.now, effect)
            else:
                yield from self._perform(effect)
        for wait in decision.waits:
            yield from self._arm(wait)
        self.finished = decision.finished or self.finished

    def _computed(self, entry: str) -> Any:
        """The output of a step that left no record; those inside bodies are not looked for."""
        root = self._state.root
        step = root.steps[root.graph.ids[entry]] if entry in root.graph.ids else None
        return None if step is None else step.output

    def _perform(self, effect: Effect) -> Iterator[Line]:
        if effect.cache is not None and effect.cache.key in self._caches:
            reply = Reply(Done(self._caches[effect.cache.key], cached=True))
        else:
            reply = self.world.perform(effect)
        told = {"kind": effect.kind, "name": asked(effect), "attempt": effect.attempt, "calls": list(reply.told)}
        yield Line(self.now - STARTED, "ask", effect.entry, told)
        if effect.timeout is not None and reply.takes > effect.timeout:
            reply = Reply(TimedOut(f"no answer within {effect.timeout:g} s"), effect.timeout)
        self._later(effect.entry, reply.takes, reply.outcome)

    def _arm(self, wait: Wait) -> Iterator[Line]:
        reply = self.world.wake(wait) if wait.on and "body" not in wait.on else None
        until = None if wait.until is None else max(0.0, wait.until - self.now)
        if "body" not in wait.on:
            yield Line(self.now - STARTED, "wait", wait.entry, {"on": dict(wait.on), "seconds": until})
        if reply is not None and (until is None or reply.takes <= until):
            self._later(wait.entry, reply.takes, reply.outcome)
            return
        self._waits[wait.entry] = wait
        if until is not None:
            self._later(wait.entry, until, TimedOut() if wait.on else Done())

    def _later(self, entry: str, seconds: float, outcome: Outcome | Effect) -> None:
        number = self._live[entry] = next(self._numbers)
        heapq.heappush(self._due, (self.now + seconds, number, entry, outcome))

    def _forget(self, entry: str) -> None:
        self._live.pop(entry, None)
        self._waits.pop(entry, None)
