"""Kinds of step that are performed outside the engine: durable state, MCP, HTTP, models and people.

The specs here declare fields only. Their performers live where the services are: the runtime keeps a table from kind
to performer and uses ``spec.perform or PERFORMERS[spec.kind]``, so that a plugin's kind, which brings its own
`perform`, and a kernel's kind are served alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentd.builtin.late import late
from agentd.hookspecs import hookimpl
from agentd.ports.nodes import StepSpec


def _effect(kind: str, model: str, help: str, *, asks_model: bool = False) -> StepSpec:
    return StepSpec(kind=kind, fields=late(model), asks_model=asks_model, help=help)


SPECS: tuple[StepSpec, ...] = (
    _effect("mcp.tool", "service.McpTool", "call a tool of an MCP server"),
    _effect("mcp.resource", "service.McpResource", "read or list resources, get a prompt, complete"),
    _effect("tool", "service.Tool", "call a tool by its full name"),
    _effect("http", "service.Http", "make an HTTP request"),
    _effect("memory.get", "kept.MemoryKey", "read a key of the memory"),
    _effect("memory.set", "kept.MemorySet", "write a key of the memory"),
    _effect("memory.list", "kept.MemoryList", "list keys of the memory"),
    _effect("memory.delete", "kept.MemoryKey", "remove a key of the memory"),
    _effect("artifact.create", "kept.ArtifactCreate", "keep a document"),
    _effect("artifact.get", "kept.ArtifactRef", "read a document that was kept"),
    _effect("artifact.delete", "kept.ArtifactRef", "remove a document that was kept"),
    _effect("emit", "kept.Emit", "append an event to a stream"),
    _effect("workflow", "work.WorkflowStep", "run another workflow"),
    _effect("workflow.signal", "work.WorkflowSignal", "send a signal"),
    _effect("workflow.wait", "work.RunHandle", "wait for a run"),
    _effect("workflow.cancel", "work.CancelRun", "cancel a run"),
    _effect("join", "work.Join", "wait for handles"),
    _effect("agent", "model.Agent", "a turn of the model with tools", asks_model=True),
    _effect("think", "model.Think", "ask the model, without tools", asks_model=True),
    _effect("classify", "model.Classify", "one class of several", asks_model=True),
    _effect("extract", "model.Extract", "structured data from text", asks_model=True),
    _effect("summarize", "model.Summarize", "a shorter text", asks_model=True),
    _effect("judge", "model.Judge", "a verdict by criteria", asks_model=True),
    _effect("route", "model.Route", "where something should go", asks_model=True),
    _effect("human", "work.Human", "ask a person"),
)


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return SPECS
