"""Test nodes for the benchmarks: an effect that costs nothing, a meter as a step, a start node that fires a burst."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from agentd.hookspecs import hookimpl
from agentd.ports.fields import Fields
from agentd.ports.nodes import StartSpec, StepSpec


class Nothing(Fields):
    value: Any = Field(None, description="returned as it came")
    note: str | None = Field(None, description="a line to append to $BENCH_EFFECTS")
    gate: str | None = Field(None, description="wait until this file is there")


class Measure(Fields):
    at: Literal["start", "stop"] = Field(description="begin to measure, or print what was measured")
    count: int = Field(1, description="how much was done: counters are divided by it")


class Burst(Fields):
    count: int = Field(1000, description="how many events at once")
    meter: bool = Field(False, description="measure from the first event until every run has ended")


def perform(call: Any) -> Any:
    gate = call.fields.get("gate")
    return _note(call) if gate is None else _wait(call, gate)


async def _wait(call: Any, gate: str) -> Any:
    await asyncio.shield(_opened(gate))
    return _note(call)


@functools.cache
def _opened(gate: str) -> asyncio.Task[None]:
    """One watcher for all that wait at a gate."""

    async def watch() -> None:
        while not Path(gate).exists():  # noqa: ASYNC110, ASYNC240 another process makes it
            await asyncio.sleep(0.005)

    return asyncio.ensure_future(watch())


def _note(call: Any) -> Any:
    note = call.fields.get("note")
    if note is not None:
        os.write(_effects(), f"{call.run_id} {note} {call.key}\n".encode())
    return call.fields.get("value")


@functools.cache
def _effects() -> int:
    return os.open(os.environ["BENCH_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@functools.cache
def _meter() -> Any:
    from measure import Meter

    return Meter(os.environ["BENCH_DATA"])


def measure(call: Any) -> None:
    if call.fields["at"] == "start":
        _meter().start()
    else:
        _print(call.fields["count"])


def _print(count: int) -> None:
    from measure import emit

    emit(_meter().stop(count))


async def burst(fields: Burst, sink: Any, clock: Any, log: Any) -> None:
    if await sink.state() is not None:
        return
    if fields.meter:
        _meter().start()
    await asyncio.gather(*(sink.fire({"i": i}, key=str(i)) for i in range(fields.count)))
    if fields.meter:
        runs = sink._door.instance.runs  # no port tells a start node of ends: a benchmark may look inside
        while runs.finished < fields.count:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        _print(fields.count)
    await sink.save({"fired": fields.count})


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return [
        StepSpec(kind="bench.effect", fields=Nothing, perform=perform),
        StepSpec(kind="bench.measure", fields=Measure, perform=measure),
    ]


@hookimpl
def agentd_start_nodes() -> Iterable[StartSpec]:
    return [StartSpec(kind="bench.burst", fields=Burst, arm=burst, lifetime="job")]
