"""One event's consequences, worked out to a fixpoint; pure.

A :class:`Fold` lives for one call of :mod:`agentd.engine.decide`. Ready steps wait in a queue; a pure step is computed
when its turn comes and readies its successors, an effect step goes into the decision. While a run is replayed the same
code runs, only that an effect whose end is on record waits for its place in the recorded order.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from agentd.engine import records
from agentd.engine.control import BODIES, Body
from agentd.engine.data import CONTROL, DATA, StepError
from agentd.engine.decision import Cache, Error, Finished, Outcome, RunStatus, TimedOut
from agentd.engine.judge import conclusion, render, unmet, verdict
from agentd.engine.outbox import Outbox
from agentd.engine.paths import Missing
from agentd.engine.plan import Node
from agentd.engine.rewind import rewind
from agentd.engine.state import Pause, Record, RunState, Scope, Step
from agentd.engine.waits import suspension
from agentd.ports.nodes import Suspend

MAX_GOTOS = 10_000

_STUCK: Error = {"code": "stalled", "message": "nothing is ready, nothing is in flight, and no finish was reached"}


class Fold(Outbox):
    """Changes `state` and fills `decision`; `now` is the event's instant."""

    __slots__ = ("jitter", "ready")

    def __init__(self, state: RunState, now: float, jitter: float = 0.5) -> None:
        super().__init__(state, now)
        self.jitter = jitter
        self.ready: deque[tuple[Scope, Node]] = deque()

    # --- events ---

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

    def settle(self, entry: str, outcome: Outcome) -> None:
        """Apply what the runtime, or a record, says of `entry`."""
        thing = self.state.flying.get(entry)
        if thing is None or self.state.finished is not None:
            return
        if isinstance(thing, Pause):
            del self.state.flying[entry]
            self.end(entry, {"status": "done", "at": self.now})
            thing.then(self)
        elif isinstance(outcome, Suspend):
            self._suspend(thing, outcome)
            return
        elif thing.node.role != "body" or isinstance(outcome, TimedOut):
            self._end(thing, outcome)
        self.work()

    def work(self) -> None:
        """Until nothing is ready."""
        while self.ready and self.state.finished is None:
            scope, node = self.ready.popleft()
            if not scope.dead:
                self._enter(scope, node)
        if not self.state.flying and self.state.finished is None:
            self.finish(Finished("stalled", None, _STUCK))

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
        known = self._known(step) if node.volatile else None
        if known is not None and known["status"] == "failed" and "n" not in known:
            self.fail(step, known["error"])
            return
        try:
            fields = render(step, known)
            if fields is None:
                self._skip(step)
                return
            step.fields = fields
            if node.volatile and node.role in ("pure", "body"):
                status = "done" if node.role == "pure" else "running"
                self.decision.records.append((entry, {"status": status, "at": self.now, "fields": fields}))
            self._start(step)
        except StepError as e:
            self._refuse(step, e.code, e.message)
        except Missing as e:
            self._refuse(step, "template", f"nothing at {e}; a fallback would do: {{{{path | fallback}}}}")
        except ValueError as e:
            self._refuse(step, "invalid", str(e))

    def _refuse(self, step: Step, code: str, message: str) -> None:
        """The step cannot begin. Whether it could depended on the memory, if it reads that: then it is on record."""
        error: Error = {"code": code, "message": message}
        if step.node.volatile:
            self.decision.records.append((step.entry, {"status": "failed", "at": self.now, "error": error}))
        self.fail(step, error)

    def _known(self, step: Step) -> Record | None:
        return self.state.replay.get(step.entry) if self.state.replay is not None else None

    def _skip(self, step: Step) -> None:
        step.status = "skipped"
        if step.node.volatile:
            self.decision.records.append((step.entry, {"status": "skipped", "at": self.now}))
        self.decision.events.append(records.over(step, self.now, "skipped"))
        self._leave(step)

    def _start(self, step: Step) -> None:
        role, kind = step.node.role, step.node.kind
        if role == "effect":
            self._begin_effect(step)
        elif role == "pure":
            data = DATA.get(kind)
            self.complete(step, data(step.fields, step) if data is not None else CONTROL[kind](self, step))
        elif role == "wait":
            step.on, step.until = suspension(step.node, step.fields, self.now)
            step.status = "suspended"
            self._fly(step)
        elif role == "body":
            self._begin_body(step)
        else:
            step.status, step.left = "done", True
            end = conclusion(self.state.plan, step)
            step.output = end.output
            self.decision.events.append(records.over(step, self.now, "done"))
            self.finish(end)

    def _begin_effect(self, step: Step) -> None:
        state, node = self.state, step.node
        limit = state.run.limits.steps
        if limit is not None and state.used + state.rounds >= limit:
            self._exhausted(step, f"the run used up its {limit} steps (limits.run.steps)")
            return
        state.used += 1
        if node.cache_key is not None:
            step.cache = Cache(f"{state.plan.name}/{node.id}/{node.cache_key(step.scope)}", node.cache_ttl)
        self._fly(step)

    def _fly(self, step: Step) -> None:
        self.state.flying[step.entry] = step
        if self.state.replay is not None:
            self._await_turn(step.entry)
        else:
            self.announce(step)

    def _await_turn(self, entry: str) -> None:
        """While replaying: an end on record comes at its number; anything else stays in flight."""
        assert self.state.replay is not None
        record = self.state.replay.get(entry)
        if record is not None and "n" in record:
            heapq.heappush(self.state.due, (record["n"], entry))

    def _suspend(self, step: Step, suspend: Suspend) -> None:
        if step.node.role == "effect":
            step.status, step.on, step.until = "suspended", suspend.on, suspend.until
            self.suspend(step)

    # --- bodies ---

    def _begin_body(self, step: Step) -> None:
        step.body = BODIES[step.node.kind](step)
        if step.node.timeout is not None:
            step.on, step.until = {"body": True}, self.now + step.node.timeout
            self.state.flying[step.entry] = step
            if self.state.replay is not None:
                self._await_turn(step.entry)
            else:
                self.wait(step)
        step.body.start(self)

    def open(self, owner: Step, body: Body, key: Any, name: str, graph_name: str, binding: dict[str, Any]) -> None:
        """A new scope of `owner`, its first steps ready."""
        graph = owner.node.bodies[graph_name]
        scope = Scope(self.state, graph, owner.entry + name, {**owner.scope.binding, **binding}, owner, key)
        body.scopes[key] = scope
        for index in graph.roots:
            scope.live[index] = 1
            self.ready.append((scope, graph.nodes[index]))

    def pause(self, entry: str, until: float, owner: Step, then: Callable[[Fold], None]) -> None:
        """Go on with `then` at `until`."""
        assert owner.body is not None
        owner.body.pauses.add(entry)
        self.state.flying[entry] = Pause(entry, until, owner, then)
        if self.state.replay is not None:
            self._await_turn(entry)
        else:
            self.wait_for(entry, until, recorded=False)

    # --- a step ends ---

    def _end(self, step: Step, outcome: Outcome) -> None:
        """The runtime's word on an effect, a wait, or the deadline of a body."""
        state = self.state
        tokens, rounds = outcome.tokens, outcome.rounds
        step.tokens += tokens
        step.rounds += rounds
        state.tokens += tokens
        state.rounds += rounds
        limit = state.run.limits.tokens
        spent = limit is not None and state.tokens > limit
        status, output, error, retry, cached = verdict(step, outcome)
        if error is not None and retry and not spent and self._again(step):
            return
        state.flying.pop(step.entry, None)
        self.end(step.entry, records.ended(step, self.now, status, output, error))
        if cached:
            self.decision.events.append(("step.cache_hit", {"step": step.entry}))
        self.decision.events.append(records.over(step, self.now, status, error))
        if spent:
            self._exhausted(step, f"the run used {state.tokens} tokens of its {limit} (limits.run.tokens)")
        elif error is not None:
            self.empty(step)
            self._failed(step, error, status)
        else:
            if step.cache is not None and status == "done" and not cached:
                self.decision.caches.append((step.cache, output))
            if step.node.kind == "wait" and isinstance(output, dict) and "signal" in output:
                state.signals[str(output["signal"])] = output.get("payload")
            step.status, step.output = status, output
            self._leave(step)

    def complete(self, step: Step, output: Any) -> None:
        """A computed step or a body has its output."""
        error = unmet(step, output) if step.node.schema is not None else None
        if error is not None:
            self.fail(step, error)
            return
        if step.node.role == "body":
            self.drop(step.entry)
            step.body = None
        step.status, step.output = "done", output
        self.decision.events.append(records.over(step, self.now, "done"))
        self._leave(step)

    def fail(self, step: Step, error: Error) -> None:
        """A step failed before it was handed out, or in its computation, or a body did; a body may be entered again."""
        if step.node.role == "body":
            self.drop(step.entry)
            self.empty(step)
        self.decision.events.append(records.over(step, self.now, "failed", error))
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
            self.finish(Finished("failed", None, named))
            return
        assert owner.body is not None
        step.left = True
        self.discard(scope)
        owner.body.scopes.pop(scope.key, None)
        owner.body.child_failed(self, scope, named)

    def _again(self, step: Step) -> bool:
        """Another attempt of an effect or a wait, when its retry rule has one left. (A replay knows how it ended.)"""
        retry = step.node.retry
        if retry is None or step.failures >= retry.max or step.node.role == "body" or self.state.replay is not None:
            return False
        step.failures += 1
        step.attempt += 1
        delay = retry.delay(step.failures, self.jitter)
        self.decision.events.append(records.retried(step, step.attempt, delay))
        if step.node.role == "wait":
            step.on, step.until = suspension(step.node, step.fields, self.now)
            self.announce(step)
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
        delay = retry.delay(step.failures, self.jitter)
        self.decision.events.append(records.retried(step, step.failures + 1, delay))
        step.body = Body(step)
        self.pause(f"{step.entry}~", self.now + delay, step, lambda fold: fold.ready.append((scope, node)))
        return True

    # --- edges ---

    def _leave(self, step: Step) -> None:
        """Tell the successors; the last step of a body tells the body."""
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
            self._exhausted(step, f"the run went back {MAX_GOTOS} times by goto")
            return
        rewind(self, scope, target)

    # --- the run ends ---

    def _exhausted(self, step: Step, message: str) -> None:
        self.finish(Finished("failed", None, {"code": "budget", "message": message, "step": step.entry}))

    def cancel(self, status: RunStatus, code: str, reason: str) -> None:
        """End the run from outside."""
        self.finish(Finished(status, None, {"code": code, "message": reason}, reason))

    def finish(self, end: Finished) -> None:
        """End the run; what is in flight is abandoned."""
        state = self.state
        if state.finished is not None:
            return
        state.finished = self.decision.finished = end
        self.decision.cancelled.extend(state.flying)
        state.flying.clear()
        self.ready.clear()
