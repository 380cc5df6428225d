"""A workflow as a Mermaid flowchart; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from agentd.engine.caption import bodies, caption, edges, terms
from agentd.engine.plan import Graph, Node, Plan

_SHAPES = {
    "start": ("([", "])"), "effect": ("[", "]"), "wait": ("{{", "}}"), "pure": ("(", ")"), "end": ("((", "))"),
    "switch": ("{", "}"),
}  # fmt: skip


def draw(plan: Plan) -> str:
    """The flowchart, lines ended by a newline. Bodies are subgraphs, ways that are chosen are labelled."""
    lines = ["---", f"title: {plan.name}", "---", "flowchart TD", *_lines(plan.graph, plan.document["steps"], count())]
    return "".join(f"{line}\n" for line in lines)


def _lines(graph: Graph, steps: Mapping[str, Any], numbers: count[int], indent: str = "  ") -> Iterator[str]:
    names = {node.id: f"n{next(numbers)}" for node in graph.nodes}
    for node in graph.nodes:
        name, text = names[node.id], _text(node, steps[node.id])
        if node.role == "body":
            yield from _body(node, steps[node.id], name, text, numbers, indent)
        else:
            left, right = _SHAPES["switch" if node.kind == "switch" else node.role]
            yield f"{indent}{name}{left}{text}{right}"
    for node in graph.nodes:
        for edge in edges(graph, node, steps[node.id]):
            way = "-.->" if edge.back or edge.label == "on error" else "-->"
            label = f"|{_quoted(edge.label)}|" if edge.label else ""
            yield f"{indent}{names[node.id]} {way}{label} {names[edge.target]}"


def _body(node: Node, raw: Mapping[str, Any], name: str, text: str, numbers: count[int], indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {name}[{text}]"
    for branch, graph, steps in bodies(node, raw):
        if branch:
            yield f"{indent}  subgraph {name}_{next(numbers)}[{_quoted(branch)}]"
        yield from _lines(graph, steps, numbers, indent + ("    " if branch else "  "))
        if branch:
            yield f"{indent}  end"
    yield f"{indent}end"


def _text(node: Node, raw: Mapping[str, Any]) -> str:
    return _quoted("\n".join(filter(None, (node.id, caption(raw), terms(raw)))))


def _quoted(text: str) -> str:
    for sign, name in (("&", "amp"), ('"', "quot"), ("<", "lt"), (">", "gt")):
        text = text.replace(sign, f"#{name};")
    return '"' + text.replace("\n", "<br/>") + '"'
