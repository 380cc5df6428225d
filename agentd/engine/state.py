"""A run while it lives: scopes of steps, changed in place by :mod:`agentd.engine.fold`; pure.

A *scope* is one execution of a graph: the workflow itself, or a body for one element, branch or iteration. It counts
what each step still waits for, so that settling a step touches its successors only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agentd.engine.plan import Graph, Node, Plan

if TYPE_CHECKING:
    from agentd.engine.control import Body
    from agentd.engine.decision import Cache, Finished, Run
    from agentd.engine.fold import Fold

Record = dict[str, Any]

_WORD = re.compile(r"[A-Za-z_][\w-]*")
_EMPTY: dict[str, Any] = {"overwrite": None, "append": [], "merge": {}, "union": []}


class Step:
    """One entry of a node. `left` is set once its successors know of its end."""

    __slots__ = (
        "attempt", "body", "cache", "entry", "error", "failures", "fields", "left", "node", "on", "output", "rounds",
        "scope", "started", "status", "tokens", "took", "until", "visit", "went",
    )  # fmt: skip

    def __init__(self, scope: Scope, node: Node, entry: str, visit: int, now: float) -> None:
        self.scope, self.node, self.entry, self.visit, self.started = scope, node, entry, visit, now
        self.status = "running"
        self.output: Any = None
        self.error: dict[str, Any] | None = None
        self.attempt = 1
        self.failures = 0
        self.tokens = 0
        self.rounds = 0
        self.fields: dict[str, Any] = {}
        self.left = False
        self.took: frozenset[int] = frozenset()
        """Chosen successors that are taken."""
        self.went = -1
        """The handler a failure went to instead of every other successor."""
        self.body: Body | None = None
        self.on: Mapping[str, Any] = {}
        self.until: float | None = None
        self.cache: Cache | None = None

    def leads_to(self, successor: int) -> bool:
        """Whether the edge to `successor` is alive, now that this step is over."""
        if self.status == "pruned":
            return False
        if self.went >= 0:
            return successor == self.went
        if successor in self.node.chosen:
            return successor in self.took
        return not (self.node.role == "start" and self.status == "skipped")


class Pause:
    """A timer of a body: before a repeated attempt, or to keep a rate."""

    __slots__ = ("entry", "owner", "then", "until")

    def __init__(self, entry: str, until: float, owner: Step, then: Callable[[Fold], None]) -> None:
        self.entry, self.until, self.owner, self.then = entry, until, owner, then


class Scope:
    """One execution of a graph; the names its steps see."""

    __slots__ = (
        "binding", "current", "dead", "failures", "graph", "key", "live", "missing", "open", "owner", "prefix", "state",
        "steps",
    )  # fmt: skip

    def __init__(
        self,
        state: RunState,
        graph: Graph,
        prefix: str,
        binding: dict[str, Any],
        owner: Step | None = None,
        key: Any = None,
    ) -> None:
        self.state, self.graph, self.prefix, self.binding, self.owner, self.key = (
            state,
            graph,
            prefix,
            binding,
            owner,
            key,
        )
        self.steps: list[Step | None] = [None] * len(graph.nodes)
        self.missing = list(graph.incoming)
        self.live = bytearray(len(graph.nodes))
        self.failures: dict[int, int] = {}
        self.open = len(graph.nodes)
        self.dead = False
        self.current: Step | None = None

    def name(self, root: str) -> Any:
        if root == "env":
            return self._env()
        return self.binding[root]

    def step(self, id: str) -> Step | None:
        scope: Scope | None = self
        while scope is not None:
            index = scope.graph.ids.get(id)
            if index is not None:
                return scope.steps[index]
            scope = scope.owner.scope if scope.owner is not None else None
        return None

    def everything(self, text: str) -> dict[str, Any]:
        words = set(_WORD.findall(text))
        found = {root: value for root, value in self.binding.items() if root != "memory"}
        if "env" in words:
            found["env"] = self._env()
        if "steps" in words:
            found["steps"] = self._steps(words)
        return found

    def _steps(self, words: set[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        scope: Scope | None = self
        while scope is not None:
            for id, index in scope.graph.ids.items():
                if id in words and id not in found:
                    found[id] = facts(scope.steps[index])
            scope = scope.owner.scope if scope.owner is not None else None
        return found

    def _env(self) -> dict[str, Any]:
        state, step = self.state, self.current
        entry = step.entry if step is not None else ""
        return {
            "instance": state.run.instance,
            "run": state.run.id,
            "step": entry,
            "attempt": step.attempt if step is not None else 0,
            "idempotency_key": idempotency_key(state.run.id, entry),
            "ts": datetime.fromtimestamp(state.now, UTC).isoformat().replace("+00:00", "Z"),
        }

    def result(self) -> Any:
        """What a body yields: the output of its only sink that was done, of several an object by id, else null."""
        done = [step for i in self.graph.sinks if (step := self.steps[i]) is not None and step.status == "done"]
        if len(done) == 1:
            return done[0].output
        return {step.node.id: step.output for step in done} or None


class RunState:
    """A live run. `flying` holds what the runtime is to settle: effects, waits and timers, by entry."""

    __slots__ = (
        "due", "finished", "flying", "gotos", "memory", "n", "now", "plan", "replay", "root", "rounds", "run",
        "signals", "tokens", "used", "vars",
    )  # fmt: skip

    def __init__(self, plan: Plan, run: Run, memory: Mapping[str, Any] | None = None) -> None:
        self.plan, self.run = plan, run
        self.memory: Mapping[str, Any] = memory if memory is not None else {}
        self.vars = {
            name: _EMPTY[v.reducer] if v.initial is None else v.initial for name, v in plan.workflow.state.items()
        }
        self.signals: dict[str, Any] = {}
        self.now = run.started
        self.n = 0
        """Events so far: each terminal record carries its number, which orders a replay."""
        self.used = 0
        """Effect steps begun."""
        self.rounds = 0
        self.tokens = 0
        self.gotos = 0
        self.flying: dict[str, Step | Pause] = {}
        self.finished: Finished | None = None
        self.replay: dict[str, Record] | None = None
        self.due: list[tuple[int, str]] = []
        facts_of_run = {
            "id": run.id,
            "workflow": plan.name,
            "node": run.node,
            "started": run.started,
            "hash": plan.hash,
        }
        binding = {
            "inputs": run.inputs,
            "run": facts_of_run,
            "vars": self.vars,
            "signals": self.signals,
            "memory": self.memory,
        }
        self.root = Scope(self, plan.graph, "", binding)

    def view(self) -> dict[str, Any]:
        """The steps of the workflow for a status: ``{id: {status, output, error, attempt}}``."""
        return {node.id: facts(self.root.steps[node.index]) for node in self.plan.graph.nodes}


def facts(step: Step | None) -> dict[str, Any]:
    """What data may know of a step: ``{status, output, error, attempt}``."""
    if step is None:
        return {"status": "pending", "output": None, "error": None, "attempt": 0}
    return {"status": step.status, "output": step.output, "error": step.error, "attempt": step.attempt}


def idempotency_key(run: str, entry: str) -> str:
    """32 hex characters, the same for every attempt and replay of `entry`."""
    return hashlib.sha256(f"{run}.{entry}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
