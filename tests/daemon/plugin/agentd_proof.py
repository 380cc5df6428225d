"""A step that leaves evidence: each time it is performed, a line says in which life, for which run and step, with which
key, before and after it took its time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from agentd.errors import StepFailed
from agentd.hookspecs import hookimpl
from agentd.ports.fields import Fields
from agentd.ports.nodes import StartSpec, StepSpec


class Effect(Fields):
    value: Any = Field(None, description="returned as it came")
    takes: float = Field(0, description="seconds")
    first: float = Field(0, description="more seconds in the first life")
    fails: int = Field(0, description="how many attempts fail")


class Burst(Fields):
    count: int = Field(10, description="how many events at once")


def _write(*words: object) -> None:
    fd = os.open(os.environ["PROOF"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (" ".join(map(str, (os.environ["PROOF_LIFE"], *words))) + "\n").encode())
    os.close(fd)


def perform(call: Any) -> Any:
    words = (call.run_id, call.step_id, call.key)
    _write("begin", *words)
    if call.attempt <= call.fields["fails"]:
        raise StepFailed("it fails, as it was asked to", retry=True)
    takes = call.fields["takes"] + (call.fields["first"] if os.environ["PROOF_LIFE"] == "0" else 0)
    if takes:
        return _slowly(call, words, takes)
    _write("end", *words)
    return call.fields["value"]


async def _slowly(call: Any, words: tuple[str, ...], takes: float) -> Any:
    await asyncio.sleep(takes)
    _write("end", *words)
    return call.fields["value"]


async def burst(fields: Burst, sink: Any, clock: Any, log: Any) -> None:
    if await sink.state() is None:
        await asyncio.gather(*(sink.fire({"i": i}, key=str(i)) for i in range(fields.count)))
        await sink.save({"fired": fields.count})


@hookimpl
def agentd_step_nodes() -> Iterable[StepSpec]:
    return [StepSpec(kind="proof.effect", fields=Effect, perform=perform)]


@hookimpl
def agentd_start_nodes() -> Iterable[StartSpec]:
    return [StartSpec(kind="proof.burst", fields=Burst, arm=burst)]
