"""Cron expressions for the `schedule` start node: the field `cron`, on cronsim.

cronsim reads the fields as Debian's cron does and knows the two odd days of a time zone; what it lets through and we do
not, is checked here: a sixth field, and a step longer than its field. The README says what is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from agentd.hookspecs import hookimpl
from agentd.ports.schedule import ScheduleRuleSpec

FIELDS = (("minute", 60), ("hour", 24), ("day-of-month", 31), ("month", 12), ("day-of-week", 7))
"""The fields in order, with how many values each has."""


@hookimpl
def agentd_schedule_rules() -> Iterable[ScheduleRuleSpec]:
    """The rule `cron`."""
    return [ScheduleRuleSpec(field="cron", parse=parse, help="five fields, e.g. 0 9 * * 1-5; UTC unless tz")]


def parse(text: str, zone: tzinfo) -> CronRule:
    """The rule `text` means in `zone`; ValueError names the field and the reason.

    A date that never comes is refused here: at run time it would be a search without an end.
    """
    fields = text.split()
    if len(fields) != len(FIELDS):
        raise ValueError(f"{text!r} has {len(fields)} fields, a cron expression has five: {_ORDER}")
    for (name, size), value in zip(FIELDS, fields, strict=True):
        _check_steps(name, size, value)
    expression = " ".join(fields)
    reason = _refusal(expression)
    if reason and _refusal(" ".join([*fields[:3], "*", fields[4]])) == "":
        reason = f"day-of-month {fields[2]} does not occur in month {fields[3]}: this date never comes"
    if reason:
        raise ValueError(f"{text!r}: {reason}")
    rule = CronRule(expression, zone)
    if rule.next(datetime(2000, 1, 1, tzinfo=UTC)) is None:
        raise ValueError(f"{text!r}: this date never comes")
    return rule


@dataclass(frozen=True, slots=True)
class CronRule:
    """A cron expression in a time zone; pure."""

    expression: str
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first instant strictly after `after`, in UTC; None when there is none within 50 years."""
        from cronsim import CronSim

        # cronsim counts a time of day in local time without an offset: inside the doubled hour it may name the first
        # of the two again, which has been. The day's firing is then done, the next one is meant.
        for instant in CronSim(self.expression, after.astimezone(self.zone)):
            found = instant.astimezone(UTC)
            if found > after:
                return found
        return None


def _refusal(expression: str) -> str:
    """Why cronsim refuses `expression`, empty when it does not."""
    from cronsim import CronSim, CronSimError

    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return str(error).lower()
    return ""


def _check_steps(name: str, size: int, value: str) -> None:
    """`*/90` in the minutes would be once an hour, which nobody means who writes it."""
    for term in value.split(","):
        step = term.partition("/")[2]
        if step.isascii() and step.isdigit() and int(step[:9]) >= size > 1:
            raise ValueError(f"{name} {term!r}: a step must be less than {size}")


_ORDER = ", ".join(name for name, _ in FIELDS)
