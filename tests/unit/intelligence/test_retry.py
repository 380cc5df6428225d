"""Retry-After and the backoff."""

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from agentd.intelligence import retry

chances = st.floats(0, 1, exclude_max=True)


@given(st.text(max_size=40), st.floats(0, 4e9))
def test_any_header_is_understood_or_ignored(value: str, now: float) -> None:
    wait = retry.retry_after({"retry-after": value}, now)
    assert wait is None or (wait >= 0 and math.isfinite(wait))


@given(st.lists(chances, min_size=5, max_size=5))
def test_own_waits_always_grow(chance: list[float]) -> None:
    waits = [retry.delay(n, None, c) for n, c in enumerate(chance, 1)]
    assert all(later > earlier * 1.1 for earlier, later in itertools.pairwise(waits))
    assert waits[0] > 0


@given(st.floats(0, 1e6), chances)
def test_an_asked_wait_is_waited_in_full(asked: float, chance: float) -> None:
    assert asked <= retry.delay(1, asked, chance) <= asked * 1.1 + 1e-6


def test_dates_of_years_that_are_none() -> None:
    for value in ("Sun, 06 Nov 99999 08:49:37 GMT", "Mon, 31 Feb 2026 00:00:00 GMT"):
        assert retry.retry_after({"retry-after": value}, 0.0) in (None, 0.0)
