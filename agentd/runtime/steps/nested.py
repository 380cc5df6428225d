"""Runs that other runs started, and what becomes of them when those are over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live

_BOUND = {"completed": ("sync",), "partial": ("sync",)}
"""By the end of a run, which of those it started end with it; after a good one only what it still waited for: the
loser of a race. After any other end all that were not let go."""
_ALL = ("sync", "async")


class Nested:
    """Children by parent. A child has ``parent {run, step, depth, cascade?}``; without `cascade` it is on its own."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._children: dict[str, dict[str, str]] | None = None

    def started(self, run: str, parent: Mapping[str, str]) -> None:
        """`run` was started by another one."""
        _note(self._index(), run, parent)

    def run_ended(self, live: Live) -> None:
        """A run is over, and what it started may end with it."""
        status = live.record["status"]
        for child, mode in self._index().pop(live.id, {}).items():
            if mode in _BOUND.get(status, _ALL) and not self._instance.admission.cancel(child):
                self._instance.runs.cancel(child, f"the run {live.id} that started it ended as {status}")

    def _index(self) -> dict[str, dict[str, str]]:
        """Made once, of what an earlier life left; kept up from then on."""
        if self._children is None:
            self._children = defaultdict(dict)
            for run in self._instance.runs.live.values():
                _note(self._children, run.id, run.record.get("parent"))
            for event in self._instance.admission.waiting_events:
                _note(self._children, event.id, event.parent)
        return self._children


def _note(children: dict[str, dict[str, str]], run: str, parent: Mapping[str, str] | None) -> None:
    if parent is not None and "cascade" in parent:
        children[parent["run"]][run] = parent["cascade"]
