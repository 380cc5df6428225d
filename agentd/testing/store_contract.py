"""What every store promises, as tests: derive from :class:`StoreContract` and give it a store.

    class TestMyStore(StoreContract):
        @asynccontextmanager
        async def opened(self, where):
            async with open_mine(MyOptions(path=where), a_host()) as store:
                yield store

The tests are synchronous and run their own loop, so they need no plugin of pytest.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import Conflict
from agentd.ports.store import Delete, Envelope, Put, Store

HOSTILE = ["../..", "a\0b", "x" * 4096, "ключ/ü/🦀", " ", "%2F", "a'b\"c;--", ".lock"]


def envelope(seq: int = 1, **state: Any) -> Envelope:
    """An envelope as the journal makes them."""
    return {"v": 1, "kind": "run", "id": "x", "seq": seq, "ts": 1.5, "instance": "test", "state": state}


class PlainHost:
    """A :class:`agentd.ports.host.Host` for tests: real time, no secrets, events kept in `events`."""

    instance = "test"

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.clock = self
        self.secrets = self

    def log(self, event: str, /, *, level: str = "info", msg: str = "", **fields: Any) -> None:
        self.events.append((event, {"level": level, "msg": msg, **fields}))

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def resolve(self, text: str) -> str:
        return text


class StoreContract:
    """Reusable tests. Override :meth:`opened`; set `reopens` to False where state ends with the process."""

    reopens = True

    def opened(self, where: Path) -> AbstractAsyncContextManager[Store]:
        """The store that lives at `where`, a directory of this test alone; the same one each time."""
        raise NotImplementedError

    @pytest.fixture
    def run(self, tmp_path: Path) -> Callable[[Callable[[Store], Awaitable[Any]]], Any]:
        """Run a coroutine function with the store opened; may be called again, which reopens it."""

        async def main(body: Callable[[Store], Awaitable[Any]]) -> Any:
            async with self.opened(tmp_path / "store") as store:
                return await body(store)

        return lambda body: asyncio.run(main(body))

    def test_is_a_store(self, run: Any) -> None:
        async def body(store: Store) -> None:
            assert isinstance(store, Store)

        run(body)

    def test_gives_back_what_was_put(self, run: Any) -> None:
        async def body(store: Store) -> None:
            assert await store.get("a/b/run/1") is None
            kept = envelope(text="naïve 🦀 \ud800 \0", number=1.5, big=2**60, none=None, list=[True, {}])
            await store.put("a/b/run/1", 1, kept)
            assert await store.get("a/b/run/1") == kept

        run(body)

    def test_sequence_must_grow(self, run: Any) -> None:
        async def body(store: Store) -> None:
            await store.put("k", 1, envelope(1))
            await store.put("k", 2, envelope(2, x=2))
            for taken in (1, 2):
                with pytest.raises(Conflict) as caught:
                    await store.put("k", taken, envelope(taken, x="other"))
                assert caught.value.fields["latest"] == 2
            await store.put("k", 7, envelope(7))
            assert (await store.get("k") or {})["seq"] == 7

        run(body)

    def test_a_retry_that_meets_its_own_write_is_no_conflict(self, run: Any) -> None:
        async def body(store: Store) -> None:
            await store.put("k", 1, envelope(1, x=1))
            await store.put("k", 1, envelope(1, x=1))

        run(body)

    def test_of_two_racing_writers_one_wins(self, run: Any) -> None:
        async def body(store: Store) -> None:
            results = await asyncio.gather(
                *(store.put("k", 1, envelope(1, writer=n)) for n in range(2)), return_exceptions=True
            )
            assert sorted(type(r).__name__ for r in results) == ["Conflict", "NoneType"]
            winner = results.index(None)
            assert (await store.get("k") or {})["state"] == {"writer": winner}

        run(body)

    def test_lists_keys_in_order_and_pages(self, run: Any) -> None:
        async def body(store: Store) -> None:
            keys = [f"p/{n:03d}" for n in range(25)]
            await store.commit([Put(key, 1, envelope()) for key in reversed([*keys, "o/1", "q/1", "p"])])
            assert await store.list("p/") == keys
            assert await store.list("p/", after=keys[9], limit=5) == keys[10:15]
            assert await store.list("p/", after=keys[-1]) == []
            assert await store.list("nothing/") == []
            assert [key async for page in store.scan("p/") for key, _ in page] == keys

        run(body)

    def test_deletes(self, run: Any) -> None:
        async def body(store: Store) -> None:
            await store.put("k", 1, envelope(1))
            await store.put("k", 2, envelope(2))
            await store.delete("k")
            await store.delete("k")
            assert await store.get("k") is None
            assert await store.list("") == []
            await store.put("k", 1, envelope(1, again=True))
            assert (await store.get("k") or {})["state"] == {"again": True}

        run(body)

    def test_keeps_a_tombstone_like_any_envelope(self, run: Any) -> None:
        async def body(store: Store) -> None:
            tombstone = {**envelope(2), "state": None}
            await store.put("k", 1, envelope(1))
            await store.put("k", 2, tombstone)
            assert await store.get("k") == tombstone

        run(body)

    @pytest.mark.parametrize("id", HOSTILE, ids=range(len(HOSTILE)))
    def test_hostile_ids(self, run: Any, id: str) -> None:
        from agentd.journal.keys import Keys, parse

        key = Keys("agentd", "..").key("run", id)

        async def body(store: Store) -> None:
            await store.put(key, 1, envelope(id=id))
            assert await store.list(key) == [key]
            assert (await store.get(key) or {})["state"] == {"id": id}
            assert parse(key)[3] == id

        run(body)

    @pytest.mark.parametrize("size", [0, 1, 4096, 65537, 8 << 20])
    def test_values_of_any_size(self, run: Any, size: int) -> None:
        async def body(store: Store) -> None:
            await store.put("k", 1, envelope(value="v" * size))
            assert len((await store.get("k") or {})["state"]["value"]) == size

        run(body)

    def test_a_commit_is_all_or_none(self, run: Any) -> None:
        async def body(store: Store) -> None:
            await store.put("b", 3, envelope(3))
            with pytest.raises(Conflict):
                await store.commit([Put("a", 1, envelope()), Put("b", 1, envelope()), Delete("b")])
            assert await store.list("") == ["b"]
            await store.commit(
                [Put("a", 1, envelope()), Put("a", 2, envelope(2)), Delete("b"), Put("c", 1, envelope())]
            )
            assert await store.list("") == ["a", "c"]

        run(body)

    def test_one_bad_commit_of_many_fails_alone(self, run: Any) -> None:
        async def body(store: Store) -> None:
            await store.put("taken", 5, envelope(5))
            units = [[Put(f"k{n}", 1, envelope(n=n)), Put(f"l{n}", 1, envelope())] for n in range(20)]
            units[7].append(Put("taken", 2, envelope(2)))
            results = await asyncio.gather(*(store.commit(unit) for unit in units), return_exceptions=True)
            assert [type(r) for r in results].count(Conflict) == 1 and isinstance(results[7], Conflict)
            assert set(await store.list("k")) == {f"k{n}" for n in range(20) if n != 7}

        run(body)

    def test_commits_are_ordered_and_encode_at_once(self, run: Any) -> None:
        async def body(store: Store) -> None:
            state: dict[str, Any] = {}
            waits = []
            for seq in range(1, 101):
                state["n"] = seq
                waits.append(store.commit([Put("k", seq, {**envelope(seq), "state": state})]))
            state["n"] = "changed"
            await asyncio.gather(*waits)
            found = await store.get("k") or {}
            assert (found["seq"], found["state"]) == (100, {"n": 100})

        run(body)

    def test_a_thousand_puts_at_once(self, run: Any) -> None:
        async def body(store: Store) -> None:
            await asyncio.gather(*(store.put(f"k/{n}", 1, envelope(n=n)) for n in range(1000)))
            assert len(await store.list("k/", limit=5000)) == 1000

        run(body)

    def test_is_there_after_reopening(self, run: Any) -> None:
        if not self.reopens:
            pytest.skip("this store ends with its process")

        async def write(store: Store) -> None:
            await store.put("k", 1, envelope(x=1))
            await store.put("k", 2, envelope(2, x=2))
            await store.put("gone", 1, envelope())
            await store.delete("gone")

        async def read(store: Store) -> None:
            assert await store.list("") == ["k"]
            assert await store.get("k") == envelope(2, x=2)
            with pytest.raises(Conflict):
                await store.put("k", 2, envelope(2, x=3))

        run(write)
        run(read)
