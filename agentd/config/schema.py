"""The JSON Schemas (2020-12) of the configuration as it is composed on this machine, and of a workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.plugins import PluginSet

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
    """The schema of one workflow: its nodes by the kinds that are installed."""
    from agentd.engine.kinds import Kinds
    from agentd.engine.schema import workflow_schema

    return workflow_schema(Kinds.of(plugins))
