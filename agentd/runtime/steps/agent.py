"""`agent`: a turn of the model with tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.runs import Performer


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kinds of this family."""
    return {"agent": instance.steps.agents.agent}
