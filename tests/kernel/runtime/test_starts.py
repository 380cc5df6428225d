"""Start nodes in a whole instance, with time in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentd.testing.clock import FakeClock
from agentd.testing.daemon import Daemon


def workflow(
    start: dict[str, Any], *, name: str = "w", output: Any = "{{steps.s.output}}", **more: Any
) -> dict[str, Any]:
    """A workflow of one start node whose payload is its output."""
    return {"name": name, "steps": {"s": start, "f": {"kind": "finish", "depends_on": ["s"], "output": output}}, **more}


def outputs(daemon: Daemon) -> list[Any]:
    return [run.get("output") for run in daemon.runs]


def iterations(daemon: Daemon) -> list[int]:
    return [run["output"]["iteration"] for run in daemon.runs]


def lives(test: Callable[[Path], Awaitable[None]]) -> Callable[[Path], None]:
    """Run an asynchronous test."""

    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    run.__name__ = test.__name__
    return run


# --- loop --------------------------------------------------------------------------------------------------------


@lives
async def test_a_loop_starts_at_once_and_then_at_its_interval(tmp_path: Path) -> None:
    async with Daemon({"workflows": [workflow({"kind": "loop", "interval": "10s"})]}, tmp_path) as daemon:
        assert iterations(daemon) == [1]
        await daemon.advance(9)
        assert iterations(daemon) == [1]
        await daemon.advance(1)
        await daemon.advance(10)
        assert iterations(daemon) == [1, 2, 3]
        assert daemon.named("trigger.armed")[0]["kind"] == "loop"


@lives
async def test_a_loop_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    document = {"workflows": [workflow({"kind": "loop", "interval": "1h"})]}
    async with Daemon(document, tmp_path) as daemon:
        await daemon.advance(3600)
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        assert iterations(daemon) == [1, 2]
        assert daemon.named("trigger.armed")[0]["next"] == "2023-11-15T00:13:20Z"
        await daemon.advance(3599)
        assert iterations(daemon) == [1, 2]
        await daemon.advance(1)
        assert iterations(daemon) == [1, 2, 3]


@lives
async def test_a_loop_that_was_due_while_nobody_was_there_starts_at_boot(tmp_path: Path) -> None:
    document = {"workflows": [workflow({"kind": "loop", "delay": "1h"})]}
    async with Daemon(document, tmp_path) as daemon:
        pass
    daemon.clock.move(5 * 3600)
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        assert iterations(daemon) == [1, 2]


@lives
async def test_a_loop_ends_after_its_iterations_for_good(tmp_path: Path) -> None:
    document = {"workflows": [workflow({"kind": "loop", "delay": "1s", "max_iterations": 2})]}
    async with Daemon(document, tmp_path) as daemon:
        await daemon.advance(1)
        await daemon.advance(100)
        assert iterations(daemon) == [1, 2]
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        await daemon.advance(100)
        assert iterations(daemon) == [1, 2]


@lives
async def test_a_loop_ends_when_its_condition_holds(tmp_path: Path) -> None:
    start = {"kind": "loop", "delay": "1s", "until": "output.iteration == 3"}
    async with Daemon({"workflows": [workflow(start)]}, tmp_path) as daemon:
        for _ in range(6):
            await daemon.advance(1)
        assert iterations(daemon) == [1, 2, 3]


def failing(start: dict[str, Any]) -> dict[str, Any]:
    steps = {
        "s": start,
        "x": {"kind": "fail", "message": "no", "depends_on": ["s"]},
        "f": {"kind": "finish", "depends_on": ["x"]},
    }
    return {"name": "w", "steps": steps}


@lives
async def test_failed_iterations_back_off(tmp_path: Path) -> None:
    backoff = {"initial": "10s", "factor": 3, "max": "1m"}
    document = {"workflows": [failing({"kind": "loop", "interval": "1s", "backoff": backoff})]}
    async with Daemon(document, tmp_path) as daemon:
        for pause in (10, 30, 60, 60):
            before = len(daemon.runs)
            await daemon.advance(pause - 1)
            assert len(daemon.runs) == before
            await daemon.advance(1)
            assert len(daemon.runs) == before + 1


@lives
async def test_a_loop_without_a_pause_does_not_spin_when_it_fails(tmp_path: Path) -> None:
    async with Daemon({"workflows": [failing({"kind": "loop"})]}, tmp_path) as daemon:
        assert len(daemon.runs) == 1
        await daemon.advance(1)
        assert len(daemon.runs) == 2


@lives
async def test_a_job_with_a_loop_ends_when_the_loop_does(tmp_path: Path) -> None:
    document = {
        "workflows": [workflow({"kind": "loop", "max_iterations": 5})],
        "lifecycle": {"run_until": "idle"},
    }
    daemon = Daemon(document, tmp_path)
    assert await daemon.instance.run() == 0
    assert iterations(daemon) == [1, 2, 3, 4, 5]


@lives
async def test_an_iteration_that_is_taken_back_does_not_end_the_loop(tmp_path: Path) -> None:
    document = {"workflows": [workflow({"kind": "loop", "interval": "10s"})]}
    async with Daemon(document, tmp_path) as daemon:
        await daemon.instance.operations.pause()
        await daemon.advance(10)
        (queued,) = daemon.instance.admission.waiting_events
        await daemon.instance.operations.cancel(queued.id)
        await daemon.instance.operations.resume()
        await daemon.advance(10)
        assert iterations(daemon) == [1, 3]


@lives
async def test_a_job_does_not_leave_before_everything_is_armed(tmp_path: Path) -> None:
    past = workflow({"kind": "schedule", "at": "2020-01-01T00:00:00Z"}, name="past")
    soon = workflow({"kind": "loop", "max_iterations": 1}, name="soon")
    document = {"workflows": [past, soon, workflow({"kind": "once"}, output="done")]}
    daemon = Daemon({**document, "lifecycle": {"run_until": "idle"}}, tmp_path)
    assert await daemon.instance.run() == 0
    assert sorted(run["workflow"] for run in daemon.runs) == ["soon", "w"]


# --- schedule ----------------------------------------------------------------------------------------------------


@lives
async def test_a_schedule_ticks(tmp_path: Path) -> None:
    async with Daemon({"workflows": [workflow({"kind": "schedule", "every": "1m"})]}, tmp_path) as daemon:
        assert outputs(daemon) == []
        await daemon.advance(60)
        await daemon.advance(59)
        assert outputs(daemon) == [{"tick": "2023-11-14T22:14:20Z"}]
        await daemon.advance(1)
        assert outputs(daemon)[1:] == [{"tick": "2023-11-14T22:15:20Z"}]


@pytest.mark.parametrize(
    ("catch_up", "ticks"),
    [("none", []), ("one", ["22:18:20"]), ("all", ["22:14:20", "22:15:20", "22:16:20", "22:17:20", "22:18:20"])],
)
def test_what_becomes_of_missed_ticks(tmp_path: Path, catch_up: str, ticks: list[str]) -> None:
    document = {"workflows": [workflow({"kind": "schedule", "every": "1m", "catch_up": catch_up})]}

    async def test() -> None:
        async with Daemon(document, tmp_path) as daemon:
            pass
        daemon.clock.move(5 * 60 + 30)
        async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
            assert [run["output"]["tick"][11:19] for run in daemon.runs] == ticks
            await daemon.advance(30)
            assert daemon.runs[-1]["output"]["tick"][11:19] == "22:19:20"
            before = len(daemon.runs)
        async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
            assert len(daemon.runs) == before

    asyncio.run(test())


@lives
async def test_an_instant_fires_once_ever(tmp_path: Path) -> None:
    document = {"workflows": [workflow({"kind": "schedule", "at": "2023-11-15T00:00:00+01:00"})]}
    async with Daemon(document, tmp_path) as daemon:
        await daemon.advance(46 * 60)
        assert outputs(daemon) == []
        await daemon.advance(60)
        assert outputs(daemon) == [{"tick": "2023-11-14T23:00:00Z"}]
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        await daemon.advance(86400)
        assert len(daemon.runs) == 1


@lives
async def test_a_rule_of_a_plugin_in_a_time_zone(tmp_path: Path) -> None:
    start = {"kind": "schedule", "cron": "30 8 * * *", "tz": "Europe/Berlin"}
    async with Daemon({"workflows": [workflow(start)]}, tmp_path) as daemon:
        armed = daemon.named("trigger.armed")[0]
        assert armed["next"] == "2023-11-15T07:30:00Z"
        await daemon.advance(1_700_033_400.0 - daemon.clock.now())
        assert outputs(daemon) == [{"tick": "2023-11-15T07:30:00Z"}]


@lives
async def test_a_time_of_day(tmp_path: Path) -> None:
    start = {"kind": "schedule", "at": "08:30", "tz": "Asia/Tokyo"}
    async with Daemon({"workflows": [workflow(start)]}, tmp_path) as daemon:
        assert daemon.named("trigger.armed")[0]["next"] == "2023-11-14T23:30:00Z"
        for _ in range(2):
            await daemon.advance(86400)
        assert [run["output"]["tick"] for run in daemon.runs] == []  # each was an hour and more late
        await daemon.advance(76 * 60 + 40)
        assert outputs(daemon) == [{"tick": "2023-11-16T23:30:00Z"}]


@lives
async def test_a_period_is_elapsed_time_when_the_clock_is_set_back(tmp_path: Path) -> None:
    async with Daemon({"workflows": [workflow({"kind": "schedule", "every": "10m"})]}, tmp_path) as daemon:
        await daemon.advance(600)
        daemon.clock.set(-7200)
        await daemon.advance(540)
        assert len(daemon.runs) == 1
        await daemon.advance(60)
        assert len(daemon.runs) == 2
        await daemon.advance(600)
        assert len(daemon.runs) == 3


# --- signal, event -----------------------------------------------------------------------------------------------


@lives
async def test_a_signal_starts_what_its_filter_lets_through(tmp_path: Path) -> None:
    start = {"kind": "signal", "name": "go", "filter": "size > 3"}
    async with Daemon({"workflows": [workflow(start)]}, tmp_path) as daemon:
        operate = daemon.instance.operations.operate
        assert (await operate("signal", {"name": "go", "payload": {"size": 3}}))["started"] == 0
        assert (await operate("signal", {"name": "stop", "payload": {"size": 9}}))["started"] == 0
        assert (await operate("signal", {"name": "go", "payload": {"size": 9}}))["started"] == 1
        await daemon.rest()
        assert outputs(daemon) == [{"size": 9}]


WAITING = {
    "name": "waiting",
    "steps": {
        "s": {"kind": "manual"},
        "go": {"kind": "wait", "on": "signal", "name": "go", "depends_on": ["s"]},
        "f": {"kind": "finish", "depends_on": ["go"], "output": "{{steps.go.output}}"},
    },
}


@lives
async def test_a_signal_wakes_who_waits(tmp_path: Path) -> None:
    listening = workflow({"kind": "signal", "name": "go", "deliver": "wait"}, name="listening")
    async with Daemon({"workflows": [WAITING, listening]}, tmp_path) as daemon:
        operate = daemon.instance.operations.operate
        for _ in range(2):
            await operate("run", {"workflow": "waiting"})
        await daemon.rest()
        assert await operate("signal", {"name": "go", "payload": 7, "sender": "me"}) | {"id": 0} == {
            "id": 0, "woken": 2, "started": 0, "kept": False,
        }  # fmt: skip
        await daemon.rest()
        assert outputs(daemon) == [{"signal": "go", "payload": 7, "from": "me"}] * 2
        assert await daemon.instance.journal.ids("inbox") == []


@lives
async def test_a_wait_lets_through_what_its_filter_does(tmp_path: Path) -> None:
    steps = {**WAITING["steps"], "go": {**WAITING["steps"]["go"], "filter": "payload.n > 1"}}  # type: ignore[index]
    async with Daemon({"workflows": [{"name": "choosy", "steps": steps}]}, tmp_path) as daemon:
        operate = daemon.instance.operations.operate
        await operate("run", {"workflow": "choosy", "id": "r1"})
        await daemon.rest()
        assert (await operate("signal", {"name": "go", "payload": {"n": 1}}))["woken"] == 0
        assert (await operate("signal", {"name": "go", "payload": {"n": 1}, "run": "r1"}))["kept"]
        assert (await operate("signal", {"name": "go", "payload": {"n": 2}, "run": "r1"}))["woken"] == 1
        await daemon.rest()
        assert outputs(daemon)[0]["payload"] == {"n": 2}
        assert await daemon.instance.journal.ids("inbox") == []


@lives
async def test_a_start_node_that_became_another_kind_begins_anew(tmp_path: Path) -> None:
    async with Daemon({"workflows": [workflow({"kind": "schedule", "every": "1h"})]}, tmp_path) as daemon:
        pass
    document = {"workflows": [workflow({"kind": "loop", "interval": "1h"})]}
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        assert iterations(daemon) == [1]


@lives
async def test_a_signal_for_a_run_waits_for_it_across_a_restart(tmp_path: Path) -> None:
    steps = {
        "s": {"kind": "manual"},
        "pause": {"kind": "sleep", "duration": "1m", "depends_on": ["s"]},
        "go": {**WAITING["steps"]["go"], "depends_on": ["pause"]},  # type: ignore[index]
        "f": WAITING["steps"]["f"],  # type: ignore[index]
    }
    document = {"workflows": [{"name": "late", "steps": steps}]}
    async with Daemon(document, tmp_path) as daemon:
        operate = daemon.instance.operations.operate
        await operate("run", {"workflow": "late", "id": "r1"})
        await daemon.rest()
        assert (await operate("signal", {"name": "go", "payload": 1, "run": "r1"}))["kept"]
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        await daemon.advance(60)
        assert outputs(daemon) == [{"signal": "go", "payload": 1, "from": "operator"}]
        assert await daemon.instance.journal.ids("inbox") == []


@lives
async def test_a_signal_that_a_crash_kept_from_being_offered_is_offered_once(tmp_path: Path) -> None:
    document = {"workflows": [workflow({"kind": "signal", "name": "go"})]}
    async with Daemon(document, tmp_path) as daemon:
        signal = {"name": "go", "payload": 5, "from": "", "run": None}
        await daemon.instance.journal.write([("inbox", "x", {"n": 0, "ts": 0.0, "signal": signal})])
    for _ in range(2):
        async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
            assert outputs(daemon) == [5]


@lives
async def test_ends_of_workflows_start_others(tmp_path: Path) -> None:
    document = {
        "workflows": [
            workflow({"kind": "manual"}, name="work", output="done"),
            workflow({"kind": "event", "on": "workflow.finished", "filter": "workflow == 'work'"}, name="after"),
            failing({"kind": "manual"}),
            workflow({"kind": "event", "on": "workflow.failed"}, name="alarm", output="{{steps.s.output.err.message}}"),
        ]
    }
    async with Daemon(document, tmp_path) as daemon:
        await daemon.instance.operations.run("work", wait=True)
        await daemon.instance.operations.run("w", wait=True)
        await daemon.rest()
        made = {run["workflow"]: run.get("output") for run in daemon.runs}
        assert made["after"]["output"] == "done" and made["alarm"] == "no"
        assert len(daemon.runs) == 4
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        assert len(daemon.runs) == 4


# --- streams -----------------------------------------------------------------------------------------------------


def append(daemon: Daemon, subject: str, data: Any) -> None:
    daemon.instance.streams.append("orders", subject, data)


@lives
async def test_each_event_of_a_stream_starts_a_run_once(tmp_path: Path) -> None:
    start = {"kind": "stream", "stream": "orders", "subject": "new.*", "filter": "data.total > 10"}
    document = {"streams": {"orders": {}}, "workflows": [workflow(start, output="{{steps.s.output.data.total}}")]}
    async with Daemon(document, tmp_path) as daemon:
        append(daemon, "new.eu", {"total": 11})
        append(daemon, "new.us", {"total": 1})
        append(daemon, "gone.eu", {"total": 99})
        await daemon.rest()
        assert outputs(daemon) == [11]
        await daemon.instance.triggers.disarm()
        append(daemon, "new.eu", {"total": 12})
        await daemon.rest()
    for _ in range(2):
        async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
            assert sorted(outputs(daemon)) == [11, 12]


@pytest.mark.parametrize(("begin", "expected"), [("new", []), ("earliest", [{"a": 1}])])
def test_where_a_stream_is_begun(tmp_path: Path, begin: str, expected: list[Any]) -> None:
    async def test() -> None:
        streams = {"orders": {}}
        async with Daemon({"streams": streams, "workflows": [workflow({"kind": "manual"})]}, tmp_path) as daemon:
            append(daemon, "x", {"a": 1})
        start = {"kind": "stream", "stream": "orders", "from": begin}
        document = {"streams": streams, "workflows": [workflow(start, output="{{steps.s.output.data}}")]}
        async with Daemon(document, tmp_path) as daemon:
            assert outputs(daemon) == expected

    asyncio.run(test())


@lives
async def test_a_stream_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    daemon = Daemon({"workflows": [workflow({"kind": "stream", "stream": "orders"})]}, tmp_path)
    assert await daemon.instance.run() == 2


CORRELATE = {"kind": "correlate", "stream": "orders", "on": ["paid", "packed.*"], "window": "1m", "by": "order"}


@lives
async def test_events_that_belong_together_start_one_run(tmp_path: Path) -> None:
    document = {"streams": {"orders": {}}, "workflows": [workflow(CORRELATE)]}
    async with Daemon(document, tmp_path) as daemon:
        append(daemon, "paid", {"order": 1})
        append(daemon, "packed.eu", {"order": 2})
        append(daemon, "packed.us", {"no": "order"})
        await daemon.rest()
        assert outputs(daemon) == []
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        append(daemon, "packed.eu", {"order": 1})
        await daemon.rest()
        (output,) = outputs(daemon)
        assert output["key"] == 1 and output["complete"]
        assert {pattern: event["n"] for pattern, event in output["events"].items()} == {"paid": 1, "packed.*": 4}
        await daemon.advance(60)
        append(daemon, "paid", {"order": 2})
        await daemon.rest()
        assert len(daemon.runs) == 1
        assert "lacks paid" in daemon.named("start.skipped")[-1]["reason"]
    async with Daemon(document, tmp_path, clock=daemon.clock) as daemon:
        append(daemon, "packed.eu", {"order": 2})
        await daemon.rest()
        assert [run["output"]["key"] for run in daemon.runs] == [1, 2]


@lives
async def test_incomplete_sets_may_fire_and_are_bounded(tmp_path: Path) -> None:
    start = {**CORRELATE, "on_incomplete": "fire", "max_pending": 2}
    document = {"streams": {"orders": {}}, "workflows": [workflow(start)]}
    async with Daemon(document, tmp_path) as daemon:
        for order in (1, 2, 3):
            append(daemon, "paid", {"order": order})
        await daemon.rest()
        assert [(run["output"]["key"], run["output"]["complete"]) for run in daemon.runs] == [(1, False)]
        await daemon.advance(60)
        assert sorted(run["output"]["key"] for run in daemon.runs) == [1, 2, 3]


def test_a_clock_that_stands_still_moves_sleepers() -> None:
    async def test() -> None:
        clock = FakeClock()
        sleeper = asyncio.ensure_future(clock.sleep(5))
        await asyncio.sleep(0)
        clock.move(4)
        await asyncio.sleep(0)
        assert not sleeper.done()
        clock.move(1)
        await sleeper

    asyncio.run(test())
