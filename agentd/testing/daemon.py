"""A whole instance inside a test: real configuration, real store, no children, and time in the test's hands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from agentd.config.load import load
from agentd.runtime.instance import Instance
from agentd.security.redaction import Redactor
from agentd.telemetry.emitter import Telemetry
from agentd.testing.clock import FakeClock
from agentd.testing.instance import Lived


class Daemon:
    """``async with Daemon(document, directory) as daemon``: booted at the begin, drained at the end.

    `document` is the configuration; `agent.name` and a durable store in `directory` are filled in. `clock` may be
    handed from one life to the next.
    """

    def __init__(self, document: Mapping[str, Any], directory: Path, *, clock: FakeClock | None = None,
                 args: tuple[str, ...] = ()) -> None:  # fmt: skip
        self.clock = clock or FakeClock()
        self.directory = directory
        whole = {"agent": {"name": "test"}, "store": {"kind": "file", "file": {"path": str(directory / "state")}},
                 "lifecycle": {"run_until": "drained", "drain_timeout": "5s"}, **document}  # fmt: skip
        (directory / "agentd.yaml").write_text(json.dumps(whole))
        loaded = load(["-c", str(directory / "agentd.yaml"), *args], {"PATH": "/usr/bin"}, directory)
        assert not loaded.errors, loaded.errors
        self._lived = Lived()
        log = Telemetry(self._lived, redactor=Redactor([]), level="debug", content=True, strict=True, run_id="life")
        self.instance = Instance(loaded, log, None, secrets=loaded.secrets, flush=lambda: None, clock=self.clock)
        self.code: int | None = None

    async def __aenter__(self) -> Daemon:
        self._life = asyncio.create_task(self.instance.run())
        await self.until("proc.ready", "proc.exit")
        if self.named("proc.exit"):
            await self._life
            raise AssertionError(self._lived.events)
        await self.rest()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> int:
        """Drain; the exit code."""
        self.instance.leave("test")
        self.code = await self._life
        return self.code

    def named(self, event: str) -> list[dict[str, Any]]:
        """Every event of that name so far, in order."""
        return self._lived.named(event)

    async def until(self, *events: str) -> None:
        """Return when one of `events` was logged."""
        while not any(map(self.named, events)):
            await self.clock.turn()

    async def rest(self) -> None:
        """Return when nothing moves any more but for the clock."""
        quiet, seen = 0, -1
        while quiet < 6:
            await self.clock.turn()
            await self.instance.journal.settled()
            await self.instance.journal.read("manifest", "instance")  # as slow as what others read now
            quiet = quiet + 1 if seen == len(self._lived.events) and not self.instance.admission.accepting else 0
            seen = len(self._lived.events)

    async def advance(self, seconds: float) -> None:
        """Let time pass at once, and what is due happen."""
        self.clock.move(seconds)
        self.instance.timers.poll()
        await self.rest()

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The records of finished runs, in the order they ended."""
        return sorted(self.instance.finished_runs.values(), key=lambda run: run["ended"])
