"""Records, restarts, and the two ways of living with a store that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentd.errors import Conflict, StoreError, StoreFull
from agentd.journal.artifacts import Artifacts, make, reference
from agentd.journal.delivery import Health
from agentd.journal.envelope import TooLarge, UnknownVersion
from agentd.journal.journal import HEARTBEAT, Journal, Record, Settings
from agentd.journal.memory import Memory
from agentd.journal.streams import Event, Keep, Streams
from agentd.ports.store import Put

from .flaky import Clock, Events, Flaky, breathe


class World:
    """One store, and journals that live one after the other on it."""

    def __init__(self) -> None:
        self.store, self.clock, self.log = Flaky(), Clock(), Events()
        self.health: list[Health] = []

    def journal(self, **settings: Any) -> Journal:
        return Journal(
            self.store,
            Settings(instance="i", **settings),
            clock=self.clock,
            log=self.log,
            notify=self.health.append,
        )

    def stored(self) -> dict[str, Any]:
        """``kind/id`` -> state."""
        found = (json.loads(text) for _, text in self.store._records.values())
        return {f"{e['kind']}/{e['id']}": e["state"] for e in found if e["kind"] != "manifest"}


def play(body: Callable[[World], Awaitable[None]]) -> None:
    asyncio.run(body(World()))


def put(kind: str, id: str, **state: Any) -> Record:
    return (kind, id, state)


def test_what_was_written_is_restored() -> None:
    async def body(w: World) -> None:
        first = w.journal()
        assert (await first.open()).fresh
        live = put("run", "r1", status="running")
        await first.write([live, put("step", "r1/a", n=1), put("step", "r1/a[0].b", n=2)])
        await first.write([put("run", "r2", status="completed"), put("step", "r2/a", n=3)])
        await first.write([put("inbox", "e2", n=2), put("inbox", "e1", n=3), put("inbox", "e3", n=1)])
        await first.write([put("run", "r1", status="paused"), put("timer", "t", at=5)])
        await first.forget("inbox", "e2")
        await first.close()

        restored = await w.journal().open()
        assert (restored.generation, restored.fresh) == (2, False)
        assert restored.runs == {"r1": {"status": "paused"}, "r2": {"status": "completed"}}
        assert list(restored.unfinished) == ["r1"]
        assert restored.steps == {"r1": {"a": {"n": 1}, "a[0].b": {"n": 2}}}
        assert list(restored.inbox) == ["e3", "e1"]
        assert restored.of("timer") == {"t": {"at": 5}}
        assert restored.entities == 7

    play(body)


def test_many_unfinished_runs_are_restored_with_their_steps() -> None:
    async def body(w: World) -> None:
        first = w.journal()
        await first.open()
        for n in range(300):
            await first.write([put("run", f"r{n}", status="running"), put("step", f"r{n}/a", n=n)])
        restored = await w.journal().open()
        assert len(restored.steps) == 300 and restored.steps["r7"] == {"a": {"n": 7}}

    play(body)


def test_a_fresh_start_retires_the_work_and_keeps_the_memory() -> None:
    async def body(w: World) -> None:
        first = w.journal()
        await first.open()
        await first.write([put("run", "r", status="running"), put("step", "r/a"), put("memory", "m", value=1)])
        restored = await w.journal().open(fresh=True)
        assert (restored.fresh, restored.generation, restored.superseded, restored.retired) == (True, 2, 1, 2)
        assert restored.runs == {} and restored.of("memory") == {"m": {"value": 1}}
        assert (await w.journal().open()).runs == {}

    play(body)


def test_a_later_life_writes_over_what_an_earlier_one_wrote() -> None:
    async def body(w: World) -> None:
        kinds = ["run", "inbox", "timer", "memory", "artifact", "context", "stream", "cache"]
        for life in range(3):
            journal = w.journal()
            await journal.open()
            await journal.write([put(kind, "x", life=life) for kind in kinds])
            await journal.write([put(kind, "x", life=life, again=True) for kind in kinds])
            await journal.close()
        assert w.stored() == {f"{kind}/x": {"life": 2, "again": True} for kind in kinds}
        assert "store.conflict" not in w.log.names

    play(body)


def test_states_are_taken_as_they_are_at_the_call() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        state: dict[str, Any] = {"n": 1}
        written = journal.write([("run", "r", state)])
        state["n"] = 2
        await written
        assert w.stored() == {"run/r": {"n": 1}}

    play(body)


def test_reading_and_removing() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        await journal.write([put("run", "r", n=1), put("step", "r/a"), put("step", "r/b"), put("step", "rr/a")])
        await journal.write([put("artifact", "r/x"), put("timer", "r/t")])
        assert await journal.read("run", "r") == {"n": 1}
        assert await journal.read("run", "none") is None
        assert await journal.ids("step", "r/") == ["r/a", "r/b"]
        assert list(await journal.read_many("step")) == ["r/a", "r/b", "rr/a"]
        await journal.remove_run("r")
        assert list(w.stored()) == ["step/rr/a"]
        assert await journal.remove_all("step", "") == 1

    play(body)


def test_sections_that_moved_are_told() -> None:
    async def body(w: World) -> None:
        await w.journal().open(digest={"workflows": "1", "streams": "1"})
        await w.journal().open(digest={"workflows": "2", "streams": "1", "new": "1"})
        assert w.log == [("store.config_changed", {"sections": ["workflows"]})]

    play(body)


def test_an_unknown_version_is_refused() -> None:
    async def body(w: World) -> None:
        await w.store.put("agentd/i/run/r", 1, {"v": 2})
        with pytest.raises(UnknownVersion):
            await w.journal().open()

    play(body)


def test_only_the_too_large_write_fails() -> None:
    async def body(w: World) -> None:
        journal = w.journal(max_value_bytes=500)
        await journal.open()
        large, small = journal.write([put("run", "a", x="x" * 500)]), journal.write([put("run", "b")])
        with pytest.raises(TooLarge, match="max_value_bytes"):
            await large
        await small
        with pytest.raises(TypeError):
            journal.write([put("run", "c", x={1, 2})])
        assert journal.health is Health.OK

    play(body)


# Two under one identity.


def test_the_loser_of_a_race_is_fenced() -> None:
    async def body(w: World) -> None:
        loser, winner = w.journal(), w.journal()
        await loser.open()
        await winner.open()
        await loser.write([put("run", "a fresh key")])
        await w.clock.advance(HEARTBEAT)
        assert loser.health is Health.FENCED and winner.health is not Health.FENCED
        assert w.log.names == ["store.conflict"] and w.log[0][1]["latest"] == 2
        assert w.health == [Health.FENCED]
        with pytest.raises(Conflict):
            await loser.write([put("run", "r")])
        await winner.write([put("run", "r")])

    play(body)


# A store that fails.


def test_a_passing_failure_is_not_seen_and_order_is_kept() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        w.store.failures = [StoreError("once"), StoreError("twice")]
        told: list[Any] = []
        for n in range(4):
            journal.write([put("run", "r", n=n)], told.append)
            await breathe()
        assert told == []
        await w.clock.advance(1)
        assert told == [None] * 4 and w.stored() == {"run/r": {"n": 3}}
        assert w.log.names == ["store.error"] and w.health == []

    play(body)


def test_a_unit_that_got_through_behind_a_failed_one_is_not_undone() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        w.store.failures = [StoreError("once"), None]
        waits = [journal.write([put("run", "r", n=n), put("run", f"r{n}")]) for n in range(2)]
        await asyncio.gather(*waits, w.clock.advance(1))
        assert w.stored() == {"run/r": {"n": 1}, "run/r0": {}, "run/r1": {}}

    play(body)


def test_halt_fails_what_waits_and_never_writes_it_later() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        w.store.broken = StoreFull("full")
        waits = [journal.write([put("run", f"r{n}")]) for n in range(3)]
        results, _ = await asyncio.gather(asyncio.gather(*waits, return_exceptions=True), w.clock.advance(5))
        assert [type(r) for r in results] == [StoreFull] * 3
        assert journal.health is Health.FAILING and w.health == [Health.FAILING]
        with pytest.raises(StoreFull):
            await journal.write([put("run", "at once")])
        w.store.broken = None
        await journal.write([put("run", "later")])
        assert journal.health is Health.OK and w.health[-1] is Health.OK
        assert w.log.names == ["store.error", "store.recovered"]
        assert list(w.stored()) == ["run/later"]

    play(body)


def test_degrade_acknowledges_from_memory_and_catches_up() -> None:
    async def body(w: World) -> None:
        journal = w.journal(on_error="degrade")
        await journal.open()
        w.store.broken = StoreFull("full")
        wait = journal.write([put("run", "r", n=0)])
        await w.clock.advance(5)
        await wait
        assert journal.health is Health.DEGRADED
        for n in range(1, 5):
            await journal.write([put("run", "r", n=n), put("run", f"r{n}")])
        await journal.forget("run", "r1")
        assert w.stored() == {}
        w.store.broken = None
        await w.clock.advance(6)
        assert journal.health is Health.OK
        assert w.stored() == {"run/r": {"n": 4}, "run/r2": {}, "run/r3": {}, "run/r4": {}}
        assert w.log.names == ["store.error", "store.degraded", "store.recovered"]
        await journal.write([put("run", "r", n=9)])
        assert w.stored()["run/r"] == {"n": 9}

    play(body)


def test_closing_while_degraded_tries_once_more() -> None:
    async def body(w: World) -> None:
        journal = w.journal(on_error="degrade")
        await journal.open()
        w.store.broken = StoreFull("full")
        journal.write([put("run", "r", n=0)], lambda error: None)
        await w.clock.advance(5)
        w.store.broken = None
        await journal.close()
        assert w.stored() == {"run/r": {"n": 0}}

    play(body)


def test_a_store_that_does_not_answer_is_an_error() -> None:
    async def body(w: World) -> None:
        journal = w.journal(timeout=0.02)
        await journal.open()
        w.store.hang = True
        failed = journal.write([put("run", "r")])
        w.clock.time += 1
        with pytest.raises(StoreError, match="did not answer"):
            while not failed.done():
                await asyncio.sleep(0.005)
                await w.clock.advance(1)
            await failed
        assert journal.health is Health.FAILING

    play(body)


def test_settled_waits_for_all() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        w.store.failures = [StoreError("once")]
        told: list[Any] = []
        journal.write([put("run", "a")], told.append)
        journal.write([put("run", "b")], told.append)
        await asyncio.gather(journal.settled(), w.clock.advance(1))
        assert told == [None, None] and journal.outstanding == 0
        await journal.settled()

    play(body)


# Views.


def test_memory() -> None:
    memory = Memory({"a": {"value": 1}})
    assert memory.set("b.c", [2]) == ("memory", "b.c", {"value": [2]})
    assert memory.set("s", "hush", sensitive=True) == ("memory", "s", {"value": "hush", "sensitive": True})
    assert (memory.get("a"), memory.get("b.c"), memory.get("none", 0)) == (1, [2], 0)
    assert memory.keys() == ["a", "b.c", "s"] and memory.keys("b") == ["b.c"]
    assert memory.values() == {"a": 1, "b.c": [2]} and memory.keys(sensitive=False) == ["a", "b.c"]
    assert memory.delete("a") == ("memory", "a", None) and "a" not in memory


def test_artifacts() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        artifacts = Artifacts(journal)
        ref = await artifacts.create("r", "report", {"big": "é"})
        assert ref == await artifacts.create("r", "report", {"big": "é"})
        id = reference(ref)
        assert id and id.startswith("r/report-")
        found = await artifacts.get(id)
        assert found == {"value": {"big": "é"}, "size": ref["size"]}
        await artifacts.delete(id)
        assert await artifacts.get(id) is None

    play(body)
    assert reference({"$artifact": 1, "size": 2}) is None and reference("x") is None
    assert make("r", "n", 1, sensitive=True)[1][2] == {"value": 1, "size": 1, "sensitive": True}


def test_streams() -> None:
    async def body(w: World) -> None:
        journal = w.journal()
        await journal.open()
        declared = {"orders": Keep(max_events=3), "old": Keep(max_age=10)}
        streams = Streams(journal, declared, w.clock)
        await streams.open()
        heard: list[Event] = []
        stop = streams.listen("orders", heard.append)
        for n in range(5):
            assert streams.append("orders", f"o.{n}", {"n": n}) == n + 1
        streams.append("old", "x", None)
        assert heard == [], "heard before it is durable"
        await journal.settled()
        stop()
        assert [(e.n, e.subject, e.data) for e in heard] == [(n + 1, f"o.{n}", {"n": n}) for n in range(5)]
        assert [e.n for e in await streams.read("orders")] == [3, 4, 5]
        assert [e.n for e in await streams.read("orders", after=3, limit=1)] == [4]
        await w.clock.advance(11)
        streams.sweep()
        await journal.settled()
        assert await streams.read("old") == []

        later = Streams(journal, declared, w.clock)
        await later.open()
        assert (later.last("orders"), later.last("old")) == (5, 1)
        assert later.append("old", "y", None) == 2
        with pytest.raises(KeyError):
            later.append("undeclared", "x", None)

    play(body)


def test_the_journal_beside_a_foreign_record_of_the_same_store() -> None:
    async def body(w: World) -> None:
        await w.store.commit([Put("agentd/other/run/r", 1, {"v": 7}), Put("elsewhere", 1, {})])
        assert (await w.journal().open()).runs == {}

    play(body)
