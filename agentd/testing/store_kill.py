"""What a store that outlives its process promises when the process is killed, as tests."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from agentd.ports.store import Delete, Put, Store, Write
from agentd.testing.store_contract import envelope


class StoreKillContract:
    """SIGKILL at random instants (opening and closing too): what was acknowledged is there, nothing is half there.

    Override :meth:`opened`. The default run is short; ``-m soak`` kills 200 times.
    """

    rounds = 15

    def opened(self, where: Path) -> AbstractAsyncContextManager[Store]:
        """The store that lives at `where`; the same one each time."""
        raise NotImplementedError

    def test_survives_kills(self, tmp_path: Path) -> None:
        self._kill(tmp_path / "store", self.rounds, random.Random(os.urandom(8)))

    @pytest.mark.soak
    @pytest.mark.timeout(600)
    def test_survives_many_kills(self, tmp_path: Path) -> None:
        self._kill(tmp_path / "store", 200, random.Random(os.urandom(8)))

    def _kill(self, where: Path, rounds: int, chance: random.Random) -> None:
        acknowledged = 0
        for _ in range(rounds):
            acknowledged = max(acknowledged, self._life(where, chance.uniform(0.0, 0.15)))
            acknowledged = asyncio.run(self._judge(where, acknowledged))
        assert acknowledged, "no life was long enough to write anything"

    def _life(self, where: Path, seconds: float) -> int:
        """One process that writes until it is killed; the last unit it acknowledged."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                asyncio.run(self._write(where, writing))
            except BaseException as error:
                print(f"writer: {error!r}", file=sys.stderr)  # noqa: T201
            os._exit(1)
        os.close(writing)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        with os.fdopen(reading, "rb") as pipe:
            acknowledged = pipe.read().decode().split("\n")[:-1]
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the writer could not go on; its reason is on stderr"
        return int(acknowledged[-1]) if acknowledged else 0

    async def _write(self, where: Path, pipe: int) -> None:
        while True:  # opening and closing are instants like any other
            async with self.opened(where) as store:
                head = await store.get("head")
                start = head["state"]["n"] + 1 if head else 1
                for n in range(start, start + 40):
                    await store.commit(_unit(n))
                    os.write(pipe, f"{n}\n".encode())

    async def _judge(self, where: Path, acknowledged: int) -> int:
        async with self.opened(where) as store:
            head = await store.get("head")
            n = head["state"]["n"] if head else 0
            assert n >= acknowledged, f"unit {acknowledged} was acknowledged, the store is at {n}"
            first = await store.list("a/", limit=n + 10)
            assert first == sorted(f"a/{i}" for i in range(1, n + 1))
            assert await store.list("b/", limit=n + 10) == ([f"b/{n}"] if n else [])
            return n


def _unit(n: int) -> list[Write]:
    """What belongs together: a new record, one that replaces the last one's, and the head."""
    state = envelope(n, n=n, text="x" * (n % 50) * 100)
    return [Put(f"a/{n}", 1, envelope(1, n=n)), Put(f"b/{n}", 1, state), Delete(f"b/{n - 1}"), Put("head", n, state)]
