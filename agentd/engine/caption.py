"""What to write beside a step, and on the edges that it chooses, when its workflow is drawn; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentd.engine.plan import Graph, Node

_TELLING = (
    "url", "name", "key", "uri", "path", "stream", "every", "at", "cron", "interval", "delay", "duration", "over", "on",
    "condition", "expression", "handles", "run", "prefix", "id", "question", "instruction", "prompt", "input", "text",
    "template", "value", "message", "status", "output",
)  # fmt: skip
"""The fields that say most of a step, the first that it has is shown."""

_WIDTH = 48


class Edge(NamedTuple):
    """An edge to a step. `label` says when it is taken; `back` that it leads upstream."""

    target: str
    label: str
    back: bool


def caption(raw: Mapping[str, Any]) -> str:
    """``mcp.tool inbox.list``: the kind, and the field that tells most."""
    server, tool = raw.get("server"), raw.get("tool")
    if isinstance(server, str) and isinstance(tool, str):
        told = f"{server}.{tool}"
    else:
        told = next((shown(raw[name]) for name in _TELLING if raw.get(name) not in (None, "", [], {})), "")
    if isinstance(raw.get("url"), str):
        told = f"{raw.get('method', 'GET')} {told}"
    return f"{raw.get('kind')} {told}".strip()


def terms(raw: Mapping[str, Any]) -> str:
    """Under which terms the step runs: ``when …, retry 3``; empty for the usual ones."""
    retry = raw.get("retry")
    found = (
        ("when", raw.get("when")),
        ("retry", retry.get("max") if isinstance(retry, Mapping) else None),
        ("timeout", raw.get("timeout")),
        ("on error", "continue" if raw.get("on_error") == "continue" else None),
        ("cached by", raw["cache"].get("key") if isinstance(raw.get("cache"), Mapping) else None),
    )
    return ", ".join(f"{word} {shown(value)}" for word, value in found if value is not None)


def edges(graph: Graph, node: Node, raw: Mapping[str, Any]) -> Iterator[Edge]:
    """The edges from `node`: to those that depend on it, to those it chooses, and its handler of errors."""
    labels: dict[str, list[str]] = {}
    cases = raw.get("cases") if node.kind == "switch" else None
    for value, targets in [*(cases or {}).items(), ("else", raw.get("default") if cases else None)]:
        for target in [targets] if isinstance(targets, str) else targets or []:
            labels.setdefault(target, []).append(str(value))
    for index in node.out:
        id = graph.nodes[index].id
        said = labels.get(id, [])
        if index == node.goto and index in node.chosen:
            said = [*said, "on error"]
        yield Edge(id, ", ".join(said), back=False)
    if node.goto_back:
        yield Edge(graph.nodes[node.goto].id, "on error", back=True)


def bodies(node: Node, raw: Mapping[str, Any]) -> Iterator[tuple[str, Graph, Mapping[str, Any]]]:
    """The graphs inside `node`: branch name (empty for the only body), graph, written steps."""
    branches = raw.get("branches")
    for name, graph in node.bodies.items():
        if isinstance(branches, Mapping) and name in branches:
            yield name, graph, branches[name]
        else:
            yield "", graph, raw.get(name) or {}


def shown(value: Any) -> str:
    """A value in few words, on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
