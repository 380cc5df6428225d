"""The kinds that a definition may use, as the installed plugins declare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentd.engine.template import Expressions

if TYPE_CHECKING:
    from agentd.ports.nodes import StartSpec, StepSpec
    from agentd.ports.schedule import ScheduleRuleSpec


@dataclass(frozen=True, slots=True)
class Kinds:
    """By kind (rules by field): what a workflow's nodes may be.

    `expressions` compiles what follows ``CEL:``; None when no plugin does. `missing` names, for a kind or a field that
    nobody serves, what to install (``pip install 'agentd[a2a]'``).
    """

    starts: Mapping[str, StartSpec]
    steps: Mapping[str, StepSpec]
    rules: Mapping[str, ScheduleRuleSpec] = field(default_factory=dict)
    expressions: Expressions | None = None
    missing: Mapping[str, str] = field(default_factory=dict)

    def unknown(self, kind: str, hint: str = "") -> str:
        """What to say of a `kind` that is not here."""
        install = self.missing.get(kind)
        if install is not None:
            return f'kind "{kind}" needs a plugin that is not installed; install it with: {install}'
        return f'unknown kind "{kind}"{hint or "; `agentd plugins` lists what is installed"}'
