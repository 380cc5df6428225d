"""From a written workflow to a plan, or to everything that is wrong with it; pure.

The definition is the entry of `workflows:` with its steps in place (files, URLs and directories already read).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from agentd.engine.build import GraphBuilder
from agentd.engine.compare import Test
from agentd.engine.document import START_COMMON, StartCommon, Workflow
from agentd.engine.findings import Finding, Findings, join
from agentd.engine.kinds import Kinds
from agentd.engine.names import ENV, RUN, Sight
from agentd.engine.nodes import NodeCompiler
from agentd.engine.plan import Node, Plan, StartNode
from agentd.engine.schemas import Schema, malformed
from agentd.engine.startrules import schedule_problems, words_of
from agentd.errors import ConfigError

__all__ = ["Finding", "Kinds", "canonical", "check", "compile_plan", "definition_hash"]


def compile_plan(definition: dict[str, Any], kinds: Kinds) -> Plan:
    """The plan of `definition`. Raises :class:`agentd.errors.ConfigError` with every finding."""
    findings = Findings()
    plan = _build(definition, kinds, findings)
    if plan is None or findings.listed():
        raise ConfigError(findings=findings.listed())
    return plan


def check(definition: Any, kinds: Kinds) -> list[Finding]:
    """Everything that is wrong with `definition`: ``(path, message)``, paths relative to it; empty when it is right."""
    findings = Findings()
    _build(definition, kinds, findings)
    return findings.listed()


def canonical(value: Any) -> Any:
    """`value` as JSON has it: text keys (YAML's bools, numbers and nulls in JSON's words). Raises ValueError."""
    if isinstance(value, dict):
        return {k if isinstance(k, str) else json.dumps(k): canonical(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(v) for v in value]
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and value - value == 0):
        return value
    raise ValueError(f"no JSON value: {value!r}")


def definition_hash(document: dict[str, Any]) -> str:
    """SHA-256 in hex of a canonical document; the order of keys does not count."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _build(definition: Any, kinds: Kinds, findings: Findings) -> Plan | None:
    if not isinstance(definition, dict):
        findings.add("", "expected a workflow, an object with name and steps")
        return None
    try:
        document = canonical(definition)
    except (ValueError, TypeError, RecursionError) as e:
        findings.add("", str(e))
        return None
    workflow = findings.read(Workflow, document, "", "a workflow")
    steps = document.get("steps")
    if not isinstance(steps, dict):
        return None
    _check_schemas(document, findings)
    starts = {id: raw for id, raw in steps.items() if isinstance(raw, dict) and raw.get("kind") in kinds.starts}
    if not starts:
        findings.add("steps", f"no start node; one of the steps must be of kind {', '.join(sorted(kinds.starts))}")
    if not any(isinstance(raw, dict) and raw.get("kind") == "finish" for raw in steps.values()):
        findings.add("steps", "no step of kind finish")
    declared = frozenset(workflow.state) if workflow is not None and workflow.state else None
    builder = GraphBuilder(kinds, findings, declared)
    graph = builder.graph(steps, "steps", _sight(document, declared), 0, frozenset(starts))
    start_nodes = {id: _start(id, raw, kinds, findings) for id, raw in starts.items()}
    if workflow is None or graph is None or any(node is None for node in start_nodes.values()):
        return None
    return Plan(
        name=workflow.name,
        hash=definition_hash(document),
        document=document,
        workflow=workflow,
        starts={id: node for id, node in start_nodes.items() if node is not None},
        graph=graph,
        inputs=Schema(workflow.inputs.schema_),
        outputs=Schema(workflow.outputs.schema_),
    )


def _sight(document: dict[str, Any], declared: frozenset[str] | None) -> Sight:
    closed: dict[str, Any] = {"run": RUN, "env": ENV}
    if declared is not None:
        closed["vars"] = declared
    inputs = document.get("inputs")
    schema = inputs.get("schema") if isinstance(inputs, dict) else None
    if isinstance(schema, dict) and schema.get("additionalProperties") is False:
        properties = schema.get("properties")
        closed["inputs"] = tuple(properties) if isinstance(properties, dict) else ()
    return Sight(closed=closed)


def _check_schemas(document: dict[str, Any], findings: Findings) -> None:
    for name in ("inputs", "outputs"):
        section = document.get(name)
        if isinstance(section, dict) and "schema" in section:
            _check_schema(section["schema"], f"{name}.schema", findings)
    state = document.get("state")
    for name, variable in state.items() if isinstance(state, dict) else ():
        if isinstance(variable, dict) and "schema" in variable:
            _check_schema(variable["schema"], f"state.{name}.schema", findings)


def _check_schema(schema: Any, path: str, findings: Findings) -> None:
    problem = malformed(schema)
    if problem is not None:
        findings.add(path, problem)


def _start(id: str, raw: dict[str, Any], kinds: Kinds, findings: Findings) -> StartNode | None:
    path, spec = f"steps.{id}", kinds.starts[raw["kind"]]
    common = findings.read(StartCommon, {k: v for k, v in raw.items() if k in START_COMMON}, path, "a start node")
    own = {k: v for k, v in raw.items() if k not in START_COMMON and k != "depends_on"}
    fields = findings.read(spec.fields, own, path, f"kind {spec.kind}")
    if spec.kind == "schedule" and fields is not None:
        for name, problem in schedule_problems(fields, kinds):
            findings.add(join(path, name) if name else path, problem)
    if common is None or fields is None:
        return None
    compiler = NodeCompiler(Node(id, 0, spec.kind, "start"), path, findings, Sight(), kinds.expressions)
    payload = Sight(roots=frozenset({"payload", "env"}), closed={"env": ENV})
    inputs = common.inputs
    render = (
        compiler.compile("inputs", lambda c: c.value(inputs) or (lambda names: inputs), payload) if inputs else None
    )
    return StartNode(id, spec.kind, spec, fields, render, *(_test(compiler, own, name) for name in ("filter", "until")))


def _test(compiler: NodeCompiler, own: dict[str, Any], name: str) -> Test | None:
    """A condition of a start node. What it looks into is known when it fires, so that any word may be a key there."""
    condition = own.get(name)
    if not isinstance(condition, str | bool):
        return None
    sight = Sight(roots=frozenset({"env", *words_of(condition)}))
    test: Test | None = compiler.condition(name, condition, sight, live=True)
    return test
