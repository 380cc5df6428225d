"""A workflow drawn for a terminal: a step a line, the ways between them as lanes on the left; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentd.engine.caption import bodies, caption, edges, terms
from agentd.engine.plan import Graph, Node, Plan

_MARKS = {"start": "▶", "effect": "●", "wait": "◌", "pure": "○", "body": "▣", "end": "■"}


def draw(plan: Plan) -> str:
    """The picture, lines ended by a newline. ▶ starts, ● performs, ○ computes, ◌ waits, ▣ holds steps, ■ ends."""
    about = plan.document.get("description")
    head = plan.name + (f"  {about}" if isinstance(about, str) else "")
    return "".join(f"{line.rstrip()}\n" for line in (head, *_lines(plan.graph, plan.document["steps"])))


def _lines(graph: Graph, steps: Mapping[str, Any]) -> Iterator[str]:
    rows = list(_Picture(graph, steps).rows())
    width = max(len(lanes) for lanes, _ in rows)
    for lanes, text in rows:
        yield f"{lanes.ljust(width)}  {text}"


class _Picture:
    """One graph. A lane is a column that leads to a step; the steps come in an order that follows the lanes."""

    def __init__(self, graph: Graph, steps: Mapping[str, Any]) -> None:
        self.graph, self.steps = graph, steps
        self.lanes: list[int | None] = []
        self.width = max(len(node.id) for node in graph.nodes)

    def rows(self) -> Iterator[tuple[str, str]]:
        """``(lanes, text)``, from top to bottom."""
        for node in _order(self.graph):
            column = self._column(node.index)
            self.lanes[column] = None
            yield self._row({column: _MARKS[node.role]}), self._text(node)
            below = {column: "│"} if node.out else {}
            for name, graph, steps in bodies(node, self.steps[node.id]):
                for line in (*([f"{name}:"] if name else []), *_lines(graph, steps)):
                    yield self._row(below), f"   {line}"
            yield from ((lanes, "") for lanes in self._leave(node, column))

    def _text(self, node: Node) -> str:
        raw = self.steps[node.id]
        ways = [f"{edge.label} {'↑' if edge.back else '→'} {edge.target}" for edge in edges(self.graph, node, raw)
                if edge.label]  # fmt: skip
        notes = ", ".join(filter(None, (terms(raw), *ways)))
        return f"{node.id.ljust(self.width)}  {caption(raw)}{f'  ({notes})' if notes else ''}"

    def _column(self, index: int) -> int:
        """The lane that leads to a step, or a free one."""
        for wanted in (index, None):
            if wanted in self.lanes:
                return self.lanes.index(wanted)
        self.lanes.append(None)
        return len(self.lanes) - 1

    def _leave(self, node: Node, column: int) -> Iterator[str]:
        """The lanes from a step to those after it: into lanes that lead there already, else new ones."""
        joined = [self.lanes.index(index) for index in node.out if index in self.lanes]
        fresh = [index for index in node.out if index not in self.lanes]
        if fresh:
            self.lanes[column] = fresh.pop(0)
        ways = [(lane, False) for lane in joined] + [(index, True) for index in fresh]
        for place, (where, new) in enumerate(ways):
            lane = self._column(where) if new else where
            if new:
                self.lanes[lane] = where
            goes_on = self.lanes[column] is not None or place < len(ways) - 1
            yield self._link(column, lane, goes_on, new)

    def _link(self, column: int, lane: int, goes_on: bool, new: bool) -> str:
        right = lane > column
        ends = ("├" if right else "┤") if goes_on else ("└" if right else "┘")
        meets = ("┐" if right else "┌") if new else ("┤" if right else "├")
        low, high = sorted((column, lane))
        between = {c: "┼" if self.lanes[c] is not None else "─" for c in range(low + 1, high)}
        return self._row({column: ends, lane: meets, **between}, low, high)

    def _row(self, marks: Mapping[int, str], low: int = 0, high: int = 0) -> str:
        text = ""
        for column, leads in enumerate(self.lanes):
            text += marks.get(column, " " if leads is None else "│")
            text += "─" if low <= column < high else " "
        return text.rstrip()


def _order(graph: Graph) -> Iterator[Node]:
    """Every step after those before it, and close to them."""
    missing = list(graph.incoming)
    ready = [index for index in reversed(range(len(missing))) if not missing[index]]
    while ready:
        node = graph.nodes[ready.pop()]
        yield node
        for index in reversed(node.out):
            missing[index] -= 1
            if not missing[index]:
                ready.append(index)
