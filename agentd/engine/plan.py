"""A compiled workflow: what the engine looks at while runs go on. Built once by :mod:`agentd.engine.definition`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentd.engine.schemas import Schema

if TYPE_CHECKING:
    from agentd.engine.compare import Test
    from agentd.engine.document import Retry, Workflow
    from agentd.engine.paths import Getter, Names
    from agentd.ports.nodes import StartSpec, StepSpec

Role = Literal["start", "effect", "wait", "pure", "body", "end"]
"""start: fires the run; effect: performed outside; wait: the engine suspends it by itself (`sleep`, `wait`); pure:
computed in place; body: holds nested steps; end: `finish`."""


@dataclass(slots=True, eq=False)
class Node:
    """One step of a graph. `out` are the steps that depend on it; an edge in `chosen` is taken only when the node
    chooses it (a switch target, the handler of an error)."""

    id: str
    index: int
    kind: str
    role: Role
    spec: StepSpec | None = None
    out: tuple[int, ...] = ()
    chosen: frozenset[int] = frozenset()
    fields: dict[str, Any] = field(default_factory=dict)
    render: Callable[[Names], dict[str, Any]] | None = None
    """None when the fields hold no template: then `fields` is what the step gets."""
    tests: dict[str, Test] = field(default_factory=dict)
    """Compiled conditions of the kind's fields, by field."""
    items: dict[str, Getter] = field(default_factory=dict)
    """Compiled per-element values of the kind's fields, by field."""
    when: Test | None = None
    retry: Retry | None = None
    timeout: float | None = None
    on_error: Literal["fail", "continue", "goto"] = "fail"
    goto: int = -1
    goto_back: bool = False
    """The goto leads upstream (or to the step itself): what lies between is entered again."""
    on_replay: Literal["retry", "skip", "fail"] = "retry"
    schema: Schema | None = None
    cache_key: Getter | None = None
    cache_ttl: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    bodies: dict[str, Graph] = field(default_factory=dict)
    volatile: bool = False
    """Reads the memory, which may change between two lives: what it read is recorded."""


@dataclass(slots=True, eq=False)
class Graph:
    """Steps of one level. `roots` have nothing before them, `sinks` nothing after."""

    nodes: tuple[Node, ...]
    ids: dict[str, int]
    incoming: tuple[int, ...]
    roots: tuple[int, ...]
    sinks: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...] = ()
    regions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """For each target of a backward goto: itself and everything downstream."""


@dataclass(slots=True, eq=False)
class StartNode:
    """A start node: `fields` is the kind's model, ready for `StartSpec.arm`."""

    id: str
    kind: str
    spec: StartSpec
    fields: Any
    inputs: Getter | None
    """Renders the run's inputs over payload and env; None when the payload is the inputs."""
    filter: Test | None
    until: Test | None = None
    """Of a `loop`: whether the run that ended was the last."""


@dataclass(slots=True, eq=False)
class Plan:
    """A workflow, compiled. `document` is its canonical form, `hash` the SHA-256 of that in hex, which pins runs."""

    name: str
    hash: str
    document: dict[str, Any]
    workflow: Workflow
    starts: dict[str, StartNode]
    graph: Graph
    inputs: Schema
    outputs: Schema
