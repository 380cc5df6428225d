"""When a schedule ticks, and what becomes of the ticks nobody was there for; pure.

Instants are epoch seconds. A tick is *handled* once it fired or was given up; the last handled one is what is durable.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Literal, Protocol

from agentd.ports.schedule import Rule

CatchUp = Literal["none", "one", "all"]

PATIENCE = 90.0
"""Seconds a tick may be late and still be on time: the wall clock is looked at every 60 s, should it be stepped."""

MOST = 1000
"""Missed ticks that are made up for at once; older ones are given up."""

_WINDOWS = (1.0, 60.0, 3600.0, 86400.0, 31 * 86400.0, 366 * 86400.0)
"""How far back is looked, from near to far, where walking from the last handled tick would take too long."""


class Ticks(Protocol):
    """A sequence of instants."""

    def after(self, instant: float) -> float | None:
        """The first tick strictly after `instant`, None when there is none."""


@dataclass(frozen=True, slots=True)
class Every:
    """A period of elapsed time from `anchor` on; the anchor itself is no tick."""

    anchor: float
    period: float

    def after(self, instant: float) -> float:
        # One too early rather than one too late, whatever rounding does.
        count = max(1, math.floor((instant - self.anchor) / self.period))
        while (tick := self.anchor + count * self.period) <= instant:
            count += 1
        return tick


@dataclass(frozen=True, slots=True)
class At:
    """One instant."""

    instant: float

    def after(self, instant: float) -> float | None:
        return self.instant if self.instant > instant else None


@dataclass(frozen=True, slots=True)
class Daily:
    """A time of day in a zone, once each local day: one that does not exist that day comes as much later as the clocks
    were put forward, of one that exists twice the first counts."""

    time: time
    zone: tzinfo

    def after(self, instant: float) -> float:
        day = datetime.fromtimestamp(instant, self.zone).date() - timedelta(days=1)
        while (tick := datetime.combine(day, self.time, self.zone).timestamp()) <= instant:
            day += timedelta(days=1)
        return tick


@dataclass(frozen=True, slots=True)
class Ruled:
    """The ticks of a plugin's rule."""

    rule: Rule

    def after(self, instant: float) -> float | None:
        found = self.rule.next(datetime.fromtimestamp(instant, UTC))
        return None if found is None else found.timestamp()


@dataclass(frozen=True, slots=True)
class Spread:
    """Delays each tick by up to `most` seconds, always by the same for the same tick of the same node."""

    most: float = 0.0
    node: str = ""

    def due(self, tick: float) -> float:
        """When the tick is to fire."""
        if self.most <= 0:
            return tick
        digest = hashlib.sha256(f"{self.node}\0{key(tick)}".encode()).digest()
        return tick + self.most * int.from_bytes(digest[:6], "big") / (1 << 48)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is to be done now: `fire` these ticks in order, then `handled` is the last handled one.

    `missed` are ticks among those that were due and do not fire (counted up to :data:`MOST`), `next` is the next tick,
    None when there is none.
    """

    fire: list[float] = field(default_factory=list)
    handled: float
    missed: int = 0
    next: float | None


def judge(
    ticks: Ticks, handled: float, now: float, *, catch_up: CatchUp, spread: Spread, present: bool = True
) -> Verdict:
    """Which ticks after `handled` are to fire at `now`.

    `present` says that we have been there since `handled`: then the newest tick that is due is on time unless it is
    later than :data:`PATIENCE`. Every other due tick was missed: with `none` it is given up, with `one` the newest
    fires, with `all` each does, oldest first.
    """
    due = _due(ticks, handled, now, spread)
    last = due[-1] if due else handled
    following = ticks.after(last)
    if not due:
        return Verdict(handled=handled, next=following)
    on_time = present and now - spread.due(last) <= PATIENCE
    fire = due if catch_up == "all" else due[-1:] if catch_up == "one" or on_time else []
    return Verdict(fire=fire, handled=last, missed=len(due) - len(fire), next=following)


def _due(ticks: Ticks, handled: float, now: float, spread: Spread) -> list[float]:
    """The due ticks after `handled`, oldest first; the newest :data:`MOST` when there are more."""
    found = _walk(ticks, handled, now, spread, MOST + 1)
    for window in _WINDOWS:
        if len(found) <= MOST:
            return found
        near = _walk(ticks, max(handled, now - window), now, spread, 100 * MOST)
        if len(near) >= MOST:
            return near[-MOST:]
    return found[-MOST:]


def _walk(ticks: Ticks, after: float, now: float, spread: Spread, most: int) -> list[float]:
    found: list[float] = []
    tick = ticks.after(after)
    while tick is not None and spread.due(tick) <= now and len(found) < most:
        found.append(tick)
        tick = ticks.after(tick)
    return found


def key(tick: float) -> str:
    """What names a tick, to the millisecond."""
    return f"{tick:.3f}"


def iso(instant: float) -> str:
    """RFC 3339 in UTC, with milliseconds where there are any."""
    when = datetime.fromtimestamp(round(instant, 3), UTC)
    return when.isoformat(timespec="milliseconds" if when.microsecond else "seconds").replace("+00:00", "Z")


def instant(text: str, zone: tzinfo) -> float:
    """Epoch seconds of RFC 3339 text; without an offset it is meant in `zone`. Raises ValueError."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo is not None else when.replace(tzinfo=zone)).timestamp()
