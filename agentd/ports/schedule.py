"""What adds a rule to the `schedule` start node (the plugin `cron` adds the field `cron`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Protocol


class Rule(Protocol):
    """A parsed rule; pure."""

    def next(self, after: datetime) -> datetime | None:
        """The first instant strictly after `after` (aware, any zone), None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRuleSpec:
    """A field of the `schedule` start node. `parse` raises ValueError with a reason; it runs at load."""

    field: str
    parse: Callable[[str, tzinfo], Rule]
    help: str = ""
