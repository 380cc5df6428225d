"""When a schedule ticks, and what becomes of missed ticks."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.runtime.starts.ticks import MOST, PATIENCE, At, CatchUp, Daily, Every, Spread, instant, iso, judge

PLAIN = Spread()
periods = st.floats(min_value=0.01, max_value=1e6)
instants = st.floats(min_value=0, max_value=4e9)


@given(anchor=instants, period=periods, after=instants)
def test_the_next_tick_is_later_and_at_most_a_period_away(anchor: float, period: float, after: float) -> None:
    tick = Every(anchor, period).after(after)
    assert tick > after
    assert tick - max(after, anchor) <= period * (1 + 1e-6) + 1e-3


@given(anchor=instants, period=st.floats(min_value=0.1, max_value=1e5), count=st.integers(1, 500))
def test_walking_misses_no_tick(anchor: float, period: float, count: int) -> None:
    ticks, at = Every(anchor, period), anchor
    for _ in range(count):
        at = ticks.after(at)
    assert at == pytest.approx(anchor + count * period, rel=1e-9, abs=1e-3)


def test_an_instant_ticks_once() -> None:
    assert At(10).after(9) == 10
    assert At(10).after(10) is None


@given(
    looks=st.lists(st.tuples(st.floats(0, 400), st.booleans()), min_size=1, max_size=20),
    catch_up=st.sampled_from(["none", "one", "all"]),
    jitter=st.floats(0, 30),
)
def test_no_tick_fires_twice_and_the_next_look_begins_where_the_last_ended(
    looks: list[tuple[float, bool]], catch_up: CatchUp, jitter: float
) -> None:
    ticks, spread, now, handled = Every(0, 60), Spread(jitter, "w/s"), 0.0, 0.0
    fired: list[float] = []
    for passed, present in looks:
        now += passed
        verdict = judge(ticks, handled, now, catch_up=catch_up, spread=spread, present=present)
        fired += verdict.fire
        assert verdict.handled >= handled
        assert all(spread.due(tick) <= now for tick in verdict.fire)
        assert verdict.next is not None and spread.due(verdict.next) > now
        handled = verdict.handled
    assert fired == sorted(set(fired))
    if catch_up == "all":
        assert fired == [60.0 * n for n in range(1, len(fired) + 1)] and len(fired) == int(handled // 60)


@pytest.mark.parametrize(
    ("catch_up", "present", "late", "fire", "missed"),
    [
        ("none", False, 10, [], 3),  # nobody was there
        ("none", True, 10, [3000.0], 2),  # we were, and the last one is on time
        ("none", True, PATIENCE + 1, [], 3),  # the machine slept
        ("one", False, 10, [3000.0], 2),
        ("one", True, PATIENCE + 1, [3000.0], 2),
        ("all", False, 10, [1000.0, 2000.0, 3000.0], 0),
    ],
)
def test_missed_ticks(catch_up: CatchUp, present: bool, late: float, fire: list[float], missed: int) -> None:
    verdict = judge(Every(0, 1000), 0.0, 3000 + late, catch_up=catch_up, spread=PLAIN, present=present)
    assert (verdict.fire, verdict.missed, verdict.handled, verdict.next) == (fire, missed, 3000, 4000)


def test_a_long_absence_costs_a_bounded_look() -> None:
    year = 366 * 86400.0
    verdict = judge(Every(0, 1), 0, year, catch_up="all", spread=PLAIN, present=False)
    assert len(verdict.fire) == MOST and verdict.fire[-1] == year and verdict.next == year + 1
    verdict = judge(Every(0, 0.01), 0, year, catch_up="one", spread=PLAIN, present=False)
    assert verdict.fire[-1] == pytest.approx(year) and len(verdict.fire) == 1


@given(tick=instants, most=st.floats(0.001, 1e5))
def test_jitter_is_the_same_for_the_same_tick(tick: float, most: float) -> None:
    spread = Spread(most, "w/s")
    assert tick <= spread.due(tick) <= tick + most
    assert spread.due(tick) == Spread(most, "w/s").due(tick)


def test_jitter_differs_between_nodes() -> None:
    assert len({Spread(3600, node).due(1000.0) for node in "abcdef"}) == 6


def test_an_instant_without_an_offset_is_meant_in_its_zone() -> None:
    assert iso(instant("2026-07-01T10:00:00", ZoneInfo("Europe/Berlin"))) == "2026-07-01T08:00:00Z"
    assert iso(instant("2026-07-01T10:00:00+09:00", UTC)) == "2026-07-01T01:00:00Z"
    assert instant("2026-07-01T10:00:00Z", UTC) == datetime(2026, 7, 1, 10, tzinfo=UTC).timestamp()


@given(
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]),
    of_day=st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    start=st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2035, 1, 1)),
)
def test_a_time_of_day_comes_once_each_local_day(zone: str, of_day: time, start: datetime) -> None:
    ticks, at = Daily(of_day, ZoneInfo(zone)), start.replace(tzinfo=UTC).timestamp()
    seen = []
    for _ in range(400):
        at = ticks.after(at)
        seen.append(datetime.fromtimestamp(at, ZoneInfo(zone)))
    days = [when.date() for when in seen]
    if zone != "Pacific/Apia":  # which skipped a whole day once
        assert all(b - a == timedelta(days=1) for a, b in pairwise(days))
    assert len(set(days)) == len(days)


def test_a_time_of_day_on_the_two_odd_days() -> None:
    ticks = Daily(time(2, 30), ZoneInfo("Europe/Berlin"))
    spring = instant("2027-03-27T12:00:00Z", UTC)
    assert iso(ticks.after(spring)) == "2027-03-28T01:30:00Z"  # 03:30 by the new time
    autumn = instant("2027-10-30T12:00:00Z", UTC)
    assert iso(ticks.after(autumn)) == "2027-10-31T00:30:00Z"  # the first of two
    assert iso(ticks.after(instant("2027-10-31T00:30:00Z", UTC))) == "2027-11-01T01:30:00Z"
