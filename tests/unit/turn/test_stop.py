"""Giving way."""

from __future__ import annotations

import asyncio

import pytest

from agentd.errors import DeadlineExceeded
from agentd.turn.stop import Stop, Stopped


async def forever(log: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        log.append("let go")
        raise


def test_a_result_wins() -> None:
    async def main() -> int:
        stop = Stop()

        async def seven() -> int:
            return 7

        return await stop.race(seven(), deadline=None)

    assert asyncio.run(main()) == 7


@pytest.mark.parametrize(("now", "hard", "given_up"), [(False, False, True), (True, False, True), (True, True, True)])
def test_a_stop_gives_up(now: bool, hard: bool, given_up: bool) -> None:
    log: list[str] = []

    async def main() -> None:
        stop = Stop()
        asyncio.get_running_loop().call_soon(lambda: stop.request("drain", now=now))
        with pytest.raises(Stopped, match="drain"):
            await stop.race(forever(log), deadline=None, hard=hard)
        with pytest.raises(Stopped):
            stop.check()

    asyncio.run(main())
    assert log == ["let go"]


def test_a_soft_stop_hears_hard_work_out() -> None:
    async def main() -> str:
        stop = Stop()

        async def work() -> str:
            stop.request("drain")
            await asyncio.sleep(0)
            return "heard"

        return await stop.race(work(), deadline=None, hard=True)

    assert asyncio.run(main()) == "heard"


def test_the_deadline_gives_up() -> None:
    log: list[str] = []

    async def main() -> None:
        with pytest.raises(DeadlineExceeded):
            await Stop().race(forever(log), deadline=asyncio.get_running_loop().time() + 0.001)

    asyncio.run(main())
    assert log == ["let go"]


def test_what_does_not_let_go_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentd.turn.stop._LET_GO", 0.01)

    async def main() -> None:
        release = asyncio.Event()

        async def stubborn() -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        stop = Stop()
        stop.request("drain")
        with pytest.raises(Stopped):
            await stop.race(stubborn(), deadline=None)
        release.set()

    asyncio.run(main())


def test_the_first_reason_stays() -> None:
    stop = Stop()
    stop.request("one")
    stop.request("two", now=True)
    assert stop.reason == "one"
