"""The kernel's kinds of start node, one module each: when to fire. What firing means is the door's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.runtime.starts.start import Start

_KINDS = {
    "once": ("once", "Once"),
    "manual": ("once", "Manual"),
    "loop": ("loop", "Loop"),
    "schedule": ("schedule", "Schedule"),
    "signal": ("signal", "Signal"),
    "event": ("event", "Event"),
    "stream": ("stream", "Stream"),
    "correlate": ("correlate", "Correlate"),
}


def start_class(kind: str) -> type[Start]:
    """The class that arms start nodes of `kind`; one of a plugin is served by `plugged`. Imported when first used."""
    module, name = _KINDS.get(kind, ("plugged", "Plugged"))
    found: type[Start] = getattr(import_module(f"agentd.runtime.starts.{module}"), name)
    return found
