"""Kinds of step that the engine evaluates itself: control and data."""

from __future__ import annotations

from collections.abc import Iterable

from agentd.builtin.late import late
from agentd.hookspecs import hookimpl
from agentd.ports.nodes import StepSpec


def _pure(kind: str, model: str, help: str) -> StepSpec:
    return StepSpec(kind=kind, fields=late(model), pure=True, help=help)


def _body(kind: str, model: str, body: str, help: str) -> StepSpec:
    return StepSpec(kind=kind, fields=late(model), pure=True, bodies=(body,), help=help)


SPECS: tuple[StepSpec, ...] = (
    _pure("switch", "control.Switch", "choose which steps go on"),
    _body("parallel", "body.Parallel", "branches", "run named bodies side by side"),
    _body("foreach", "body.Foreach", "body", "run a body for each element of a list"),
    _body("batch", "body.Batch", "body", "run a body for each batch of a list"),
    _body("iterate", "body.Iterate", "body", "run a body again and again"),
    _body("race", "body.Race", "branches", "run named bodies, the first to succeed wins"),
    _body("subgraph", "body.Subgraph", "body", "nested steps as one step"),
    _pure("sleep", "control.Sleep", "wait for a time"),
    _pure("wait", "control.Wait", "wait for something to happen"),
    _pure("assert", "control.Assert", "fail unless a condition holds"),
    _pure("fail", "control.Fail", "fail on purpose"),
    _pure("noop", "control.Noop", "nothing; joins or names a point of the graph"),
    _pure("checkpoint", "control.Noop", "have everything so far on disk"),
    _pure("finish", "control.Finish", "end the run"),
    _pure("assign", "data.Assign", "compute a value, and write a run variable"),
    _pure("map", "data.Map", "a new list, element by element"),
    _pure("filter", "data.Filter", "the elements for which a condition holds"),
    _pure("reduce", "data.Reduce", "one value from a list"),
    _pure("sort", "data.Sort", "a sorted list"),
    _pure("dedupe", "data.Dedupe", "a list without repetitions"),
    _pure("chunk", "data.Chunk", "a list cut into parts"),
    _pure("template", "data.Template", "render a text or a value"),
    _pure("parse", "data.Parse", "read JSON, YAML, CSV or lines"),
    _pure("validate", "data.Validate", "check a value against a schema"),
)


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return SPECS
