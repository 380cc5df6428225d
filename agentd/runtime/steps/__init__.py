"""Who performs which kind of step: the kernel's kinds, by name. A plugin's kind brings its own performer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentd.runtime.agent import Agents

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live
    from agentd.runtime.runs import Performer


class Steps:
    """The performers of an instance, made when first asked for; nothing is imported or opened before."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._table: dict[str, Performer] = {}
        self._agents: Agents | None = None
        self._mocks: dict[str, object] = {}

    def performer(self, kind: str) -> Performer | None:
        """Who performs steps of `kind`, None when nobody does."""
        if kind not in self._table:
            self._fill(kind)
        return self._table.get(kind)

    def _fill(self, kind: str) -> None:
        if kind == "agent":
            self._table["agent"] = self.agents.agent

    @property
    def agents(self) -> Agents:
        """What performs turns."""
        if self._agents is None:
            i = self._instance
            self._agents = Agents(
                lambda: i.document, i.turns, i.servers, i.journal, i.host,
                durable=i.store_spec.durable, patient=i.shape == "daemon",
                instruction=lambda: i.instruction, mock=self._mock,
            )  # fmt: skip
        return self._agents

    def _mock(self, spec: str) -> str:
        """The URL of the offline model that serves `spec` (``mock:…``)."""
        if spec not in self._mocks:
            from agentd.testing.mock_model import start_mock

            self._mocks[spec] = start_mock(spec)
        return str(self._mocks[spec].url)  # type: ignore[attr-defined]

    def run_ended(self, live: Live) -> None:
        """A run is final."""

    async def close(self) -> None:
        """Close what was opened."""
        for mock in self._mocks.values():
            mock.close()  # type: ignore[attr-defined]
