"""Kinds of start node that the kernel's own loop drives: their fields."""

from __future__ import annotations

from collections.abc import Iterable

from agentd.builtin.late import late
from agentd.hookspecs import hookimpl
from agentd.ports.nodes import StartSpec

SPECS: tuple[StartSpec, ...] = (
    StartSpec(kind="once", fields=late("start.Once"), lifetime="job", help="at boot"),
    StartSpec(kind="manual", fields=late("start.Manual"), lifetime="job", help="on command only"),
    StartSpec(kind="loop", fields=late("start.Loop"), help="again when the previous run ended"),
    StartSpec(kind="schedule", fields=late("start.Schedule"), help="on the clock"),
    StartSpec(kind="signal", fields=late("start.Signal"), help="a named signal"),
    StartSpec(kind="event", fields=late("start.Event"), help="something the instance says of itself"),
    StartSpec(kind="stream", fields=late("start.Stream"), help="each event of a declared stream"),
    StartSpec(kind="correlate", fields=late("start.Correlate"), help="several events that belong together"),
)


@hookimpl
def agentd_start_nodes() -> Iterable[StartSpec]:
    return SPECS
