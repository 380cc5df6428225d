"""Whether an instance is a job or a daemon, and how it is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from agentd.config.findings import Finding
from agentd.quantities import parse_duration

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.plugins import PluginSet


def shape(document: Document, plugins: PluginSet) -> Literal["job", "daemon"]:
    """`lifecycle.run_until`; `auto` is a daemon when a start node lives long."""
    if document.lifecycle.run_until != "auto":
        return "job" if document.lifecycle.run_until == "idle" else "daemon"
    for definition in document.workflows:
        steps = definition.get("steps")
        for step in steps.values() if isinstance(steps, dict) else ():
            kind = step.get("kind") if isinstance(step, dict) else None
            spec = plugins.start_nodes.get(kind) if isinstance(kind, str) else None
            if spec is not None and spec.lifetime == "long":
                return "daemon"
    return "job"


def has_turns(document: Document, plugins: PluginSet) -> bool:
    """Whether a turn of the model may come; a workflow that is still to be fetched may hold any kind."""
    if not document.workflows:
        return True
    specs = plugins.step_nodes
    return any(kind in specs and specs[kind].asks_model for kind in _kinds(document.workflows))


def _kinds(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "url" in value and "steps" not in value and "kind" not in value:
            yield "agent"
        if isinstance(value.get("kind"), str):
            yield value["kind"]
        for below in value.values():
            yield from _kinds(below)
    elif isinstance(value, list):
        for below in value:
            yield from _kinds(below)


def store_kind(document: Document, plugins: PluginSet) -> str:
    """The kind of store in use: the chosen one, else by the shape."""
    return document.store.kind or ("file" if shape(document, plugins) == "daemon" else "none")


def instance(document: Document, environ: Mapping[str, str]) -> str:
    """The durable identity."""
    return document.agent.name or environ.get("AGENT_POD_NAME") or environ.get("HOSTNAME") or "agentd"


def grace(document: Document, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether a drain fits into what the orchestrator grants, where AGENT_POD_GRACE_SECONDS tells it."""
    given = environ.get("AGENT_POD_GRACE_SECONDS", "").strip()
    if not given:
        return
    try:
        seconds = parse_duration(given)
    except ValueError as fault:
        yield Finding("warning", "AGENT_POD_GRACE_SECONDS", str(fault))
        return
    drain = document.lifecycle.drain_timeout
    if drain >= seconds:
        wrong = f"a drain may take {drain:g} s, the pod is killed after {seconds:g} s: keep it smaller, with some room"
        yield Finding("warning", "lifecycle.drain_timeout", wrong)
