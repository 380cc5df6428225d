"""Kinds of start node that the kernel's own loop drives: their fields."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from agentd.builtin.late import late
from agentd.hookspecs import hookimpl
from agentd.ports.nodes import StartSpec

fields = partial(late, "agentd.builtin.fields_start")


SPECS: tuple[StartSpec, ...] = (
    StartSpec(kind="once", fields=fields("Once"), lifetime="job", help="at boot"),
    StartSpec(kind="manual", fields=fields("Manual"), lifetime="job", help="on command only"),
    StartSpec(kind="loop", fields=fields("Loop"), help="again when the previous run ended"),
    StartSpec(kind="schedule", fields=fields("Schedule"), help="on the clock"),
    StartSpec(kind="signal", fields=fields("Signal"), help="a named signal"),
    StartSpec(kind="event", fields=fields("Event"), help="something the instance says of itself"),
    StartSpec(kind="stream", fields=fields("Stream"), help="each event of a declared stream"),
    StartSpec(kind="correlate", fields=fields("Correlate"), help="several events that belong together"),
)


@hookimpl
def agentd_start_nodes() -> Iterable[StartSpec]:
    return SPECS
