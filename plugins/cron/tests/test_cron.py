"""The rule `cron`: instants that independent implementations agree on, refusals, and the two odd days of a zone."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from agentd_cron import CronRule, agentd_schedule_rules, parse
from hypothesis import given
from hypothesis import strategies as st

DATA = Path(__file__).parent / "data"
NEXT_TIMES = json.loads((DATA / "next_times.json").read_text())["rows"]
REFUSED = json.loads((DATA / "refuse_at_load.json").read_text())
ZONES = json.loads((DATA / "tz_dst.json").read_text())["rows"]


def instants(rule: CronRule, base: str, count: int) -> list[str]:
    """The next `count` instants, each asked for from the one before as the scheduler does."""
    found, after = [], datetime.fromisoformat(base)
    while len(found) < count:
        following = rule.next(after)
        assert following is not None
        found.append(following)
        after = following
    return [f"{instant:%Y-%m-%dT%H:%M:%SZ}" for instant in found]


def names(row: dict[str, str]) -> str:
    return f"{row['expr']} {row.get('tz', row.get('why', ''))} {row['base']}"


@pytest.mark.parametrize("row", NEXT_TIMES, ids=names)
def test_next_instants(row: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")  # which must not matter
    assert instants(parse(row["expr"], UTC), row["base"], len(row["next"])) == row["next"]


@pytest.mark.parametrize("row", [r for r in ZONES if r["agree"]], ids=names)
def test_zone_where_all_agree(row: dict[str, list[str]]) -> None:
    rule = parse(row["expr"], ZoneInfo(row["tz"]))
    assert instants(rule, row["base"], len(row["cronsim"])) == row["cronsim"]


@pytest.mark.parametrize("row", [r for r in ZONES if not r["agree"]], ids=names)
def test_time_of_day_comes_once_per_local_day(row: dict[str, str]) -> None:
    zone = ZoneInfo(row["tz"])
    stamps = instants(parse(row["expr"], zone), row["base"], 6)
    days = [datetime.fromisoformat(s).astimezone(zone).date() for s in stamps]
    assert set(Counter(days).values()) == {1}
    assert all(later - earlier == timedelta(days=1) for earlier, later in pairwise(days))


@pytest.mark.parametrize("minute", range(0, 60, 15))
def test_doubled_hour_is_not_entered_twice_after_a_restart(minute: int) -> None:
    """A daemon that starts inside the second 01:xx must not run what the first one ran."""
    rule = parse("30 1 * * *", ZoneInfo("America/New_York"))
    second_pass = datetime(2027, 11, 7, 6, minute, tzinfo=UTC)
    assert rule.next(second_pass) == datetime(2027, 11, 8, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", REFUSED["impossible"])
def test_dates_that_never_come_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="never comes"):
        parse(text, UTC)


@pytest.mark.parametrize("text", REFUSED["malformed"])
def test_malformed_is_refused_with_field_and_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"minute|hour|day-of-month|month|day-of-week") as caught:
        parse(text, UTC)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["* * * * * *", "@daily", "0 0 ? * *", "H * * * *", "*/90 * * * *", "0 0 * * FRI-MON"])
def test_extensions_that_are_not_documented_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text, UTC)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("0 0 L * *", "2026-11-30"),
        ("0 0 * * 5#2", "2026-11-13"),
        ("0/15 * * * *", "2026-11-01"),
        ("0 0 LW * *", "2026-11-30"),
    ],
)
def test_documented_extensions(text: str, first: str) -> None:
    assert instants(parse(text, UTC), "2026-11-01T00:00:00Z", 1)[0].startswith(first)


@pytest.mark.parametrize("text", REFUSED["spaces_ok"])
def test_spaces_are_fine(text: str) -> None:
    assert instants(parse(text, UTC), "2026-11-30T00:00:00Z", 1) == ["2026-12-01T00:00:00Z"]


def test_the_hook() -> None:
    (spec,) = agentd_schedule_rules()
    assert spec.field == "cron"
    assert spec.parse is parse


@given(st.text(alphabet="0123456789*/,-LW# \tAMON", max_size=30))
def test_any_text_is_a_rule_or_a_value_error(text: str) -> None:
    try:
        rule = parse(text, UTC)
    except ValueError:
        return
    after = datetime(2026, 11, 30, tzinfo=UTC)
    following = rule.next(after)
    assert following is None or following > after


EXPRESSIONS = ["30 2 * * *", "0 * * * *", "*/20 1-3 * * *", "15 0 29 2 *", "5 1,2,3 * * 0", "0 */5 1 * *"]
ODD_ZONES = ["America/New_York", "Australia/Lord_Howe", "Europe/Berlin", "Africa/Casablanca", "Pacific/Apia"]


@given(
    expression=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(ODD_ZONES),
    after=st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2035, 1, 1), timezones=st.just(UTC)),
)
def test_next_is_later_and_nothing_lies_between(expression: str, zone: str, after: datetime) -> None:
    rule = parse(expression, ZoneInfo(zone))
    following = rule.next(after)
    assert following is not None
    assert following > after
    middle = after + (following - after) / 2
    assert rule.next(middle) == following
