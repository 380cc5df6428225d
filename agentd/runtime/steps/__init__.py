"""Who performs which kind of step: the kernel's kinds, by name. A plugin's kind brings its own performer.

A family is a module with ``performers(instance) -> {kind: performer}``, imported at the first step of one of its kinds.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agentd.runtime.agent import Agents
from agentd.runtime.steps.nested import Nested

if TYPE_CHECKING:
    from agentd.engine.plan import Graph, Plan
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live
    from agentd.runtime.runs import Performer
    from agentd.runtime.steps.internal import Internal

_FAMILIES = {
    "agent": ("agent",),
    "model": ("think", "classify", "extract", "summarize", "judge", "route"),
    "mcp": ("mcp.tool", "mcp.resource", "tool"),
    "http": ("http",),
    "memory": ("memory.get", "memory.set", "memory.list", "memory.delete"),
    "artifact": ("artifact.create", "artifact.get", "artifact.delete"),
    "emit": ("emit",),
    "workflow": ("workflow", "workflow.signal", "workflow.wait", "workflow.cancel", "join"),
    "human": ("human",),
}
_MODULES = {kind: f"{__name__}.{family}" for family, kinds in _FAMILIES.items() for kind in kinds}
_BY_SERVER = frozenset(_FAMILIES["mcp"])


class Steps:
    """The performers of an instance, made when first asked for; nothing is imported or opened before."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._table: dict[str, Performer] = {}
        self._agents: Agents | None = None
        self._internal: Internal | None = None
        self._mocks: dict[str, object] = {}
        self.nested = Nested(instance)
        self._closing: list[Callable[[], Awaitable[None]]] = []

    def performer(self, kind: str) -> Performer | None:
        """Who performs steps of `kind`, None when nobody does."""
        if kind not in self._table and kind in _MODULES:
            self._table.update(importlib.import_module(_MODULES[kind]).performers(self._instance))
        return self._table.get(kind)

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have `close` called when the instance comes to its end."""
        self._closing.append(close)

    @property
    def agents(self) -> Agents:
        """What performs turns."""
        if self._agents is None:
            i = self._instance
            self._agents = Agents(
                lambda: i.document, i.turns, i.servers, i.journal, i.host,
                durable=i.store_spec.durable, patient=i.shape == "daemon",
                instruction=lambda: i.instruction, mock=self._mock,
                internal=lambda: self.internal, auth=i.credentials.serve,
            )  # fmt: skip
        return self._agents

    @property
    def internal(self) -> Internal:
        """The internal tools that the supervisor serves."""
        if self._internal is None:
            from agentd.runtime.steps.internal import Internal

            self._internal = Internal(self._instance)
        return self._internal

    def _mock(self, spec: str) -> str:
        """The URL of the offline model that serves `spec` (``mock:…``)."""
        if spec not in self._mocks:
            from agentd.testing.mock_model import start_mock

            self._mocks[spec] = start_mock(spec)
        return str(self._mocks[spec].url)  # type: ignore[attr-defined]

    def run_ended(self, live: Live) -> None:
        """A run is final: what it started may end with it."""
        self.nested.run_ended(live)

    async def close(self) -> None:
        """Close what was opened."""
        for close in self._closing:
            await close()
        for mock in self._mocks.values():
            mock.close()  # type: ignore[attr-defined]


def calls_servers(plan: Plan) -> bool:
    """Whether a step of `plan` calls MCP servers from the supervisor."""
    return _calls_servers(plan.graph)


def _calls_servers(graph: Graph) -> bool:
    return any(n.kind in _BY_SERVER or any(map(_calls_servers, n.bodies.values())) for n in graph.nodes)
