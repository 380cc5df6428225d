"""The JSON Schema of a workflow with the kinds that are installed, made from their specs; pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agentd.engine.document import NAME, Common, StartCommon, Workflow
from agentd.engine.kinds import Kinds
from agentd.ports.fields import read_as

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_STEPS = {"type": "object", "minProperties": 1, "propertyNames": {"pattern": NAME}}


def workflow_schema(kinds: Kinds) -> dict[str, Any]:
    """A schema (2020-12) for one entry of `workflows:`, its steps inline; what a schema cannot say, `check` does."""
    definitions: dict[str, Any] = {}
    workflow = _object(Workflow, "workflow", definitions)
    start, step = _object(StartCommon, "start", definitions), _object(Common, "step", definitions)
    for kind, first in sorted(kinds.starts.items()):
        definitions[f"start.{kind}"] = _node(kind, first.fields, start, definitions, first.help)
    for kind, spec in sorted(kinds.steps.items()):
        definitions[f"step.{kind}"] = _node(kind, spec.fields, step, definitions, spec.help)
    definitions["step"] = _any_of("step", kinds.steps, {})
    definitions["node"] = _any_of("step", kinds.steps, dict.fromkeys(kinds.starts, "start"))
    workflow["properties"]["steps"] = {**_STEPS, "additionalProperties": {"$ref": "#/$defs/node"}}
    return {"$schema": DIALECT, "title": "agentd workflow", **workflow, "$defs": definitions}


def _object(model: type[BaseModel], group: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of `model`; what it refers to is kept as ``<group>:<name>``."""
    made = model.model_json_schema(by_alias=True, ref_template=f"#/$defs/{group}:{{model}}")
    definitions.update({f"{group}:{name}": below for name, below in made.pop("$defs", {}).items()})
    made.pop("title", None)
    made.pop("description", None)
    return made


def _node(
    kind: str, model: type[BaseModel], shared: dict[str, Any], definitions: dict[str, Any], help: str
) -> dict[str, Any]:
    own = _object(model, kind, definitions)
    properties = {**shared["properties"], **own.get("properties", {}), "kind": {"const": kind}}
    for field, how in read_as(model).items():
        described = {k: v for k, v in properties[field].items() if k == "description"}
        if how == "steps":
            properties[field] = {**_body(), **described}
        elif how == "branches":
            properties[field] = {"type": "object", "minProperties": 1, "additionalProperties": _body(), **described}
    required = sorted({"kind", *own.get("required", [])})
    made = {"type": "object", "description": help, "properties": properties, "required": required}
    return {**made, "additionalProperties": own.get("additionalProperties", False)}


def _body() -> dict[str, Any]:
    """Steps by id, or a single step."""
    step = {"$ref": "#/$defs/step"}
    return {"anyOf": [{**_STEPS, "additionalProperties": step}, step]}


def _any_of(group: str, kinds: Any, more: dict[str, str]) -> dict[str, Any]:
    """A node of any kind; the kind decides which fields it may have."""
    groups = {**dict.fromkeys(kinds, group), **more}
    return {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": sorted(groups)}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": {"$ref": f"#/$defs/{where}.{kind}"}}
            for kind, where in sorted(groups.items())
        ],
    }
