"""The circuit breaker."""

from agentd.intelligence.breaker import Breaker


def failing(breaker: Breaker, now: float, times: int = 1) -> None:
    for _ in range(times):
        breaker.begin()
        breaker.failed(now)


def test_three_in_a_row_open_it_and_success_in_between_counts_anew() -> None:
    breaker = Breaker()
    failing(breaker, 0, 2)
    breaker.succeeded()
    failing(breaker, 0, 2)
    assert breaker.healthy and breaker.admits(0)
    failing(breaker, 0)
    assert not breaker.healthy and not breaker.admits(4.9) and breaker.wait(1) == 4


def test_one_probe_at_a_time_and_a_cooldown_that_doubles_to_a_minute() -> None:
    breaker, now, cooldowns = Breaker(), 0.0, []
    failing(breaker, now, 3)
    for _ in range(6):
        cooldowns.append(breaker.wait(now))
        now += breaker.wait(now)
        assert breaker.admits(now) and breaker.begin()
        assert not breaker.admits(now), "the probe is under way"
        breaker.failed(now)
    assert cooldowns == [5, 10, 20, 40, 60, 60]
    now += 60
    assert breaker.begin()
    breaker.succeeded()
    assert breaker.healthy and not breaker.begin()
    failing(breaker, now, 3)
    assert breaker.wait(now) == 5


def test_a_probe_that_tells_nothing_leaves_room_for_the_next() -> None:
    breaker = Breaker()
    failing(breaker, 0, 3)
    assert breaker.begin()
    breaker.released()
    assert breaker.admits(5) and not breaker.healthy


def test_what_was_learnt_is_passed_on() -> None:
    first = Breaker()
    for _ in range(3):
        first.begin()
        first.failed(100.0)
    second = Breaker(first.state)
    assert (second.healthy, second.admits(101.0), second.wait(101.0)) == (False, False, first.wait(101.0))
    assert second.admits(100.0 + first.wait(100.0))
