"""Test nodes for the benchmarks: an effect that costs nothing, and a start node that fires a burst."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from agentd.hookspecs import hookimpl
from agentd.ports.fields import Fields
from agentd.ports.nodes import StartSpec, StepSpec


class Nothing(Fields):
    value: Any = Field(None, description="returned as it came")
    note: str | None = Field(None, description="a line to append to $BENCH_EFFECTS")


class Burst(Fields):
    count: int = Field(1000, description="how many events at once")


_FD: list[int] = []


def perform(call: Any) -> Any:
    note = call.fields.get("note")
    if note is not None:
        if not _FD:
            _FD.append(os.open(os.environ["BENCH_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT))
        os.write(_FD[0], f"{call.run_id} {note} {call.key}\n".encode())
    return call.fields.get("value")


async def burst(fields: Burst, sink: Any, clock: Any, log: Any) -> None:
    if await sink.state() is None:
        await asyncio.gather(*(sink.fire({"i": i}, key=str(i)) for i in range(fields.count)))
        await sink.save({"fired": fields.count})


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return [StepSpec(kind="bench.effect", fields=Nothing, perform=perform)]


@hookimpl
def agentd_start_nodes() -> Iterable[StartSpec]:
    return [StartSpec(kind="bench.burst", fields=Burst, arm=burst, lifetime="job")]
