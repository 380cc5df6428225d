"""The JSON Schemas (2020-12) of the configuration as it is composed on this machine, and of a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.plugins import PluginSet
    from agentd.ports.nodes import StartSpec, StepSpec

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def config(model: type[Document]) -> dict[str, Any]:
    """The schema of a configuration file. Lists of scalars may also be one text, durations and sizes are text too."""
    schema = model.model_json_schema(mode="validation")
    _widen(schema)
    return {"$schema": DIALECT, "title": "agentd configuration", **{k: v for k, v in schema.items() if k != "title"}}


def _widen(node: Any) -> None:
    """Say what is accepted beyond the type: text for durations, sizes and lists of scalars."""
    if isinstance(node, dict):
        for below in node.values():
            _widen(below)
        if node.get("format") in ("duration", "size"):
            node["type"] = [node["type"], "string"] if isinstance(node.get("type"), str) else node.get("type")
        item = node.get("items")
        if node.get("type") == "array" and isinstance(item, dict) and item.get("type") == "string":
            node["type"] = ["array", "string"]
    elif isinstance(node, list):
        for below in node:
            _widen(below)


def workflow(plugins: PluginSet) -> dict[str, Any]:
    """The schema of one workflow: its steps by the kinds that are installed."""
    kinds: dict[str, StartSpec | StepSpec] = {**plugins.start_nodes, **plugins.step_nodes}
    branches: list[dict[str, Any]] = []
    defs: dict[str, Any] = {}
    for kind, spec in sorted(kinds.items()):
        fields = spec.fields.model_json_schema(mode="validation", ref_template=f"#/$defs/{kind}/$defs/{{model}}")
        defs[kind] = fields
        branches.append(
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"properties": {k: _ref(kind, k) for k in fields.get("properties", {})}},
            }
        )
        if required := fields.get("required"):
            branches[-1]["then"]["required"] = required
    step = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": sorted(kinds)}, "depends_on": {"type": ["array", "string"]}},
        "allOf": branches,
    }
    return {
        "$schema": DIALECT,
        "title": "agentd workflow",
        "type": "object",
        "required": ["name", "steps"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$"},
            "description": {"type": "string"},
            "steps": {"type": "object", "additionalProperties": {"$ref": "#/$defs/step"}},
        },
        "$defs": {**defs, "step": step},
    }


def _ref(kind: str, key: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{kind}/properties/{key}"}
