"""One event's consequences, worked out to a fixpoint; pure.

A :class:`Fold` lives for one call of :mod:`agentd.engine.decide`. Ready steps wait in a queue; a pure step is computed
when its turn comes and readies its successors, an effect step goes into the decision. While a run is replayed the same
code runs, only that an effect whose end is on record waits for its place in the recorded order.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

from agentd.engine.control import BODIES, Body
from agentd.engine.data import CONTROL, DATA, StepError
from agentd.engine.decision import (
    Cache,
    Decision,
    Done,
    Effect,
    Error,
    Failed,
    Finished,
    Outcome,
    RunStatus,
    Skipped,
    TimedOut,
    Wait,
)
from agentd.engine.paths import Missing
from agentd.engine.plan import Node
from agentd.engine.state import Pause, Record, RunState, Scope, Step, idempotency_key
from agentd.engine.waits import suspension
from agentd.ports.nodes import Suspend

MAX_GOTOS = 10_000


class Fold:
    """Changes `state` and fills `decision`; `now` is the event's instant."""

    __slots__ = ("decision", "jitter", "now", "ready", "state")

    def __init__(self, state: RunState, now: float, jitter: float = 0.5) -> None:
        self.state, self.now, self.jitter = state, now, jitter
        self.decision = Decision()
        self.ready: deque[tuple[Scope, Node]] = deque()
        state.now = now

    # --- the loop ---

    def begin(self) -> None:
        """Fire the start node; its siblings are skipped."""
        root = self.state.root
        for node in self.state.plan.graph.nodes:
            if node.role == "start":
                step = root.steps[node.index] = Step(root, node, node.id, 1, self.now)
                fired = node.id == self.state.run.node
                step.status, step.output = ("done", self.state.run.payload) if fired else ("skipped", None)
                self._leave(step)
        self.work()

    def work(self) -> None:
        """Until nothing is ready."""
        ready = self.ready
        while ready and self.state.finished is None:
            scope, node = ready.popleft()
            if not scope.dead:
                self._enter(scope, node)
        if not self.state.flying and self.state.finished is None:
            self.finish(
                "stalled", err={"code": "stalled", "message": "nothing is ready, nothing in flight, and no finish"}
            )

    def settle(self, entry: str, outcome: Outcome) -> None:
        """Apply what the runtime, or a record, says of `entry`."""
        thing = self.state.flying.get(entry)
        if thing is None or self.state.finished is not None:
            return
        if isinstance(thing, Pause):
            del self.state.flying[entry]
            self._record_end(entry, {"status": "done", "at": self.now})
            thing.then(self)
        elif isinstance(outcome, Suspend):
            self._suspend(thing, outcome)
            return
        else:
            self._end(thing, outcome)
        self.work()

    # --- a step begins ---

    def _enter(self, scope: Scope, node: Node) -> None:
        index = node.index
        before = scope.steps[index]
        visit = before.visit if before is not None else 0
        if not scope.live[index]:
            step = scope.steps[index] = Step(scope, node, scope.prefix + node.id, visit, self.now)
            step.status = "pruned"
            self._leave(step)
            return
        entry = f"{scope.prefix}{node.id}#{visit + 1}" if visit else scope.prefix + node.id
        step = scope.steps[index] = scope.current = Step(scope, node, entry, visit + 1, self.now)
        if scope.failures:
            step.failures = scope.failures.get(index, 0)
            step.attempt = step.failures + 1
        try:
            fields = self._fields(step)
        except Missing as e:
            self.fail(
                step, {"code": "template", "message": f"nothing at {e}; a fallback would do: {{{{path | fallback}}}}"}
            )
            return
        except ValueError as e:
            self.fail(step, {"code": "template", "message": str(e)})
            return
        if fields is None:
            step.status = "skipped"
            self.decision.events.append(("step.done", {"step": entry, "status": "skipped", "attempt": 0}))
            self._leave(step)
            return
        step.fields = fields
        role = node.role
        if role == "effect":
            self._begin_effect(step)
        elif role == "pure":
            self._compute(step)
        elif role == "wait":
            self._begin_wait(step)
        elif role == "body":
            self._begin_body(step)
        else:
            self._end_run(step)

    def _fields(self, step: Step) -> dict[str, Any] | None:
        """The rendered fields, None when the guard does not hold. What the memory said is recorded, and believed again."""
        node, scope = step.node, step.scope
        if node.volatile:
            return self._volatile_fields(step)
        if node.when is not None and not node.when(scope):
            return None
        return node.render(scope) if node.render is not None else node.fields

    def _volatile_fields(self, step: Step) -> dict[str, Any] | None:
        node, scope = step.node, step.scope
        known = self.state.replay.get(step.entry) if self.state.replay is not None else None
        if known is not None and known["status"] == "skipped" and "n" not in known:
            return None
        if known is not None and "fields" in known:
            fields: dict[str, Any] = known["fields"]
            return fields
        if node.when is not None and not node.when(scope):
            self.decision.records.append((step.entry, {"status": "skipped", "at": self.now}))
            return None
        fields = node.render(scope) if node.render is not None else node.fields
        if node.role in ("pure", "body"):
            status = "done" if node.role == "pure" else "running"
            self.decision.records.append((step.entry, {"status": status, "at": self.now, "fields": fields}))
        return fields

    def _begin_effect(self, step: Step) -> None:
        state, node = self.state, step.node
        limit = state.run.limits.steps
        if limit is not None and state.used + state.rounds >= limit:
            self.exhausted(step, f"the run used up its {limit} steps (limits.run.steps)")
            return
        state.used += 1
        if node.cache_key is not None:
            try:
                key = node.cache_key(step.scope)
            except (Missing, ValueError) as e:
                self.fail(step, {"code": "template", "message": f"cache.key: nothing at {e}"})
                return
            step.cache = Cache(f"{state.plan.name}/{node.id}/{key}", node.cache_ttl)
        self._launch(step)

    def _launch(self, step: Step) -> None:
        state = self.state
        state.flying[step.entry] = step
        if state.replay is not None:
            self._await_turn(step.entry)
            return
        self.announce(step)

    def announce(self, step: Step, *, not_before: float | None = None, replay: bool = False) -> None:
        """The running record of an attempt, and its effect."""
        record: Record = {"status": "running", "attempt": step.attempt, "at": self.now}
        if step.failures:
            record["failures"] = step.failures
        if step.tokens:
            record["tokens"] = step.tokens
        if not_before is not None:
            record["not_before"] = not_before
        if step.node.volatile:
            record["fields"] = step.fields
        step.started = self.now
        self.decision.records.append((step.entry, record))
        self.decision.events.append(
            ("step.start", {"step": step.entry, "kind": step.node.kind, "attempt": step.attempt})
        )
        self.hand_out(step, not_before, replay)

    def hand_out(self, step: Step, not_before: float | None, replay: bool) -> None:
        node = step.node
        assert node.spec is not None
        key = idempotency_key(self.state.run.id, step.entry)
        self.decision.effects.append(
            Effect(
                step.entry,
                node.kind,
                node.spec,
                step.fields,
                step.attempt,
                key,
                node.timeout,
                node.options,
                not_before,
                step.cache,
                replay,
            )  # fmt: skip
        )

    def _await_turn(self, entry: str) -> None:
        """While replaying: an end on record comes at its number; anything else stays in flight."""
        assert self.state.replay is not None
        record = self.state.replay.get(entry)
        if record is not None and "n" in record:
            heapq.heappush(self.state.due, (record["n"], entry))

    def _compute(self, step: Step) -> None:
        kind = step.node.kind
        try:
            data = DATA.get(kind)
            output = data(step.fields, step) if data is not None else CONTROL[kind](self, step)
        except StepError as e:
            self.fail(step, {"code": e.code, "message": e.message})
            return
        except Missing as e:
            self.fail(step, {"code": "template", "message": f"nothing at {e}"})
            return
        except ValueError as e:
            self.fail(step, {"code": kind, "message": str(e)})
            return
        self.complete(step, output)

    def _begin_wait(self, step: Step) -> None:
        try:
            step.on, step.until = suspension(step.node, step.fields, self.now)
        except ValueError as e:
            self.fail(step, {"code": step.node.kind, "message": str(e)})
            return
        step.status = "suspended"
        self._launch_wait(step)

    def _launch_wait(self, step: Step) -> None:
        self.state.flying[step.entry] = step
        if self.state.replay is not None:
            self._await_turn(step.entry)
            return
        self.decision.events.append(
            ("step.start", {"step": step.entry, "kind": step.node.kind, "attempt": step.attempt})
        )
        self.suspended(step)

    def suspended(self, step: Step) -> None:
        """The wait record of a step, and its wait."""
        record: Record = {
            "status": "suspended", "on": step.on, "until": step.until, "attempt": step.attempt, "at": self.now,
        }  # fmt: skip
        if step.failures:
            record["failures"] = step.failures
        if step.node.volatile:
            record["fields"] = step.fields
        self.decision.records.append((step.entry, record))
        self.wait(step)

    def wait(self, step: Step) -> None:
        key = idempotency_key(self.state.run.id, step.entry)
        self.decision.waits.append(Wait(step.entry, step.node.kind, step.on, step.until, key))

    def _suspend(self, step: Step, suspend: Suspend) -> None:
        if step.node.role != "effect":
            return
        step.status, step.on, step.until = "suspended", suspend.on, suspend.until
        self.suspended(step)

    # --- bodies ---

    def _begin_body(self, step: Step) -> None:
        if step.node.timeout is not None:
            step.on, step.until = {"body": True}, self.now + step.node.timeout
            self.state.flying[step.entry] = step
            if self.state.replay is not None:
                self._await_turn(step.entry)
            else:
                self.wait(step)
        try:
            step.body = BODIES[step.node.kind](step)
        except ValueError as e:
            self.fail(step, {"code": step.node.kind, "message": str(e)})
            return
        step.body.start(self)

    def open(self, owner: Step, body: Body, key: Any, name: str, graph_name: str, binding: dict[str, Any]) -> None:
        """A new scope of `owner`, its first steps ready."""
        graph = owner.node.bodies[graph_name]
        scope = Scope(self.state, graph, owner.entry + name, {**owner.scope.binding, **binding}, owner, key)
        body.scopes[key] = scope
        for index in graph.roots:
            scope.live[index] = 1
            self.ready.append((scope, graph.nodes[index]))

    def pause(self, entry: str, until: float, owner: Step, then: Any) -> None:
        """Go on with `then` at `until`."""
        self.state.flying[entry] = Pause(entry, until, owner, then)
        if owner.body is not None:
            owner.body.pauses.add(entry)
        if self.state.replay is not None:
            self._await_turn(entry)
            return
        self.wait_for(entry, until, recorded=False)

    def wait_for(self, entry: str, until: float, *, recorded: bool) -> None:
        """A timer, and its record unless there is one."""
        if not recorded:
            self.decision.records.append((entry, {"status": "suspended", "on": {}, "until": until, "at": self.now}))
        self.decision.waits.append(Wait(entry, "pause", {}, until))

    def _drop(self, entry: str) -> None:
        if self.state.flying.pop(entry, None) is not None:
            self.decision.cancelled.append(entry)

    def discard(self, scope: Scope) -> None:
        """Abandon what goes on in `scope`."""
        scope.dead = True
        for step in scope.steps:
            if step is not None and not step.left:
                self._withdraw(step)

    def _withdraw(self, step: Step) -> None:
        step.status = "cancelled"
        self._drop(step.entry)
        self._empty(step)

    def _empty(self, step: Step) -> None:
        body, step.body = step.body, None
        if body is not None:
            for scope in body.scopes.values():
                self.discard(scope)
            for entry in body.pauses:
                self._drop(entry)

    # --- a step ends ---

    def _end(self, step: Step, outcome: Outcome) -> None:
        """The runtime's word on an effect, a wait, or the deadline of a body."""
        if step.node.role == "body" and not isinstance(outcome, TimedOut):
            return
        state = self.state
        tokens, rounds = getattr(outcome, "tokens", 0), getattr(outcome, "rounds", 0)
        if tokens or rounds:
            step.tokens += tokens
            step.rounds += rounds
            state.tokens += tokens
            state.rounds += rounds
        error: Error | None = None
        retry, status, output = True, "done", None
        if isinstance(outcome, Done):
            output = outcome.output
            problem = step.node.schema.problem(output) if step.node.schema is not None else None
            if problem is not None:
                status, error = (
                    "failed",
                    {"code": "output_schema", "message": f"the output does not meet output_schema: {problem}"},
                )
        elif isinstance(outcome, Failed):
            status, retry = "failed", outcome.retry
            error = {"code": outcome.code, "message": outcome.message}
            if outcome.fields:
                error["fields"] = dict(outcome.fields)
        elif isinstance(outcome, TimedOut):
            status, error = "timeout", {"code": "timeout", "message": outcome.message or "the step ran out of its time"}
        elif isinstance(outcome, Skipped):
            status = "skipped"
        limit = state.run.limits.tokens
        spent = limit is not None and state.tokens > limit
        if error is not None and retry and not spent and state.replay is None and self._again(step):
            return
        state.flying.pop(step.entry, None)
        self._record_step(step, status, output, error)
        self._say_done(step, status, error, cached=isinstance(outcome, Done) and outcome.cached)
        if spent:
            self.exhausted(step, f"the run used {state.tokens} tokens of its {limit} (limits.run.tokens)")
        elif error is not None:
            self._empty(step)
            self._failed(step, error, status)
        elif status == "skipped":
            step.status = status
            self._leave(step)
        else:
            self._deliver(step, output, cached=isinstance(outcome, Done) and outcome.cached)

    def _deliver(self, step: Step, output: Any, *, cached: bool) -> None:
        if step.cache is not None and not cached:
            self.decision.caches.append((step.cache, output))
        if step.node.kind == "wait" and isinstance(output, dict) and "signal" in output:
            self.state.signals[str(output["signal"])] = output.get("payload")
        step.status, step.output = "done", output
        self._leave(step)

    def _record_step(self, step: Step, status: str, output: Any, error: Error | None) -> None:
        record: Record = {"status": status, "attempt": step.attempt, "at": self.now}
        if error is not None:
            record["error"] = error
        elif output is not None:
            record["output"] = output
        if step.tokens:
            record["tokens"] = step.tokens
        if step.rounds:
            record["rounds"] = step.rounds
        if step.node.volatile:
            record["fields"] = step.fields
        self._record_end(step.entry, record)

    def _record_end(self, entry: str, record: Record) -> None:
        self.state.n += 1
        record["n"] = self.state.n
        self.decision.records.append((entry, record))

    def _say_done(self, step: Step, status: str, error: Error | None, *, cached: bool = False) -> None:
        if cached:
            self.decision.events.append(("step.cache_hit", {"step": step.entry}))
        fields: dict[str, Any] = {"step": step.entry, "status": status, "attempt": step.attempt}
        if step.tokens:
            fields["tokens"] = step.tokens
        if error is not None:
            fields["err"] = error["message"]
        fields["dur_ms"] = round((self.now - step.started) * 1000, 3)
        self.decision.events.append(("step.done", fields))

    def complete(self, step: Step, output: Any) -> None:
        """A computed step or a body has its output."""
        node = step.node
        if node.role == "body":
            self._drop(step.entry)
            step.body = None
        problem = node.schema.problem(output) if node.schema is not None else None
        if problem is not None:
            self.fail(step, {"code": "output_schema", "message": f"the output does not meet output_schema: {problem}"})
            return
        step.status, step.output = "done", output
        self._say_done(step, "done", None)
        self._leave(step)

    def fail(self, step: Step, error: Error) -> None:
        """A computed step or a body failed; a body may be entered again."""
        if step.node.role == "body":
            self._drop(step.entry)
            self._empty(step)
        self._say_done(step, "failed", error)
        self._failed(step, error, "failed")

    def _failed(self, step: Step, error: Error, status: str) -> None:
        step.status, step.error = status, error
        node = step.node
        if node.role == "body" and self._repeat(step):
            return
        if node.on_error == "continue":
            self._leave(step)
        elif node.on_error == "goto":
            self._goto(step)
        else:
            self._fail_scope(step.scope, step, error)

    def _fail_scope(self, scope: Scope, step: Step, error: Error) -> None:
        owner = scope.owner
        named = error if "step" in error else {**error, "step": step.entry}
        if owner is None:
            self.finish("failed", err=named)
            return
        assert owner.body is not None
        step.left = True
        self.discard(scope)
        owner.body.scopes.pop(scope.key, None)
        owner.body.child_failed(self, scope, named)

    def _again(self, step: Step) -> bool:
        """Another attempt of an effect or a wait, when its retry rule has one left. (A replay knows how it ended.)"""
        retry = step.node.retry
        if retry is None or step.node.role == "body" or step.failures >= retry.max:
            return False
        step.failures += 1
        step.attempt += 1
        delay = self._delay(step)
        self.decision.events.append(
            ("step.retry", {"step": step.entry, "attempt": step.attempt, "backoff_ms": round(delay * 1000)})
        )
        if step.node.role == "wait":
            step.on, step.until = suspension(step.node, step.fields, self.now)
            self.suspended(step)
            return True
        step.status, step.on, step.until = "running", {}, None
        self.announce(step, not_before=self.now + delay)
        return True

    def _repeat(self, step: Step) -> bool:
        """Enter a failed body once more, as its next visit, after the backoff."""
        retry, scope, node = step.node.retry, step.scope, step.node
        if retry is None or step.failures >= retry.max:
            return False
        step.failures += 1
        scope.failures[node.index] = step.failures

        def enter(fold: Fold) -> None:
            scope.live[node.index] = 1
            fold.ready.append((scope, node))

        delay = self._delay(step)
        self.decision.events.append(
            ("step.retry", {"step": step.entry, "attempt": step.failures + 1, "backoff_ms": round(delay * 1000)})
        )
        step.body = Body(step)
        self.pause(f"{step.entry}~", self.now + delay, step, enter)
        return True

    def _delay(self, step: Step) -> float:
        """Exponential, and between half and all of it."""
        assert step.node.retry is not None
        backoff = step.node.retry.backoff
        full = min(backoff.max, backoff.initial * backoff.factor ** min(step.failures - 1, 64))
        return full * (0.5 + self.jitter / 2)

    # --- edges ---

    def _leave(self, step: Step) -> None:
        """Tell the successors."""
        scope, node = step.scope, step.node
        step.left = True
        missing, nodes = scope.missing, scope.graph.nodes
        plain = step.status == "done" and not node.chosen
        for successor in node.out:
            missing[successor] -= 1
            if plain or step.leads_to(successor):
                scope.live[successor] = 1
            if not missing[successor]:
                self.ready.append((scope, nodes[successor]))
        scope.open -= 1
        if not scope.open and scope.owner is not None and scope.owner.body is not None:
            owner = scope.owner.body
            owner.scopes.pop(scope.key, None)
            owner.child_done(self, scope)

    def _goto(self, step: Step) -> None:
        scope, node = step.scope, step.node
        target = scope.graph.nodes[node.goto]
        self.decision.events.append(("step.goto", {"from": step.entry, "to": target.id}))
        if not node.goto_back:
            step.went = node.goto
            self._leave(step)
            return
        self.state.gotos += 1
        if self.state.gotos > MAX_GOTOS:
            self.exhausted(step, f"the run went back {MAX_GOTOS} times by goto")
            return
        self._rewind(scope, target)
        self.ready.append((scope, target))

    def _rewind(self, scope: Scope, target: Node) -> None:
        """`target` and everything downstream of it are to be entered again."""
        region = scope.graph.regions[target.index]
        inside = set(region)
        if self.ready:
            self.ready = deque((s, n) for s, n in self.ready if s is not scope or n.index not in inside)
        for index in region:
            step = scope.steps[index]
            if step is not None and step.left:
                step.left = False
                scope.open += 1
            elif step is not None and step.status in ("running", "suspended"):
                self._withdraw(step)
            if step is not None and step.body is not None:
                self._empty(step)
            scope.failures.pop(index, None)
        for index in region:
            waits, live = 0, index == target.index
            for source in scope.graph.sources[index]:
                before = scope.steps[source]
                if index == target.index:
                    continue
                if source in inside or before is None or not before.left:
                    waits += 1
                else:
                    live = live or before.leads_to(index)
            scope.missing[index], scope.live[index] = waits, live

    # --- the run ends ---

    def _end_run(self, step: Step) -> None:
        """The `finish` step."""
        fields = step.fields
        output = fields.get("output")
        if output is None and step.node.options.get("output") == "dependency":
            output = self._only_dependency(step)
        step.status, step.output, step.left = "done", output, True
        status: RunStatus = fields["status"]
        self._say_done(step, "done", None)
        problem = self.state.plan.outputs.problem(output) if status in ("completed", "partial") else None
        reason = fields.get("reason") or ""
        if problem is not None:
            message = f"the output does not meet outputs.schema: {problem}"
            self.finish("failed", output, {"code": "output_schema", "message": message, "step": step.entry})
        elif status == "failed":
            self.finish(
                status, output, {"code": "failed", "message": reason or "finished as failed", "step": step.entry}
            )
        else:
            self.finish(status, output, reason=reason)

    def _only_dependency(self, step: Step) -> Any:
        sources = [step.scope.steps[i] for i in step.scope.graph.sources[step.node.index]]
        live = [s for s in sources if s is not None and s.status == "done" and s.node.role != "start"]
        return live[0].output if len(live) == 1 else None

    def exhausted(self, step: Step, message: str) -> None:
        self.finish("failed", err={"code": "budget", "message": message, "step": step.entry})

    def finish(self, status: RunStatus, output: Any = None, err: Error | None = None, reason: str = "") -> None:
        """End the run; what is in flight is abandoned."""
        state = self.state
        if state.finished is not None:
            return
        state.finished = self.decision.finished = Finished(status, output, err, reason)
        self.decision.cancelled.extend(state.flying)
        state.flying.clear()
        self.ready.clear()
