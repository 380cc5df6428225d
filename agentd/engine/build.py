"""Building a graph from written steps, with every rule of a graph checked on the way; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from agentd.engine import graph as shape
from agentd.engine.control import MAX_ITERATIONS, seconds_each
from agentd.engine.document import COMMON, NAME, Common
from agentd.engine.findings import Findings, join, near
from agentd.engine.kinds import Kinds
from agentd.engine.names import Sight
from agentd.engine.nodes import NodeCompiler
from agentd.engine.plan import Graph, Node, Role
from agentd.engine.schemas import Schema, malformed
from agentd.engine.startrules import words_of
from agentd.engine.waits import incomplete
from agentd.ports.nodes import StepSpec

MAX_STEPS = 512
MAX_NESTING = 4

_WAITS = ("sleep", "wait")


@dataclass(slots=True)
class Written:
    """One step as it was read: None where it could not be."""

    id: str
    path: str
    raw: dict[str, Any]
    spec: StepSpec | None = None
    common: Common | None = None
    own: BaseModel | None = None
    start: bool = False
    before: list[int] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    goto: int = -1


class GraphBuilder:
    """Builds the graphs of one workflow; counts all its steps."""

    def __init__(self, kinds: Kinds, findings: Findings, declared: frozenset[str] | None) -> None:
        self.kinds, self.findings, self.declared = kinds, findings, declared
        self.count = 0

    def graph(
        self, steps: Any, path: str, sight: Sight, depth: int, starts: frozenset[str] = frozenset()
    ) -> Graph | None:
        """The graph of `steps`; at depth 0 it begins at `starts`. None when it cannot be built at all."""
        if not isinstance(steps, dict) or not steps:
            self.findings.add(path, "expected steps, as {id: step}, at least one")
            return None
        if depth > MAX_NESTING:
            self.findings.add(path, f"bodies are nested deeper than {MAX_NESTING}")
            return None
        self.count += len(steps)
        if self.count > MAX_STEPS:
            self.findings.add("steps", f"more than {MAX_STEPS} steps")
            return None
        written = [self._read(id, step, join(path, id), depth, id in starts) for id, step in steps.items()]
        ids = {w.id: i for i, w in enumerate(written)}
        for w in written:
            self._edges(w, ids)
        return self._shape(written, ids, path, sight, depth)

    # --- reading ---

    def _read(self, id: str, raw: Any, path: str, depth: int, start: bool) -> Written:
        if not re.match(NAME, id):
            self.findings.add(
                path, f"a step's id is a letter or _ and at most 63 letters, digits, _ or - more, not {id!r}"
            )
        if not isinstance(raw, dict):
            self.findings.add(path, "expected a step, an object with a kind")
            return Written(id, path, {})
        w = Written(id, path, raw, start=start)
        if start:
            return w
        kind = raw.get("kind")
        w.spec = self.kinds.steps.get(kind) if isinstance(kind, str) else None
        if w.spec is None:
            self.findings.add(join(path, "kind"), self._no_kind(kind, depth))
            return w
        names = {info.alias or name for name, info in w.spec.fields.model_fields.items()}
        w.common = self.findings.read(Common, {k: v for k, v in raw.items() if k in COMMON}, path, "a step")
        own = {k: v for k, v in raw.items() if k not in COMMON or k in names}
        w.own = self.findings.read(w.spec.fields, own, path, f"kind {kind}")
        if depth and kind == "finish":
            self.findings.add(join(path, "kind"), "finish ends the run: it belongs to the workflow's own steps")
        return w

    def _no_kind(self, kind: Any, depth: int) -> str:
        if kind is None:
            return "required"
        if depth and kind in self.kinds.starts:
            return f"{kind} is a start node: it belongs to the workflow's own steps"
        known = [*self.kinds.steps, *(() if depth else self.kinds.starts)]
        return self.kinds.unknown(str(kind), near(str(kind), known))

    # --- edges ---

    def _edges(self, w: Written, ids: dict[str, int]) -> None:
        depends = w.raw.get("depends_on", [])
        for id in [depends] if isinstance(depends, str) else depends if isinstance(depends, list) else []:
            self._edge(id, ids, join(w.path, "depends_on"), w.before)
        if w.start and depends:
            self.findings.add(join(w.path, "depends_on"), "a start node depends on nothing")
        if w.raw.get("kind") == "switch":
            self._targets(w, ids)
        on_error = w.raw.get("on_error")
        if isinstance(on_error, str) and on_error.startswith("goto:"):
            found: list[int] = []
            self._edge(on_error.removeprefix("goto:"), ids, join(w.path, "on_error"), found)
            w.goto = found[0] if found else -1

    def _targets(self, w: Written, ids: dict[str, int]) -> None:
        cases = w.raw.get("cases")
        written = [(join(w.path, f"cases.{v}"), t) for v, t in cases.items()] if isinstance(cases, dict) else []
        written.append((join(w.path, "default"), w.raw.get("default")))
        for path, targets in written:
            for id in [targets] if isinstance(targets, str) else targets if isinstance(targets, list) else []:
                self._edge(id, ids, path, w.chosen)

    def _edge(self, id: Any, ids: dict[str, int], path: str, into: list[int]) -> None:
        if not isinstance(id, str) or id not in ids:
            self.findings.add(path, f'there is no step "{id}" here{near(str(id), ids)}')
        elif ids[id] not in into:
            into.append(ids[id])

    # --- shape ---

    def _shape(self, written: list[Written], ids: dict[str, int], path: str, sight: Sight, depth: int) -> Graph | None:
        out: list[list[int]] = [[] for _ in written]
        for i, w in enumerate(written):
            for source in w.before:
                out[source].append(i)
        for i, w in enumerate(written):
            out[i] += [t for t in w.chosen if t not in out[i]]
        loop = shape.cycle(out)
        if loop:
            names = [written[i].id for i in [*loop, loop[0]]]
            self.findings.add(
                path, f"the steps form a cycle: {' -> '.join(names)}; iterate repeats steps, on_error goes back"
            )
            out = [[] for _ in written]
        back = self._gotos(written, out)
        if not depth:
            self._reachable(written)
        sources: list[list[int]] = [[] for _ in written]
        for i, successors in enumerate(out):
            for t in successors:
                sources[t].append(i)
        nodes = []
        for i, w in enumerate(written):
            before = shape.reach(sources, [i]) - {i}
            seen = sight.at(ids, {written[b].id for b in before})
            nodes.append(self._node(i, w, tuple(out[i]), i in back, seen, depth))
        roots = tuple(i for i, s in enumerate(sources) if not s)
        return Graph(
            nodes=tuple(nodes),
            ids=ids,
            incoming=tuple(len(s) for s in sources),
            roots=roots,
            sinks=tuple(i for i, successors in enumerate(out) if not successors),
            sources=tuple(tuple(s) for s in sources),
            regions={w.goto: tuple(sorted(shape.reach(out, [w.goto]))) for i, w in enumerate(written) if i in back},
        )

    def _gotos(self, written: list[Written], out: list[list[int]]) -> set[int]:
        """Add an edge for each goto that leads forward; the steps whose goto leads back."""
        back: set[int] = set()
        for i, w in enumerate(written):
            if w.goto < 0:
                continue
            if i in shape.reach(out, [w.goto]):
                back.add(i)
            elif w.goto not in out[i]:
                out[i].append(w.goto)
            if written[w.goto].start:
                self.findings.add(join(w.path, "on_error"), "a start node cannot be gone to")
        return back

    def _reachable(self, written: list[Written]) -> None:
        """What depends on something is reached where that is; so the first of each line must be a start node."""
        targets = {t for w in written for t in (*w.chosen, w.goto)}
        for i, w in enumerate(written):
            if not w.start and i not in targets and not w.raw.get("depends_on"):
                self.findings.add(
                    w.path, "cannot be reached: a step that is no start node names a dependency (depends_on)"
                )

    # --- nodes ---

    def _node(self, index: int, w: Written, out: tuple[int, ...], back: bool, sight: Sight, depth: int) -> Node:
        kind = str(w.raw.get("kind"))
        node = Node(w.id, index, kind, _role(w), w.spec, out)
        if w.start or w.spec is None:
            return node
        handler = {w.goto} if w.goto >= 0 and not back else set()
        node.chosen = frozenset(set(w.chosen) | handler)
        if w.common is not None:
            self._common(node, w, w.common, back, sight)
        bodies = self._bodies(node, w, sight, depth)
        if w.own is not None:
            compiler = NodeCompiler(node, w.path, self.findings, sight, self.kinds.expressions)
            compiler.fields(w.own, {**_item_sights(w, sight), **bodies})
            self._rules(node, w)
        return node

    def _common(self, node: Node, w: Written, common: Common, back: bool, sight: Sight) -> None:
        compiler = NodeCompiler(node, w.path, self.findings, sight, self.kinds.expressions)
        if common.when is not None:
            node.when = compiler.condition("when", common.when, live=True)
        node.retry = common.retry if common.retry.max else None
        node.timeout = common.timeout
        node.on_error = "goto" if common.on_error.startswith("goto:") else common.on_error  # type: ignore[assignment]
        node.goto, node.goto_back, node.on_replay = w.goto, back, common.on_replay
        if common.output_schema is not None:
            problem = malformed(common.output_schema)
            if problem is not None:
                self.findings.add(join(w.path, "output_schema"), problem)
            node.schema = Schema(common.output_schema)
        if common.cache is not None:
            if node.role != "effect":
                self.findings.add(join(w.path, "cache"), f"{node.kind} performs nothing that could be reused")
            key = common.cache.key
            node.cache_key = compiler.compile("cache.key", lambda c: c.text(key)) or (lambda names: key)
            node.cache_ttl = common.cache.ttl
        if common.budget is not None:
            if node.spec is None or not node.spec.asks_model:
                self.findings.add(join(w.path, "budget"), f"{node.kind} asks no model, so it uses no tokens")
            node.options = {"budget": common.budget.tokens}
        if node.kind == "finish" and "output" not in w.raw:
            node.options = {"output": "dependency"}

    def _bodies(self, node: Node, w: Written, sight: Sight, depth: int) -> dict[str, Sight]:
        """Build the nested graphs; what `while` and `until` see of them."""
        assert w.spec is not None
        inner = sight.at((), {*sight.before, w.id}).plus(*_body_names(w))
        seen: dict[str, Sight] = {}
        for name in w.spec.bodies:
            written = w.raw.get(name)
            if not isinstance(written, dict):
                continue
            named = {name: written} if name != "branches" else written
            for key, steps in named.items():
                path = join(w.path, name) if name != "branches" else join(w.path, f"{name}.{key}")
                body = self.graph(_unwrapped(steps), path, inner, depth + 1)
                if body is not None:
                    node.bodies[key] = body
                    seen["until"] = seen["while"] = inner.at(body.ids, body.ids)
        return seen

    def _rules(self, node: Node, w: Written) -> None:
        """What a field model cannot say by itself."""
        fields, add, path = node.fields, self.findings.add, w.path
        if node.kind == "iterate" and not any(fields[f] is not None for f in ("while", "until", "max_iterations")):
            add(path, f"an iteration needs an end: while, until or max_iterations (at most {MAX_ITERATIONS})")
        elif node.kind == "race" and fields["min_success"] > len(node.bodies):
            add(join(path, "min_success"), f"only {len(node.bodies)} branches can succeed")
        elif node.kind == "wait":
            lacks = incomplete(fields)
            if lacks is not None:
                add(join(path, lacks), f"required when waiting on {fields['on']}")
        elif node.kind == "foreach" and fields["batch"]["rate"]:
            try:
                seconds_each(fields["batch"]["rate"])
            except ValueError as e:
                add(join(path, "batch.rate"), str(e))
        elif (
            node.kind == "assign"
            and fields["writes"]
            and self.declared is not None
            and fields["writes"] not in self.declared
        ):
            add(
                join(path, "writes"),
                f"state declares no variable {fields['writes']!r}{near(fields['writes'], self.declared)}",
            )


def _role(w: Written) -> Role:
    kind = w.raw.get("kind")
    if w.start:
        return "start"
    if kind == "finish":
        return "end"
    if kind in _WAITS:
        return "wait"
    if w.spec is not None and w.spec.bodies:
        return "body"
    return "pure" if w.spec is not None and w.spec.pure else "effect"


def _unwrapped(steps: Any) -> Any:
    """A body may be its steps, ``{steps: …}`` around them, or a single step, which is then called `do`."""
    if isinstance(steps, dict):
        if isinstance(steps.get("kind"), str):
            return {"do": steps}
        inner = steps.get("steps")
        if set(steps) == {"steps"} and isinstance(inner, dict) and not isinstance(inner.get("kind"), str):
            return inner
    return steps


def _body_names(w: Written) -> tuple[str, ...]:
    kind, name = w.raw.get("kind"), w.raw.get("as")
    names = {"foreach": ("item", "index"), "batch": ("batch", "index"), "iterate": ("iteration",)}.get(str(kind), ())
    return (*names, name) if kind == "foreach" and isinstance(name, str) else names


def _item_sights(w: Written, sight: Sight) -> dict[str, Sight]:
    name = w.raw.get("as")
    more = sight.plus("item", "index", *((name,) if isinstance(name, str) else ()))
    kind = w.raw.get("kind")
    if kind == "wait":
        return {"filter": sight.plus(*words_of(w.raw.get("filter")))}
    return {"expression": more.plus("acc") if kind == "reduce" else more}
