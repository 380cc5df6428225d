"""Kinds of step that are performed outside the engine: durable state, MCP, HTTP, models and people.

The specs here declare fields only. Their performers live where the services are: the runtime keeps a table from kind
to performer and uses ``spec.perform or PERFORMERS[spec.kind]``, so that a plugin's kind, which brings its own
`perform`, and a kernel's kind are served alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from agentd.builtin.late import late
from agentd.hookspecs import hookimpl
from agentd.ports.nodes import StepSpec

fields = partial(late, "agentd.builtin.fields_effect")


def _effect(kind: str, model: str, help: str) -> StepSpec:
    return StepSpec(kind=kind, fields=fields(model), help=help)


SPECS: tuple[StepSpec, ...] = (
    _effect("mcp.tool", "McpTool", "call a tool of an MCP server"),
    _effect("mcp.resource", "McpResource", "read or list resources, get a prompt, complete"),
    _effect("tool", "Tool", "call a tool by its full name"),
    _effect("http", "Http", "make an HTTP request"),
    _effect("memory.get", "MemoryKey", "read a key of the memory"),
    _effect("memory.set", "MemorySet", "write a key of the memory"),
    _effect("memory.list", "MemoryList", "list keys of the memory"),
    _effect("memory.delete", "MemoryKey", "remove a key of the memory"),
    _effect("artifact.create", "ArtifactCreate", "keep a document"),
    _effect("artifact.get", "ArtifactRef", "read a document that was kept"),
    _effect("artifact.delete", "ArtifactRef", "remove a document that was kept"),
    _effect("emit", "Emit", "append an event to a stream"),
    _effect("workflow", "WorkflowStep", "run another workflow"),
    _effect("workflow.signal", "WorkflowSignal", "send a signal"),
    _effect("workflow.wait", "RunHandle", "wait for a run"),
    _effect("workflow.cancel", "CancelRun", "cancel a run"),
    _effect("join", "Join", "wait for handles"),
    _effect("agent", "Agent", "a turn of the model with tools"),
    _effect("subagent", "Subagent", "a child agent with narrowed tools"),
    _effect("think", "Think", "ask the model, without tools"),
    _effect("classify", "Classify", "one class of several"),
    _effect("extract", "Extract", "structured data from text"),
    _effect("summarize", "Summarize", "a shorter text"),
    _effect("judge", "Judge", "a verdict by criteria"),
    _effect("route", "Route", "where something should go"),
    _effect("human", "Human", "ask a person"),
)


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return SPECS
