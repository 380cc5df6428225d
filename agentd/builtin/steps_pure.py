"""Kinds of step that the engine evaluates itself: control and data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from agentd.builtin.late import late
from agentd.hookspecs import hookimpl
from agentd.ports.nodes import StepSpec

fields = partial(late, "agentd.builtin.fields_pure")


def _pure(kind: str, model: str, help: str) -> StepSpec:
    return StepSpec(kind=kind, fields=fields(model), pure=True, help=help)


def _body(kind: str, model: str, body: str, help: str) -> StepSpec:
    return StepSpec(kind=kind, fields=fields(model), pure=True, bodies=(body,), help=help)


SPECS: tuple[StepSpec, ...] = (
    _pure("switch", "Switch", "choose which steps go on"),
    _body("parallel", "Parallel", "branches", "run named bodies side by side"),
    _body("foreach", "Foreach", "body", "run a body for each element of a list"),
    _body("batch", "Batch", "body", "run a body for each batch of a list"),
    _body("iterate", "Iterate", "body", "run a body again and again"),
    _body("race", "Race", "branches", "run named bodies, the first to succeed wins"),
    _body("subgraph", "Subgraph", "body", "nested steps as one step"),
    _pure("sleep", "Sleep", "wait for a time"),
    _pure("wait", "Wait", "wait for something to happen"),
    _pure("assert", "Assert", "fail unless a condition holds"),
    _pure("fail", "Fail", "fail on purpose"),
    _pure("noop", "Noop", "nothing; joins or names a point of the graph"),
    _pure("checkpoint", "Noop", "have everything so far on disk"),
    _pure("finish", "Finish", "end the run"),
    _pure("assign", "Assign", "compute a value, and write a run variable"),
    _pure("map", "Map", "a new list, element by element"),
    _pure("filter", "Filter", "the elements for which a condition holds"),
    _pure("reduce", "Reduce", "one value from a list"),
    _pure("sort", "Sort", "a sorted list"),
    _pure("dedupe", "Dedupe", "a list without repetitions"),
    _pure("chunk", "Chunk", "a list cut into parts"),
    _pure("template", "Template", "render a text or a value"),
    _pure("parse", "Parse", "read JSON, YAML, CSV or lines"),
    _pure("validate", "Validate", "check a value against a schema"),
)


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return SPECS
