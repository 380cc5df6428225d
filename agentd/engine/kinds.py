"""The kinds that a definition may use, as the installed plugins declare them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentd.engine.template import Expressions

if TYPE_CHECKING:
    from agentd.ports.nodes import StartSpec, StepSpec
    from agentd.ports.schedule import ScheduleRuleSpec


class Contributed(Protocol):
    """What :class:`agentd.plugins.PluginSet` offers."""

    @property
    def start_nodes(self) -> Mapping[str, StartSpec]: ...

    @property
    def step_nodes(self) -> Mapping[str, StepSpec]: ...

    @property
    def schedule_rules(self) -> Mapping[str, ScheduleRuleSpec]: ...

    def missing(self, slot: str, kind: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Kinds:
    """By kind (rules by field): what a workflow's nodes may be.

    `expressions` compiles what follows ``CEL:``; None when no plugin does. `missing` says, of a slot and a kind that
    nobody serves, why, and what to install.
    """

    starts: Mapping[str, StartSpec]
    steps: Mapping[str, StepSpec]
    rules: Mapping[str, ScheduleRuleSpec] = field(default_factory=dict)
    expressions: Expressions | None = None
    missing: Callable[[str, str], str] | None = None

    @classmethod
    def of(cls, plugins: Contributed) -> Kinds:
        """The kinds of a set of plugins."""
        return cls(plugins.start_nodes, plugins.step_nodes, plugins.schedule_rules, None, plugins.missing)

    def install(self, kind: str, *slots: str) -> str | None:
        """The sentence that says what to install for `kind`, None when nothing known serves it."""
        said = (self.missing(slot, kind) for slot in slots) if self.missing is not None else ()
        return next((sentence for sentence in said if "pip install" in sentence or "needs" in sentence), None)

    def unknown(self, kind: str, hint: str = "") -> str:
        """What to say of a `kind` that is not here."""
        install = self.install(kind, "step_nodes", "start_nodes")
        return install or f'unknown kind "{kind}"{hint or "; `agentd plugins` lists what is installed"}'
