"""Workflow definitions: the current ones by name, and every one that a live run is pinned to by its hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.definition import Kinds, compile_plan
from agentd.errors import ConfigError
from agentd.journal.journal import Record

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.engine.plan import Plan

MAIN = "main"
"""The workflow that a bare instruction is sugar for."""


def documents(document: Document) -> list[dict[str, Any]]:
    """The workflows of a configuration; a bare instruction is the workflow once → agent → finish."""
    if document.workflows:
        return document.workflows
    return [
        {
            "name": MAIN,
            "steps": {
                "once": {"kind": "once"},
                "agent": {"kind": "agent", "depends_on": ["once"]},
                "finish": {"kind": "finish", "depends_on": ["agent"], "output": "{{steps.agent.output}}"},
            },
        }
    ]


class Definitions:
    """Compiled plans. A live run finishes on the definition it started with, whatever is current."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self.current: dict[str, Plan] = {}
        self._pinned: dict[str, Plan] = {}
        self._kept: set[str] = set()
        self.unreadable: dict[str, ConfigError] = {}
        """By hash why a pinned definition cannot be used now: the plugin of one of its kinds is not there, say."""

    def adopt(self, found: Iterable[Mapping[str, Any]]) -> None:
        """Make `found` the current definitions. Raises :class:`agentd.errors.ConfigError` with every finding."""
        plans = [compile_plan(dict(document), self._kinds) for document in found]
        self.current = {plan.name: plan for plan in plans}
        self._pinned.update({plan.hash: plan for plan in plans})

    def plan(self, name: str) -> Plan | None:
        """The current definition of a workflow."""
        return self.current.get(name)

    def pinned(self, hash: str) -> Plan | None:
        """The definition that a run was started with."""
        return self._pinned.get(hash)

    def pin(self, plan: Plan) -> list[Record]:
        """The record that keeps `plan` for runs of it, when it is not kept yet; to be committed with the run."""
        if plan.hash in self._kept:
            return []
        self._kept.add(plan.hash)
        return [("definition", plan.hash, {"name": plan.name, "document": plan.document})]

    def doubt(self) -> None:
        """A commit failed, perhaps with a pin in it: pin again with the runs that come."""
        self._kept.clear()

    def restore(self, kept: Mapping[str, Mapping[str, Any]], needed: Iterable[str]) -> list[Record]:
        """Take back the definitions of an earlier life that live runs need; the removals of the others."""
        wanted = set(needed)
        for hash, state in kept.items():
            if hash in wanted and hash not in self._pinned:
                try:
                    self._pinned[hash] = compile_plan(state["document"], self._kinds)
                except ConfigError as error:
                    self.unreadable[hash] = error
        self._kept = {hash for hash in kept if hash in wanted}
        return [("definition", hash, None) for hash in kept if hash not in wanted]
