"""What the field models of start nodes cannot say by themselves; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, time, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agentd.engine.kinds import Kinds
from agentd.engine.waits import instant

_TIME = re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII)
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")


def words_of(condition: Any) -> tuple[str, ...]:
    """A filter looks into a payload that nobody knows yet: any word of it may be a key there."""
    return ("payload", *_WORD.findall(condition)) if isinstance(condition, str) else ("payload",)


def schedule_problems(fields: Any, kinds: Kinds) -> Iterator[tuple[str, str]]:
    """``(field, message)`` for a schedule that does not say when, exactly once."""
    extra: dict[str, Any] = fields.model_extra or {}
    given = [name for name in ("every", "at") if getattr(fields, name) is not None] + list(extra)
    known = ["every", "at", *kinds.rules]
    if len(given) != 1:
        yield "", f"a schedule has exactly one of {', '.join(known)}" + (f"; got {', '.join(given)}" if given else "")
    zone: tzinfo = UTC
    if fields.tz is not None:
        try:
            zone = ZoneInfo(fields.tz)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield "tz", f"there is no time zone {fields.tz!r}"
    if fields.at is not None:
        try:
            time_of_day(fields.at)
        except ValueError:
            try:
                instant(fields.at)
            except ValueError as e:
                yield "at", f"expected a time of day (HH:MM) or an instant in RFC 3339: {e}"
    for name, value in extra.items():
        yield from _rule(name, value, zone, kinds)


def time_of_day(text: str) -> time:
    """The time of day that ``02:30`` or ``02:30:15`` is. Raises ValueError for anything else."""
    if _TIME.fullmatch(text) is None:
        raise ValueError(f"no time of day: {text!r}")
    return time.fromisoformat(text)


def _rule(name: str, value: Any, zone: tzinfo, kinds: Kinds) -> Iterator[tuple[str, str]]:
    rule = kinds.rules.get(name)
    if rule is None:
        yield name, kinds.install(name, "schedule_rules") or "unknown field of kind schedule"
    elif not isinstance(value, str):
        yield name, "expected a text"
    else:
        try:
            rule.parse(value, zone)
        except ValueError as e:
            yield name, str(e)
