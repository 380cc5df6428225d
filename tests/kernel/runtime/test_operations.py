"""What an operator may ask, answered by a whole instance."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import UsageError
from agentd.runtime.admission import NotAccepted
from agentd.runtime.signals import NoSuchRun
from agentd.testing.daemon import Daemon

WORK = {
    "name": "work",
    "inputs": {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "steps": {
        "s": {"kind": "manual"},
        "rest": {"kind": "sleep", "duration": "1m", "depends_on": ["s"]},
        "f": {"kind": "finish", "depends_on": ["rest"], "output": "{{inputs.n | 0}}"},
    },
}
DOCUMENT = {"workflows": [WORK]}


def test_a_run_from_its_start_to_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with Daemon(DOCUMENT, tmp_path) as daemon:
            operate = daemon.instance.operations.operate
            first = await operate("run", {"workflow": "work", "inputs": {"n": 3}, "id": "r1"})
            assert first == {"run": "r1", "workflow": "work", "known": False}
            again = asyncio.ensure_future(operate("run", {"workflow": "work", "id": "r1", "wait": True}))
            await daemon.rest()
            status = await operate("status", {})
            assert [run["run"] for run in status["runs"]] == ["r1"]
            assert status["runs"][0]["waits"][0]["until"] == daemon.clock.now() + 60
            assert (await operate("status", {"run": "r1"}))["steps"]["rest"]["status"] == "suspended"
            await daemon.advance(60)
            end = {"run": "r1", "workflow": "work", "status": "completed", "output": 3, "err": None, "exit": 0}
            assert await again == end
            assert await operate("run", {"workflow": "work", "id": "r1", "wait": True}) == end
            assert (await operate("status", {}))["finished"] == {"completed": 1}

    asyncio.run(test())


def test_a_key_names_one_run(tmp_path: Path) -> None:
    async def test() -> None:
        async with Daemon(DOCUMENT, tmp_path) as daemon:
            operate = daemon.instance.operations.operate
            runs = {(await operate("run", {"workflow": "work", "key": "k"}))["run"] for _ in range(3)}
            await daemon.rest()
            assert len(runs) == len(daemon.instance.runs.live) == 1

    asyncio.run(test())


def test_cancel_and_pause_of_a_run(tmp_path: Path) -> None:
    async def test() -> None:
        async with Daemon(DOCUMENT, tmp_path) as daemon:
            operate = daemon.instance.operations.operate
            for id in ("r1", "r2"):
                await operate("run", {"workflow": "work", "id": id})
            await daemon.rest()
            assert await operate("cancel", {"run": "r1", "reason": "enough"}) == {"cancelled": "r1"}
            assert await operate("pause", {"run": "r2"}) == {"paused": "r2"}
            assert (await operate("status", {"run": "r2"}))["status"] == "paused"
            assert await operate("resume", {"run": "r2"}) == {"resumed": "r2"}
            await daemon.advance(60)
            assert {id: run["status"] for id, run in daemon.instance.finished_runs.items()} == {
                "r1": "cancelled", "r2": "completed",
            }  # fmt: skip

    asyncio.run(test())


def test_a_paused_instance_accepts_and_begins_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with Daemon(DOCUMENT, tmp_path) as daemon:
            operate = daemon.instance.operations.operate
            assert await operate("pause", {}) == {"state": "paused"}
            await operate("run", {"workflow": "work", "id": "r1"})
            await daemon.rest()
            status = await operate("status", {})
            assert not status["runs"] and [event["event"] for event in status["inbox"]] == ["r1"]
            assert (await operate("status", {"run": "r1"}))["status"] == "queued"
            assert await operate("resume", {}) == {"state": "running"}
            await daemon.rest()
            assert list(daemon.instance.runs.live) == ["r1"]

    asyncio.run(test())


def test_a_lame_duck_takes_no_work_and_stays_up(tmp_path: Path) -> None:
    async def test() -> None:
        loop = {"name": "again", "steps": {"s": {"kind": "loop", "interval": "1s"}, **_finish()}}
        async with Daemon({"workflows": [WORK, loop]}, tmp_path) as daemon:
            operate = daemon.instance.operations.operate
            assert await operate("lameduck", {}) == {"state": "lameduck"}
            before = len(daemon.runs)
            await daemon.advance(10)
            assert len(daemon.runs) == before
            with pytest.raises(NotAccepted):
                await operate("run", {"workflow": "work"})
            assert (await operate("status", {}))["state"] == "lameduck"

    asyncio.run(test())


def _finish() -> dict[str, Any]:
    return {"f": {"kind": "finish", "depends_on": ["s"]}}


def test_drain_lets_go_of_those_who_wait(tmp_path: Path) -> None:
    async def test() -> None:
        async with Daemon(DOCUMENT, tmp_path) as daemon:
            operate = daemon.instance.operations.operate
            waiting = asyncio.ensure_future(operate("run", {"workflow": "work", "id": "r1", "wait": True}))
            await daemon.rest()
            assert await operate("drain", {}) == {"state": "draining"}
            with pytest.raises(NotAccepted, match="goes on when it is started again"):
                await waiting
        assert daemon.code == 0
        async with Daemon(DOCUMENT, tmp_path, clock=daemon.clock) as daemon:
            assert list(daemon.instance.runs.live) == ["r1"]

    asyncio.run(test())


@pytest.mark.parametrize(
    ("op", "args", "error", "said"),
    [
        ("run", {"workflow": "wrok"}, UsageError, "did you mean work"),
        ("run", {}, UsageError, "workflow"),
        ("run", {"workflow": "work", "id": "a/b"}, UsageError, "no slash"),
        ("run", {"workflow": "work", "color": 1}, UsageError, "color"),
        ("statsu", {}, UsageError, "did you mean status"),
        ("status", {"run": "x"}, NoSuchRun, "x"),
        ("cancel", {"run": "x"}, NoSuchRun, "x"),
        ("pause", {"run": "x"}, NoSuchRun, "x"),
        ("signal", {"name": "go", "run": "x"}, NoSuchRun, "x"),
    ],
)
def test_what_cannot_be_done(tmp_path: Path, op: str, args: dict[str, Any], error: type[Exception], said: str) -> None:
    async def test() -> None:
        async with Daemon({**DOCUMENT, "store": {"kind": "memory"}}, tmp_path) as daemon:
            with pytest.raises(error, match=said):
                await daemon.instance.operations.operate(op, args)

    asyncio.run(test())


def test_inputs_that_do_not_fit_start_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        from agentd.engine.starts import InputsInvalid

        async with Daemon(DOCUMENT, tmp_path) as daemon:
            with pytest.raises(InputsInvalid):
                await daemon.instance.operations.operate("run", {"workflow": "work", "inputs": {"n": "three"}})
            assert not daemon.instance.runs.live

    asyncio.run(test())


def test_the_configuration_is_told_without_credentials(tmp_path: Path) -> None:
    async def test() -> None:
        args = ("--intelligence=https://example.com/v1", "--model=m", "--intelligence-token=hunter2")
        async with Daemon(DOCUMENT, tmp_path, args=args) as daemon:
            told = await daemon.instance.operations.operate("config", {})
            assert "hunter2" not in str(told) and told["config"]["intelligence"]["model"] == "m"

    asyncio.run(test())


def test_finished_runs_are_let_go(tmp_path: Path) -> None:
    async def test() -> None:
        quick = {"name": "quick", "steps": {"s": {"kind": "manual"}, **_finish()}}
        kept = {
            "store": {
                "kind": "file",
                "file": {"path": str(tmp_path / "state")},
                "retention": {"runs": {"keep_last": 2}},
            }
        }
        async with Daemon({"workflows": [quick], **kept}, tmp_path) as daemon:
            for n in range(5):
                await daemon.instance.operations.run("quick", id=f"r{n}", wait=True)
                daemon.clock.move(0.1)
            await daemon.advance(1)
            await daemon.advance(1)
            assert list(daemon.instance.finished_runs) == ["r3", "r4"]
            assert await daemon.instance.journal.ids("run") == ["r3", "r4"]
            assert {id[:2] for id in await daemon.instance.journal.ids("step")} <= {"r3", "r4"}
        kept["store"]["retention"] = {"runs": {"ttl": "1h"}}  # type: ignore[index]
        daemon.clock.move(3600)
        async with Daemon({"workflows": [quick], **kept}, tmp_path, clock=daemon.clock) as daemon:
            assert not daemon.instance.finished_runs and await daemon.instance.journal.ids("run") == []

    asyncio.run(test())
